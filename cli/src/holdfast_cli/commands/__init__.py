"""The command line: one function a command, its parameters the options, its docstring the help."""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from holdfast import __version__
from holdfast_cli.commands import (
    chats,
    compaction,
    demo,
    doctor,
    export,
    find,
    history,
    hook,
    install,
    jobs,
    learn,
    maintenance,
    mcp,
    privacy,
    quarantine,
    records,
    scratchpad,
    show,
    spaces,
    timeline,
    transfer,
    watch,
    work,
)
from holdfast_cli.commands.command import Root, command, is_given, options_of
from holdfast_cli.commands.options import INTERRUPTED, Options

_SETTINGS = {"help_option_names": ["-h", "--help"]}
# The functions of the commands, which are named as they are, by the panels of the help.
_PANELS: dict[str, Sequence[Callable[..., None]]] = {
    "Every day": (find.recall, transfer.import_, chats.chats),
    "Find": (timeline.timeline, find.why, find.feedback, show.show, show.window),
    "Keep": (
        *(watch.watch, export.export),
        *(records.remember, records.records, records.replace, records.retract),
        *(compaction.compact, compaction.tree, compaction.expand),
        scratchpad.scratchpad,
        *(spaces.projects, spaces.grants),
    ),
    "Learn": (work.work, learn.learn),
    "Serve": (mcp.mcp, install.install, install.uninstall, hook.hook),
    "Tend": (
        *(history.changes, history.undo, history.rollback),
        *(quarantine.quarantine, quarantine.erase),
        *(privacy.pause, privacy.resume),
        *(maintenance.stats, maintenance.verify, maintenance.backup, maintenance.salvage),
        *(doctor.doctor, demo.demo),
    ),
}
_GROUPS: dict[Callable[..., None], Sequence[Callable[..., None]]] = {
    spaces.grants: (spaces.add, spaces.revoke, spaces.move, spaces.copy),
    chats.chats: (chats.search, chats.review, chats.rename, chats.archive, chats.end, chats.users),
    learn.learn: (
        *(learn.extract, learn.episodes, learn.reflect, learn.consolidate, learn.relearn, learn.kind),
        *(jobs.jobs, jobs.usage),
    ),
}
app = typer.Typer(cls=Root, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=_SETTINGS)
for _panel, _functions in _PANELS.items():
    for _function in _functions:
        _name = _function.__name__.rstrip("_")
        if _function not in _GROUPS:
            app.command(_name, rich_help_panel=_panel)(command(_function))
            continue
        # `holdfast chats` alone lists them, and so does `holdfast grants`.
        _lists = _function in (chats.chats, spaces.grants)
        _group = typer.Typer(no_args_is_help=not _lists, context_settings=_SETTINGS)
        _group.callback(invoke_without_command=_lists)(command(_function))
        for _member in _GROUPS[_function]:
            _group.command(_member.__name__)(command(_member))
        app.add_typer(_group, name=_name, rich_help_panel=_panel)


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer calls it so
    if value:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


def _holdfast(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback acts
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    **options: object,
) -> None:
    """Memory for LLM agents: bring conversations in, ask, and get the turns that answer, with reasons.

    Start with `holdfast demo`. These options may stand after the command as well.
    """
    context.obj = {name: value for name, value in options.items() if is_given(context, name)}


_own = inspect.signature(_holdfast)
_holdfast.__signature__ = _own.replace(  # type: ignore[attr-defined]  # what typer reads
    parameters=[*list(_own.parameters.values())[:-1], *options_of(Options).values()]  # for `**options`
)
app.callback()(_holdfast)


def main() -> None:
    """Run the command line."""
    with ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is None:  # closed by whoever started us (`>&-`): what we say goes nowhere
                setattr(sys, name, stack.enter_context(Path(os.devnull).open("w", encoding="utf-8")))
            elif isinstance(stream, TextIOWrapper):
                # A terminal that lacks a character must not stop the answer.
                stream.reconfigure(errors="replace")
        try:
            app(prog_name="holdfast")
        except KeyboardInterrupt:
            # Before a command had begun.
            sys.exit(INTERRUPTED)
