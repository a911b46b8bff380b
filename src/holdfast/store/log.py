"""The log: sessions and their messages, append-only."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import Conflict, Damaged, InvalidInput
from holdfast.types import ChatInfo, ChatStats, Message, ToolCall, check_name

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Row, Value
    from holdfast.types import Scope

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST = 2**62  # beyond every seq and every count
_PAGE = 256  # messages read at once when a reader does not say how many it will need
_COLUMNS = "seq, id, role, name, at, tokens, content, calls, call_id, answers, raw, meta"

_ADD_TO_SPACE = """
    INSERT INTO spaces (space, docs, epoch) VALUES (:space, :n, 0)
    ON CONFLICT (space) DO UPDATE SET docs = spaces.docs + excluded.docs
    RETURNING docs"""
_ADD_TO_SESSION = """
    INSERT INTO sessions (space, chat, agent, title, archived, length, tokens, oldest, newest, born)
    VALUES (:space, :chat, :agent, :title, 0, :n, :tokens, :oldest, :newest, :born)
    ON CONFLICT (space, chat) DO UPDATE SET
        length = sessions.length + excluded.length,
        tokens = sessions.tokens + excluded.tokens,
        title = CASE WHEN sessions.title = '' THEN excluded.title ELSE sessions.title END,
        oldest = CASE WHEN excluded.oldest < sessions.oldest THEN excluded.oldest ELSE sessions.oldest END,
        newest = CASE WHEN excluded.newest > sessions.newest THEN excluded.newest ELSE sessions.newest END
    RETURNING length"""
_INSERT = f"""
    INSERT INTO messages (space, chat, doc, {_COLUMNS})
    VALUES (:space, :chat, :doc, :{_COLUMNS.replace(", ", ", :")})"""  # noqa: S608 - made of constants
_ADD_CALL = """
    INSERT INTO calls (space, chat, call, seq) VALUES (:space, :chat, :call, :seq)
    ON CONFLICT (space, chat, call) DO UPDATE SET seq = excluded.seq"""

_FIND_CALL = "SELECT seq FROM calls WHERE space = :space AND chat = :chat AND call = :call"
_BACKWARD = f"""
    SELECT {_COLUMNS} FROM messages WHERE space = :space AND chat = :chat AND seq < :before
    ORDER BY seq DESC LIMIT :page"""  # noqa: S608 - made of constants


def to_micros(at: datetime) -> int:
    """Count the microseconds since the epoch; a naive time is taken as UTC."""
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Make the UTC time of microseconds since the epoch."""
    return EPOCH + timedelta(microseconds=micros)


def dump(value: object, what: str) -> str:
    """Write JSON that reads back equal.

    Raises:
        InvalidInput: `value` is not JSON, or would come back as something else (tuples, numbers as keys, …).

    """
    try:
        text = json.dumps(value, separators=(",", ":"))
        back = json.loads(text)
        equal = back == value or ("NaN" in text and json.dumps(back, separators=(",", ":")) == text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{what} is not JSON ({error}).", "Use dicts, lists, text, numbers, booleans and None."
        ) from error
    if not equal:
        raise InvalidInput(
            f"{what} would change when it is stored as JSON.", "Use lists for tuples and text for keys."
        )
    return text


def append(db: Database, scope: Scope, chat: str, messages: Sequence[Message]) -> list[Message]:
    """Store messages that have a time and tokens, in one transaction, and return them as stored.

    A message whose id is in the chat already is not stored again.

    Raises:
        Conflict: such a message says something else than the stored one.

    """
    rows = [_to_row(message) for message in messages]
    given = sorted({message.id for message in messages if message.id})
    keys: dict[str, Value] = {"space": scope.space, "chat": chat}
    with db.writing() as tx:
        # The space's row is locked first, by every writer: document numbers are taken in the order of the commits.
        docs = tx.all(_ADD_TO_SPACE, space=scope.space, n=len(rows))[0][0]
        fresh = rows
        present: dict[str, Message] = {}
        if given:
            fresh, present = _leave_out_present(tx, keys, rows, given)
            if len(fresh) < len(rows):
                docs = tx.all(_ADD_TO_SPACE, space=scope.space, n=len(fresh) - len(rows))[0][0]
        if fresh:
            _insert(tx, scope, keys, fresh, docs)
    stored = {row["id"]: row for row in fresh}
    return [
        present[row["id"]] if row["id"] in present else _as_stored(message, stored[row["id"]])
        for message, row in zip(messages, rows, strict=True)
    ]


def _as_stored(message: Message, row: dict[str, Any]) -> Message:
    answers = tuple(json.loads(row["answers"])) if row["answers"] else ()
    return replace(message, id=row["id"], seq=row["seq"], answers=answers)


