"""The commands for records: remember, records, replace, retract."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.types import Writer
from holdfast_cli.commands.arguments import Point, text_of
from holdfast_cli.commands.lookup import message_range, the_chat
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.record_lines import columns_of, report, show_history, show_record
from holdfast_cli.commands.render.screen import plain, when
from holdfast_cli.commands.where_option import MetaFilter, join_filters


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions(Options):
    """The properties of a record beside its text. The fields are options."""

    category: str | None = None
    tag: list[str] | None = None
    priority: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    by: Writer = "user"

    # Any: keywords of many types.
    def properties(self) -> dict[str, Any]:
        """Return the properties as keywords of a call that writes."""
        names = ("priority", "since", "until", "by")
        as_given = {name: getattr(self, name) for name in names}
        return {"category": self.category or "", "tags": self.tag or (), **as_given}


def remember(
    options: RecordOptions,
    *,
    text: list[str],
    kind: str = "fact",
    target: str | None = None,
    chat: str | None = None,
) -> None:
    """Store a record, and report whether it is new, a duplicate, or in place of another.

    For example: holdfast remember I live in Lisbon --category home
    """
    with options.open(create=True) as memory:
        version = memory.version()
        learned_in = message_range(memory, chat) if chat else None
        record = memory.remember(
            text_of(text),
            kind,
            target=target,
            chat=learned_in.chat if learned_in else chat,
            messages=(learned_in.first, learned_in.last) if learned_in else None,
            **options.properties(),
        )
        report(options, memory, record, version)


def records(
    options: Options,
    *,
    identity: str | None = None,
    kind: str | None = None,
    category: str | None = None,
    tag: list[str] | None = None,
    text: str | None = None,
    target: str | None = None,
    chat: str | None = None,
    valid_at: datetime | None = None,
    where: list[MetaFilter] | None = None,
    at: Point | None = None,
    text_only: bool = False,
    limit: int = 20,
    offset: int = 0,
) -> None:
    """List records, oldest first, or show one with its source and history.

    The ids of one-text kinds are their names: holdfast records profile --text-only > profile.md

    For example: holdfast records --kind fact --text lisbon
    """
    # Any: of several types, as `Memory.records` takes them.
    filters: dict[str, Any] = {"kind": kind, "category": category, "tags": tag or None, "text": text}
    filters |= {"target": target, "chat": chat, "valid_at": valid_at, "where": join_filters(where)}
    with options.open() as memory:
        if identity is not None:
            _show_one(options, memory, at, identity, text_only=text_only)
            return
        results = (memory.at(at.at) if at else memory).records(**filters, limit=limit + 1, offset=offset)
        if not results and chat is not None:
            the_chat(options, memory, chat)
    page, more = options.page(results, limit, offset)
    is_filtered = any((*filters.values(), at, offset, options.agent))
    todo = "Try fewer filters." if is_filtered else "Store something: `holdfast remember TEXT…`."
    nothing, columns = f"No records{options.whose()} here.", columns_of(page)
    options.show_list({"records": plain(page), "more": more}, columns, nothing, todo, whole="id")


def _show_one(options: Options, memory: Memory, at: Point | None, identity: str, *, text_only: bool) -> None:
    """Show a record, read from a view of a version, since a look at a note must not count as a use."""
    view = memory.at(at.at if at else memory.version())
    record, changes = view.get(identity), view.changes(id=identity)
    if record and not changes:  # named by its kind
        changes = view.changes(id=record.id)
    what = f"There is no record {identity!r}{options.whose()} here."
    todo = "`holdfast records` lists those there are, with their ids."
    if text_only and not record:
        # What it prints is the content of a file.
        raise InvalidInput(what, todo)
    screen = options.answer({"record": plain(record), "versions": plain(changes)})
    if record and text_only:
        screen.say(record.text)
    elif record:
        show_record(screen, record, options)
    elif changes:
        last = changes[0]
        screen.say(f"{identity} is no more: {last.action} by {last.by}, {when(last.at)}.")
    else:
        options.say_nothing(screen, what, todo)
    if changes and not text_only:
        show_history(screen, changes)


def replace(options: RecordOptions, *, what: str, text: list[str], kind: str | None = None) -> None:
    """Replace the text of one record; the former one stays in its history.

    Everything else stays as it is, unless it is given.

    For example: holdfast replace lisbon I live in Porto
    """
    content = text_of(text)
    with options.open() as memory:
        version = memory.version()
        record = memory.replace(what, content, kind=kind, **options.properties())
        report(options, memory, record, version)


def retract(
    options: Options, *, what: list[str], kind: str | None = None, why: str = "", by: Writer = "user"
) -> None:
    """Retract one record: it is no longer listed, recalled or in prompts; its history stays.

    For example: holdfast retract I live in Lisbon --why "moved away"
    """
    with options.open() as memory:
        version = memory.version()
        report(options, memory, memory.retract(" ".join(what), kind=kind, why=why, by=by), version)


def pin(
    options: Options, *, what: str, kind: str | None = None, undo: bool = False, by: Writer = "user"
) -> None:
    """Pin a record: it never expires, and comes first among its kind in prompts.

    For example: holdfast pin "blue box"
    """
    with options.open() as memory:
        version, change = memory.version(), memory.unpin if undo else memory.pin
        report(options, memory, change(what, kind=kind, by=by), version)
