"""The commands for records: remember, records, replace, retract."""

from datetime import datetime
from typing import Annotated

import typer

from holdfast.cli.arguments import (
    KIND_NAMES,
    At,
    By,
    Category,
    ExpectedVersion,
    Point,
    Priority,
    Tags,
    end,
    moment,
    text_of,
)
from holdfast.cli.chats import messages_meant, the_chat
from holdfast.cli.options import Options
from holdfast.cli.render.record_lines import outcome, report, show_history, show_record, show_table
from holdfast.cli.render.screen import Screen, answer, plain, say_more, when
from holdfast.memory import Memory
from holdfast.records.view import View

_Text = Annotated[
    list[str],
    typer.Argument(metavar="TEXT", help="What is known; no quotes needed. `-` reads standard input."),
]
_Since = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="DATE", help="True from this date or time on.")
]
_Until = Annotated[
    datetime | None,
    typer.Option(parser=end, metavar="DATE", help="True up to the end of this date, or before this time."),
]
_ValidAt = Annotated[
    datetime | None,
    typer.Option(parser=moment, metavar="DATE", help="Only what is true in the world at this time."),
]
_OfKind = Annotated[str | None, typer.Option(help=f"Only of this kind: {KIND_NAMES}.")]
_LearnedIn = Annotated[str | None, typer.Option(metavar="CHAT", help="Only learned in this chat.")]
_WithText = Annotated[str | None, typer.Option(help="Only with this in the text or the category.")]
_WithTag = Annotated[
    list[str] | None, typer.Option(metavar="TAG", help="Only with this tag; of several, one is enough.")
]
_What = "The id of a record, or a part of its text that is in no other."
_OneKind = Annotated[str | None, typer.Option(help=f"Only among those of this kind: {KIND_NAMES}.")]
_Kind = Annotated[str, typer.Option(help=f"What kind of thing it is: {KIND_NAMES}.")]
_Target = Annotated[
    str | None, typer.Option(help="What a fact is about: user or env. Of a note: session or plan.")
]
_Source = Annotated[str, typer.Option(help="Where it comes from, such as a document or a goal.")]


_Chat = Annotated[
    str | None,
    typer.Option(metavar="CHAT|CHAT#N-N", help="The chat, or the messages of one, in which it was learned."),
]


def remember(
    options: Options,
    *,
    text: _Text,
    kind: _Kind = "fact",
    target: _Target = None,
    category: Category = "",
    tag: Tags = None,
    priority: Priority = None,
    source: _Source = "",
    since: _Since = None,
    until: _Until = None,
    chat: _Chat = None,
    expected_version: ExpectedVersion = None,
    by: By = "user",
) -> None:
    """Store a record, and report whether it is new, a duplicate, or in place of another.

    For example: holdfast remember I live in Lisbon --category home
    """
    with options.open(create=True) as memory:
        version = memory.version()
        learned_in = messages_meant(memory, chat) if chat else None
        record = memory.remember(
            text_of(text),
            kind,
            target=target,
            category=category,
            tags=tag or (),
            priority=priority,
            source=source,
            since=since,
            until=until,
            chat=learned_in.chat if learned_in else chat,
            messages=(learned_in.first, learned_in.last) if learned_in else None,
            expected_version=expected_version,
            by=by,
        )
        done = outcome(memory, record, version)
    report(options, done)


_Identity = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Show all of this record, and its history.")
]
_RecordsTarget = Annotated[
    str | None,
    typer.Option(help="Only about this (user, env), or in this part of notes (session, plan)."),
]
_TextOnly = Annotated[
    bool, typer.Option("--text-only", help="Print only the text of the record, ready for a file.")
]


