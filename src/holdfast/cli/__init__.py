"""The command line: one function a command, its parameters the options, its docstring the help."""

import inspect
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from holdfast import __version__
from holdfast.cli import (
    chats,
    compaction,
    demo,
    find,
    history,
    jobs,
    learn,
    maintenance,
    mcp,
    quarantine,
    records,
    scratchpad,
    transfer,
    work,
)
from holdfast.cli.options import Options, command, is_given, options_of

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Find": {
        "recall": find.recall,
        "search": find.search,
        "show": chats.show,
        "window": chats.window,
        "review": chats.review,
    },
    "Keep": {
        "import": transfer.import_,
        "export": transfer.export,
        "remember": records.remember,
        "records": records.records,
        "replace": records.replace,
        "retract": records.retract,
        "compact": compaction.compact,
        "tree": compaction.tree,
        "expand": compaction.expand,
        "scratchpad": scratchpad.scratchpad,
    },
    "Learn": {"work": work.work, "jobs": jobs.jobs, "usage": jobs.usage},
    "Serve": {"mcp": mcp.mcp},
    "Tend": {
        "changes": history.changes,
        "undo": history.undo,
        "rollback": history.rollback,
        "quarantine": quarantine.quarantine,
        "erase": quarantine.erase,
        "stats": maintenance.stats,
        "verify": maintenance.verify,
        "rebuild": maintenance.rebuild,
        "backup": maintenance.backup,
        "salvage": maintenance.salvage,
        "demo": demo.demo,
    },
}
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings=_SETTINGS)
_CHATS: dict[str, Callable[..., None]] = {
    "rename": chats.rename,
    "archive": chats.archive,
    "end": chats.end,
    "users": chats.users,
}
_LEARN: dict[str, Callable[..., None]] = {
    "extract": learn.extract,
    "episodes": learn.episodes,
    "reflect": learn.reflect,
    "consolidate": learn.consolidate,
    "relearn": learn.relearn,
}
_chats = typer.Typer(context_settings=_SETTINGS)
_chats.callback(invoke_without_command=True)(command(chats.chats))
_learn = typer.Typer(
    no_args_is_help=True,
    context_settings=_SETTINGS,
    help="Learn now, and show what was learned.\n\nFor example: holdfast learn episodes database",
)
for _group, _members in ((_chats, _CHATS), (_learn, _LEARN)):
    for _name, _function in _members.items():
        _group.command(_name)(command(_function))
for _panel, _commands in _PANELS.items():
    if _panel == "Find":
        app.add_typer(_chats, name="chats", rich_help_panel=_panel)
    for _name, _function in _commands.items():
        app.command(_name, rich_help_panel=_panel)(command(_function))
    if _panel == "Learn":
        app.add_typer(_learn, name="learn", rich_help_panel=_panel)


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
    **given: object,
) -> None:
    """Memory for LLM agents: bring conversations in, ask, and get the turns that answer, with reasons.

    Start with `holdfast demo`. These options may stand after the command as well.
    """
    context.obj = {name: value for name, value in given.items() if is_given(context, name)}


_own = inspect.signature(_holdfast)
_holdfast.__signature__ = _own.replace(  # type: ignore[attr-defined]  # what typer reads
    parameters=[
        *(one for one in _own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD),
        *options_of(Options).values(),
    ]
)
app.callback()(_holdfast)


def main() -> None:
    """Run the command line."""
    with ExitStack() as stack:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by whoever started us (`>&-`): what we say goes nowhere
                setattr(sys, name, stack.enter_context(Path(os.devnull).open("w", encoding="utf-8")))
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(
                    errors="replace"
                )  # a terminal that lacks a character must not stop the answer
        app(prog_name="holdfast")