def _to_row(message: Message) -> dict[str, Any]:
    answers = message.answers or ((message.call_id,) if message.call_id else ())
    raw = message.raw
    if raw is not None:
        simple = len(raw) == 2 and raw == {"role": message.role, "content": message.content}
        raw_text = "" if simple else dump(raw, "The payload of a message")
    return {
        "id": message.id or new_id(),
        "role": message.role,
        "name": message.name,
        "at": to_micros(message.at or EPOCH),
        "tokens": message.tokens,
        "content": message.content,
        "calls": _dump_calls(message.calls) if message.calls else None,
        "call_id": message.call_id,
        "answers": json.dumps(answers) if answers else None,
        "raw": None if raw is None else raw_text,
        "meta": dump(message.meta, "`meta` of a message") if message.meta else None,
    }


def _dump_calls(calls: Sequence[ToolCall]) -> str:
    return dump([[call.id, call.name, call.arguments] for call in calls], "The tool calls of a message")


_ids = count(time.time_ns() >> 10)


def new_id() -> str:
    """Make an id that sorts after those made before it in this process, and differs from those of all others."""
    return f"{next(_ids):014x}{random.getrandbits(32):08x}"


def _leave_out_present(
    tx: Connection, keys: dict[str, Value], rows: list[dict[str, Any]], given: list[str]
) -> tuple[list[dict[str, Any]], dict[str, Message]]:
    """Split off the rows whose ids are stored already, or stand twice in the rows themselves."""
    present: dict[str, Message] = {}
    for start in range(0, len(given), _PAGE):
        wanted = {f"id{n}": identity for n, identity in enumerate(given[start : start + _PAGE])}
        marks = ", ".join(f":{name}" for name in wanted)
        found = tx.all(
            f"SELECT {_COLUMNS} FROM messages WHERE space = :space AND chat = :chat AND id IN ({marks})",  # noqa: S608
            **keys,
            **wanted,
        )
        present.update((message.id, message) for message in map(to_message, found))
    fresh: dict[str, dict[str, Any]] = {}
    for row in rows:
        known = present.get(row["id"])
        twin = _to_row(known) if known else fresh.setdefault(row["id"], row)
        if any(twin[part] != row[part] for part in ("role", "name", "content", "calls", "raw", "call_id")):
            raise Conflict(
                f"Chat {keys['chat']!r} has another message under the id {row['id']!r}.",
                "Give each message an id of its own, or none.",
            )
    return list(fresh.values()), present


def _insert(
    tx: Connection, scope: Scope, keys: dict[str, Value], rows: list[dict[str, Any]], docs: int
) -> None:
    times = [row["at"] for row in rows]
    length = tx.all(
        _ADD_TO_SESSION,
        **keys,
        agent=scope.agent,
        title=_title(rows),
        n=len(rows),
        tokens=sum(row["tokens"] for row in rows),
        oldest=min(times),
        newest=max(times),
        born=docs - len(rows) + 1,
    )[0][0]
    for back, row in enumerate(reversed(rows)):
        row.update(keys, seq=length - back, doc=docs - back)
    for row in rows:
        if row["calls"]:
            tx.many(
                _ADD_CALL, [{**keys, "call": call[0], "seq": row["seq"]} for call in json.loads(row["calls"])]
            )
        elif row["answers"]:
            known = [call for call in json.loads(row["answers"]) if tx.all(_FIND_CALL, **keys, call=call)]
            row["answers"] = json.dumps(known) if known else None
    tx.many(_INSERT, rows)


def _title(rows: Sequence[dict[str, Any]]) -> str:
    first = next((row["content"] for row in rows if row["role"] == "user" and row["content"].strip()), "")
    return shorten_line(first, 80)


