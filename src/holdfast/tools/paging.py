"""Results within a number of tokens: as many items as fit, and a cursor that goes on."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import blake2s
from typing import Any, NamedTuple, TypeVar, cast

from holdfast.errors import InvalidInput
from holdfast.tools.results import as_json
from holdfast.types import MAX_COUNT, is_whole

LEAST = 400  # tokens: what is around the items of a result takes half of it
_AROUND = 150  # tokens of a result beside its items: origin, note, cursor
_LONGEST = 4_000  # characters of a cursor
_DIGITS = 18  # of a number that every database can hold
ItemT = TypeVar("ItemT")


class PageStart(NamedTuple):
    """Where a page begins: at which item after `start`, and after how many characters of it."""

    start: str = ""
    item: int = 0
    character: int = 0

    @property
    def number(self) -> int | None:
        """The number that it starts at, from 1 on; None at the beginning.

        Raises:
            InvalidInput: it starts at something else.

        """
        if not self.start:
            return None
        if not (
            self.start.isascii() and self.start.isdigit() and len(self.start) <= _DIGITS and int(self.start)
        ):
            raise _foreign()
        return int(self.start)


class PageEnd(NamedTuple):
    """Where a page ends: after how many items, and after how many characters of the next one."""

    items: int
    characters: int


def call_id(*call: object) -> str:
    """Return the id of a call, for the cursors that go on with it."""
    return blake2s(json.dumps(call, default=str).encode("utf-8", "replace"), digest_size=6).hexdigest()


def write_cursor(place: PageStart, call: str) -> str:
    """Return a cursor that goes on with this call only."""
    text = json.dumps([*place, call], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, call: str) -> PageStart:
    """Return where a page begins; None is the beginning.

    Raises:
        InvalidInput: it is no cursor, or one of another call.

    """
    if not cursor:
        return PageStart()
    try:
        if len(cursor) > _LONGEST:
            raise ValueError("too long")
        text = base64.b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}", altchars=b"-_", validate=True)
        start, item, character, of_call = json.loads(text)
        if of_call != call or not isinstance(start, str) or not (_is_count(item) and _is_count(character)):
            raise ValueError("of another call")
        return PageStart(start, item, character)
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise _foreign() from error


def _is_count(value: object) -> bool:
    return is_whole(value) and 0 <= cast("int", value) <= MAX_COUNT


def _foreign() -> InvalidInput:
    return InvalidInput(
        "This cursor does not belong to this call.",
        "Pass the cursor of the last result with the same arguments, or none to begin.",
    )


class Pager:
    """Fill pages of so many tokens."""

    def __init__(self, cap: int, count: Callable[[str], int]) -> None:
        self._room = cap - _AROUND
        self._count = count

    def fill(self, items: Iterable[ItemT], field: str = "text", skip: int = 0) -> tuple[list[ItemT], PageEnd]:
        """Return the items that fit, without the first `skip` characters of the first one, which may be cut.

        `field` names the text of an item that can be cut. Something of the first item is always taken.
        """
        taken: list[ItemT] = []
        room = self._room
        for item in items:
            begun = skip if not taken else 0
            rest = _part(item, field, begun, None) if begun else item
            cost = self._cost(rest)
            if cost > room:
                if taken:
                    break
                piece, characters = self._cut(rest, field, room)
                return [piece], PageEnd(0, begun + characters)
            taken.append(rest)
            room -= cost
        return taken, PageEnd(len(taken), 0)

    def _cost(self, item: object) -> int:
        return self._count(json.dumps(as_json(item), ensure_ascii=False)) + 1

    def _cut(self, item: ItemT, field: str, room: int) -> tuple[ItemT, int]:
        """Cut the text of an item to the room, and return it with the number of characters left."""
        characters = len(getattr(item, field))
        piece = item
        while characters > 1 and (cost := self._cost(piece)) > room:
            characters = max(1, min(characters - 1, characters * room // cost))
            piece = _part(item, field, 0, characters)
        return piece, characters


def _part(item: ItemT, field: str, first: int, last: int | None) -> ItemT:
    changes: dict[str, Any] = {field: getattr(item, field)[first:last], "cut": True}
    # Every item is a dataclass.
    return replace(item, **changes)  # type: ignore[type-var]
