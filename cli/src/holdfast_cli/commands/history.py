"""The commands for changes: changes, undo, rollback."""

from collections.abc import Sequence

from holdfast import Memory, View
from holdfast.types import Change, Record, Writer
from holdfast_cli.commands.arguments import Points
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.record_lines import change_of, kind_name, show_change
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
        page, more = options.page(memory.changes(kind=kind, limit=limit + 1), limit)
    screen = options.answer({"changes": plain(page), "more": more})
    for change in page:
        show_change(screen, change)
    screen.say_more(more)
    if not page:
        is_filtered = kind or options.agent
        todo = "Try fewer filters." if is_filtered else "Store something: `holdfast remember TEXT…`."
        options.say_nothing(screen, f"No changes{options.whose()} here.", todo)


def _diff(options: Options, memory: Memory, between: Points) -> None:
    before = memory.at(between.first.at)
    after = memory.at(between.last.at if between.last else memory.version())
    old, new = ({record.id: record for record in view.records()} for view in (before, after))
    removed = [record for record in old.values() if record.id not in new]
    changed = [(was, new[was.id]) for was in old.values() if was.id in new and was.text != new[was.id].text]
    added = [record for record in new.values() if record.id not in old]
    screen = options.answer(
        {
            "from": before.version(),
            "to": after.version(),
            "added": plain(added),
            "removed": plain(removed),
            "changed": [
                {"id": latter.id, "kind": latter.kind, "before": former.text, "after": latter.text}
                for former, latter in changed
            ],
        }
    )
    names = _name(before), f"version {after.version()}, now" if between.last is None else _name(after)
    parts: list[tuple[Record, str, str]] = [(record, record.text, "") for record in removed]
    parts += [(latter, former.text, latter.text) for former, latter in changed]
    parts += [(record, "", record.text) for record in added]
    if not parts:
        screen.say(f"No difference{options.whose()} between {names[0]} and {names[1]}.")
        screen.say("→ `holdfast changes` lists all versions.")
        return
    screen.say((f"--- {names[0]}", "red"))
    screen.say((f"+++ {names[1]}", "green"))
    for record, was, now in parts:
        screen.say((f"@@ {kind_name(record.kind, record.target)} {record.id} @@", "cyan"))
        screen.diff(was.split("\n") if was else [], now.split("\n") if now else [])


def _name(view: View) -> str:
    """Name a version for a person."""
    newest = next((change for change in view.changes() if change.version), None)
    return f"version {view.version()}{f', {when(newest.at)}' if newest else ''}"


def undo(options: Options, *, by: Writer = "user") -> None:
    """Undo the newest change, whoever made it; again, the one before.

    Nothing is lost: it writes new versions, and prints them. A chat that was rewound goes back to its branch.

    For example: holdfast undo
    """
    with options.open() as memory:
        written = memory.undo(by=by)
        moved = memory.changes(kind="branch", limit=0 if written else 1)
        _report(options, memory, written, moved)


def rollback(options: Options, *, what: str, version: int, by: Writer = "user") -> None:
    """Write a record, or all of a kind, again as it was at a version.

    Nothing is lost: it writes new versions, and prints them.

    For example: holdfast rollback profile 12
    """
    with options.open() as memory:
        _report(options, memory, memory.rollback(what, version, by=by))


def _report(
    options: Options, memory: Memory, records: Sequence[Record], moved: Sequence[Change] = ()
) -> None:
    versions = [*(change_of(memory, record) for record in records), *moved]
    screen = options.answer({"written": plain(records), "changes": plain(versions)})
    if not versions:
        screen.say("Nothing to write: all of it is now as it was then.")
        return
    what = "Went to another branch" if moved else f"Wrote {count(len(versions), 'new version')}"
    screen.say((f"{what}:", "bold"))
    for change in versions:
        show_change(screen, change)
