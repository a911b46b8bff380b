"""The commands for records: remember, records, replace, retract."""

from datetime import datetime
from typing import Annotated

from typer import Argument, Option

from holdfast.cli.arguments import (
    KIND_NAMES,
    By,
    Limit,
    Offset,
    OnlyKind,
    OnlyTag,
    Point,
    ValidAt,
    page,
    read_end,
    read_point,
    read_time,
    text_of,
)
from holdfast.cli.find import Verbose
from holdfast.cli.lookup import messages_meant, the_chat
from holdfast.cli.options import Options
from holdfast.cli.render.record_lines import report, show_history, show_record, show_table
from holdfast.cli.render.screen import Screen, plain, when
from holdfast.cli.where_option import Wheres, joined
from holdfast.errors import InvalidInput
from holdfast.memory import Memory
from holdfast.records.options import RecordFilters

_Text = Annotated[
    list[str], Argument(metavar="TEXT", help="What is known; no quotes needed. `-` reads standard input.")
]
_WHAT = "The id of a record, or a part of its text that is in no other."
_Since = Annotated[
    datetime | None, Option(parser=read_time, metavar="DATE", help="True from this date or time on.")
]
_Until = Annotated[
    datetime | None,
    Option(parser=read_end, metavar="DATE", help="True up to the end of this date, or before this time."),
]
_Tags = Annotated[list[str] | None, Option(metavar="TAG", help="A tag; may be repeated.")]
_Category = Annotated[str | None, Option(help="One word for what it belongs to.")]
_Priority = Annotated[int | None, Option(min=1, max=10, help="How important it is: 10 is the most, 5 usual.")]
_ExpectedVersion = Annotated[
    int | None,
    Option(min=0, metavar="VERSION", help="Only if this is still its version; 0 if there is none yet."),
]
_Target = Annotated[str | None, Option(help="What a fact is about: user or env. Of a note: session or plan.")]
_Source = Annotated[str, Option(help="Where it comes from, such as a document or a goal.")]
_Chat = Annotated[
    str | None,
    Option(metavar="CHAT|CHAT#N-N", help="The chat, or the messages of one, in which it was learned."),
]


def remember(
    options: Options,
    *,
    text: _Text,
    kind: Annotated[str, Option(help=f"What kind of thing it is: {KIND_NAMES}.")] = "fact",
    target: _Target = None,
    category: _Category = None,
    tag: _Tags = None,
    priority: _Priority = None,
    source: _Source = "",
    since: _Since = None,
    until: _Until = None,
    chat: _Chat = None,
    expected_version: _ExpectedVersion = None,
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
            category=category or "",
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
        report(options, memory, record, version)


_Identity = Annotated[str | None, Argument(metavar="[ID]", help="Show all of this record, and its history.")]
_RecordsTarget = Annotated[
    str | None, Option(help="Only about this (user, env), or in this part of notes (session, plan).")
]
_At = Annotated[
    Point | None,
    Option(parser=read_point, metavar="VERSION|DATE", help="As of this version, or the end of this date."),
]
_TextOnly = Annotated[
    bool, Option("--text-only", help="Print only the text of the record, ready for a file.")
]


def records(
    options: Options,
    *,
    identity: _Identity = None,
    kind: OnlyKind = None,
    category: Annotated[str | None, Option(help="Only of this category.")] = None,
    tag: OnlyTag = None,
    text: Annotated[str | None, Option(help="Only with this in the text or the category.")] = None,
    target: _RecordsTarget = None,
    chat: Annotated[str | None, Option(metavar="CHAT", help="Only learned in this chat.")] = None,
    valid_at: ValidAt = None,
    where: Wheres = None,
    at: _At = None,
    text_only: _TextOnly = False,
    verbose: Verbose = False,
    limit: Limit = 20,
    offset: Offset = 0,
) -> None:
    """List records, oldest first, or show one with its source and history.

    The ids of one-text kinds are their names: holdfast records profile --text-only > profile.md

    For example: holdfast records --kind fact --text lisbon
    """
    filters = RecordFilters(kind=kind, category=category, text=text, target=target, chat=chat)
    filters |= RecordFilters(tags=tag or None, valid_at=valid_at, where=joined(where))
    with options.open() as memory:
        if identity is not None:
            _show_one(options, memory, at, identity, text_only=text_only, verbose=verbose)
            return
        found = (memory.at(at.at) if at else memory).records(**filters, limit=limit + 1, offset=offset)
        if not found and chat is not None:
            the_chat(options, memory, chat)
    shown, more = page(found, limit)
    screen = options.answer({"records": plain(shown), "more": more})
    if shown:
        show_table(screen, shown, verbose=verbose)
        screen.say_more(more=more, offset=offset + limit)
    else:
        _say_none(options, screen, is_filtered=any((*filters.values(), at, offset, options.agent)))


def _say_none(options: Options, screen: Screen, *, is_filtered: bool) -> None:
    todo = "Try fewer filters." if is_filtered else "Store something: `holdfast remember TEXT…`."
    options.say_nothing(screen, f"No records{options.whose()} here.", todo)


def _show_one(
    options: Options, memory: Memory, at: Point | None, identity: str, *, text_only: bool, verbose: bool
) -> None:
    """Show one record; by a view of a version, because a look from outside is no use of a note."""
    view = memory.at(at.at if at else memory.version())
    found, changes = view.get(identity), view.changes(id=identity)
    if found and not changes:  # named by its kind
        changes = view.changes(id=found.id)
    if text_only and not found:
        # What it prints is the content of a file.
        todo = "`holdfast records` lists those there are, with their ids."
        raise InvalidInput(f"There is no record {identity!r}{options.whose()} here.", todo)
    screen = options.answer({"record": plain(found), "versions": plain(changes)})
    if found and text_only:
        screen.say(found.text)
        return
    if found:
        show_record(screen, found, options, verbose=verbose)
    elif changes:
        last = changes[0]
        screen.say(f"{identity} is no more: {last.action} by {last.by}, {when(last.at)}.")
    else:
        todo = "`holdfast records` lists those there are, with their ids."
        options.say_nothing(screen, f"There is no record {identity!r}{options.whose()} here.", todo)
        return
    show_history(screen, changes)


def replace(
    options: Options,
    *,
    what: Annotated[str, Argument(metavar="WHAT", help=_WHAT)],
    text: _Text,
    kind: OnlyKind = None,
    category: _Category = None,
    tag: _Tags = None,
    priority: _Priority = None,
    source: _Source = "",
    since: _Since = None,
    until: _Until = None,
    expected_version: _ExpectedVersion = None,
    by: By = "user",
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
            category=category or "",
            tags=tag or (),
            priority=priority,
            source=source,
            since=since,
            until=until,
            by=by,
            expected_version=expected_version,
        )
        report(options, memory, record, version)


def retract(
    options: Options,
    *,
    what: Annotated[list[str], Argument(metavar="WHAT", help=_WHAT)],
    kind: OnlyKind = None,
    why: Annotated[str, Option(help="The reason, for the history.")] = "",
    by: By = "user",
) -> None:
    """Retract one record: it is no longer listed, recalled or in prompts; its history stays.

    For example: holdfast retract I live in Lisbon --why "moved away"
    """
    with options.open() as memory:
        version = memory.version()
        report(options, memory, memory.retract(" ".join(what), kind=kind, why=why, by=by), version)
