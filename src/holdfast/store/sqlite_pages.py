"""The pages of a SQLite file, read without SQLite: a damaged page does not hide the others.

Rows are read from their pages, without the trees over them, so the loss of an inner page loses no row. The
format is that of https://www.sqlite.org/fileformat2.html, which SQLite promises to keep.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"SQLite format 3\x00"
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_SIZES = {1 << power for power in range(9, 17)}
_INDEX_INNER, _TABLE_INNER, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
# Bytes of an integer, by its serial type.
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Cell = str | int | float | bytes | None


class RawRow(NamedTuple):
    """A row on a page: of an index, which includes tables without row numbers, or of a table."""

    page: int
    is_index: bool
    values: list[Cell]


class UnreadablePage(NamedTuple):
    """A page, or a row of it, that cannot be read."""

    page: int
    why: str


class Pages:
    """The pages of a file, those in its write-ahead log before those in itself."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        wal = path.with_name(path.name + "-wal")
        self._log = wal.read_bytes() if wal.is_file() else b""
        size = struct.unpack(">H", self._data[16:18])[0] if len(self._data) >= 100 else 0
        self.has_head = self._data[:16] == _MAGIC and (65536 if size == 1 else size) in _SIZES
        if not self.has_head:
            size = struct.unpack(">I", self._log[8:12])[0] if len(self._log) > 32 else 4096
        self._size = 65536 if size == 1 else size if size in _SIZES else 4096
        self._usable = self._size - (self._data[20] if self.has_head else 0)
        self._frames = self._find_frames()
        self._last = max(-(-len(self._data) // self._size), *self._frames, 0)

    def _find_frames(self) -> dict[int, int]:
        """Return the places of the newest committed versions of pages in the write-ahead log, by page."""
        if len(self._log) < 32 or struct.unpack(">I", self._log[:4])[0] not in _WAL_MAGIC:
            return {}
        salt = self._log[16:24]
        frames: dict[int, int] = {}
        pending: dict[int, int] = {}
        for start in range(32, len(self._log) - self._size - 23, self._size + 24):
            number, commit = struct.unpack(">II", self._log[start : start + 8])
            if self._log[start + 8 : start + 16] != salt:
                # Left from before the log was restarted.
                break
            pending[number] = start + 24
            if commit:
                frames |= pending
                pending = {}
        return frames

    def page(self, number: int) -> bytes:
        """Return the bytes of a page; fewer where the file ends."""
        if number in self._frames:
            return self._log[self._frames[number] : self._frames[number] + self._size]
        return self._data[(number - 1) * self._size : number * self._size]

    def unused(self) -> set[int] | None:
        """Return the unused pages, which may hold deleted rows; None if the list of them is damaged."""
        if not self.has_head:
            return None
        trunk, count = struct.unpack(">II", self.page(1)[32:40])
        unused: set[int] = set()
        while trunk:
            page = self.page(trunk)
            if trunk in unused or trunk > self._last or len(page) < self._size:
                return None
            following, leaves = struct.unpack(">II", page[:8])
            if leaves > self._size // 4 - 2:
                return None
            unused |= {trunk, *struct.unpack(f">{leaves}I", page[8 : 8 + 4 * leaves])}
            trunk = following
        return unused if len(unused) == count else None

    def rows(self) -> Iterator[RawRow | UnreadablePage]:
        """Iterate over all rows of all pages in use, and over unreadable parts."""
        unused = self.unused() or set()
        overflow: set[int] = set()
        strange: list[int] = []
        for number in range(1, self._last + 1):
            if number in unused:
                continue
            kind = self._page_type(number)
            if kind is None:
                strange.append(number)
            elif kind != _TABLE_INNER:
                yield from self._read_cells(number, kind, overflow)
        for number in strange:
            if number not in overflow:
                yield UnreadablePage(number, "it is no page of a database")

    def _page_type(self, number: int) -> int | None:
        page, head = self.page(number), 100 if number == 1 else 0
        if len(page) < self._size or page[head] not in (_INDEX_INNER, _TABLE_INNER, _INDEX_LEAF, _TABLE_LEAF):
            return None
        count = struct.unpack(">H", page[head + 3 : head + 5])[0]
        return page[head] if count * 2 + head + 8 <= self._size else None

    def _read_cells(self, number: int, kind: int, overflow: set[int]) -> Iterator[RawRow | UnreadablePage]:
        page, head = self.page(number), 100 if number == 1 else 0
        count = struct.unpack(">H", page[head + 3 : head + 5])[0]
        start = head + (12 if kind == _INDEX_INNER else 8)
        for place in range(count):
            try:
                (at,) = struct.unpack(">H", page[start + 2 * place : start + 2 * place + 2])
                yield RawRow(number, kind != _TABLE_LEAF, self._read_row(page, at, kind, overflow))
            except (struct.error, IndexError, ValueError, OverflowError) as error:
                yield UnreadablePage(number, f"row {place + 1} of it: {error}")

    def _read_row(self, page: bytes, at: int, kind: int, overflow: set[int]) -> list[Cell]:
        at += 4 if kind == _INDEX_INNER else 0
        size, at = _decode_varint(page, at)
        if kind == _TABLE_LEAF:
            _, at = _decode_varint(page, at)
        usable = self._usable
        most = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        local = size
        if size > most:
            least = (usable - 12) * 32 // 255 - 23
            fits = least + (size - least) % (usable - 4)
            local = fits if fits <= most else least
        if size > len(self._data) + len(self._log) or at + local > usable:
            raise ValueError("it is longer than its page")
        payload = page[at : at + local]
        if local < size:
            payload += self._read_overflow(
                struct.unpack(">I", page[at + local : at + local + 4])[0], size - local, overflow
            )
        return _decode_row(payload)

    def _read_overflow(self, number: int, size: int, overflow: set[int]) -> bytes:
        """Return the end of a row that is too long for its page."""
        parts: list[bytes] = []
        while size > 0:
            page = self.page(number)
            if not number or len(page) < self._size:
                raise ValueError("its end is missing")
            overflow.add(number)
            parts.append(page[4 : 4 + min(size, self._usable - 4)])
            size -= len(parts[-1])
            (number,) = struct.unpack(">I", page[:4])
        return b"".join(parts)


def _decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer of one to nine bytes, and the place after it."""
    value = 0
    for place in range(at, at + 8):
        value = (value << 7) | (data[place] & 0x7F)
        if data[place] < 0x80:
            return value, place + 1
    return (value << 8) | data[at + 8], at + 9


def _decode_row(payload: bytes) -> list[Cell]:
    """Return the values of a row."""
    end, at = _decode_varint(payload, 0)
    types = []
    while at < end:
        kind, at = _decode_varint(payload, at)
        types.append(kind)
    if at != end:
        raise ValueError("its head is damaged")
    values: list[Cell] = []
    for kind in types:
        size = _INTEGERS.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        part = payload[at : at + size]
        if len(part) < size or kind in (10, 11):
            raise ValueError("its head is damaged")
        values.append(_decode_value(kind, part))
        at += size
    if at != len(payload):
        raise ValueError("its length is damaged")
    return values


def _decode_value(kind: int, part: bytes) -> Cell:
    if kind in _INTEGERS:
        return int.from_bytes(part, signed=True)
    if kind >= 12:
        return part.decode() if kind % 2 else part
    return float(struct.unpack(">d", part)[0]) if kind == 7 else {0: None, 8: 0, 9: 1}[kind]
