"""Sessions: their rows count what the log holds of them, and name them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Damaged, InvalidInput
from holdfast.safety.masking import check_name_is_open, mask
from holdfast.store.checksums import resealed
from holdfast.store.database import repeated
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.text.json_text import dump
from holdfast.text.shorten import shorten_line, shown
from holdfast.types import MAX_COUNT, MAX_NAME, ChatInfo, ChatStats, check_name, scope_of

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Row, Value
    from holdfast.types import Scope

_INFO = "chat, title, agent, archived, length - erased, tokens, oldest, newest, created, channel, meta"


def stats(db: Database, space: str, chat: str) -> ChatStats:
    """Count a session; all zero when there is none."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT length - erased, tokens, tokens - covered_tokens + summary_tokens, oldest, newest, erased, "
            "covered_messages FROM sessions WHERE space = :space AND chat = :chat",
            space=space,
            chat=chat,
        )
    if not rows:
        return ChatStats()
    count, tokens, context, oldest, newest, erased, summarised = rows[0]
    return ChatStats(count, tokens, context, _time(oldest), _time(newest), erased, summarised)


def _time(micros: int) -> datetime:
    try:
        return from_micros(micros)
    except OverflowError as error:
        raise Damaged(
            "A session has a time outside of the calendar.", "Restore a backup of the database."
        ) from error


def length(db: Database, space: str, chat: str) -> int:
    """Give the newest seq of a session; 0 for an unknown one."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT length FROM sessions WHERE space = :space AND chat = :chat", space=space, chat=chat
        )
    return int(rows[0][0]) if rows else 0


def agent(db: Database, space: str, chat: str, otherwise: str | None = None) -> str:
    """Return the agent that a session belongs to, or `otherwise` where there is no such session.

    Raises:
        InvalidInput: there is no such session, and nothing to return otherwise.

    """
    with db.reading() as connection:
        rows = connection.all(
            "SELECT agent FROM sessions WHERE space = :space AND chat = :chat", space=space, chat=chat
        )
    if rows:
        return str(rows[0][0])
    if otherwise is None:
        raise _unknown(chat)
    return otherwise


# The one statement that crosses spaces: a worker has to find whom to work for. It reads names of spaces only.
_NEXT_SPACE = """
    SELECT min(space) FROM (
        SELECT min(space) AS space FROM sessions WHERE space > :after
        UNION ALL SELECT min(space) AS space FROM jobs WHERE space > :after
        UNION ALL SELECT min(space) AS space FROM records WHERE space > :after
        UNION ALL SELECT min(space) AS space FROM pads WHERE space > :after
    ) AS nearest"""


def next_space(db: Database, after: str) -> str | None:
    """Give the first space after another one, in the order of the database, in which something is stored; None for none."""
    with db.reading() as connection:
        rows = connection.all(_NEXT_SPACE, after=after)
    return None if rows[0][0] is None else str(rows[0][0])


def users(db: Database, tenant: str) -> list[str]:
    """Name the users of a tenant of whom something is stored, and nothing else of them; "" for what all share."""
    found, space = [], next_space(db, "")
    while space is not None:
        scope = scope_of(space)
        if scope.tenant == tenant:
            found.append(scope.user)
        space = next_space(db, space)
    return sorted(found)


class Session(NamedTuple):
    """What the row of a session says about its messages."""

    chat: str
    length: int
    tokens: int
    oldest: int
    newest: int
    erased: int
    covered: int
    covered_messages: int
    covered_tokens: int
    summary_tokens: int


def read_all(db: Database, space: str) -> list[Session]:
    """Read the rows of all sessions of a space, in the order in which they began."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT chat, length, tokens, oldest, newest, erased, covered, covered_messages, covered_tokens, "
            "summary_tokens FROM sessions WHERE space = :space ORDER BY born",
            space=space,
        )
    return [Session(*row) for row in rows]


