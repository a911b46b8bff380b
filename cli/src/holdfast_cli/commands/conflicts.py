"""The command for records that contradict each other: conflicts."""

from holdfast.types import Record, Writer
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.record_lines import kind_name, short, source_of
from holdfast_cli.commands.render.screen import Screen, plain, when


def conflicts(
    options: Options, *, keep: list[str] | None = None, kind: str | None = None, by: Writer = "user"
) -> None:
    """List records that contradict each other, with sources and dates; or settle it by keeping some.

    What contradicts the one that is kept is retracted. Of several that are kept all are true.

    For example: holdfast conflicts, then holdfast conflicts --keep rec_00000001615749fe
    """
    with options.open() as memory:
        if keep:
            records = memory.resolve(keep=keep, by=by)
            screen = options.answer({"resolved": plain(records)})
            for record in records:
                _show(screen, "retracted" if record.retracted else "kept", record)
            screen.say((f"Take it back: {options.line('undo')}", "dim"))
            return
        pairs = memory.conflicts(kind=kind)
    screen = options.answer({"conflicts": plain(pairs)})
    for pair in pairs:
        _show(screen, "shown", pair.shown)
        _show(screen, "also", pair.other)
        screen.say((f"why: {pair.why}", "dim"), indent=4)
        screen.say("")
    if pairs:
        line = options.line("conflicts", "--keep", "ID")
        screen.say((f"Keep one: {line}\nBoth are true: {line} --keep ID", "dim"))
    else:
        options.say_nothing(screen, f"No records contradict each other{options.whose()}.", "")


def _show(screen: Screen, how: str, record: Record) -> None:
    """Print a record of a pair: what becomes of it, its text, its writer, source and time."""
    source = source_of(record)
    screen.say(
        (f"{how:<9} ", "bold"), f"{kind_name(record.kind, record.target)}  {short(record.text)}", hang=4
    )
    said = f"by {record.by}{f' from {source}' if source else ''}, {when(record.at)}  ({record.id})"
    screen.say((said, "dim"), indent=10)
