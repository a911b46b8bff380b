"""The commands for changes: changes, undo, rollback."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Annotated, NamedTuple

import typer

from holdfast.cli.arguments import KIND_NAMES, By, Point, read_point
from holdfast.cli.options import Options
from holdfast.cli.render.record_lines import called, change_of, show_change
from holdfast.cli.render.screen import Screen, answer, count, plain, when
from holdfast.memory import Memory
from holdfast.records.view import View
from holdfast.types import Change, Record

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class _Range(NamedTuple):
    """Two versions or times; None stands for now."""

    first: Point
    last: Point | None


def _read_range(text: str) -> _Range:
    first, _, last = text.partition("..")
    return _Range(read_point(first), read_point(last) if last else None)


def changes(
    options: Options,
    *,
    kind: Annotated[str | None, typer.Option(help=f"Only of this kind: {KIND_NAMES}.")] = None,
    identity: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Only of the record with this id.")
    ] = None,
    diff: Annotated[
        _Range | None,
        typer.Option(
            parser=_read_range,
            metavar="VERSION[..VERSION]",
            help="Instead, how the records of two versions differ, as a unified diff; a date means its end.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="At most so many.")] = 20,
) -> None:
    """List changes, newest first: version, time, writer, action, the text before and after, and the reason.

    For example: holdfast changes --kind constraint, or holdfast changes --diff 2026-03-01..2026-04-01
    """
    with options.open() as memory:
        if diff is not None:
            _diff(options, memory, diff)
            return
        found = memory.changes(kind=kind, id=identity, limit=limit + 1)
    shown, more = found[:limit], len(found) > limit
    if options.json:
        answer({"changes": plain(shown), "more": more})
        return
    screen = Screen()
    for change in shown:
        show_change(screen, change)
    if more:
        screen.say(("There are more: a larger --limit.", "dim"))
    elif not shown:
        screen.say(f"No changes{options.whose()} here.")
        filtered = kind or identity or options.agent
        usual = "Try fewer filters." if filtered else "Store something: `holdfast remember TEXT…`."
        screen.say(f"→ {options.others() or usual}")


@dataclass(frozen=True, slots=True)
class _Side:
    """What was known at a version: its number, its name for a person, and the records by their ids."""

    version: int
    name: str
    records: dict[str, Record]


def _side(view: View, *, now: bool) -> _Side:
    version = view.version()
    newest = next((change for change in view.changes() if change.version), None)
    at = f", {when(newest.at)}" if newest else ""
    records = {record.id: record for record in view.records()}
    return _Side(version, f"version {version}{', now' if now else at}", records)


def _diff(options: Options, memory: Memory, between: _Range) -> None:
    first, last = between
    before = _side(first.view(memory), now=False)
    after = _side((last or Point(memory.version())).view(memory), now=last is None)
    if options.json:
        _answer_difference(before, after)
        return
    screen = Screen()
    parts = _difference(before, after)
    if not parts:
        screen.say(f"No difference{options.whose()} between {before.name} and {after.name}.")
        screen.say("→ `holdfast changes` lists all versions.")
        return
    screen.say((f"--- {before.name}", "red"))
    screen.say((f"+++ {after.name}", "green"))
    for one, two in parts:
        _show_difference(screen, one, two)


def _difference(before: _Side, after: _Side) -> list[tuple[Record | None, Record | None]]:
    """Pair the records whose text differs: those that are gone, those that changed, and those that came."""
    gone = [(one, None) for one in before.records.values() if one.id not in after.records]
    both = [(one, after.records[one.id]) for one in before.records.values() if one.id in after.records]
    came = [(None, one) for one in after.records.values() if one.id not in before.records]
    return [*gone, *((one, two) for one, two in both if one.text != two.text), *came]


def _answer_difference(before: _Side, after: _Side) -> None:
    parts = _difference(before, after)
    changed = [
        {"id": two.id, "kind": two.kind, "before": one.text, "after": two.text}
        for one, two in parts
        if one and two
    ]
    added = [plain(two) for one, two in parts if not one]
    removed = [plain(one) for one, two in parts if not two]
    numbers = {"from": before.version, "to": after.version}
    answer({**numbers, "added": added, "removed": removed, "changed": changed})


def _show_difference(screen: Screen, before: Record | None, after: Record | None) -> None:
    """Print one record as a part of a unified diff."""
    record = after or before
    if record is None:
        return
    screen.say((f"@@ {called(record.kind, record.target)} {record.id} @@", "cyan"))
    old, new = (one.text.split("\n") if one else [] for one in (before, after))
    hunks = list(unified_diff(old, new, n=2, lineterm=""))[2:]
    is_whole = len([line for line in hunks if line.startswith("@@")]) == 1
    for line in hunks[1:] if is_whole else hunks:
        screen.say((line, _COLOURS.get(line[:1], "")))


def undo(options: Options, *, by: By = "user") -> None:
    """Undo the newest change, whoever made it; again, the one before.

    Nothing is lost: it writes new versions, and prints them.

    For example: holdfast undo
    """
    with options.open() as memory:
        written = memory.undo(by=by)
        _report(options, memory, written)


def rollback(
    options: Options,
    *,
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help=f"The id of a record, or all of a kind: {KIND_NAMES}.")
    ],
    version: Annotated[
        int, typer.Argument(min=0, metavar="VERSION", help="A version; `holdfast changes` lists them.")
    ],
    by: By = "user",
) -> None:
    """Write a record, or all of a kind, again as it was at a version.

    Nothing is lost: it writes new versions, and prints them.

    For example: holdfast rollback profile 12
    """
    with options.open() as memory:
        written = memory.rollback(what, version, by=by)
        _report(options, memory, written)


def _report(options: Options, memory: Memory, written: Sequence[Record]) -> None:
    made: list[Change] = [change_of(memory, record) for record in written]
    if options.json:
        answer({"written": plain(written), "changes": plain(made)})
        return
    screen = Screen()
    if not made:
        screen.say("Nothing to write: all of it is now as it was then.")
        return
    screen.say((f"Wrote {count(len(made), 'new version')}:", "bold"))
    for change in made:
        show_change(screen, change)
