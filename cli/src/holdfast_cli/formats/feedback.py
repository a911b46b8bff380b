"""Export of feedback: a set of questions for the benchmark, with the chats that answer them."""

import json
from collections.abc import Iterable
from typing import NamedTuple, TextIO

from holdfast import Memory
from holdfast.kinds import FEEDBACK
from holdfast.types import Record
from holdfast.types.references import write_reference
from holdfast_cli.formats.export import messages_of


class ExportedFeedback(NamedTuple):
    """The number of questions written, and of feedback left out: without a query, or not helpful."""

    questions: int
    left_out: int


def export_feedback(memory: Memory, stream: TextIO) -> ExportedFeedback:
    """Write what users found helpful as JSON that `python -m benchmarks recall FILE` reads.

    Its `sessions` are all chats of the handle, its `questions` the queries with at least one hit that helped;
    `gold` names the messages that such a hit is, or was learned from, and `unhelpful` those of hits that did
    not help. Of several answers about one hit of a query the last one counts. Credentials are not masked.
    """
    feedback = memory.records(kind=FEEDBACK)
    by_query: dict[str, dict[str, Record]] = {}
    for record in feedback:
        if record.meta.get("asked") and record.meta.get("hit") != "summary":
            by_query.setdefault(record.text, {})[str(record.meta.get("of"))] = record
    sessions = {chat.id: _session(memory, chat.id) for chat in reversed(memory.chats(archived=None))}
    questions = []
    for query, answers in by_query.items():
        own = [record for record in answers.values() if record.chat in sessions]
        gold, unhelpful = (_names(own, helpful=helpful) for helpful in (True, False))
        if gold:
            questions.append({"question": query, "kind": FEEDBACK, "gold": gold, "unhelpful": unhelpful})
    stream.write(json.dumps({"sessions": list(sessions.values()), "questions": questions}) + "\n")
    queries = {str(question["question"]) for question in questions}
    return ExportedFeedback(len(questions), sum(record.text not in queries for record in feedback))


def _names(records: Iterable[Record], *, helpful: bool) -> list[str]:
    """Return the references to the messages of records that were helpful, or were not, each once."""
    own = (record for record in records if record.meta["helpful"] is helpful)
    spans = ((record.chat, record.messages or (1, 0)) for record in own)
    names = (write_reference(chat, seq) for chat, span in spans for seq in range(span[0], span[1] + 1))
    return list(dict.fromkeys(names))


def _session(memory: Memory, chat: str) -> dict[str, object]:
    return {
        "id": chat,
        "messages": [
            {
                "id": write_reference(chat, message.seq),
                "role": message.role,
                "content": message.content,
                "name": message.name,
                "at": message.at.isoformat() if message.at else None,
            }
            for message in messages_of(memory, chat)
        ],
    }
