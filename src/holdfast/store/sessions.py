"""Chats: the rows of the table `sessions`, with the counts, the title and the label of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast import types
from holdfast.errors import InvalidInput, shown
from holdfast.safety.guard import check_name_is_open, mask
from holdfast.store import agenda
from holdfast.store.checksums import resealing
from holdfast.store.database import decoding, first_value, retry_transaction
from holdfast.store.message_rows import WITHOUT_VERDICTS, from_micros, to_messages, to_micros
from holdfast.store.table_rows import count_up
from holdfast.text.json_text import dump, load_object
from holdfast.text.shorten import shorten_line
from holdfast.text.zones import local
from holdfast.types import MAX_COUNT, MAX_NAME, check_name, scope_of
from holdfast.types.where import Values

if TYPE_CHECKING:
    from datetime import tzinfo

    from holdfast.store.database import Connection, Database, Reader, Row, Value
    from holdfast.types import ChatInfo, ChatStats, Scope
    from holdfast.types.where import Where

# Each is a field of `ChatInfo`.
_FIELDS = "id title agent archived messages tokens oldest newest created channel meta".split()
_INFO = (
    "chat, title, agent, archived, length - erased - aside, tokens, oldest, newest, created, channel, meta"
)
# Of messages: the condition that they are on the current branch of their chat.
ON_BRANCH = "AND aside = 0"
# The counts of a chat by its messages.
RECOUNTED = """
    (erased, aside, tokens, oldest, newest) = (
        SELECT sessions.length - count(*), coalesce(sum(m.aside), 0),
            coalesce(sum(m.tokens * (1 - m.aside)), 0),
            coalesce(min(CASE WHEN m.aside = 0 THEN m.at END), sessions.oldest),
            coalesce(max(CASE WHEN m.aside = 0 THEN m.at END), sessions.newest)
        FROM messages m WHERE m.space = :space AND m.chat = :chat)"""
# A chat is one of the agent that opened it, and of those that wrote in it. No name has a line break.
OF_AGENT = "(:agent = '' OR agent = :agent OR replace(joined, :line, '') <> joined)"
JOINED = """
    SELECT chat FROM sessions
    WHERE space = :space AND joined IS NOT NULL AND replace(joined, :line, '') <> joined"""
_JOIN = """
    UPDATE sessions SET joined = coalesce(joined, '') || :line WHERE space = :space AND chat = :chat"""
_LIST = f"""
    FROM sessions WHERE space = :space AND {OF_AGENT}
    AND (:archived < 0 OR archived = :archived) AND (:anywhere = 1 OR coalesce(channel, '') = :channel)
    ORDER BY newest DESC, born DESC LIMIT :limit OFFSET :offset"""
# The only statement that crosses spaces: a worker has to find spaces to work for. It reads their names only.
_FIRST_SPACE = "SELECT min(space) AS space FROM {} WHERE space > :after"
# A space is not empty where one of these tables has rows of it.
_INHABITED = ("sessions", "jobs", "records", "pads", "grants", "items")
_NAME = 60  # characters of the name of a file or a tool in a title
# Answers that are read for a title.
_GREETING = f"""
    SELECT content FROM messages
    WHERE space = :space AND chat = :chat AND role = 'user' AND length(content) <= {_NAME} {ON_BRANCH}
    ORDER BY seq LIMIT 1"""
_NEWEST_ANSWERS = f"""
    SELECT {WITHOUT_VERDICTS} FROM messages WHERE space = :space AND chat = :chat AND role = 'assistant'
    {ON_BRANCH} ORDER BY seq DESC LIMIT 50"""
_READ_LABEL = "SELECT channel, meta, created FROM sessions WHERE space = :space AND chat = :chat"
_WRITE_LABEL = """
    UPDATE sessions SET channel = :channel, meta = :meta, created = :created
    WHERE space = :space AND chat = :chat"""


# Not a join: SQLite would begin it with all messages of the space.
_WITH_MESSAGE = """
    SELECT chat FROM sessions WHERE space = :space AND EXISTS (
        SELECT 1 FROM messages
        WHERE space = :space AND chat = sessions.chat AND id = :id AND given = 1)"""


class ChatRow(NamedTuple):
    """The counts of a chat: of its messages, and of those that summaries stand for."""

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
    aside: int


class ChatLabel(NamedTuple):
    """The channel, metadata and time of creation of a chat; None leaves one as it is."""

    channel: str | None
    meta: Mapping[str, object] | None
    created: int | None = None


def stats(db: Reader, space: str, chat: str) -> ChatStats:
    """Return the counts of a chat; all zero for an unknown one."""
    sql = """
        SELECT length - erased - aside, tokens, tokens - covered_tokens + summary_tokens, oldest, newest,
            erased, covered_messages, aside
        FROM sessions WHERE space = :space AND chat = :chat"""
    rows = db.all(sql, space=space, chat=chat)
    if not rows:
        return types.ChatStats()
    count, tokens, context, oldest, newest, erased, summarised, aside = rows[0]
    with decoding(f"Chat {chat!r}"):
        times = from_micros(oldest), from_micros(newest)
    return types.ChatStats(count, tokens, context, *times, erased, summarised, aside)


def length(db: Reader, space: str, chat: str) -> int:
    """Return the newest seq of a chat; 0 for an unknown one."""
    sql = "SELECT length FROM sessions WHERE space = :space AND chat = :chat"
    return first_value(db, int, sql, space=space, chat=chat) or 0


def with_message(db: Reader, space: str, id: str) -> list[str]:
    """Return the chats with a message that its writer gave an id."""
    return [chat for (chat,) in db.all(_WITH_MESSAGE, space=space, id=id)]


def agent(db: Reader, space: str, chat: str, otherwise: str | None = None) -> str:
    """Return the agent that a chat belongs to, or `otherwise` for an unknown chat.

    Raises:
        InvalidInput: the chat is unknown, and `otherwise` is None.

    """
    sql = "SELECT agent FROM sessions WHERE space = :space AND chat = :chat"
    owner = first_value(db, str, sql, space=space, chat=chat)
    owner = otherwise if owner is None else owner
    if owner is None:
        raise _unknown_chat(chat)
    return owner


def is_of_agent(db: Reader, scope: Scope, chat: str) -> bool:
    """Return whether there is such a chat, and the agent of the scope opened it or wrote in it."""
    sql = f"SELECT 1 FROM sessions WHERE space = :space AND chat = :chat AND {OF_AGENT}"
    return bool(db.all(sql, space=scope.space, chat=chat, **agent_values(scope.agent)))


def joined(db: Reader, space: str, agent: str) -> frozenset[str]:
    """Return the chats that another agent opened, and in which an agent wrote; none for the agent ""."""
    rows = db.all(JOINED, space=space, **agent_values(agent)) if agent else ()
    return frozenset(chat for (chat,) in rows)


def join(tx: Connection, space: str, chat: str, agent: str) -> None:
    """Make a chat that of an agent as well, which did not open it and writes in it."""
    with resealing(tx, "sessions", space, "chat = :chat", chat=chat):
        tx.all(_JOIN, space=space, chat=chat, **agent_values(agent))


def agent_values(agent: str) -> dict[str, str]:
    """Return the values of an agent for `OF_AGENT` and `JOINED`."""
    return {"agent": agent, "line": f"\n{agent}\n"}


def _next_space(db: Reader, after: str, tables: Iterable[str], *, itself: bool = False) -> str | None:
    nearest = " UNION ALL ".join(map(_FIRST_SPACE.format, tables)).replace(">", ">=" if itself else ">")
    return first_value(db, str, f"SELECT min(space) FROM ({nearest}) AS nearest", after=after)


def spaces_below(
    db: Reader, prefix: str, tables: Iterable[str] = _INHABITED, *, itself: bool = False
) -> Iterator[str]:
    """Iterate over the spaces with rows in some tables, in the order of the database, one look for each.

    They are below one, whose name with a slash is `prefix`, or all for "". With `itself` the shared space of
    a tenant, which has that name, is one of them.
    """
    space = _next_space(db, prefix, tables, itself=itself)
    while space is not None and space.startswith(prefix):
        yield space
        space = _next_space(db, space, tables)


def users(db: Reader, scope: Scope) -> list[str]:
    """Return the users of a tenant whose spaces are not empty; "" stands for the shared space."""
    scopes = map(scope_of, spaces_below(db, scope.shared.space, itself=True))
    return sorted({scope.user for scope in scopes if not scope.team})


def projects(db: Reader, scope: Scope) -> list[str]:
    """Return the user's projects whose spaces are not empty."""
    names = (scope_of(space).project for space in spaces_below(db, f"{scope.owner.space}/"))
    return sorted(filter(None, names))