def shorten_line(text: str, width: int) -> str:
    """Take the first line of a text and cut it at a word to at most `width` characters."""
    line = " ".join(text.strip()[: 8 * width].partition("\n")[0].split())
    if len(line) <= width:
        return line
    cut = line[: width - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[width // 2 :] else cut) + "…"


_FIELDS = (
    "seq",
    "id",
    "role",
    "name",
    "at",
    "tokens",
    "content",
    "calls",
    "call_id",
    "answers",
    "raw",
    "meta",
)
# A frozen dataclass sets each field through object.__setattr__; its slots set them four times as fast.
_SET = [getattr(Message, field).__set__ for field in _FIELDS]


def to_message(row: Row) -> Message:
    """Make a message of a row of the log.

    Raises:
        Damaged: a part of the row is not what was stored.

    """
    message = Message.__new__(Message)
    seq, _, role, _, at, _, content, calls, _, answers, raw, meta = row
    try:
        if calls is not None or answers is not None or raw or meta is not None:
            calls = tuple(ToolCall(*call) for call in json.loads(calls)) if calls else ()
            answers = tuple(json.loads(answers)) if answers else ()
            raw_value = json.loads(raw) if raw else raw
            meta_value = json.loads(meta) if meta else {}
        else:
            calls, answers, raw_value, meta_value = (), (), raw, {}
        if raw == "":
            raw_value = {"role": role, "content": content}
        values = (
            *row[:4],
            EPOCH + timedelta(0, 0, at),
            *row[5:7],
            calls,
            row[8],
            answers,
            raw_value,
            meta_value,
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise Damaged(
            f"Message {seq} cannot be read ({error}).", "Restore a backup of the database."
        ) from error
    for put, value in zip(_SET, values, strict=True):
        put(message, value)
    return message


def read(
    db: Database,
    space: str,
    chat: str,
    *,
    after: int | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> list[Message]:
    """Read messages in order: the oldest `limit` after a seq, or else the newest `limit`, if any, before a seq."""
    order = "ASC" if after is not None and before is None else "DESC"
    with db.reading() as connection:
        rows = connection.all(
            f"""SELECT {_COLUMNS} FROM messages
            WHERE space = :space AND chat = :chat AND seq > :after AND seq < :before
            ORDER BY seq {order} LIMIT :limit""",  # noqa: S608 - made of constants
            space=space,
            chat=chat,
            after=after or 0,
            before=_LAST if before is None else before,
            limit=_LAST if limit is None else limit,
        )
    return [to_message(row) for row in (rows if order == "ASC" else reversed(rows))]


def backward(db: Database, space: str, chat: str, expected: int = _PAGE) -> Iterator[Message]:
    """Read a session from its newest message back, a page at a time, so that the cost is that of what is taken.

    `expected` is how many messages the caller will probably take.
    """
    before, page = _LAST, max(8, min(expected, 4096))
    while True:
        with db.reading() as connection:
            rows = connection.all(_BACKWARD, space=space, chat=chat, before=before, page=page)
        yield from map(to_message, rows)
        if len(rows) < page:
            return
        before, page = rows[-1][0], _PAGE


def by_doc(db: Database, space: str, docs: Sequence[int]) -> list[tuple[int, str, Message]]:
    """Read messages by their document numbers, each with its number and its chat."""
    found: list[Row] = []
    with db.reading() as connection:
        for start in range(0, len(docs), _PAGE):
            wanted = {f"doc{n}": doc for n, doc in enumerate(docs[start : start + _PAGE])}
            marks = ", ".join(f":{name}" for name in wanted)
            found += connection.all(
                f"SELECT doc, chat, {_COLUMNS} FROM messages WHERE space = :space AND doc IN ({marks})",  # noqa: S608
                space=space,
                **wanted,
            )
    return [(row[0], row[1], to_message(row[2:])) for row in found]


def stats(db: Database, space: str, chat: str) -> ChatStats:
    """Count a session; all zero when there is none."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT length, tokens, oldest, newest FROM sessions WHERE space = :space AND chat = :chat",
            space=space,
            chat=chat,
        )
    if not rows:
        return ChatStats()
    length, tokens, oldest, newest = rows[0]
    return ChatStats(length, tokens, tokens, from_micros(oldest), from_micros(newest))


class SessionRow(NamedTuple):
    """What the row of a session says about its messages."""

    chat: str
    length: int
    tokens: int
    oldest: int
    newest: int


def sessions(db: Database, space: str) -> list[SessionRow]:
    """Read the rows of all sessions of a space, in the order in which they began."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT chat, length, tokens, oldest, newest FROM sessions WHERE space = :space ORDER BY born",
            space=space,
        )
    return [SessionRow(*row) for row in rows]


def chats(
    db: Database, scope: Scope, *, archived: bool | None = False, limit: int | None = None, offset: int = 0
) -> list[ChatInfo]:
    """List the sessions of a scope, most recent first; `archived=None` lists both kinds."""
    with db.reading() as connection:
        rows = connection.all(
            """SELECT chat, title, agent, archived, length, tokens, oldest, newest FROM sessions
            WHERE space = :space AND (:agent = '' OR agent = :agent) AND (:archived < 0 OR archived = :archived)
            ORDER BY newest DESC, born DESC LIMIT :limit OFFSET :offset""",
            space=scope.space,
            agent=scope.agent,
            archived=-1 if archived is None else int(archived),
            limit=_LAST if limit is None else limit,
            offset=offset,
        )
    return [
        ChatInfo(
            id=chat,
            title=title,
            agent=agent,
            user=scope.user,
            archived=bool(shelved),
            messages=length,
            tokens=tokens,
            oldest=from_micros(oldest),
            newest=from_micros(newest),
        )
        for chat, title, agent, shelved, length, tokens, oldest, newest in rows
    ]


def rename(db: Database, space: str, chat: str, title: str) -> None:
    """Give a session another title.

    Raises:
        InvalidInput: there is no such session, or the title is blank.

    """
    _update(
        db,
        "UPDATE sessions SET title = :title WHERE space = :space AND chat = :chat RETURNING chat",
        space=space,
        chat=chat,
        title=shorten_line(check_name(title, "The title"), 200),
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


def _update(db: Database, sql: str, *, chat: str, **values: Value) -> None:
    with db.writing() as tx:
        if not tx.all(sql, chat=chat, **values):
            raise InvalidInput(f"There is no chat {chat!r} in this space.", "Append a message to it first.")
