"""Commands as typer takes them, and the edge where errors become text."""

import inspect
import os
import sys
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cache, wraps
from typing import Annotated, Concatenate, ParamSpec, TypeVar, cast

import typer
from typer import Context
from typer.models import ArgumentInfo

from holdfast.errors import HoldfastError
from holdfast_cli.commands.ids import complete_ids
from holdfast_cli.commands.options import INTERRUPTED, Options, Output, complain
from holdfast_cli.commands.parameters import PARAMETERS
from holdfast_cli.commands.render.wording import in_options

CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
O = TypeVar("O", bound=Output)  # noqa: E741 - the options
P = ParamSpec("P")
WORDS = "holdfast.words"


def command(function: Callable[Concatenate[O, P], None]) -> Callable[..., None]:
    """Return a command for typer: its options are the parameters and the fields of the first one."""
    own = inspect.signature(function)
    first, *rest = own.parameters.values()
    make = cast("Callable[..., O]", first.annotation)
    shared = options_of(first.annotation)
    rest = [_declare(function.__name__.rstrip("_"), parameter) for parameter in rest]
    metavars = {p.name: p.annotation.__metadata__[0].metavar for p in (*rest, *shared.values())}

    @wraps(function)
    def run(context: Context, **values: object) -> None:
        shared_values = {name: values.pop(name) for name in shared}
        here = {name: value for name, value in shared_values.items() if is_given(context, name)}
        if context.invoked_subcommand is not None:
            # In a group, the options before a subcommand belong to the subcommand.
            if own_names := [name for name in values if is_given(context, name)]:
                what = f"`{context.command_path} {context.invoked_subcommand}` does not take it."
                raise typer.BadParameter(what, param_hint=f"--{own_names[0].replace('_', '-')}")
            context.find_root().obj.update(here)
            return
        settings = _before_command(context, shared) | here
        options = make(**settings, words=context.meta.get(WORDS, ()))
        with _edge():
            if isinstance(options, Options):
                options = options if "user" in settings else options.with_user()
                values |= {name: getattr(options, name) for name in shared}
                values = complete_ids(options, values, metavars)
                fields = {name: values.pop(name) for name in shared}
                options = cast("Callable[..., O]", replace)(options, **fields)
            cast("Callable[..., None]", function)(options, **values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = own.replace(  # type: ignore[attr-defined]  # what typer reads
        parameters=[CONTEXT, *(parameter.replace(kind=keyword) for parameter in (*rest, *shared.values()))]
    )
    run.__annotations__ = {}
    return run


@cache
def options_of(make: type[Output]) -> dict[str, inspect.Parameter]:
    """Find the options of a command among the fields of a class, by their names."""
    fields = inspect.signature(make).parameters
    return {
        name: _declare(make.__name__, field) for name, field in fields.items() if name not in make.no_options
    }


def _declare(owner: str, parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter with its declaration for a command or class, or else for all."""
    if hasattr(parameter.annotation, "__metadata__"):
        return parameter
    info = copy(PARAMETERS.get(f"{owner}.{parameter.name}") or PARAMETERS[parameter.name])
    if isinstance(info, ArgumentInfo):
        info.metavar = info.metavar or parameter.name.upper()
    elif parameter.annotation is bool and info.default is ...:
        # A name of its own, or typer would add its opposite.
        info.default = f"--{parameter.name.replace('_', '-')}"
    return parameter.replace(annotation=Annotated[parameter.annotation, info])


def is_given(context: Context, name: str) -> bool:
    """Return whether an option is on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _before_command(context: Context, names: Container[str]) -> dict[str, object]:
    """Return the options that stand before the command.

    Raises:
        typer.BadParameter: the command has no such option.

    """
    options: dict[str, object] = context.find_root().obj or {}
    for name in options:
        if name not in names:
            raise typer.BadParameter(f"`{context.command_path}` does not take it.", param_hint=f"--{name}")
    return options


@contextmanager
def _edge() -> Iterator[None]:
    """Turn expected errors into two lines on stderr and an exit code; anything else is a bug."""
    try:
        yield
        sys.stdout.flush()
    except HoldfastError as error:
        complain(in_options(error.what), in_options(error.todo))
        raise typer.Exit(1) from error
    except OSError as error:
        _drop_output()
        if not isinstance(error, BrokenPipeError):  # the reader has left
            place = f"{error.filename}: " if error.filename else ""
            todo = "Check the path, your rights to it, and the space on the disk."
            complain(f"{place}{error.strerror or error}.", todo)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        complain("Interrupted.")
        raise typer.Exit(INTERRUPTED) from error


def _drop_output() -> None:
    """Discard the rest of the output, or Python would write it again on exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
