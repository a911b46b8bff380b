"""MessagePack as plain values: what a program marks as its object stays bytes, and nothing is constructed.

See https://github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_DEEPEST = 100
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_SIZES = (">B", ">H", ">I")
# The first code of each family with a length of one, two or four bytes; of arrays and maps, two or four.
_BYTES, _EXTENSION, _TEXT, _ARRAY, _MAP = 0xC4, 0xC7, 0xD9, 0xDC - 1, 0xDE - 1
_FIXED_EXTENSION = 0xD4  # of 1, 2, 4, 8 or 16 bytes


class Extension(NamedTuple):
    """A value of a type that a program made, by its code, undecoded."""

    code: int
    data: bytes


def unpack(data: bytes) -> object:
    """Return the value that is packed in bytes; a key that cannot be one of a dict becomes its `repr`.

    Raises:
        ValueError: the bytes are cut off, nested too deeply, or no MessagePack.

    """
    reader = _Reader(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise ValueError("There is more than one value.")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def value(self, depth: int) -> object:
        if depth > _DEEPEST:
            raise ValueError("It is nested too deeply.")
        code = self._take(1)[0]
        if code <= 0x7F or code >= 0xE0:
            return code if code <= 0x7F else code - 0x100
        if code <= 0x8F:
            return self._map(code & 0x0F, depth)
        if code <= 0x9F:
            return self._array(code & 0x0F, depth)
        if code <= 0xBF:
            return self._text(code & 0x1F)
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self._number(_NUMBERS[code])
        return self._long(code, depth)

    def _long(self, code: int, depth: int) -> object:
        """Return a value whose length stands behind its code."""
        if _BYTES <= code < _EXTENSION:
            return self._take(self._size(code - _BYTES))
        if _EXTENSION <= code < 0xCA:
            return self._extension(self._size(code - _EXTENSION))
        if _FIXED_EXTENSION <= code < _TEXT:
            return self._extension(1 << (code - _FIXED_EXTENSION))
        if _TEXT <= code < 0xDC:
            return self._text(self._size(code - _TEXT))
        if 0xDC <= code < 0xDE:
            return self._array(self._size(code - _ARRAY), depth)
        if 0xDE <= code < 0xE0:
            return self._map(self._size(code - _MAP), depth)
        raise ValueError("It is no MessagePack.")

    def _take(self, size: int) -> bytes:
        part = self.data[self.at : self.at + size]
        if len(part) != size:
            raise ValueError("It is cut off.")
        self.at += size
        return part

    def _number(self, format: str) -> int | float:
        number: int | float = struct.unpack(format, self._take(struct.calcsize(format)))[0]
        return number

    def _size(self, width: int) -> int:
        return int(self._number(_SIZES[width]))

    def _text(self, size: int) -> str:
        return self._take(size).decode("utf-8", "surrogateescape")

    def _extension(self, size: int) -> Extension:
        return Extension(int(self._number(">b")), self._take(size))

    def _array(self, size: int, depth: int) -> list[object]:
        return [self.value(depth + 1) for _ in range(size)]

    def _map(self, size: int, depth: int) -> dict[object, object]:
        pairs = ((self.value(depth + 1), self.value(depth + 1)) for _ in range(size))
        return {repr(key) if isinstance(key, list | dict) else key: value for key, value in pairs}
