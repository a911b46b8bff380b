"""The command for scratchpads."""

from collections.abc import Callable
from typing import Annotated

import typer

from holdfast.cli.arguments import text_of
from holdfast.cli.chats import the_chat
from holdfast.cli.options import Options
from holdfast.cli.render.record_lines import short
from holdfast.cli.render.screen import Screen, answer
from holdfast.errors import Denied, InvalidInput
from holdfast.memory import Memory
from holdfast.scratchpad import Scratchpad
from holdfast.store.pads import TEMPORARY


def scratchpad(
    options: Options,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show what is under this name.")
    ] = None,
    value: Annotated[
        list[str] | None, typer.Argument(metavar="[VALUE]", help="Put this there; `-` reads standard input.")
    ] = None,
    chat: Annotated[str | None, typer.Option(metavar="CHAT", help="The scratchpad of this chat.")] = None,
    remove: Annotated[str | None, typer.Option(metavar="NAME", help="Remove this name.")] = None,
    prefix: Annotated[str, typer.Option(help="Only names that begin so.")] = "",
    search: Annotated[str, typer.Option(metavar="TEXT", help="Only with this in the name or value.")] = "",
) -> None:
    """List a scratchpad, or read or write one of its names.

    It is the scratchpad of the user, or with --chat that of a chat.

    For example: holdfast scratchpad shoe-size 43, then holdfast scratchpad shoe-size
    """
    if name is not None and (remove is not None or prefix or search):
        raise typer.BadParameter("one thing at a time: it goes without these options.", param_hint="NAME")
    _check_lasting(name or remove or prefix)
    if remove is not None:
        _on_pad(options, chat, lambda pad: _remove(options, pad, remove))
    elif name is None:
        _on_pad(options, chat, lambda pad: _list_pad(options, pad, prefix, search))
    elif not value:
        _on_pad(options, chat, lambda pad: _show(options, pad, name))
    else:
        said = text_of(value)
        _on_pad(options, chat, lambda pad: _put(options, pad, name, said), create=True)


def _check_lasting(name: str) -> None:
    if name.startswith(TEMPORARY):
        raise InvalidInput(
            f"Names that begin with {TEMPORARY!r} live in one process only, and each command is a process.",
            "Use another name for what is to be kept; credentials are not.",
        )


def _on_pad(
    options: Options, chat: str | None, action: Callable[[Scratchpad], None], *, create: bool = False
) -> None:
    with options.open(create=create) as memory:
        pad = _pad_of(memory, chat)
        if chat is not None and not create and not pad:
            the_chat(options, memory, chat)
        action(pad)


def _pad_of(memory: Memory, chat: str | None) -> Scratchpad:
    return memory.scratchpad if chat is None else memory.chat(chat).scratchpad


def _list_pad(options: Options, pad: Scratchpad, prefix: str, search: str) -> None:
    shown = {name: value for name, value in pad.search(search).items() if name.startswith(prefix)}
    if options.json:
        answer({"pad": shown})
    elif shown:
        Screen().table(["name", "value"], [[name, short(value)] for name, value in shown.items()])
    else:
        screen = Screen()
        screen.say(f"Nothing {'like that ' if prefix or search else ''}on the scratchpad{options.whose()}.")
        screen.say(f"→ {options.others() or 'Put something there: `holdfast scratchpad NAME VALUE`.'}")


def _show(options: Options, pad: Scratchpad, name: str) -> None:
    if name not in pad:
        raise _no_such_name(name)
    if options.json:
        answer({"name": name, "value": pad[name]})
    else:
        Screen().say(pad[name])


def _put(options: Options, pad: Scratchpad, name: str, value: str) -> None:
    before = pad.get(name)
    try:
        pad[name] = value
    except Denied as error:
        raise Denied(
            error.what, "Leave it out: a command keeps nothing in memory for the next one."
        ) from error
    if options.json:
        answer({"name": name, "value": pad[name], "before": before})
    else:
        was = f", which was {short(before)}" if before not in (None, value) else ""
        Screen().say(("Noted: ", "bold"), f"{name} is {short(value)}{was}")


def _remove(options: Options, pad: Scratchpad, name: str) -> None:
    before = pad.get(name)
    if before is None:
        raise _no_such_name(name)
    del pad[name]
    if options.json:
        answer({"name": name, "value": None, "before": before})
    else:
        Screen().say(("Removed: ", "bold"), f"{name}, which was {short(before)}")


def _no_such_name(name: str) -> InvalidInput:
    return InvalidInput(
        f"There is nothing under {name!r} on the scratchpad.", "`holdfast scratchpad` lists the names."
    )