def list_chats(
    db: Database,
    scope: Scope,
    *,
    archived: bool | None = False,
    channel: str | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[ChatInfo]:
    """List the sessions of a scope, most recent first; `archived=None` lists both kinds, `channel=None` all channels."""
    with db.reading() as connection:
        rows = connection.all(
            f"""SELECT {_INFO} FROM sessions
            WHERE space = :space AND (:agent = '' OR agent = :agent) AND (:archived < 0 OR archived = :archived)
            AND (:anywhere = 1 OR coalesce(channel, '') = :channel)
            ORDER BY newest DESC, born DESC LIMIT :limit OFFSET :offset""",
            space=scope.space,
            agent=scope.agent,
            archived=-1 if archived is None else int(archived),
            anywhere=int(channel is None),
            channel=channel or "",
            limit=MAX_COUNT if limit is None else limit,
            offset=offset,
        )
    return [_info(scope, row) for row in rows]


def info(db: Database, scope: Scope, chat: str) -> ChatInfo | None:
    """Describe one session, of whichever agent; None for an unknown one."""
    with db.reading() as connection:
        rows = connection.all(
            f"SELECT {_INFO} FROM sessions WHERE space = :space AND chat = :chat",
            space=scope.space,
            chat=chat,
        )
    return _info(scope, rows[0]) if rows else None


def _info(scope: Scope, row: Row) -> ChatInfo:
    chat, title, agent, shelved, length, tokens, oldest, newest, created, channel, meta = row
    return ChatInfo(
        id=chat,
        title=title,
        agent=agent,
        user=scope.user,
        archived=bool(shelved),
        messages=length,
        tokens=tokens,
        oldest=_time(oldest),
        newest=_time(newest),
        created=None if created is None else _time(created),
        channel=channel or "",
        meta=_meta(meta),
    )


def _meta(text: str | None) -> dict[str, object]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Damaged("The metadata of a session cannot be read.", "Restore a backup of the database.")
    return found


_LABEL = """
    UPDATE sessions SET channel = :channel, meta = :meta, created = :created
    WHERE space = :space AND chat = :chat"""


class Label(NamedTuple):
    """What is said of a session beside its title; None leaves it as it is."""

    channel: str | None
    meta: Mapping[str, object] | None
    created: int | None = None


def label(
    channel: str | None, meta: Mapping[str, object] | None, created: datetime | None = None
) -> Label | None:
    """Check what is said of a session, and return a copy; None where nothing is.

    Raises:
        InvalidInput: the channel is no name, or holds a credential; or the metadata is no JSON object.

    """
    if channel is None and meta is None and created is None:
        return None
    if channel is not None:
        check_name_is_open(check_name(channel, "The channel", empty=True), "The channel")
    since = None if created is None else to_micros(created)
    if meta is None:
        return Label(channel, None, since)
    given: object = meta
    if not isinstance(given, Mapping):
        raise InvalidInput(f"`meta` of a chat is {shown(meta)}.", "Pass a dict of JSON values.")
    return Label(channel, json.loads(dump(dict(meta), "`meta` of a chat")), since)


def put_label(tx: Connection, space: str, chat: str, given: Label) -> None:
    """Note what is said of a session: keys of the metadata replace those of the same name, None takes one away.

    Raises:
        InvalidInput: there is no such session.

    """
    keys: dict[str, Value] = {"space": space, "chat": chat}
    rows = tx.all("SELECT channel, meta, created FROM sessions WHERE space = :space AND chat = :chat", **keys)
    if not rows:
        raise _unknown(chat)
    channel, meta, created = rows[0]
    merged = {key: value for key, value in {**_meta(meta), **(given.meta or {})}.items() if value is not None}
    wanted: dict[str, Value] = {
        "channel": channel if given.channel is None else given.channel or None,
        "meta": dump(merged, "`meta` of a chat") if merged else None,
        "created": created if given.created is None else given.created,
    }
    if wanted != {"channel": channel, "meta": meta, "created": created}:
        with resealed(tx, "sessions", space, "chat = :chat", chat=chat):
            tx.all(_LABEL, **keys, **wanted)


@repeated
def relabel(db: Database, space: str, chat: str, given: Label) -> None:
    """Note what is said of a session, as `put_label` does, in a transaction of its own."""
    with db.writing() as tx:
        tx.lock(space)
        put_label(tx, space, chat, given)


def rename(db: Database, space: str, chat: str, title: str) -> None:
    """Give a session another title, with credentials cut out: titles are shown everywhere.

    Raises:
        InvalidInput: there is no such session, or the title is blank.

    """
    _update(
        db,
        "UPDATE sessions SET title = :title WHERE space = :space AND chat = :chat RETURNING chat",
        space=space,
        chat=chat,
        title=shorten_line(mask(check_name(title, "The title", longest=8 * MAX_NAME)), 200),
    )


def archive(db: Database, space: str, chat: str, *, archived: bool) -> None:
    """Put a session away, or bring it back. Its messages stay where they are.

    Raises:
        InvalidInput: there is no such session.

    """
    _update(
        db,
        "UPDATE sessions SET archived = :archived WHERE space = :space AND chat = :chat RETURNING chat",
        space=space,
        chat=chat,
        archived=int(archived),
    )


@repeated
def _update(db: Database, sql: str, *, space: str, chat: str, **values: Value) -> None:
    with db.writing() as tx, resealed(tx, "sessions", space, "chat = :chat", chat=chat):
        if not tx.all(sql, space=space, chat=chat, **values):
            raise _unknown(chat)


def _unknown(chat: str) -> InvalidInput:
    return InvalidInput(f"There is no chat {chat!r} in this space.", "Append a message to it first.")
