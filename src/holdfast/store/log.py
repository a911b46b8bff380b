"""The log: messages, append-only."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import Conflict, Damaged
from holdfast.store.checksums import resealed, seal, sealer
from holdfast.store.database import repeated
from holdfast.store.rows import COLUMNS, JUDGED, differ, stored, to_messages, to_row
from holdfast.store.sessions import put_label
from holdfast.text.masking import FLAG, mask
from holdfast.text.shorten import shorten_line
from holdfast.types import MAX_COUNT, Message

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Row, Value
    from holdfast.store.sessions import Label
    from holdfast.types import Scope

_PAGE = 256  # rows read at once when a reader does not say how many it will need
_LONG_CALL = (
    128  # characters of a call's id from which on it is looked up by its hash, because an index has a limit
)
_OUR_ID = re.compile(r"[0-9a-f]{20}")

# An erased message leaves its number behind, in the row of the space.
NEWEST_DOC = """
    SELECT max(doc) AS doc FROM (
        SELECT coalesce(max(doc), 0) AS doc FROM messages WHERE space = :space
        UNION ALL SELECT coalesce(max(docs), 0) AS doc FROM spaces WHERE space = :space
    ) AS newest"""
_COUNT_IN_SESSION = """
    UPDATE sessions SET
        length = length + :n,
        tokens = tokens + :tokens,
        oldest = CASE WHEN :oldest < oldest OR length = erased THEN :oldest ELSE oldest END,
        newest = CASE WHEN :newest > newest OR length = erased THEN :newest ELSE newest END
    WHERE space = :space AND chat = :chat
    RETURNING length, title"""
_BEGIN_SESSION = """
    INSERT INTO sessions (space, chat, agent, title, archived, length, tokens, oldest, newest, born, created, checksum)
    VALUES (:space, :chat, :agent, :title, 0, :n, :tokens, :oldest, :newest, :born, :created, :checksum)
    RETURNING length, title"""
_GIVE_TITLE = "UPDATE sessions SET title = :title WHERE space = :space AND chat = :chat"
_INSERT = f"""
    INSERT INTO messages (space, chat, doc, given, checksum, {COLUMNS})
    VALUES (:space, :chat, :doc, :given, :checksum, :{COLUMNS.replace(", ", ", :")})"""  # noqa: S608 - made of constants
_ADD_CALL = """
    INSERT INTO calls (space, chat, call, seq) VALUES (:space, :chat, :call, :seq)
    ON CONFLICT (space, chat, call) DO UPDATE SET seq = excluded.seq"""
_FIND_CALL = "SELECT seq FROM calls WHERE space = :space AND chat = :chat AND call = :call"
_BACKWARD = f"""
    SELECT {COLUMNS} FROM messages WHERE space = :space AND chat = :chat AND seq < :before
    ORDER BY seq DESC LIMIT :page"""  # noqa: S608 - made of constants


@repeated
def append(
    db: Database,
    scope: Scope,
    chat: str,
    messages: Sequence[Message],
    tokens: Sequence[int],
    now: int,
    label: Label | None = None,
) -> list[Message]:
    """Store messages with their tokens in one transaction, and return them as stored; `now` if one has no time.

    A label is noted of the session in the same transaction.

    A message whose id is in the chat already is not stored again.

    Raises:
        InvalidInput: a message is not JSON, or its time is out of range; none was stored.
        Conflict: such a message says something else than the stored one; none was stored.

    """
    rows = [to_row(message, now, cost) for message, cost in zip(messages, tokens, strict=True)]
    keys: dict[str, Value] = {"space": scope.space, "chat": chat}
    given = any(row["id"] for row in rows)
    with db.writing() as tx:
        # With the space locked by every writer, document numbers are taken in the order of the commits, without gaps.
        tx.lock(scope.space)
        fresh, present = _leave_out_present(tx, keys, rows) if given else (rows, {})
        if fresh:
            _insert(tx, keys, scope.agent, fresh, now)
        if label:
            put_label(tx, scope.space, chat, label)
    if not given:
        return [stored(message, row) for message, row in zip(messages, rows, strict=True)]
    by_id = {row["id"]: row for row in fresh}
    for message, row in zip(messages, rows, strict=True):
        if row["id"] not in present:  # the first of those that are the same
            present[row["id"]] = stored(message, by_id[row["id"]])
    return [present[row["id"]] for row in rows]


def _leave_out_present(
    tx: Connection, keys: dict[str, Value], rows: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, Message]]:
    """Split off the rows whose ids are stored already, or stand twice in the rows themselves."""
    present = _find_present(tx, keys, sorted({row["id"] for row in rows if row["id"]}))
    fresh: list[dict[str, Any]] = []
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        known = present.get(row["id"])
        twin = to_row(known, 0, 0) if known else first.setdefault(row["id"], row) if row["id"] else row
        if twin is not row and differ(twin, row):
            raise Conflict(
                f"Chat {keys['chat']!r} has another message under the id {row['id']!r}.",
                "Give each message an id of its own, or none.",
            )
        if twin is row:
            fresh.append(row)
    return fresh, present


def _find_present(tx: Connection, keys: dict[str, Value], ids: Sequence[str]) -> dict[str, Message]:
    """Read the messages of a chat that have one of some ids.

    Ids that were given are in an index. Those that we made are not, because an index costs a tenth of an append: they
    begin with the document number.
    """
    ours = [int(identity[:12], 16) for identity in ids if _OUR_ID.fullmatch(identity)]
    found = [
        *_rows_in(tx, "id", ids, "AND chat = :chat AND given = 1", **keys),
        *_rows_in(tx, "doc", ours, "AND chat = :chat AND given = 0", **keys),
    ]
    wanted = set(ids)
    return {message.id: message for message in to_messages(row[2:] for row in found) if message.id in wanted}


def _insert(tx: Connection, keys: dict[str, Value], agent: str, rows: list[dict[str, Any]], now: int) -> None:
    times = [row["at"] for row in rows]
    space = str(keys["space"])
    doc = tx.all(NEWEST_DOC, space=space)[0][0]
    counted: dict[str, Value] = {
        **keys,
        "n": len(rows),
        "tokens": sum([row["tokens"] for row in rows]),
        "oldest": min(times),
        "newest": max(times),
    }
    found = tx.all(_COUNT_IN_SESSION, **counted)
    if not found:
        found = _begin_session(tx, counted, agent=agent, title=_title(rows), born=doc + 1, created=now)
    length, title = found[0]
    if not title and (title := _title(rows)):
        with resealed(tx, "sessions", space, "chat = :chat", chat=keys["chat"]):
            tx.all(_GIVE_TITLE, **keys, title=title)
    seq, checksum = length - len(rows), sealer("messages", tx.key)
    for n, row in enumerate(rows, 1):
        row.update(keys)
        row["seq"], row["doc"], row["given"] = seq + n, doc + n, 1 if row["id"] else 0
        if not row["id"]:
            row["id"] = f"{doc + n:012x}{random.getrandbits(32):08x}"
        if row["calls"] or row["answers"]:
            _link_calls(tx, keys, row)
        row["checksum"] = checksum(row)
    tx.many(_INSERT, rows)


def _begin_session(tx: Connection, counted: dict[str, Value], **named: Value) -> list[Row]:
    row = {**counted, **named}
    first = {**row, "archived": 0, "channel": None, "meta": None}
    return tx.all(_BEGIN_SESSION, **row, checksum=seal("sessions", first, tx.key))


def _link_calls(tx: Connection, keys: dict[str, Value], row: dict[str, Any]) -> None:
    """Note which message made a call; keep of the calls that a message answers those that this chat has."""
    if row["calls"]:
        made = [call_key(call[0]) for call in json.loads(row["calls"])]
        tx.many(_ADD_CALL, [{**keys, "call": call, "seq": row["seq"]} for call in made])
    elif row["answers"]:
        claimed = json.loads(row["answers"])
        known = [call for call in claimed if tx.all(_FIND_CALL, **keys, call=call_key(call))]
        row["answers"] = json.dumps(known) if known else None


def call_key(call: str) -> str:
    """Name a call in the index; some providers put thousands of characters into the id of a call."""
    if len(call) <= _LONG_CALL:
        return call
    from hashlib import sha256  # noqa: PLC0415 - most ids are short

    return sha256(call.encode()).hexdigest()


def _title(rows: Sequence[dict[str, Any]]) -> str:
    """Take a title from what the user said first, without its credentials: titles are shown everywhere."""
    first = next((row for row in rows if row["role"] == "user" and row["content"].strip()), None)
    if first is None:
        return ""
    return shorten_line(mask(first["content"]) if FLAG in (first["flags"] or "") else first["content"], 80)


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
            f"""SELECT {JUDGED} FROM messages
            WHERE space = :space AND chat = :chat AND seq > :after AND seq < :before
            ORDER BY seq {order} LIMIT :limit""",  # noqa: S608 - made of constants
            space=space,
            chat=chat,
            after=after or 0,
            before=MAX_COUNT if before is None else before,
            limit=MAX_COUNT if limit is None else limit,
        )
    return to_messages(rows if order == "ASC" else reversed(rows))


def backward(db: Database, space: str, chat: str, expected: int = _PAGE) -> Iterator[Message]:
    """Read a session from its newest message back, a page at a time, so that the cost is that of what is taken.

    `expected` is how many messages the caller will probably take.
    """
    before, page = MAX_COUNT, max(8, min(expected, 4096))
    while True:
        with db.reading() as connection:
            rows = connection.all(_BACKWARD, space=space, chat=chat, before=before, page=page)
        yield from to_messages(rows)
        if len(rows) < page:
            return
        before, page = rows[-1][0], max(16, page // 8)


def newest_first(db: Database, space: str, chat: str) -> Iterator[Message]:
    """Read a session from its newest message back, with what a guard said of each; `backward` is for windows."""
    before = MAX_COUNT
    while page := read(db, space, chat, before=before, limit=_PAGE):
        yield from reversed(page)
        before = page[0].seq


def forward(db: Database, space: str, chat: str, after: int, last: int) -> Iterator[Message]:
    """Read a session from after one seq to another, a page at a time."""
    while after < last:
        page = read(db, space, chat, after=after, limit=_PAGE)
        yield from (message for message in page if message.seq <= last)
        if len(page) < _PAGE:
            return
        after = page[-1].seq


class Line(NamedTuple):
    """What one needs of a message to say where a session can be cut."""

    seq: int
    tokens: int
    role: str
    calls: tuple[str, ...]
    answers: tuple[str, ...]


def outline(db: Database, space: str, chat: str, after: int) -> list[Line]:
    """Read the messages after a seq without their words: a few microseconds each.

    Raises:
        Damaged: the calls of one are not what was stored.

    """
    with db.reading() as connection:
        rows = connection.all(
            "SELECT seq, tokens, role, calls, answers FROM messages "
            "WHERE space = :space AND chat = :chat AND seq > :after ORDER BY seq",
            space=space,
            chat=chat,
            after=after,
        )
    try:
        return [
            Line(
                seq,
                tokens,
                role,
                tuple(call[0] for call in json.loads(calls)) if calls else (),
                tuple(json.loads(answers)) if answers else (),
            )
            for seq, tokens, role, calls, answers in rows
        ]
    except (ValueError, TypeError, LookupError) as error:
        raise Damaged(
            f"A message of chat {chat!r} after {after} cannot be read ({error}).",
            "Restore a backup of the database.",
        ) from error


def by_doc(db: Database, space: str, docs: Sequence[int]) -> list[tuple[int, str, Message]]:
    """Read messages by their document numbers, each with its number and its chat."""
    with db.reading() as connection:
        rows = list(_rows_in(connection, "doc", docs, space=space))
    messages = to_messages(row[2:] for row in rows)
    return [(row[0], row[1], message) for row, message in zip(rows, messages, strict=True)]


def _rows_in(
    connection: Connection, column: str, values: Sequence[Value], also: str = "", **keys: Value
) -> Iterator[Row]:
    """Read the messages whose column has one of some values: document number, chat, and the columns of a message.

    The values are joined, because for `IN` SQLite would rather scan the space than use the index of the column.
    """
    for start in range(0, len(values), _PAGE):
        wanted = {f"value{n}": value for n, value in enumerate(values[start : start + _PAGE])}
        marks = ", ".join(f"(:{name})" for name in wanted)
        yield from connection.all(
            f"""WITH wanted (value) AS (VALUES {marks})
            SELECT doc, chat, {JUDGED} FROM wanted JOIN messages ON space = :space AND {column} = value {also}""",  # noqa: S608 - made of constants and names of parameters
            **keys,
            **wanted,
        )
