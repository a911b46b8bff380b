"""What a person or a program reads: text from anywhere, made harmless, for a terminal, a pipe, or as JSON."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.text.references import write_reference
from holdfast.types import Hit, Message, Omission, Record, Shortened, Summary, Why, Wording

Part = str | tuple[str, str]
"""A piece of a line: text, or text and its style."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
# What drives a terminal, and what makes text read in another order than it is written.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_RAW_IN_JSON = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # JSON escapes those below U+0020 itself
_AGO = re.compile(r"([0-9]{1,4})([mhd])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_DAYS_AGO = {"today": 0, "yesterday": 1}
_WORD = re.compile(r"\s*\S+\s*")
_LEAST_TEXT = 20  # columns of a terminal for text beside other columns
_PIPE_WIDTH = 10_000  # wider than any row: in a pipe nothing is cut or wrapped


def safe(text: str) -> str:
    r"""Return a text that cannot control a terminal: escapes removed, other control characters visible.

    >>> safe("\x1b[31mred\x1b[0m\r\n\x07\x9b2J")
    'red\n␇\\x9b2J'
    """
    if text.isprintable():
        return text
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return _CONTROLS.sub(lambda match: _visible(ord(match.group())), text)


def _visible(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class Screen:
    """A stream for text: wrapped and coloured on a terminal, plain in a pipe, and always safe."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.console = Console(file=stream or sys.stdout, markup=False, emoji=False, highlight=False)
        self.wraps = self.console.is_terminal
        if not self.wraps:
            self.console.width = _PIPE_WIDTH

    def say(self, *parts: Part, indent: int = 0, hang: int = 0) -> None:
        """Print a paragraph, each of its lines indented, and those after the first by `hang` more.

        A word that is wider than the terminal, such as a path, stays unbroken on its own line, so that it can
        be copied.
        """
        text = Text.assemble(
            *(safe(one) if isinstance(one, str) else (safe(one[0]), one[1]) for one in parts)
        )
        lines: Iterable[Text]
        if self.wraps:
            lines = _wrapped(text, self.console, max(20, self.console.width - indent - hang))
        else:
            lines = text.split("\n", allow_blank=True)
        for number, line in enumerate(lines):
            line.rstrip()
            margin = " " * (indent + hang * (number > 0))
            self.console.print(Text(margin).append_text(line) if line else "", soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], whole: str = "") -> None:
        """Print a table; a column of numbers stands to the right, one that is to be copied stays `whole`.

        What is too wide for a terminal is wrapped in its widest column; where there is no room for the words
        of that, it stands below the rest of its row.
        """
        rows = [[" ".join(safe(cell).split()) for cell in row] for row in rows]
        cells = [[name, *(row[place] for row in rows)] for place, name in enumerate(columns)]
        widths = [max(map(cell_len, column)) for column in cells]
        spare = self.console.width - sum(widths) - 2 * (len(columns) - 1)
        wide = max(
            (place for place, name in enumerate(columns) if name != whole), key=widths.__getitem__, default=0
        )
        if self.wraps and spare < 0:
            widths[wide] += spare
            if widths[wide] < max(
                _LEAST_TEXT, *(cell_len(word) for text in cells[wide] for word in text.split())
            ):
                for row in rows:
                    self.say("  ".join(filter(None, (*row[:wide], *row[wide + 1 :]))), hang=4)
                    self.say(row[wide], indent=4)
                return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for place, name in enumerate(columns):
            numeric = all(_is_number(row[place]) for row in rows)
            table.add_column(Text(safe(name)), justify="right" if numeric else "left", width=widths[place])
        for row in rows:
            table.add_row(*map(Text, row))
        with self.console.capture() as capture:
            self.console.print(table)
        for line in capture.get().splitlines():
            self.console.file.write(f"{line.rstrip()}\n")

    def facts(self, *facts: tuple[str, str]) -> None:
        """Print what is so, a line each: a name and its value."""
        for name, value in facts:
            self.say((f"{name:<10}", "bold"), value, hang=10)


def say_more(screen: Screen, *, more: bool, offset: int) -> None:
    """Print how to list the rest, if there is more."""
    if more:
        screen.say((f"There are more: --offset {offset}, or a larger --limit.", "dim"))


def _wrapped(text: Text, console: Console, width: int) -> Iterator[Text]:
    """Break text into lines at its spaces; what has none is broken anywhere if its characters are wide."""
    for line in text.split("\n", allow_blank=True):
        words = [
            (word.start(), cell_len(word[0]), cell_len(word[0].rstrip()))
            for word in _WORD.finditer(line.plain)
        ]
        if cell_len(line.plain) > len(line) or max((cells for _, _, cells in words), default=0) <= width:
            yield from line.wrap(console, width)
            continue
        starts, used = [], 0
        for start, room, cells in words:
            if used and used + cells > width:
                starts.append(start)
                used = 0
            used += room
        yield from line.divide(starts)


def _is_number(cell: str) -> bool:
    return not cell.strip("0123456789.,%×–- ")


def answer(document: Mapping[str, object] | Sequence[object]) -> None:
    """Print a JSON document, with escapes for what the stream cannot write or a terminal must not get."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(document, ensure_ascii=not unicode, indent=2)
    sys.stdout.write(_RAW_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n")


def plain(value: object, chat: str = "") -> Any:
    """Make JSON-compatible data of results: the fields of each type by their names, times in ISO 8601.

    Summaries have their `kind`; what refers to messages has a `ref`. A message does not know its `chat`: pass
    it. The original payload of a message is left out; `holdfast export` has it.
    """
    if isinstance(value, Why):
        return {"shares": dict(value), "words": list(value.words)}
    if isinstance(value, Summary):
        return {"kind": value.kind, **_fields(value, value.chat)}
    if is_dataclass(value):
        return _fields(value, chat)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(inner, chat) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, chat) for inner in value]
    return value


def _fields(value: Any, chat: str) -> dict[str, Any]:
    told = {one.name: plain(getattr(value, one.name), chat) for one in fields(value) if one.name != "raw"}
    reference = _reference(value, chat)
    return {**told, "ref": reference} if reference else told


def _reference(value: object, chat: str) -> str:
    """Refer to the messages that something is, stands for, or was learned in; "" if there are none."""
    if isinstance(value, Message | Shortened):
        return write_reference(chat, value.seq) if chat and value.seq else ""
    if isinstance(value, Summary):
        return write_reference(value.chat, value.first, value.last)
    if isinstance(value, Omission):
        return write_reference(chat, value.first, value.last) if chat else ""
    if isinstance(value, Hit):
        return (
            write_reference(value.chat, value.seq, value.last_seq or None) if value.chat and value.seq else ""
        )
    if isinstance(value, Record | Wording):
        return write_reference(value.chat, *value.messages) if value.chat and value.messages else ""
    return ""


def when(at: datetime | None) -> str:
    """Write a time as the clock on the wall shows it."""
    if at is None:
        return "–"
    try:
        return f"{at.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):  # a time that no local calendar reaches
        return at.isoformat()


def period(since: datetime, until: datetime) -> str:
    """Write a period as the clock on the wall shows it; a day is named once."""
    first, last = when(since), when(until)
    if first == last:
        return first
    return f"{first} to {last[11:] if last[:10] == first[:10] else last}"


def read_time(text: str) -> datetime:
    """Return the time that a text names: a date, a time, `today`, `yesterday`, `7d`, `24h`.

    Raises:
        ValueError: it is none of these, or beyond the years that a calendar has.

    """
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now().astimezone() - int(ago[1]) * _UNITS[ago[2]]
        day = _day(text)
        return (datetime.combine(day, time()) if day else datetime.fromisoformat(text)).astimezone()
    except OverflowError as error:
        raise ValueError(text) from error


def read_end(text: str) -> datetime:
    """Read the end of a period: a day ends when it is over, anything else is as `read_time` has it.

    Raises:
        ValueError: it is none of these, or beyond the years that a calendar has.

    """
    try:
        day = _day(text)
        return datetime.combine(day + timedelta(days=1), time()).astimezone() if day else read_time(text)
    except OverflowError as error:
        raise ValueError(text) from error


def _day(text: str) -> date | None:
    """Read a day by its name or its date."""
    if text in _DAYS_AGO:
        return datetime.now().astimezone().date() - timedelta(days=_DAYS_AGO[text])
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def count(number: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun: 1 message, 1,204 messages."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def listed(counts: Mapping[str, int]) -> str:
    """Return counts with their names: 1 message, 2 summaries. Zeros are omitted."""
    return ", ".join(
        count(number, "summary" if name == "summaries" else name.removesuffix("s"), name)
        for name, number in counts.items()
        if number
    )


def size(number: int) -> str:
    """Write a number of bytes for people."""
    value = float(number)
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} GiB"
