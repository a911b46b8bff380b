"""The base of presets: a memory, a chat, and results within a limit of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from holdfast.contract import Provider, Session
from holdfast.text.tokens import estimate_tokens
from holdfast.tools.memory_internals import note_shown
from holdfast.tools.results import ORIGIN
from holdfast.tools.tool import ToolResult, result

CAP = 4_000  # tokens of a result, about; a full list of facts has 2,000
_AROUND = 20  # tokens of an item beside its text
ItemT = TypeVar("ItemT")


class Preset:
    """A memory and a chat, and results of about `cap` tokens at most."""

    def __init__(self, memory: Provider, chat: Session | None, cap: int) -> None:
        # Each preset requires capabilities beyond the core, which the types do not express.
        self._memory: Any = memory
        self._chat: Any = chat
        self._cap = cap

    @property
    def _chat_id(self) -> str | None:
        return None if self._chat is None else self._chat.id

    def _fit(self, items: Sequence[ItemT], text: Callable[[ItemT], str]) -> tuple[list[ItemT], str]:
        """Return the items that fit, at least the first, and a note of the number left out."""
        taken: list[ItemT] = []
        room = self._cap
        for item in items:
            room -= estimate_tokens(text(item)) + _AROUND
            if room < 0 and taken:
                break
            taken.append(item)
        left = len(items) - len(taken)
        return taken, f"{left} more are left out: ask more narrowly." if left else ""

    def _note(self, references: Iterable[str]) -> None:
        """Store what the chat was shown, so that it is not learned as new."""
        if self._chat is not None:
            note_shown(self._memory, self._chat, list(references))


def within(limit: int, most: int, otherwise: int) -> int:
    """Return a limit that a model passed, `most` at most; `otherwise` if it is not above 0."""
    return min(limit, most) if limit > 0 else otherwise


def shorten(text: str, cap: int) -> str:
    """Return a text cut to a number of tokens, with an ellipsis if it was cut."""
    part = text
    while (cost := estimate_tokens(part)) > cap:
        part = part[: min(len(part) - 1, len(part) * cap // cost)]
    return part if len(part) == len(text) else f"{part}…"


def with_note(data: dict[str, object], note: str) -> dict[str, object]:
    """Return data from memory with a note, if there is one."""
    return {"origin": ORIGIN, **data, **({"note": note} if note else {})}


def nothing(note: str) -> ToolResult:
    """Return the result of a search without hits."""
    return result(with_note({}, note), note)
