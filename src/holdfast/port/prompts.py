"""Parts of prompts, for adapters that show a model their own messages, and for later sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.text.tokens import estimate_tokens
from holdfast.types.late import importer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.chat import Chat
    from holdfast.memory import Memory
    from holdfast.prompt.recall_block import RecallBlock
    from holdfast.prompt.window import CheckedPolicy
    from holdfast.records.options import RecallOptions
    from holdfast.runtime import Runtime
    from holdfast.search.query import is_searchable
    from holdfast.text.requests import parts_of
    from holdfast.types import Hit, Message, Record, Summary

# Not all who need a part of a prompt analyse words.
__getattr__ = importer(
    "holdfast.port.prompts", {"search.query": "is_searchable", "text.requests": "parts_of"}, "holdfast"
)


def _runtime_of(handle: object) -> Runtime | None:
    # Loaded with the first memory that is opened.
    from holdfast.runtime import runtime_of

    return runtime_of(handle)


def unshortened(handle: Memory | Chat, budget: int | None) -> CheckedPolicy:
    """Return the policy of windows of a memory or a chat at a budget, with every message as it is."""
    from holdfast.prompt import window

    runtime = _runtime_of(handle)
    return window.unshortened(window.at_budget(runtime.policy if runtime else window.Lossless(), budget))


def compaction_target(budget: int) -> int:
    """Return the tokens that a chat is compacted to at a budget, where no policy is named."""
    from holdfast.prompt.window import Lossless, share_of

    return share_of(budget, Lossless(budget).compaction.target)


def leave_unanswered(memory: Memory) -> None:
    """Let no answer be expected to the prompts that this process makes: they are only displayed."""
    if runtime := _runtime_of(memory):
        runtime.prompts.worker = ""


def recall_block(memory: Memory, chat: str, hits: Sequence[Hit], max_tokens: int) -> RecallBlock:
    """Return the best hits that fit some tokens as one block for a prompt of a chat, framed as data."""
    from holdfast.prompt.recall_block import fit

    runtime, scope = _runtime_of(memory), memory.scope
    count = runtime.count_tokens if runtime else estimate_tokens
    return fit(hits, (scope.reference(scope.space), chat), max_tokens, count, named=scope.is_layered)


class KnownAndRecalled(NamedTuple):
    """The knowledge block, and the recall block; "" where there is nothing to show."""

    known: str
    recalled: str


def known_and_recalled(
    memory: Memory,
    chat_id: str,
    said: Sequence[Message],
    max_tokens: int,
    options: Mapping[str, object],
    *,
    known: bool = True,
) -> KnownAndRecalled:
    """Return the knowledge block, and the recall block for the newest message of the user.

    They are for a conversation that a framework itself shows its model. A message without words, such as a
    lone emoji, recalls nothing. What the conversation, or the knowledge, shows already is not recalled and
    takes none of the places.

    Args:
        memory: what to recall from.
        chat_id: the chat of the conversation.
        said: the messages that the model sees anyway, oldest first.
        max_tokens: the tokens of what is recalled.
        options: options of `Memory.recall`.
        known: whether to show what is known.

    """
    from html import escape

    from holdfast.prompt.recall_block import hit_limit
    from holdfast.prompt.window import LastN
    from holdfast.search.query import has_words

    chat = memory.chat(chat_id)
    query = next((message.content for message in reversed(said) if message.role == "user"), "")
    system = chat.prompt(policy=LastN(0)).system if known else ""
    if not has_words(query):
        return KnownAndRecalled(system, "")
    chosen = dict(options)
    limit = cast("int", chosen.pop("limit", hit_limit(None, max_tokens)))
    there = {message.content for message in said}
    hits = memory.recall(query, limit=limit + len(there), **cast("RecallOptions", chosen))
    fresh = [hit for hit in hits if hit.text not in there and escape(hit.text, quote=False) not in system]
    return KnownAndRecalled(system, recall_block(memory, chat.id, fresh[:limit], max_tokens).text)


def summary_text(summary: Summary) -> str:
    """Return a summary as prompts show it, framed as data, with credentials masked."""
    from holdfast.prompt.summary_block import summary_message

    return str(summary_message(summary)["content"])


def transcript(messages: Sequence[Message], max_tokens: int) -> str:
    """Return the newest messages that fit some tokens as lines of text, framed as data; "" without words."""
    from holdfast.prompt.transcript import Extent, review

    return review((), reversed(messages), Extent(budget=max_tokens), estimate_tokens)


def known_here(memory: Memory) -> tuple[str, Iterable[str]]:
    """Return the knowledge block of the next chat, and the ids of records that it shows only while they fit.

    Of a project, what was learned elsewhere is left out, which may be of any other one.
    """
    from holdfast.prompt.knowledge_block import known_at
    from holdfast.store import snapshots

    runtime = _runtime_of(memory)
    if runtime is None:
        return "", ()
    now = snapshots.now(runtime.database, memory.scope, runtime.now())
    block = known_at(runtime.database, memory.scope, runtime.kinds, now, learned_elsewhere=False)
    return block.text, block.records


def newest_records(memory: Memory, kind: str, limit: int, outside: str) -> list[Record]:
    """Return the newest records of a kind, newest first, without those of a chat and those in quarantine."""
    from holdfast.store import records

    runtime = _runtime_of(memory)
    return records.newest(runtime.database, memory.scope.space, kind, limit, outside) if runtime else []
