"""Findings, insights and lessons, and a scratchpad."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from holdfast.contract import Provider, Session
from holdfast.errors import InvalidInput
from holdfast.kinds import FIL
from holdfast.text.sentences import one_line, sentences
from holdfast.text.shorten import shorten_line
from holdfast.tools import render
from holdfast.tools.actions import check_own, matching
from holdfast.tools.presets.preset import CAP, Preset, nothing, shorten, with_note, within
from holdfast.tools.read_actions import MOST
from holdfast.tools.tool import Tool, ToolResult, result, tool_of
from holdfast.types import Hit, Record, Writer

SOURCE = "explicit"  # of what an agent chose to remember
_PER_KIND = 5
_TRIGGERS = re.compile(
    r"\b(?:decided|conclusion|important|remember|note that|key insight|learned that|will use|should use|"
    r"agreed)\b",
    re.IGNORECASE,
)
_SHORTEST, _REPORT, _LONGEST = 50, 100, 2_000  # characters of a sentence, of a report, of what is stored
_KEPT = "It is kept for later sessions."
_PASSING = "It is kept for this session only."

Key = Annotated[str, "name of the value"]


def observation_tools(
    memory: Provider, chat: Session | None = None, *, lasting: bool = True, max_tokens: int = CAP
) -> list[Tool]:
    """Return `remember`, `recall`, and `scratchpad_read`, `_write`, `_list` and `_search`.

    Args:
        memory: the `Memory` that stores the observations.
        chat: the chat in which the agent acts.
        lasting: True for the scratchpad of the user, False for that of the chat.
        max_tokens: of a result at most, about.

    Raises:
        InvalidInput: `lasting` is False, and there is no chat.

    """
    if not lasting and chat is None:
        raise InvalidInput("A scratchpad that is not lasting needs a chat.", "Pass `chat`.")
    observations = _Observations(memory, chat, max_tokens, lasting=lasting)
    duration = _KEPT if lasting else _PASSING
    read = f"Read a value of the scratchpad. {duration}"
    write = f"Write a value on the scratchpad, in place of the one before. {duration}"
    search = "Search keys and values of the scratchpad."
    return [
        tool_of(
            observations.remember,
            "remember",
            "Store observations that will be of use in later sessions, each as one full sentence.",
        ),
        tool_of(
            observations.recall,
            "recall",
            "Search what was learned in earlier sessions. Search here before you use tools that search "
            "elsewhere, with 2-4 distinctive keywords rather than a sentence.",
            read_only=True,
        ),
        tool_of(observations.read, "scratchpad_read", read, read_only=True),
        tool_of(observations.write, "scratchpad_write", write, destructive=True, idempotent=True),
        tool_of(observations.keys, "scratchpad_list", "List the keys of the scratchpad.", read_only=True),
        tool_of(observations.search, "scratchpad_search", search, read_only=True),
    ]


def remember_fil(
    memory: Any,
    findings: Sequence[str] = (),
    insights: Sequence[str] = (),
    lessons: Sequence[str] = (),
    source: str = "",
    *,
    by: Writer | None = None,
    chat: str | None = None,
    merge: bool = False,
) -> list[Record]:
    """Store findings, insights and lessons, in this order and all or none, and return their records.

    Raises:
        InvalidInput: one cannot be accepted; none was stored.

    """
    records: list[dict[str, object]] = []
    for kind, texts in zip(FIL, (findings, insights, lessons), strict=True):
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InvalidInput(f"The {kind}s must be a list of texts.", "Pass a list of strings.")
        records += [{"text": text, "kind": kind} for text in texts]
    written: list[Record] = memory.remember(records, source=source, by=by, chat=chat, merge=merge)
    return written


def recall_fil(memory: Any, query: str, limit_per_kind: int = 5) -> dict[str, list[Hit]]:
    """Return findings, insights and lessons by kind, each best first; every kind is a key.

    Raises:
        InvalidInput: the query is blank, or the limit is negative.

    """
    hits = memory.recall(query, kinds=FIL, per_kind=limit_per_kind)
    return {kind: [hit for hit in hits if hit.kind == kind] for kind in FIL}


def consolidate_session(memory: Any, chat: str) -> list[Record]:
    """Store what a chat decided, told by trigger words alone, and its last report; return the new insights.

    A rough heuristic of another design, for those who ask for it: sentences of whatever role, of 50
    characters or more, in which a word such as "decided" or "agreed" stands, and the assistant's last message
    if it is longer than 100. What was stored before from the chat is not stored again.
    """
    source = f"session:{chat}"
    spoken = [message for message in memory.chat(chat).history() if message.role in ("user", "assistant")]
    said = [text for message in spoken for text in sentences(message.content) if _TRIGGERS.search(text)]
    reports = [message.content.strip() for message in spoken if message.role == "assistant"]
    said += [text for text in reports[-1:] if len(text) > _REPORT]
    known = {record.text for record in memory.records(kind="insight") if record.source == source}
    texts = [shorten_line(one_line(text), _LONGEST) for text in said if len(text) >= _SHORTEST]
    fresh = [text for text in dict.fromkeys(texts) if text not in known]
    return remember_fil(memory, insights=fresh, source=source, by="agent", chat=chat) if fresh else []


class _Observations(Preset):
    """Findings, insights and lessons, and the scratchpad of a user or a chat."""

    def __init__(self, memory: Provider, chat: Session | None, cap: int, *, lasting: bool) -> None:
        super().__init__(memory, chat, cap)
        self._pad = self._memory.scratchpad if lasting else self._chat.scratchpad
        self._duration = _KEPT if lasting else _PASSING

    def remember(
        self,
        findings: Annotated[list[str] | None, "what was found out"] = None,
        insights: Annotated[list[str] | None, "what was concluded or decided"] = None,
        lessons: Annotated[list[str] | None, "what to do, or not to do, next time"] = None,
    ) -> dict[str, object]:
        texts = [[text for text in of or [] if text.strip()] for of in (findings, insights, lessons)]
        if not any(texts):
            todo = "Pass `findings`, `insights` or `lessons` with some text."
            raise InvalidInput("There is nothing to remember.", todo)
        facts, concluded, learned = texts
        written = remember_fil(self._memory, facts, concluded, learned, source=SOURCE, chat=self._chat_id)
        stored = sum(record.trust != "quarantined" for record in written)
        notes = [f"{stored} observation{'' if stored == 1 else 's'} stored for later sessions."]
        notes += [f"{record.id}: {note}" for record in written if (note := render.write_note(record))]
        return {"stored": stored, "ids": [record.id for record in written], "note": " ".join(notes)}

    def recall(
        self,
        query: Annotated[str, "2-4 distinctive words"],
        limit: Annotated[int, "of each category"] = _PER_KIND,
    ) -> ToolResult:
        hits_by_kind = recall_fil(self._memory, query, within(limit, MOST, _PER_KIND))
        items = [render.of_hit(hit) for hits in hits_by_kind.values() for hit in hits]
        if not items:
            return nothing("No relevant memories found")
        items.sort(key=lambda item: -item.score)
        taken, note = self._fit(items, lambda item: item.text)
        self._note(render.references(taken))
        by_kind = {f"{kind}s": [item.text for item in taken if item.kind == kind] for kind in FIL}
        return result(with_note(dict(by_kind), note))

    def read(self, key: Key) -> dict[str, object]:
        check_own(key, "key")
        if key not in self._pad:
            raise InvalidInput("Nothing is kept under this key.", "Use `scratchpad_list` for the keys.")
        value = self._pad[key]
        part = shorten(value, self._cap)
        return with_note({"key": key, "value": part, "cut": part != value}, "")

    def write(self, key: Key, value: str) -> dict[str, object]:
        check_own(key, "key")
        self._pad[key] = value
        return {"key": key, "note": f"Written. {self._duration}"}

    def keys(self, prefix: str = "") -> dict[str, object]:
        names = [key for key, _ in matching(self._pad, "") if key.startswith(prefix)]
        keys, note = self._fit(names, str)
        return with_note({"keys": keys}, note)

    def search(self, query: Annotated[str, "part of a key or a value"]) -> dict[str, object]:
        matches = [
            {"key": key, "value": shorten(value, render.SNIPPET)} for key, value in matching(self._pad, query)
        ]
        entries, note = self._fit(matches, lambda entry: entry["key"] + entry["value"])
        return with_note({"results": entries}, note or ("" if matches else "No matches found."))
