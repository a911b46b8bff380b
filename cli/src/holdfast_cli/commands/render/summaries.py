"""Summaries on a screen: with their texts, or as the tree of a chat."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.types import Summary
from holdfast.types.references import write_reference
from holdfast_cli.commands.render.messages import SPOKEN, say_cut
from holdfast_cli.commands.render.screen import Part, Screen, count, fit, period, safe, when

_LONGEST = 120  # columns of a text
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


def show_summaries(screen: Screen, summaries: Iterable[Summary], *, full: bool) -> None:
    """Print summaries as messages are printed; without `full`, long ones are cut."""
    for summary in summaries:
        show_head(screen, summary)
        say_cut(screen, summary.text, SPOKEN, full=full)
        screen.say("")


def show_head(screen: Screen, node: Summary) -> None:
    """Print the range and the properties of a summary."""
    how = f"{node.kind}, {count(node.tokens, 'token')}, {node.level}"
    screen.say(
        (f"{write_reference(node.chat, node.first, node.last)}  {period(node.since, node.until)}  ", "dim"),
        ("summary", "bold yellow"),
        f"  {node.id}  ",
        (f"({how})", "dim"),
    )


def show_tree(
    screen: Screen, summaries: Sequence[Summary], rest: Rest | None, limit: int | None = None
) -> None:
    """Draw summaries as a tree, and at the end the messages that none covers."""
    entries: list[Summary | Rest] = [*summaries, *([rest] if rest else [])]
    of_one_day = len({when(time)[:10] for entry in entries for time in (entry.since, entry.until)}) == 1
    rows = list(_branches(summaries))[:limit]
    names: list[Part] = [
        (f"{edge}{node.id}", "bold yellow" if node.level in _DOUBTFUL else "bold") for edge, node in rows
    ]
    texts = [fit(beginning(node.text), _LONGEST) for _, node in rows]
    nodes: list[Summary | Rest] = [node for _, node in rows]
    if rest:
        names.append(("not summarised", "bold cyan"))
        texts.append(f"{count(rest.messages, 'message')}, as written")
        nodes.append(rest)
    columns: dict[str, Sequence[Part]] = {
        "summary": names,
        "messages": [write_reference("", node.first, node.last) for node in nodes],
        "times" if of_one_day else "dates": [_times(node, of_one_day=of_one_day) for node in nodes],
        "tokens": [f"{node.tokens:,}" for node in nodes],
        "level": [*(node.level for _, node in rows), *([""] if rest else [])],
        "text": texts,
    }
    screen.table(columns)


def _branches(summaries: Sequence[Summary]) -> Iterator[tuple[str, Summary]]:
    """Yield each summary with its branch."""
    children: dict[str, list[Summary]] = defaultdict(list)
    for summary in sorted(summaries, key=lambda summary: summary.first):
        children[summary.parent].append(summary)

    def walk(parent: str, margin: str) -> Iterator[tuple[str, Summary]]:
        for place, child in enumerate(children[parent], start=1):
            branch, below = ("└─ ", "   ") if place == len(children[parent]) else ("├─ ", "│  ")
            if not parent:
                branch = below = ""
            yield margin + branch, child
            yield from walk(child.id, margin + below)

    return walk("", "")


def _times(node: Summary | Rest, *, of_one_day: bool) -> str:
    """Write a period in short: clock times in a chat of one day, else dates."""
    first, last = ((when(time)[11:] if of_one_day else when(time)[:10]) for time in (node.since, node.until))
    if first == last:
        return first
    return f"{first}–{last}" if of_one_day else f"{first} – {last[5:] if last[:4] == first[:4] else last}"


def beginning(text: str) -> str:
    """Return a text as one safe line, without a date as its heading."""
    first, _, rest = text.partition("\n")
    return " ".join(safe(rest if rest.strip() and _DAY.fullmatch(first.strip()) else text).split())


def levels(summaries: Iterable[Summary]) -> Mapping[str, int]:
    """Count how many summaries came about at each level."""
    return dict(Counter(summary.level for summary in summaries))
