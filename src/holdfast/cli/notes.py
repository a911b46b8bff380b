"""The commands for what is noted on the way: notes, pad."""

from collections.abc import Callable
from typing import Annotated

import typer

from holdfast.cli.arguments import By, Priority, text_of
from holdfast.cli.chats import the_chat
from holdfast.cli.options import Options
from holdfast.cli.render.record_lines import outcome, report, short, show_table
from holdfast.cli.render.screen import Screen, answer, plain
from holdfast.errors import Denied, InvalidInput
from holdfast.memory import Memory
from holdfast.scratchpad import Pad
from holdfast.store.pads import TEMPORARY


def notes(
    options: Options,
    *,
    chat: Annotated[str, typer.Argument(metavar="CHAT", help="The id of a chat.")],
    target: Annotated[
        str | None, typer.Option(metavar="session|plan", help="Only notes of the session, or of its plan.")
    ] = None,
    category: Annotated[
        str | None, typer.Option(help="Only of this category; or that of the new one.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="Only with this tag; or one of the new one. May be repeated."),
    ] = None,
    add: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Note this; `-` reads standard input.")
    ] = None,
    priority: Priority = None,
    by: By = "user",
) -> None:
    """List the notes of a chat, the important and the often used first, or add one.

    For example: holdfast notes marathon-plan --target plan --add "Buy shoes by May" --priority 8
    """
    if add is None:
        _list_notes(options, chat, target, category, tag)
        return
    said = text_of([add])
    with options.open(create=True) as memory:
        version = memory.version()
        record = memory.chat(chat).remember(
            said, "note", target=target, category=category or "", tags=tag or (), priority=priority, by=by
        )
        done = outcome(memory, record, version)
    report(options, done)


def _list_notes(
    options: Options, chat: str, target: str | None, category: str | None, tags: list[str] | None
) -> None:
    with options.open() as memory:
        # Not `Chat.notes`: that counts a use, and a look from outside is none.
        found = memory.records(kind="note", chat=chat, target=target, category=category, tags=tags or None)
        if not found and not memory.records(kind="note", chat=chat, limit=1):
            the_chat(options, memory, chat)
    found.sort(key=lambda note: (-note.priority, -note.uses))
    if options.json:
        answer({"chat": chat, "notes": plain(found)})
    elif found:
        show_table(Screen(), found)
    else:
        screen = Screen()
        such = "such " if target or category or tags else ""
        screen.say(f"No {such}notes{options.whose()} in chat {chat!r}.")
        screen.say(f"→ Add one: {options.line('notes', chat, '--add', 'TEXT')}")


def pad(
    options: Options,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show what is under this name.")
    ] = None,
    value: Annotated[
        list[str] | None, typer.Argument(metavar="[VALUE]", help="Put this there; `-` reads standard input.")
    ] = None,
    chat: Annotated[str | None, typer.Option(metavar="CHAT", help="The pad of this chat.")] = None,
    remove: Annotated[str | None, typer.Option(metavar="NAME", help="Remove this name.")] = None,
    prefix: Annotated[str, typer.Option(help="Only names that begin so.")] = "",
    search: Annotated[str, typer.Option(metavar="TEXT", help="Only with this in the name or value.")] = "",
) -> None:
    """List a scratchpad, show what is under a name, or put something there.

    It is the pad of the user, or with --chat that of a chat.
    For example: holdfast pad shoe-size 43, then holdfast pad shoe-size
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
            f"Names that begin with {TEMPORARY!r} are kept in one process only, and a command is one of its own.",
            "Use another name for what is to be kept; credentials are not.",
        )


def _on_pad(
    options: Options, chat: str | None, action: Callable[[Pad], None], *, create: bool = False
) -> None:
    with options.open(create=create) as memory:
        pad = _pad_of(memory, chat)
        if chat is not None and not create and not pad:
            the_chat(options, memory, chat)
        action(pad)


def _pad_of(memory: Memory, chat: str | None) -> Pad:
    return memory.pad if chat is None else memory.chat(chat).pad


def _list_pad(options: Options, pad: Pad, prefix: str, search: str) -> None:
    shown = {name: value for name, value in pad.search(search).items() if name.startswith(prefix)}
    if options.json:
        answer({"pad": shown})
    elif shown:
        Screen().table(["name", "value"], [[name, short(value)] for name, value in shown.items()])
    else:
        screen = Screen()
        screen.say(f"Nothing {'like that ' if prefix or search else ''}on the pad{options.whose()}.")
        screen.say(f"→ {options.others() or 'Put something there: `holdfast pad NAME VALUE`.'}")


def _show(options: Options, pad: Pad, name: str) -> None:
    if name not in pad:
        raise _no_such_name(name)
    if options.json:
        answer({"name": name, "value": pad[name]})
    else:
        Screen().say(pad[name])


def _put(options: Options, pad: Pad, name: str, value: str) -> None:
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


def _remove(options: Options, pad: Pad, name: str) -> None:
    before = pad.get(name)
    if before is None:
        raise _no_such_name(name)
    del pad[name]
    if options.json:
        answer({"name": name, "value": None, "before": before})
    else:
        Screen().say(("Removed: ", "bold"), f"{name}, which was {short(before)}")


def _no_such_name(name: str) -> InvalidInput:
    return InvalidInput(f"There is nothing under {name!r} on the pad.", "`holdfast pad` lists the names.")
