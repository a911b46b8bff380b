"""Safe output of text from anywhere, for a terminal, a pipe, or as JSON."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from difflib import unified_diff
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.types import Hit, Message, Omission, Record, Shortened, Summary, Why, Wording
from holdfast.types.references import write_reference

Part = str | tuple[str, str]
"""A piece of a line: text, or text and its style."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
# What drives a terminal, and what makes text read in another order than it is written.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_RAW_IN_JSON = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # JSON escapes those below U+0020 itself
_LEAST_WRAPPED = 20  # columns of a terminal for text beside other columns
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

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        file = stream or sys.stdout
        self.console = Console(file=file, markup=False, emoji=False, highlight=False, quiet=quiet)
        self.wraps = self.console.is_terminal
        if not self.wraps:
            self.console.width = _PIPE_WIDTH

    def say(self, *parts: Part | Text, indent: int = 0, hang: int = 0) -> None:
        """Print a paragraph, each of its lines indented, and those after the first by `hang` more.

        A word that is wider than the terminal, such as a path, stays unbroken on its own line, so that it can
        be copied.
        """
        text = Text.assemble(*(part if isinstance(part, Text) else _text(part) for part in parts))
        lines = list(text.split("\n", allow_blank=True))
        if self.wraps:
            width = max(20, self.console.width - indent - hang)
            for line in lines:
                line.overflow = "fold" if line.cell_len > len(line) else "ignore"
            lines = [part for line in lines for part in line.wrap(self.console, width)]
        for number, line in enumerate(lines):
            line.rstrip()
            margin = " " * (indent + hang * (number > 0))
            self.console.print(Text(margin).append_text(line) if line else "", soft_wrap=True)

    def table(self, columns: Mapping[str, Sequence[Part]], *, whole: str = "") -> None:
        """Print a table of columns; numbers stand to the right, a column to be copied from stays `whole`.

        Columns without anything in them are omitted.
        On a terminal that is too narrow the widest column is wrapped. Where that leaves no room for its
        words, they stand below the rest of their row.
        """
        if self.console.quiet:
            return
        names = [name for name, column in columns.items() if any(column)]
        cells = [[_line(cell) for cell in (name, *columns[name])] for name in names]
        widths = [max(cell.cell_len for cell in column) for column in cells]
        wide = max((n for n, name in enumerate(names) if name != whole), key=widths.__getitem__, default=0)
        room = self.console.width - sum(widths) + widths[wide] - 2 * (len(names) - 1)
        words = (cell_len(word) for cell in cells[wide] for word in cell.plain.split())
        if not self.wraps or room >= min(widths[wide], max((_LEAST_WRAPPED, *words))):
            widths[wide] = min(widths[wide], room)
            for line in self._grid(cells, widths):
                self.say(line)
            return
        below = cells.pop(wide)
        del widths[wide]
        heads = self._grid(cells, widths)
        if room < -2:  # not even the others have room
            heads = [Text("  ").join(filter(None, row)) for row in zip(*cells, strict=True)]
        self.say(heads[0])
        for head, text in zip(heads[1:], below[1:], strict=False):
            self.say(head, hang=4)
            if text:
                self.say(text, indent=4)

    def _grid(self, cells: Sequence[Sequence[Text]], widths: Sequence[int]) -> list[Text]:
        """Return the lines of a table of columns, the first cell of each being its name."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for (name, *column), width in zip(cells, widths, strict=True):
            numeric = all(not cell.plain.strip("0123456789.,%×– ") for cell in column)
            table.add_column(name, justify="right" if numeric else "left", width=width)
        for row in zip(*(column[1:] for column in cells), strict=True):
            table.add_row(*row)
        with self.console.capture() as capture:
            self.console.print(table)
        return [Text.from_ansi(line) for line in capture.get().splitlines()]

    def facts(self, *facts: tuple[str, str]) -> None:
        """Print names with their values, a line each. Blank values are omitted."""
        for name, value in facts:
            if value:
                self.say((f"{name:<10}", "bold"), value, hang=10)

    def diff(
        self,
        before: Sequence[str],
        after: Sequence[str],
        name: str = "",
        *,
        render: Callable[[str], str] = str,
    ) -> None:
        """Print two texts as a unified diff, each line as `render` returns it.

        Without a name, its head is omitted, and that of a single hunk.
        """
        lines = list(unified_diff(before, after, name, name, lineterm="", n=2))
        if not name:
            lines = lines[2:] if sum(line.startswith("@@") for line in lines) > 1 else lines[3:]
        for line in lines:
            self.say((render(line), {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")))

    def say_more(self, more: str | None) -> None:
        """Print how to list the rest, if there is more."""
        if more:
            self.say((f"There are more: {more}", "dim"))


def _text(part: Part) -> Text:
    return Text(safe(part)) if isinstance(part, str) else Text(safe(part[0]), part[1])


def _line(part: Part) -> Text:
    """Return a cell of a table, on one line."""
    text = _text(part)
    return Text(" ".join(text.plain.split()), text.style)


def fit(line: str, width: int) -> str:
    """Cut a line to so many columns of a terminal, at a word if there is one near."""
    text = Text(line[: 2 * width])
    if text.cell_len <= width:
        return text.plain
    text.truncate(width - 1)
    cut_off = text.plain.rstrip()
    word = cut_off.rfind(" ")
    return (cut_off[:word] if word > len(cut_off) // 2 else cut_off).rstrip(" ,;:·-") + "…"


def answer(document: Mapping[str, object] | Sequence[object]) -> None:
    """Print a JSON document, with escapes for what the stream cannot write or a terminal must not get."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(document, ensure_ascii=not unicode, indent=2)
    sys.stdout.write(_RAW_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n")


def plain(value: object, chat: str = "") -> Any:
    """Return the JSON data of results: the fields of each type by their names, times in ISO 8601.

    Summaries have their `kind`; what refers to messages has a `ref`. A message does not know its `chat`: pass
    it. The original payload of a message is left out; `holdfast export` has it.
    """
    if isinstance(value, Why):
        return {"shares": dict(value), "words": list(value.words)}
    if isinstance(value, Summary):
        return {"kind": value.kind, **_fields(value, value.chat)}
    if is_dataclass(value):
        return _fields(value, chat)
    if isinstance(value, date):  # a time is one as well
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(inner, chat) for key, inner in value.items()}
    return [plain(inner, chat) for inner in value] if isinstance(value, list | tuple) else value


