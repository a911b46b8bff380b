"""Results within a limit of tokens: as many items as fit, and a cursor to the rest."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from hashlib import blake2s
from typing import Any, NamedTuple, TypeVar, cast

from holdfast.errors import InvalidInput
from holdfast.text.zones import local
from holdfast.tools.results import as_json
from holdfast.types import MAX_COUNT, is_whole

LEAST = 400  # tokens; the fields of a result beside its items take up to half
_AROUND = 150  # tokens of a result beside its items: origin, note, cursor
_LONGEST = 4_000  # characters of a cursor
_NUMBER = re.compile("[0-9]{1,18}")  # within the integers of all databases
RowT = TypeVar("RowT")
ItemT = TypeVar("ItemT")


class PageStart(NamedTuple):
    """The start of a page: an item after `anchor`, and a number of its characters to leave out."""

    anchor: str = ""
    item: int = 0
    character: int = 0

    @property
    def number(self) -> int | None:
        """The anchor as a number from 1; None on the first page.

        Raises:
            InvalidInput: it is not a number.

        """
        if not self.anchor:
            return None
        if not _NUMBER.fullmatch(self.anchor) or not int(self.anchor):
            raise _foreign()
        return int(self.anchor)


def _foreign() -> InvalidInput:
    return InvalidInput(
        "This cursor does not belong to this call.",
        "Pass the cursor of the last result with the same arguments, or none to begin.",
    )


def _in_zone(item: ItemT, zone: tzinfo) -> ItemT:
    """Return an item with its time in a zone, which its offset names."""
    at = getattr(item, "at", "")
    if zone is UTC or not at:
        return item
    there = local(datetime.fromisoformat(at), zone).isoformat(timespec="minutes")
    return cast("ItemT", replace(cast("Any", item), at=there))


class Page:
    """A page of the results of one call: its start, the items that fit, and the cursor of the next page."""

    def __init__(
        self,
        cap: int,
        count: Callable[[str], int],
        cursor: str | None,
        call: Iterable[object],
        zone: tzinfo = UTC,
    ) -> None:
        self._zone = zone
        self._room = cap - _AROUND
        self._count = count
        text = json.dumps([*call], default=str)
        self._call = blake2s(text.encode("utf-8", "replace"), digest_size=6).hexdigest()
        self.start = self._read_cursor(cursor) if cursor else PageStart()

    def _read_cursor(self, cursor: str) -> PageStart:
        try:
            if len(cursor) > _LONGEST:
                raise ValueError("too long")
            text = base64.b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}", altchars=b"-_", validate=True)
            start, item, character, call = json.loads(text)
            are_counts = all(is_whole(number) and 0 <= number <= MAX_COUNT for number in (item, character))
            if call != self._call or not isinstance(start, str) or not are_counts:
                raise ValueError("of another call")
            return PageStart(start, item, character)
        except (ValueError, TypeError, binascii.Error, RecursionError) as error:
            raise _foreign() from error

    def cursor(self, start: PageStart) -> str:
        """Return the cursor of the page that begins at a start."""
        text = json.dumps([*start, self._call], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def take(self, items: Sequence[ItemT], field: str = "text") -> tuple[tuple[ItemT, ...], str | None]:
        """Return the items of this page, and the cursor if there are more, or a text was cut."""
        start = self.start
        rest = items[start.item :]
        fitting, end = self.fill(rest, field)
        on = PageStart(start.anchor, start.item + end.item, end.character)
        return tuple(fitting), self.cursor(on) if end.item < len(rest) else None

    def excerpts(
        self, rows: Sequence[RowT], show: Callable[[RowT], ItemT], limit: int
    ) -> tuple[tuple[ItemT, ...], str | None]:
        """Return the excerpts of this page, `limit` at most, and the cursor if there are more.

        `expand` returns the whole of one that was cut; the next page begins with the next item.
        """
        start = self.start
        rest = rows[start.item :]
        fitting, _ = self.fill(map(show, rest[:limit]))
        on = PageStart(start.anchor, start.item + len(fitting))
        return tuple(fitting), self.cursor(on) if len(fitting) < len(rest) else None

    def fill(self, items: Iterable[ItemT], field: str = "text") -> tuple[list[ItemT], PageStart]:
        """Return the items that fit, at least the first, and where they end.

        `field` names the text of an item that can be cut. The first item continues where the page before cut
        it.
        """
        taken: list[ItemT] = []
        room = self._room
        for item in (_in_zone(every, self._zone) for every in items):
            begun = self.start.character if not taken else 0
            rest = _part(item, field, begun, None) if begun else item
            cost = self._cost(rest)
            if cost > room:
                if taken:
                    break
                piece, characters = self._cut(rest, field, room)
                return [piece], PageStart(character=begun + characters)
            taken.append(rest)
            room -= cost
        return taken, PageStart(item=len(taken))

    def _cost(self, item: object) -> int:
        return self._count(json.dumps(as_json(item), ensure_ascii=False)) + 1

    def _cut(self, item: ItemT, field: str, room: int) -> tuple[ItemT, int]:
        """Return an item with its text cut to the room, and the number of characters that are left."""
        characters = len(getattr(item, field))
        piece = item
        while characters > 1 and (cost := self._cost(piece)) > room:
            characters = max(1, min(characters - 1, characters * room // cost))
            piece = _part(item, field, 0, characters)
        return piece, characters


def _part(item: ItemT, field: str, first: int, last: int | None) -> ItemT:
    changes: dict[str, Any] = {field: getattr(item, field)[first:last], "cut": True}
    # Every item is a dataclass, which a type variable cannot express.
    return replace(item, **changes)  # type: ignore[type-var]
