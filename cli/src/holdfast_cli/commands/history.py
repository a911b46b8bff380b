"""The commands for changes: changes, undo, rollback."""

from collections.abc import Sequence

from holdfast import Memory, View
from holdfast.types import Record, Writer
from holdfast_cli.commands.arguments import Points
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.record_lines import called, change_of, show_change
from holdfast_cli.commands.render.screen import count, plain, when


def changes(
    options: Options, *, kind: str | None = None, diff: Points | None = None, limit: int = 20
) -> None:
    """List changes, newest first: version, time, writer, action, the text before and after, and the reason.

    For example: holdfast changes --kind constraint, or holdfast changes --diff 2026-03-01..2026-04-01
    """
    with options.open() as memory:
        if diff is not None:
            _diff(options, memory, diff)
            return
        shown, more = options.page(memory.changes(kind=kind, limit=limit + 1), limit)
    screen = options.answer({"changes": plain(shown), "more": more})
    for change in shown:
        show_change(screen, change)
    screen.say_more(more)
    if not shown:
        filtered = kind or options.agent
        todo = "Try fewer filters." if filtered else "Store something: `holdfast remember TEXT…`."
        options.say_nothing(screen, f"No changes{options.whose()} here.", todo)


def _diff(options: Options, memory: Memory, between: Points) -> None:
    before = memory.at(between.first.at)
    after = memory.at(between.last.at if between.last else memory.version())
    old, new = ({record.id: record for record in view.records()} for view in (before, after))
    removed = [one for one in old.values() if one.id not in new]
    changed = [(one, new[one.id]) for one in old.values() if one.id in new and one.text != new[one.id].text]
    added = [one for one in new.values() if one.id not in old]
    screen = options.answer(
        {
            "from": before.version(),
            "to": after.version(),
            "added": plain(added),
            "removed": plain(removed),
            "changed": [
                {"id": two.id, "kind": two.kind, "before": one.text, "after": two.text}
                for one, two in changed
            ],
        }
    )
    names = _name(before), f"version {after.version()}, now" if between.last is None else _name(after)
    parts: list[tuple[Record, str, str]] = [(one, one.text, "") for one in removed]
    parts += [(two, one.text, two.text) for one, two in changed]
    parts += [(one, "", one.text) for one in added]
    if not parts:
        screen.say(f"No difference{options.whose()} between {names[0]} and {names[1]}.")
        screen.say("→ `holdfast changes` lists all versions.")
        return
    screen.say((f"--- {names[0]}", "red"))
    screen.say((f"+++ {names[1]}", "green"))
    for record, was, now in parts:
        screen.say((f"@@ {called(record.kind, record.target)} {record.id} @@", "cyan"))
        screen.diff(was.split("\n") if was else [], now.split("\n") if now else [])


def _name(view: View) -> str:
    """Name a version for a person."""
    newest = next((change for change in view.changes() if change.version), None)
    return f"version {view.version()}{f', {when(newest.at)}' if newest else ''}"


def undo(options: Options, *, by: Writer = "user") -> None:
    """Undo the newest change, whoever made it; again, the one before.

    Nothing is lost: it writes new versions, and prints them.

    For example: holdfast undo
    """
    with options.open() as memory:
        _report(options, memory, memory.undo(by=by))


def rollback(options: Options, *, what: str, version: int, by: Writer = "user") -> None:
    """Write a record, or all of a kind, again as it was at a version.

    Nothing is lost: it writes new versions, and prints them.

    For example: holdfast rollback profile 12
    """
    with options.open() as memory:
        _report(options, memory, memory.rollback(what, version, by=by))


def _report(options: Options, memory: Memory, written: Sequence[Record]) -> None:
    made = [change_of(memory, record) for record in written]
    screen = options.answer({"written": plain(written), "changes": plain(made)})
    if not made:
        screen.say("Nothing to write: all of it is now as it was then.")
        return
    screen.say((f"Wrote {count(len(made), 'new version')}:", "bold"))
    for change in made:
        show_change(screen, change)
