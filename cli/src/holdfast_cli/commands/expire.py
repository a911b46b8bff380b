"""The command that forgets by rule: expire."""

from dataclasses import replace

import typer

from holdfast.errors import InvalidInput
from holdfast.kinds import Kind, table
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render import outcomes
from holdfast_cli.commands.render.record_lines import kind_name, short
from holdfast_cli.commands.render.screen import count


def expire(
    options: Options,
    *,
    rule: list[str],
    unused: bool = False,
    erase: bool = False,
    dry_run: bool = False,
) -> None:
    """Let records of a kind expire, a time after they were said last. What is pinned stays.

    They are retracted, which `holdfast undo` takes back, or with --erase erased for ever. To have it done
    all the time, open the memory with the same rules: Memory(kinds=[Kind(KIND, expires=TIME)]).

    For example: holdfast expire episode=180d --dry-run
    """
    kinds = [_with_rule(text, erase=erase, unused=unused) for text in rule]
    with outcomes.interruptible(), options.open(kinds=kinds) as memory:
        result = memory.learning.expire(dry_run=dry_run)
    screen = options.answer(outcomes.work_data(result))
    for record in result.records:
        named = (f"− {kind_name(record.kind, record.target)}  {short(record.text)}", "red")
        screen.say(named, (f"  ({record.id})", "dim"), indent=4, hang=2)
        screen.say((record.why, "dim"), indent=6)
    for note in result.notes:
        screen.say(note.partition(": ")[2])
    outcomes.fail((*result.failed, *result.postponed))
    if not (result.records or result.notes):
        options.say_nothing(screen, f"Nothing has expired{options.whose()}.", "What is pinned never does.")
    elif dry_run:
        verb = "erased for ever" if erase else "retracted"
        screen.say(f"{count(len(result.records), 'record')} would be {verb}.")
        screen.say(f"→ Do it: {options.again(dry_run=False)}")
    elif result.records:
        screen.say((f"Bring back up to 250 at a time: {options.line('undo')}", "dim"))


def _with_rule(text: str, *, erase: bool, unused: bool) -> Kind:
    """Return a kind with the rule that KIND=TIME names.

    Raises:
        typer.BadParameter: it names none.

    """
    name, _, time = text.partition("=")
    try:
        kind = table().get(name) or Kind(name)
        if unused:
            return replace(kind, expires_unused=time, erase_expired=erase)
        return replace(kind, expires=time, erase_expired=erase)
    except InvalidInput as error:
        raise typer.BadParameter(f"{error.what} Write KIND=TIME, such as episode=180d.") from error
