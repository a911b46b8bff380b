"""The commands that keep what is said out of the memory for a while: pause, resume."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from holdfast_cli.commands.options import Output
from holdfast_cli.commands.render.screen import plain
from holdfast_cli.hooks import pause as pauses
from holdfast_cli.hooks.project import project_of


def pause(options: Output, *, here: bool = False, duration: timedelta | None = None) -> None:
    """Store and inject nothing in coding agents, until `holdfast resume`.

    What is said meanwhile stays out of later imports as well. It holds for all databases and clients of this
    machine.

    For example: holdfast pause --project --for 2h
    """
    name, root = _place(here=here)
    until = datetime.now(UTC) + duration if duration else None
    pauses.pause(name, root, until=until)
    screen = options.answer({"project": name or None, "until": plain(until), "paused": True})
    end = f"until {until.astimezone():%Y-%m-%d %H:%M}" if until else "until it is resumed"
    screen.say((f"Paused {name or 'all projects'}", "bold"), f" {end}: nothing is stored or injected.")
    screen.say(f"Next: holdfast resume{' --project' if name else ''}")


def resume(options: Output, *, here: bool = False) -> None:
    """End a pause: store and inject again from now on.

    What was said in the pause stays out of the memory, whatever is imported later.

    For example: holdfast resume --project
    """
    name, root = _place(here=here)
    ended = pauses.resume(name, root)
    project, folder = _place(here=True)
    active = pauses.read().now(project, folder)
    screen = options.answer({"project": name or None, "ended": ended, "paused": bool(active)})
    what = name or "all projects"
    screen.say((f"Resumed {what}.", "bold") if ended else f"There was no pause of {what} to end.")
    for entry in active:
        how = "holdfast resume --project" if entry.project else "holdfast resume"
        screen.say(f"Still paused here: {entry.project or 'all projects'}. End it with `{how}`.")


def _place(*, here: bool) -> tuple[str, str]:
    """Return name and root of the current project, or what stands for all."""
    if not here:
        return pauses.EVERYTHING, ""
    project = project_of(Path.cwd())
    return project.name, str(project.root)
