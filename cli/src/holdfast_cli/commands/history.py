"""The commands for changes: changes, undo, rollback."""

from collections.abc import Sequence

from holdfast import Memory
from holdfast.types import Record, Writer
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.record_lines import change_of, show_change
from holdfast_cli.commands.render.screen import count, plain


def changes(options: Options, *, kind: str | None = None, limit: int = 20) -> None:
    """List changes, newest first: version, time, writer, action, the text before and after, and the reason.

    For example: holdfast changes --kind constraint
    """
    with options.open() as memory:
        page, more = options.page(memory.changes(kind=kind, limit=limit + 1), limit)
    screen = options.answer({"changes": plain(page), "more": more})
    for change in page:
        show_change(screen, change)
    screen.say_more(more)
    if not page:
        is_filtered = kind or options.agent
        todo = "Try fewer filters." if is_filtered else "Store something: `holdfast remember TEXT…`."
        options.say_nothing(screen, f"No changes{options.whose()} here.", todo)


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


def _report(options: Options, memory: Memory, records: Sequence[Record]) -> None:
    versions = [change_of(memory, record) for record in records]
    screen = options.answer({"written": plain(records), "changes": plain(versions)})
    if not versions:
        screen.say("Nothing to write: all of it is now as it was then.")
        return
    screen.say((f"Wrote {count(len(versions), 'new version')}:", "bold"))
    for change in versions:
        show_change(screen, change)
