"""Readers of JSON from untrusted files: line by line, or value by value."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import IO

from holdfast.port.texts import clean
from holdfast_cli.formats.import_items import TOO_DEEP, Skip

MAX_LINE = 256 << 20  # bytes; longer lines are skipped
MAX_ROW = 16 << 20  # bytes of a line of a transcript: longer ones would keep its reader busy for minutes
MAX_VALUE = 2 << 30  # characters of one JSON value
_CHUNK = 1 << 20
_SPACE = re.compile(r"[\s,]*")
BAD_BYTE = re.compile(r"[\udc80-\udcff]")  # what `surrogateescape` makes of a byte that is not UTF-8
NOT_UTF8 = "not valid UTF-8"
SAVE = "save it as UTF-8, with LF or CRLF"
_NOT_JSON = "not valid JSON"
_DECODER = json.JSONDecoder()
_OPENING, _FIELD = re.compile(r"\[?\s*\{"), re.compile(r'[\s,]*"([^"\\]{1,100})"\s*:\s*')
# UTF-16, by its mark or by characters of ASCII, of which every other byte is NUL.
IS_UTF16 = re.compile(rb"\xff\xfe|\xfe\xff|(?:[\t-~]\x00){4}|(?:\x00[\t-~]){4}").match


@dataclass(frozen=True, slots=True)
class File:
    """A file to read: its `path`, the `name` for its chats without an id, and what opens it.

    `location` is where it is on this machine, None of one in a zip. `beside` returns the content of a file by
    its path from the folder of this one, or from one of the two above. `tells` has a function for each time
    that it is read: it returns the bytes that were read, or raises ValueError at the end.
    """

    path: str
    name: str
    opener: Callable[[], IO[bytes]]
    location: Path | None = None
    beside: Callable[[str], bytes | None] = lambda _: None
    tells: list[Callable[[], int]] = field(default_factory=list, compare=False)

    def open(self) -> IO[bytes]:
        """Open it."""
        stream = self.opener()
        self.tells.append(stream.tell)
        return stream

    @property
    def position(self) -> int:
        """The bytes that were read, the last time that it was begun to be read."""
        for tell in reversed(self.tells):
            with suppress(ValueError):
                return tell()
        return sys.maxsize if self.tells else 0

    @classmethod
    def at(cls, path: Path, name: str | None = None) -> File:
        """Return the file at a path."""
        label = clean(path.stem if name is None else name)
        return cls(clean(str(path)), label, lambda: path.open("rb"), path, lambda other: _beside(path, other))


def _beside(path: Path, name: str) -> bytes | None:
    for folder in path.parents[:3]:
        other = folder / name
        # A folder that was copied may have links to anywhere.
        with suppress(OSError):
            if other.resolve().is_relative_to(folder.resolve()) and other.stat().st_size <= MAX_ROW:
                return other.read_bytes()
    return None


def beginning(path: Path, size: int) -> bytes:
    """Return the first bytes of a file; none of one that cannot be read, as whoever reads it says."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as stream:
                return stream.read(size)
    return b""


def lines(file: File, longest: int = MAX_ROW) -> Iterator[tuple[int, dict[str, object]] | Skip]:
    """Yield the JSON objects of a file, one a line, with their line numbers; invalid lines are skipped."""
    with file.open() as stream:
        number = 0
        while line := stream.readline(longest):
            number += 1
            if len(line) == longest and not line.endswith(b"\n"):
                while (rest := stream.readline(longest)) and not rest.endswith(b"\n"):
                    pass
                yield Skip(number, f"longer than {longest >> 20} MiB", problem=True)
            elif not line.isspace():
                value = object_in(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
                yield (number, value) if isinstance(value, dict) else Skip(number, value, problem=True)


def text_problems(file: File) -> Iterator[Skip]:
    """Yield the problems of a text that is not read: lines that are not UTF-8, or ended by CR alone.

    Such a text is left out whole. Most are in another encoding, and what was taken from one in part would
    stand in another order when the rest follows.
    """
    with file.open() as stream:
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), 1):
            is_first = number == 1
            if BAD_BYTE.search(line.decode(errors="surrogateescape")) or (is_first and IS_UTF16(line)):
                yield Skip(number, NOT_UTF8, problem=True)
            elif is_first and b"\r" in line and not line.endswith(b"\n"):
                yield Skip(number, "ended by CR alone", problem=True)