def _fields(value: Any, chat: str) -> dict[str, Any]:
    data = {f.name: plain(getattr(value, f.name), chat) for f in fields(value) if f.name != "raw"}
    if isinstance(value, Record | Hit) and not _is_of_several(value):
        del data["space"]
    reference = _reference(value, chat)
    return {**data, "ref": reference} if reference else data


def _is_of_several(value: Record | Hit) -> bool:
    """Return whether a hit or a record comes from a search in several spaces."""
    return "nearness" in value.why if isinstance(value, Hit) else bool(value.space)


def _reference(value: object, chat: str) -> str:
    """Return the reference of a value to its messages: itself, its range or its source; "" for none."""
    messages: tuple[int, ...] = ()
    if isinstance(value, Message | Shortened):
        messages = (value.seq,)
    elif isinstance(value, Summary | Omission):
        messages = (value.first, value.last)
    elif isinstance(value, Hit):
        chat, messages = value.chat, (value.seq, value.last_seq or value.seq)
    elif isinstance(value, Record | Wording):
        chat, messages = value.chat, value.messages or ()
    return write_reference(chat, *messages) if chat and any(messages) else ""


def when(at: datetime | None) -> str:
    """Write a time in the local time zone."""
    if at is None:
        return "–"
    try:
        return f"{at.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):  # a time that no local calendar reaches
        return at.isoformat()


def period(since: datetime, until: datetime) -> str:
    """Write a period in the local time zone; a day is named once."""
    first, last = when(since), when(until)
    end = last[11:] if last[:10] == first[:10] else last
    return first if first == last else f"{first} to {end}"


def count(number: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun: 1 message, 1,204 messages."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def first_of(names: Sequence[str]) -> str:
    """Return the first five of some names, separated by commas."""
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def tally(counts: Mapping[str, int]) -> str:
    """Return counts with their names: 1 message, 2 summaries. Zeros are omitted."""
    return ", ".join(
        count(number, "summary" if name == "summaries" else name.removesuffix("s"), name)
        for name, number in counts.items()
        if number
    )


def size(number: int) -> str:
    """Write a number of bytes for people."""
    power = min(max(0, number.bit_length() - 1) // 10, 3)
    unit = ("bytes", "KiB", "MiB", "GiB")[power]
    return f"{number / 1024**power:,.1f} {unit}" if power else f"{number:,} {unit}"
