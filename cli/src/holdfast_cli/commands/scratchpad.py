"""The command for scratchpads."""

import typer

from holdfast import Scratchpad
from holdfast.errors import InvalidInput
from holdfast_cli.commands.arguments import text_of
from holdfast_cli.commands.lookup import the_chat
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.record_lines import short

_TEMPORARY = "temp:"  # begins names that no other process sees


def scratchpad(
    options: Options,
    *,
    name: str | None = None,
    value: list[str] | None = None,
    chat: str | None = None,
    remove: str | None = None,
    search: str = "",
    limit: int | None = None,
) -> None:
    """List a scratchpad, or read or write one of its names.

    It is the scratchpad of the user, or with --chat that of a chat.

    For example: holdfast scratchpad shoe-size 43, then holdfast scratchpad shoe-size
    """
    if name is not None and (remove is not None or search):
        raise typer.BadParameter("one thing at a time: it goes without these options.", param_hint="NAME")
    if (name or remove or "").startswith(_TEMPORARY):
        raise InvalidInput(
            f"Names that begin with {_TEMPORARY!r} live in one process only, and each command is a process.",
            "Use another name for what is to be kept; credentials are not.",
        )
    content = text_of(value) if name is not None and value else None
    with options.open(create=content is not None) as memory:
        pad = memory.scratchpad if chat is None else memory.chat(chat).scratchpad
        if chat is not None and content is None and not pad:
            the_chat(options, memory, chat)
        if name is not None and content is not None:
            _put(options, pad, name, content)
        elif name is not None or remove is not None:
            _show(options, pad, name or remove or "", remove=remove is not None)
        else:
            _list(options, pad, search, limit)


def _list(options: Options, pad: Scratchpad, search: str, limit: int | None) -> None:
    entries, more = options.page(pad.search(search).items(), limit)
    columns = {"name": [name for name, _ in entries], "value": [short(value) for _, value in entries]}
    nothing = f"Nothing {'like that ' if search else ''}on the scratchpad{options.whose()}."
    todo = "Put something there: `holdfast scratchpad NAME VALUE`."
    options.show_list({"pad": dict(entries), "more": more}, columns, nothing, todo)


def _show(options: Options, pad: Scratchpad, name: str, *, remove: bool) -> None:
    value = pad.get(name)
    if value is None:
        what = f"There is nothing under {name!r} on the scratchpad."
        raise InvalidInput(what, "`holdfast scratchpad` lists the names.")
    if remove:
        del pad[name]
        screen = options.answer({"name": name, "value": None, "before": value})
        screen.say(("Removed: ", "bold"), f"{name}, which was {short(value)}")
    else:
        options.answer({"name": name, "value": value}).say(value)


def _put(options: Options, pad: Scratchpad, name: str, value: str) -> None:
    before = pad.get(name)
    pad[name] = value
    screen = options.answer({"name": name, "value": pad[name], "before": before})
    was = f", which was {short(before)}" if before not in (None, value) else ""
    screen.say(("Noted: ", "bold"), f"{name} is {short(value)}{was}")