def with_projects(db: Reader, scope: Scope) -> list[Scope]:
    """Return a scope and, if it is that of a user, the scopes of the user's projects."""
    if scope.project or scope.team:
        return [scope]
    return [scope, *(replace(scope, project=project) for project in projects(db, scope))]


def read_all(db: Reader, space: str) -> list[ChatRow]:
    """Return the rows of all chats of a space, in the order in which they began."""
    sql = f"SELECT {', '.join(ChatRow._fields)} FROM sessions WHERE space = :space ORDER BY born"
    return [ChatRow(*row) for row in db.all(sql, space=space)]


def list_chats(
    db: Reader,
    scope: Scope,
    *,
    archived: bool | None = False,
    channel: str | None = None,
    limit: int | None = None,
    offset: int = 0,
    where: Where | None = None,
    zone: tzinfo | None = None,
    everyone: bool = False,
) -> list[ChatInfo]:
    """Return the chats of a scope, most recent first; `archived=None` and `channel=None` stand for all.

    With `where`, only those whose metadata pass. Days in titles are those of the zone. With `everyone`, the
    chats of all spaces of the tenant.
    """
    if everyone:
        most = None if limit is None else min(limit + offset, MAX_COUNT)
        list_own = partial(
            list_chats, db, archived=archived, channel=channel, limit=most, where=where, zone=zone
        )
        chats = [
            replace(chat, space=scope.reference(space))
            for space in spaces_below(db, scope.shared.space, ("sessions",), itself=True)
            for chat in list_own(replace(scope_of(space), agent=scope.agent))
        ]
        chats.sort(key=attrgetter("newest"), reverse=True)
        return chats[offset:most]
    values: dict[str, Value] = {"archived": -1 if archived is None else int(archived)}
    values |= {"anywhere": int(channel is None), "channel": channel or "", **agent_values(scope.agent)}
    most = MAX_COUNT if limit is None else limit
    values |= {"limit": MAX_COUNT, "offset": 0} if where else {"limit": most, "offset": offset}
    rows = db.all(f"SELECT {_INFO} {_LIST}", space=scope.space, **values)
    if where:
        passing = (row for row in rows if where.passes(Values(_meta(row[-1]))))
        rows = list(islice(passing, offset, min(offset + most, MAX_COUNT)))
    return [_info(db, scope, row, zone) for row in rows]


