"""Summaries on a screen: one with its text, and all of a chat as a tree."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rich.text import Text

from holdfast.cli.render.messages import SPOKEN, cut
from holdfast.cli.render.screen import Part, Screen, count, period, safe, when
from holdfast.text.references import write_reference
from holdfast.types import Summary

_COLUMNS = ("summary", "messages", "tokens", "level", "text")
_LEAST = 30  # columns: words that get fewer stand on a line of their own
_PIPED = 120  # characters of a text where no terminal limits it
_DAY = re.compile(r"\d{1,2} \w+ \d{4}")  # the heading that a summary without a model begins with
_DOUBTFUL = ("aggressive", "capped")


class Rest(NamedTuple):
    """The messages of a chat that no summary covers: count, range, tokens, and times."""

    messages: int
    first: int
    last: int
    tokens: int
    since: datetime
    until: datetime


class _Row(NamedTuple):
    """A line of the tree: what is drawn before it and before a second one, and what it says."""

    branch: str
    margin: str
    cells: tuple[str, ...]
    text: str
    style: str


def show_summaries(screen: Screen, summaries: Iterable[Summary], *, full: bool) -> None:
    """Print summaries as messages are printed; without `full`, long ones are cut."""
    for one in summaries:
        show_head(screen, one)
        text, rest = (one.text, "") if full else cut(one.text, *SPOKEN)
        screen.say(text, indent=4)
        if rest:
            screen.say((f"… {rest} more: --full shows all", "dim"), indent=4)
        screen.say("")


def show_head(screen: Screen, one: Summary) -> None:
    """Print the range and the properties of a summary."""
    how = f"{one.kind}, {count(one.tokens, 'token')}, {one.level}"
    screen.say(
        (f"{write_reference(one.chat, one.first, one.last)}  {period(one.since, one.until)}  ", "dim"),
        ("summary", "bold yellow"),
        f"  {one.id}  ",
        (f"({how})", "dim"),
    )


def show_tree(screen: Screen, summaries: Sequence[Summary], rest: Rest | None) -> None:
    """Draw summaries as a tree, and at the end the messages that none covers."""
    drawn: list[Summary | Rest] = [*summaries, *([rest] if rest else [])]
    of_one_day = len({when(time)[:10] for one in drawn for time in (one.since, one.until)}) == 1
    rows = list(_rows(summaries, rest, of_one_day=of_one_day))
    names = (*_COLUMNS[:2], "times" if of_one_day else "dates", *_COLUMNS[2:])
    widths = [
        max(len(names[place]), *(len(row.branch) * (place == 0) + len(row.cells[place]) for row in rows))
        for place in range(len(names) - 1)
    ]
    room = screen.console.width - sum(widths) - 2 * len(widths) if screen.wraps else _PIPED
    header = _aligned(names[:-1], widths)
    screen.say((f"{header}  {names[-1]}" if room >= _LEAST else header, "bold"))
    for row in rows:
        _show_row(screen, row, widths, room)


def _show_row(screen: Screen, row: _Row, widths: Sequence[int], room: int) -> None:
    name, *cells = row.cells
    facts = _aligned(cells, widths[1:])
    padding = " " * (widths[0] - len(row.branch) - len(name) + 2)
    line: list[Part] = [(row.branch, "dim"), (name, row.style), padding, (facts, "dim")]
    if room >= _LEAST:
        screen.say(*line, "  ", fitted(row.text, room))
    else:
        screen.say(*line)
        screen.say((row.margin, "dim"), fitted(row.text, max(20, screen.console.width - len(row.margin))))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Write cells in their columns, numbers to the right."""
    padded = (
        cell.rjust(width) if cell == "tokens" or cell.replace(",", "").isdecimal() else cell.ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    )
    return "  ".join(padded)


def _rows(summaries: Sequence[Summary], rest: Rest | None, *, of_one_day: bool) -> Iterator[_Row]:
    children: dict[str, list[Summary]] = defaultdict(list)
    for one in sorted(summaries, key=lambda one: one.first):
        children[one.parent].append(one)

    def walk(parent: str, margin: str) -> Iterator[_Row]:
        for place, one in enumerate(children[parent], start=1):
            is_last = place == len(children[parent])
            branch, below = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            if not parent:
                branch = below = ""
            bar = "│  " if children[one.id] else "   "
            style = "bold yellow" if one.level in _DOUBTFUL else "bold"
            cells = (one.id, *_facts(one, of_one_day=of_one_day), one.level)
            yield _Row(margin + branch, margin + below + bar, cells, beginning(one.text), style)
            yield from walk(one.id, margin + below)

    yield from walk("", "")
    if rest:
        text = f"{count(rest.messages, 'message')}, as written"
        yield _Row("", "   ", ("not summarised", *_facts(rest, of_one_day=of_one_day), ""), text, "bold cyan")


def _facts(one: Summary | Rest, *, of_one_day: bool) -> tuple[str, str, str]:
    numbers = write_reference("", one.first, one.last)  # the chat stands above them all
    return numbers, _times(one.since, one.until, of_one_day=of_one_day), f"{one.tokens:,}"


def _times(since: datetime, until: datetime, *, of_one_day: bool) -> str:
    """Write a period in short: of a chat of one day the clock, of others the days."""
    first, last = ((when(time)[11:] if of_one_day else when(time)[:10]) for time in (since, until))
    if first == last:
        return first
    return f"{first}–{last}" if of_one_day else f"{first} – {last[5:] if last[:4] == first[:4] else last}"


def beginning(text: str) -> str:
    """Return a text as one safe line, without a date as its heading."""
    first, _, rest = text.partition("\n")
    return " ".join(safe(rest if rest.strip() and _DAY.fullmatch(first.strip()) else text).split())


def fitted(line: str, width: int) -> str:
    """Cut a line to so many columns of a terminal, at a word if there is one near."""
    text = Text(line[: 2 * width])
    if text.cell_len <= width:
        return text.plain
    text.truncate(width - 1)
    cut_off = text.plain.rstrip()
    word = cut_off.rfind(" ")
    return (cut_off[:word] if word > len(cut_off) // 2 else cut_off).rstrip(" ,;:·-") + "…"


def levels(summaries: Iterable[Summary]) -> Mapping[str, int]:
    """Count how many summaries came about at each level."""
    counted: dict[str, int] = defaultdict(int)
    for one in summaries:
        counted[one.level] += 1
    return dict(counted)
