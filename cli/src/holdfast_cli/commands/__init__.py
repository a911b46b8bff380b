"""The command line: one function a command, its parameters the options, its docstring the help."""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from holdfast import __version__
from holdfast_cli.commands.command import WORDS, command, is_given, options_of
from holdfast_cli.commands.options import INTERRUPTED, Options

_SETTINGS = {"help_option_names": ["-h", "--help"]}
# The functions of the commands in their modules, which are named as they are, by the panels of the help.
_PANELS = {
    "Every day": "find.recall transfer.import_ chats.chats",
    "Find": "timeline.timeline find.why find.feedback show.show show.window",
    "Keep": (
        "watch.watch export.export records.remember records.records records.replace records.retract "
        "records.pin compaction.compact compaction.tree compaction.expand scratchpad.scratchpad "
        "spaces.projects spaces.grants"
    ),
    "Learn": "work.work learn.learn",
    "Serve": "mcp.mcp install.install install.uninstall hook.hook",
    "Tend": (
        "history.changes history.undo history.rollback conflicts.conflicts quarantine.quarantine "
        "quarantine.erase expire.expire privacy.pause privacy.resume maintenance.stats maintenance.verify "
        "maintenance.backup maintenance.salvage doctor.doctor demo.demo"
    ),
}
_GROUPS = {
    "grants": "spaces.add spaces.revoke spaces.move spaces.copy",
    "chats": (
        "chats.search chats.review chats.rename chats.rewind chats.branches chats.archive chats.move "
        "chats.end chats.users"
    ),
    "learn": (
        "learn.extract learn.episodes learn.reflect learn.consolidate learn.relearn learn.kind jobs.jobs "
        "jobs.usage"
    ),
}


def _name(place: str) -> str:
    return place.partition(".")[2].rstrip("_")


_PLACES = {_name(place): (place, panel) for panel, places in _PANELS.items() for place in places.split()}


class _Commands(Mapping[str, object]):
    """The commands by name, each made when it is looked up: none waits for the modules of the others."""

    def __getitem__(self, name: str) -> object:
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


@cache
def _made(name: str) -> object:
    place, panel = _PLACES[name]
    # `holdfast chats` alone lists them, and so does `holdfast grants`.
    lists = name in ("chats", "grants")
    own = typer.Typer(add_completion=False, no_args_is_help=not lists, context_settings=_SETTINGS)
    if name in _GROUPS:
        own.callback(invoke_without_command=lists)(command(_function(place)))
        for member in _GROUPS[name].split():
            own.command(_name(member))(command(_function(member)))
    else:
        own.command(name)(command(_function(place)))
    made = get_command(own)
    made.name, made.rich_help_panel = name, panel  # type: ignore[attr-defined]  # of both kinds of typer's
    return made


def _function(place: str) -> Callable[..., None]:
    module, _, name = place.partition(".")
    function: Callable[..., None] = getattr(import_module(f"{__name__}.{module}"), name)
    return function


class _Root(TyperGroup):
    """The root command; it keeps its words for the commands that answers suggest."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"commands": _Commands()})

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # of typer
        """Parse the words of the command line, and keep them."""
        ctx.meta[WORDS] = tuple(args)
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Root, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=_SETTINGS)


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
