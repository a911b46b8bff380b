"""The queries within the sessions of RealMem, with the earlier sessions that their answers need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.io.found import dicts_of, text_of


class Query(NamedTuple):
    """Hold a query: its place (indices of session and turn), its text, and the earlier sessions that its answer needs."""

    session: int
    turn: int
    text: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Hold the queries of one person, and how many more name no session that came before them."""

    queries: tuple[Query, ...]
    unusable: int


def queries(data: object) -> QuerySet:
    """List the queries of a parsed RealMem file with the earlier sessions that their answers need.

    These are the `memory_session_uuids` on the reply, the turn after the query, that belong to earlier sessions of
    the file; a query without any is counted as unusable.
    """
    dialogues = dicts_of(data.get("dialogues")) if isinstance(data, dict) else []
    usable: list[Query] = []
    asked = 0
    earlier: set[str] = set()
    for session, dialogue in enumerate(dialogues):
        turns = dicts_of(dialogue.get("dialogue_turns"))
        for index, turn in enumerate(turns):
            if turn.get("is_query") is not True:
                continue
            asked += 1
            named = turns[index + 1].get("memory_session_uuids") if index + 1 < len(turns) else None
            gold = [text_of(uuid) for uuid in named] if isinstance(named, list) else []
            gold = [uuid for uuid in dict.fromkeys(gold) if uuid in earlier]
            if gold and text_of(turn.get("content")):
                usable.append(Query(session, index, text_of(turn.get("content")), tuple(gold)))
        earlier.add(text_of(dialogue.get("session_uuid")))
    return QuerySet(tuple(usable), asked - len(usable))