def records(
    options: Options,
    *,
    identity: _Identity = None,
    kind: _OfKind = None,
    category: Annotated[str | None, typer.Option(help="Only of this category.")] = None,
    tag: _WithTag = None,
    text: _WithText = None,
    target: _RecordsTarget = None,
    chat: _LearnedIn = None,
    valid_at: _ValidAt = None,
    at: At = None,
    text_only: _TextOnly = False,
    limit: Annotated[int, typer.Option(min=0, help="At most so many.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="Leave out so many of the first.")] = 0,
) -> None:
    """List records, oldest first, or show one with its source and history.

    The ids of one-text kinds are their names: holdfast records profile --text-only > profile.md

    For example: holdfast records --kind fact --text lisbon
    """
    filters = {"kind": kind, "category": category, "text": text, "target": target, "chat": chat}
    with options.open() as memory:
        if identity is not None:
            _one(options, (at or Point(memory.version())).view(memory), identity, text_only=text_only)
            return
        view: Memory | View = at.view(memory) if at else memory
        found = view.records(**filters, tags=tag or None, valid_at=valid_at, limit=limit + 1, offset=offset)
        if not found and chat is not None:
            the_chat(options, memory, chat)
    shown, more = found[:limit], len(found) > limit
    if options.json:
        answer({"records": plain(shown), "more": more})
    elif shown:
        show_table(Screen(), shown)
        say_more(Screen(), more=more, offset=offset + limit)
    else:
        _say_nothing(options, filtered=any((*filters.values(), tag, valid_at, at, offset, options.agent)))


def _one(options: Options, view: View, identity: str, *, text_only: bool) -> None:
    """Show one record; by a view of a version, because a look from outside is no use of a note."""
    found, changes = view.get(identity), view.changes(id=identity)
    if found and not changes:  # named by its kind
        changes = view.changes(id=found.id)
    if options.json:
        answer({"record": plain(found), "versions": plain(changes)})
        return
    screen = Screen()
    if found and text_only:
        screen.say(found.text)
        return
    if found:
        show_record(screen, found, options)
    elif changes:
        last = changes[0]
        screen.say(f"{identity} is no more: {last.action} by {last.by}, {when(last.at)}.")
    else:
        screen.say(f"There is no record {identity!r}{options.whose()} here.")
        screen.say(f"→ {options.others() or '`holdfast records` lists those there are, with their ids.'}")
        return
    show_history(screen, changes)


def _say_nothing(options: Options, *, filtered: bool) -> None:
    screen = Screen()
    screen.say(f"No records{options.whose()} here.")
    usual = "Try fewer filters." if filtered else "Store something: `holdfast remember TEXT…`."
    screen.say(f"→ {options.others() or usual}")


_ReplaceText = Annotated[
    list[str], typer.Argument(metavar="TEXT", help="The whole new text. `-` reads standard input.")
]
_Priority = Annotated[int | None, typer.Option(min=1, max=10, help="From 1 to 10; as it was by default.")]


def replace(
    options: Options,
    *,
    what: Annotated[str, typer.Argument(metavar="WHAT", help=_What)],
    text: _ReplaceText,
    kind: _OneKind = None,
    category: Category = "",
    tag: Tags = None,
    priority: _Priority = None,
    source: _Source = "",
    since: _Since = None,
    until: _Until = None,
    by: By = "user",
    expected_version: ExpectedVersion = None,
) -> None:
    """Replace the text of one record; the former one stays in its history.

    Everything else stays as it is, unless it is given.

    For example: holdfast replace lisbon I live in Porto
    """
    said = text_of(text)
    with options.open() as memory:
        version = memory.version()
        record = memory.replace(
            what,
            said,
            kind=kind,
            category=category,
            tags=tag or (),
            priority=priority,
            source=source,
            since=since,
            until=until,
            by=by,
            expected_version=expected_version,
        )
        report(options, outcome(memory, record, version))


def retract(
    options: Options,
    *,
    what: Annotated[list[str], typer.Argument(metavar="WHAT", help=_What)],
    kind: _OneKind = None,
    why: Annotated[str, typer.Option(help="The reason, for the history.")] = "",
    by: By = "user",
) -> None:
    """Retract one record: it is no longer listed, recalled or in prompts; its history stays.

    For example: holdfast retract I live in Lisbon --why "moved away"
    """
    _retract(options, " ".join(what), kind, why, by)


def _retract(options: Options, what: str, kind: str | None, why: str, by: By) -> None:
    with options.open() as memory:
        version = memory.version()
        done = outcome(memory, memory.retract(what, kind=kind, why=why, by=by), version)
    report(options, done)