def object_in(value: object) -> dict[str, object] | str:
    """Return the JSON object that is written in a line or in a value of a database, or why there is none."""
    if not isinstance(value, str | bytes):
        return _NOT_JSON
    try:
        value = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        value, _ = _decode(value.decode())
    except UnicodeDecodeError:
        return NOT_UTF8
    except RecursionError:
        return TOO_DEEP
    except ValueError:
        return _NOT_JSON
    return value if isinstance(value, dict) else "not a JSON object"


def _decode(text: str, at: int | None = None) -> tuple[object, int]:
    """Decode a text, or the JSON value at a position of it; a number with too many digits becomes text."""

    def decode(decoder: json.JSONDecoder) -> tuple[object, int]:
        return (decoder.decode(text), len(text)) if at is None else decoder.raw_decode(text, at)

    try:
        return decode(_DECODER)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # Python refuses a number of more than 4,300 digits.
        return decode(json.JSONDecoder(parse_int=_number))


def fields(text: str) -> dict[str, object]:
    """Return the fields of the object with which a text of JSON begins, or its list, as far as it is whole.

    A list or an object that is not whole is empty.
    """
    result: dict[str, object] = {}
    start = _OPENING.match(text)
    at = start.end() if start else len(text)
    with suppress(ValueError, RecursionError):
        while field := _FIELD.match(text, at):
            result[field[1]] = {"[": [], "{": {}}.get(text[field.end() : field.end() + 1])
            result[field[1]], at = _decode(text, field.end())
    return result


def _number(digits: str) -> int | str:
    return digits if len(digits) > sys.get_int_max_str_digits() > 0 else int(digits)


def values(file: File) -> Iterator[tuple[int, object] | Skip]:
    """Yield the values of a JSON array, or values one after another, numbered from 1; a single one is 0.

    It has one value in memory at a time, and yields all values before a damaged or truncated place.
    """
    with file.open() as stream, TextIOWrapper(stream, "utf-8-sig", "surrogateescape") as text:
        window = _Window(text)
        in_array = window.next_character() == "["
        window.at += in_array
        position = 1
        while True:
            character = window.next_character()
            if character == "]" or (character == "" and not in_array):
                return
            value = window.decode() if character else Skip(position, "cut off", problem=True)
            if isinstance(value, Skip):
                yield Skip(position, value.reason, problem=True)
                return
            place = position if in_array or position > 1 or window.next_character() else 0
            yield Skip(place, NOT_UTF8, problem=True) if window.bad else (place, value[0])
            position += 1


class _Window:
    """The part of a text that is in memory to be decoded."""

    def __init__(self, text: TextIOWrapper) -> None:
        self.text = text
        self.buffer = ""
        self.at = 0
        self.bad = False

    def extend(self) -> bool:
        """Read more and return whether there was any; twice as much each time, so that decoding is linear."""
        more = self.text.read(max(_CHUNK, len(self.buffer) - self.at)) if len(self.buffer) < MAX_VALUE else ""
        self.buffer, self.at = self.buffer[self.at :] + more, 0
        return bool(more)

    def next_character(self) -> str:
        """Skip white space and commas, and return the next character; "" at the end of the text."""
        while True:
            space = _SPACE.match(self.buffer, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if not self.extend():
                return ""

    def decode(self) -> tuple[object] | Skip:
        """Decode the value at this position, and move behind it."""
        while True:
            try:
                value, end = _decode(self.buffer, self.at)
            except RecursionError:
                return Skip(0, f"{TOO_DEEP}; the rest of the file was not read")
            except ValueError as error:
                if self._may_go_on(error) and self.extend():
                    continue
                return Skip(0, f"{_NOT_JSON}; the rest of the file was not read")
            self.bad = BAD_BYTE.search(self.buffer, self.at, end) is not None
            self.at = end
            return (value,)

    def _may_go_on(self, error: ValueError) -> bool:
        """Return whether more text could complete the value."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.pos > len(self.buffer) - 16 or error.msg.startswith("Unterminated string")
