"""Findings, insights and lessons, and a scratchpad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from holdfast.errors import Denied, InvalidInput
from holdfast.kinds import FIL
from holdfast.scratchpad import TEMPORARY
from holdfast.tools import render
from holdfast.tools.action_base import MOST
from holdfast.tools.presets.fitting import CAP, LEFT_OUT, fitting, shortened
from holdfast.tools.render import SNIPPET
from holdfast.tools.results import ORIGIN
from holdfast.tools.tool import Tool, ToolResult, result, tool_of

if TYPE_CHECKING:
    from holdfast.chat import Chat
    from holdfast.memory import Memory
    from holdfast.scratchpad import Pad

SOURCE = "explicit"  # of what an agent chose to remember
_PER_KIND = 5
_KEPT = "It is kept for later sessions."
_PASSING = "It is kept for this session only."

Key = Annotated[str, "name of the value"]


def observation_tools(
    memory: Memory, chat: Chat | None = None, *, lasting: bool = True, token_cap: int = CAP
) -> list[Tool]:
    """Make `remember`, `recall`, and `scratchpad_read`, `_write`, `_list` and `_search`.

    Args:
        memory: where observations are kept.
        chat: the session in which the agent acts.
        lasting: True for the scratchpad of the user, False for that of the session.
        token_cap: tokens of a result at most, about.

    Raises:
        InvalidInput: the scratchpad of a session is wanted, and there is no session.

    """
    if not lasting and chat is None:
        raise InvalidInput("There is no session whose scratchpad it could be.", "Pass a chat.")
    pad: Pad = memory.pad if lasting or chat is None else chat.pad
    return [
        *_observing(memory, chat, token_cap),
        *_scratching(pad, _KEPT if lasting else _PASSING, token_cap),
    ]


def _observing(memory: Memory, chat: Chat | None, cap: int) -> list[Tool]:
    def remember(
        findings: Annotated[list[str] | None, "what was found out"] = None,
        insights: Annotated[list[str] | None, "what was concluded or decided"] = None,
        lessons: Annotated[list[str] | None, "what to do, or not to do, next time"] = None,
    ) -> dict[str, object]:
        said = [[text for text in texts or [] if text.strip()] for texts in (findings, insights, lessons)]
        if not any(said):
            raise InvalidInput(
                "There is nothing to remember.", "Pass `findings`, `insights` or `lessons` with some text."
            )
        written = memory.remember_fil(
            said[0], said[1], said[2], source=SOURCE, chat=None if chat is None else chat.id
        )
        stored = sum(record.trust != "quarantined" for record in written)
        notes = [f"{stored} observation{'' if stored == 1 else 's'} stored for later sessions."]
        notes += [f"{record.id}: {note}" for record in written if (note := render.became(record))]
        return {"stored": stored, "ids": [record.id for record in written], "note": " ".join(notes)}

    def recall(
        query: Annotated[str, "2-4 distinctive words"],
        limit: Annotated[int, "of each category"] = _PER_KIND,
    ) -> ToolResult:
        found = memory.recall_fil(query, min(limit, MOST) if limit > 0 else _PER_KIND)
        items = {kind: [render.of_hit(hit) for hit in hits] for kind, hits in found.items()}
        if not any(items.values()):
            return result(
                {"origin": ORIGIN, "note": "No relevant memories found"}, "No relevant memories found"
            )
        best_first = sorted((item for of in items.values() for item in of), key=lambda item: -item.score)
        taken, left = fitting(best_first, lambda item: item.text, cap)
        if chat is not None:
            render.note(memory, chat, render.names(taken))
        data: dict[str, object] = {"origin": ORIGIN}
        data |= {f"{kind}s": [item.text for item in taken if item.kind == kind] for kind in FIL}
        return result(_noted(data, LEFT_OUT.format(left) if left else ""))

    return [
        tool_of(
            remember,
            "remember",
            "Store observations that will be of use in later sessions, each as one full sentence.",
        ),
        tool_of(
            recall,
            "recall",
            "Search what was learned in earlier sessions. Search here before you use tools that search elsewhere, with "
            "2-4 distinctive keywords rather than a sentence.",
            read_only=True,
        ),
    ]


def _scratching(pad: Pad, lasting: str, cap: int) -> list[Tool]:
    def read(key: Key) -> dict[str, object]:
        _own(key)
        if key not in pad:
            raise InvalidInput("Nothing is kept under this key.", "Use `scratchpad_list` for the keys.")
        value = shortened(pad[key], cap)
        return {"origin": ORIGIN, "key": key, "value": value, "cut": value != pad[key]}

    def write(key: Key, value: str) -> dict[str, object]:
        _own(key)
        pad[key] = value
        return {"key": key, "note": f"Written. {lasting}"}

    def listed(prefix: str = "") -> dict[str, object]:
        keys, left = fitting(sorted(key for key in _stored(pad) if key.startswith(prefix)), str, cap)
        return _noted({"origin": ORIGIN, "keys": keys}, LEFT_OUT.format(left) if left else "")

    def search(query: Annotated[str, "part of a key or a value"]) -> dict[str, object]:
        part = query.casefold()
        found = [
            {"key": key, "value": shortened(value, SNIPPET)}
            for key, value in sorted(_stored(pad).items())
            if part in key.casefold() or part in value.casefold()
        ]
        entries, left = fitting(found, lambda entry: f"{entry['key']}{entry['value']}", cap)
        note = LEFT_OUT.format(left) if left else "" if found else "No matches found."
        return _noted({"origin": ORIGIN, "results": entries}, note)

    return [
        tool_of(read, "scratchpad_read", f"Read a value of the scratchpad. {lasting}", read_only=True),
        tool_of(
            write,
            "scratchpad_write",
            f"Write a value on the scratchpad, in place of the one before. {lasting}",
            destructive=True,
            idempotent=True,
        ),
        tool_of(listed, "scratchpad_list", "List the keys of the scratchpad.", read_only=True),
        tool_of(search, "scratchpad_search", "Search keys and values of the scratchpad.", read_only=True),
    ]


def _own(key: str) -> None:
    if key.startswith(TEMPORARY):
        raise Denied(f"Keys that begin with {TEMPORARY} are the application's own.", "Use another key.")


def _noted(data: dict[str, object], note: str) -> dict[str, object]:
    return data | {"note": note} if note else data


def _stored(pad: Pad) -> dict[str, str]:
    return pad.stored()