def info(db: Reader, scope: Scope, chat: str, zone: tzinfo | None = None) -> ChatInfo | None:
    """Return the description of a chat of any agent; None for an unknown chat."""
    sql = f"SELECT {_INFO} FROM sessions WHERE space = :space AND chat = :chat"
    rows = db.all(sql, space=scope.space, chat=chat)
    return _info(db, scope, rows[0], zone) if rows else None


def _info(db: Reader, scope: Scope, row: Row, zone: tzinfo | None) -> ChatInfo:
    fields: dict[str, Any] = dict(zip(_FIELDS, row, strict=True))
    with decoding(f"Chat {fields['id']!r}"):
        for name in ("oldest", "newest", "created"):
            fields[name] = None if fields[name] is None else from_micros(fields[name])
    fields["archived"], fields["channel"] = bool(fields["archived"]), fields["channel"] or ""
    fields["title"] = fields["title"] or _title_by_tools(db, scope.space, fields["id"], zone)
    return types.ChatInfo(**{**fields, "meta": _meta(fields["meta"])}, user=scope.user)


def _title_by_tools(db: Reader, space: str, chat: str, zone: tzinfo | None) -> str:
    """Return what was done last in a chat where nobody asked for anything: the file or the tool, and the day.

    Where nothing was done either, it is how a person greeted. It is read anew each time, as it changes until
    somebody asks for something.
    """
    # Few chats have no title.
    from holdfast.messages.tool_uses import tool_uses
    from holdfast.text.requests import is_courtesy
    from holdfast.text.titles import title_line

    used = ""
    for message in to_messages(db.all(_NEWEST_ANSWERS, space=space, chat=chat), repeat(chat)):
        day = local(message.at, zone).date() if message.at else None
        for use in reversed(list(tool_uses([message]))):
            if use.edits and use.paths:
                file = re.split(r"[/\\]", use.paths[-1].rstrip("/\\"))[-1]
                return f"Edited {title_line(mask(file), _NAME)}, {day}"
            used = used or f"{title_line(mask(use.name), _NAME)}, {day}"
    said = (text for (text,) in db.all(_GREETING, space=space, chat=chat) if is_courtesy(text))
    return used or title_line(mask(next(said, "")))


def _meta(text: str | None) -> dict[str, object]:
    with decoding("The metadata of a chat"):
        return load_object(text or "{}")


def check_label(
    channel: str | None, meta: Mapping[str, object] | None, created: datetime | None = None
) -> ChatLabel | None:
    """Check the label of a chat, and return a copy; None for an empty one.

    Raises:
        InvalidInput: the channel is no name, or holds a credential; or the metadata is no JSON object.

    """
    if channel is None and meta is None and created is None:
        return None
    if channel is not None:
        check_name_is_open(check_name(channel, "The channel", empty=True), "The channel")
    unchecked: object = meta
    if unchecked is not None:
        if not isinstance(unchecked, Mapping):
            raise InvalidInput(f"`meta` of a chat is {shown(meta)}.", "Pass a dict of JSON values.")
        meta = json.loads(dump(dict(unchecked), "`meta` of a chat"))
    return ChatLabel(channel, meta, None if created is None else to_micros(created))


def write_label(tx: Connection, space: str, chat: str, label: ChatLabel) -> None:
    """Store the label of a chat: keys of the metadata replace those of the same name, None removes one.

    Raises:
        InvalidInput: the chat is unknown.

    """
    rows = tx.all(_READ_LABEL, space=space, chat=chat)
    if not rows:
        raise _unknown_chat(chat)
    channel, meta, created = rows[0]
    merged = {key: value for key, value in {**_meta(meta), **(label.meta or {})}.items() if value is not None}
    after: dict[str, Value] = {
        "channel": channel if label.channel is None else label.channel or None,
        "meta": dump(merged, "`meta` of a chat") if merged else None,
        "created": created if label.created is None else label.created,
    }
    if after != {"channel": channel, "meta": meta, "created": created}:
        with resealing(tx, "sessions", space, "chat = :chat", chat=chat):
            tx.all(_WRITE_LABEL, space=space, chat=chat, **after)
        if after["meta"] != meta:
            count_up(tx, space, "labels")


@retry_transaction
def relabel(db: Database, space: str, chat: str, label: ChatLabel) -> None:
    """Store the label of a chat, as `write_label` does, in a transaction of its own."""
    with db.writing_to(space) as tx:
        write_label(tx, space, chat, label)


def rename(db: Database, space: str, chat: str, title: str) -> None:
    """Store another title of a chat, credentials masked, because titles are shown everywhere.

    Raises:
        InvalidInput: the chat is unknown, or the title is blank.

    """
    title = shorten_line(mask(check_name(title, "The title", longest=8 * MAX_NAME)), 200)
    sql = "UPDATE sessions SET title = :title WHERE space = :space AND chat = :chat RETURNING chat"
    _update(db, sql, space, chat, title=title)


def archive(db: Database, space: str, chat: str, *, archived: bool) -> None:
    """Archive a chat, or restore it. Its messages stay where they are.

    Raises:
        InvalidInput: the chat is unknown.

    """
    sql = "UPDATE sessions SET archived = :archived WHERE space = :space AND chat = :chat RETURNING chat"
    _update(db, sql, space, chat, archived=int(archived))


@retry_transaction
def _update(db: Database, sql: str, space: str, chat: str, **values: Value) -> None:
    with db.writing_to(space) as tx, resealing(tx, "sessions", space, "chat = :chat", chat=chat):
        if not tx.all(sql, space=space, chat=chat, **values):
            raise _unknown_chat(chat)
        agenda.touch(tx, space)


def _unknown_chat(chat: str) -> InvalidInput:
    return InvalidInput(f"There is no chat {chat!r} in this space.", "Append a message to it first.")
