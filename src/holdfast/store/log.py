"""The log: messages, append-only."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import Conflict
from holdfast.safety.guard import mask
from holdfast.store import agenda, prompt_receipts, table_rows
from holdfast.store.checksums import digest, resealing, seal, seal_without_numbers, sealer
from holdfast.store.database import batched, decoding, first_value, retry_transaction
from holdfast.store.message_rows import (
    WITH_VERDICTS,
    WITHOUT_VERDICTS,
    StoredMessages,
    as_stored,
    rows_differ,
    to_messages,
    to_row,
)
from holdfast.store.sessions import ON_BRANCH, agent_values, join, write_label
from holdfast.text.late_pattern import late_pattern
from holdfast.types import MAX_COUNT, Message, ToolCall
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader, Row, Value
    from holdfast.store.prompt_receipts import LastPrompt
    from holdfast.store.sessions import ChatLabel
    from holdfast.types import Range, Scope

# Rows read at once when a reader does not say how many it will need.
_PAGE = 256
# Messages before a window that are searched for instructions.
_NEAR = 5_000
# Characters of a call's id; a longer one is looked up by its hash, because keys of an index are limited.
_LONG_CALL = 128
_OUR_ID = late_pattern(r"[0-9a-f]{20}")

# An erased message leaves its number behind, in the row of the space.
NEWEST_DOC = """
    SELECT max(doc) AS doc FROM (
        SELECT coalesce(max(doc), 0) AS doc FROM messages WHERE space = :space
        UNION ALL SELECT coalesce(max(docs), 0) AS doc FROM spaces WHERE space = :space
    ) AS newest"""
COUNTED = """
        length = length + :length,
        tokens = tokens + :tokens,
        oldest = CASE WHEN :oldest < oldest OR length = erased + aside THEN :oldest ELSE oldest END,
        newest = CASE WHEN :newest > newest OR length = erased + aside THEN :newest ELSE newest END"""
_ADD_TO_SESSION = f"""
    UPDATE sessions SET {COUNTED}
    WHERE space = :space AND chat = :chat
    RETURNING length, title, ({NEWEST_DOC}) AS doc, agent, joined, ({agenda.IS_TOUCHED}) AS touched, aside"""
_SET_TITLE = "UPDATE sessions SET title = :title WHERE space = :space AND chat = :chat"
_FIND_CALL = "SELECT seq FROM calls WHERE space = :space AND chat = :chat AND call = :call"
_ASIDE_OF = "SELECT aside FROM messages WHERE space = :space AND chat = :chat AND seq = :seq"
_IS_ASIDE = "AND chat = :chat AND given = 1 AND aside = 1"


@retry_transaction
def append(
    db: Database,
    scope: Scope,
    chat: str,
    messages: Sequence[Message],
    tokens: Sequence[int],
    now: int,
    prompt: LastPrompt,
    label: ChatLabel | None = None,
) -> StoredMessages:
    """Store messages with their tokens in one transaction, and return them as stored.

    A message without a time gets `now`. A message whose id is in the chat already is not stored again. One of
    an assistant names what the prompt has shown. The label, if any, is stored in the same transaction.

    Raises:
        InvalidInput: a message is not JSON, or its time is out of range; none was stored.
        Conflict: a message differs from the stored one with the same id; none was stored.

    """
    rows = [to_row(message, now, cost) for message, cost in zip(messages, tokens, strict=True)]
    is_alone = db.runs_alone and len(rows) == 1 and not label
    if is_alone and _append_alone(db, scope, chat, rows[0], prompt):
        return StoredMessages([as_stored(messages[0], rows[0])], added=1)
    # Before each row gets one.
    given = any(row["id"] for row in rows)

    def store(tx: Connection) -> tuple[list[dict[str, Any]], dict[str, Message]]:
        stored = append_rows(tx, scope, chat, rows, now, prompt)
        if label:
            write_label(tx, scope.space, chat, label)
        return stored

    fresh, present = db.write_together(store)
    made = _stored_messages(messages, rows, fresh, present) if given else map(as_stored, messages, rows)
    return StoredMessages(made, added=len(fresh))


def _append_alone(db: Database, scope: Scope, chat: str, row: dict[str, Any], prompt: LastPrompt) -> bool:
    """Store a message that changes no other row than it counts in, and return whether the database could."""
    answers_prompt = row["role"] == "assistant" and (prompt.shown or prompt.unstored)
    if db.key or row["id"] or row["calls"] or row["answers"] or answers_prompt:
        return False
    keys = {"space": scope.space, "chat": chat, "given": 0, "doc": 0, "id": f"{random.getrandbits(32):08x}"}
    whole = row | keys
    counted = {"length": 1, "oldest": row["at"], "newest": row["at"], "sum": seal_without_numbers(whole)}
    numbers = db.run_alone("append", {**whole, **counted, **agent_values(scope.agent)})
    row.update(zip(("seq", "id"), numbers, strict=False))
    return bool(numbers)


def append_rows(
    tx: Connection, scope: Scope, chat: str, rows: list[dict[str, Any]], now: int, prompt: LastPrompt
) -> tuple[list[dict[str, Any]], dict[str, Message]]:
    """Store messages, as rows of `to_row`, within a transaction of the caller.

    Return the completed rows of the new messages, and the messages that were there, by their ids.

    Raises:
        Conflict: a message differs from the stored one with the same id.

    """
    keys: dict[str, Value] = {"space": scope.space, "chat": chat}
    # With the space locked by every writer, document numbers are taken in the order of the commits, without
    # gaps.
    tx.lock(scope.space)
    has_ids = any(row["id"] for row in rows)
    fresh, present = _split_present(tx, keys, rows) if has_ids else (rows, {})
    if fresh:
        _insert(tx, keys, scope.agent, fresh, prompt, now)
    return fresh, present


def _stored_messages(
    messages: Sequence[Message],
    rows: list[dict[str, Any]],
    fresh: list[dict[str, Any]],
    present: dict[str, Message],
) -> list[Message]:
    """Return the stored messages of rows, of which several may have the same id."""
    by_id = {row["id"]: row for row in fresh}
    for message, row in zip(messages, rows, strict=True):
        if row["id"] not in present:
            present[row["id"]] = as_stored(message, by_id[row["id"]])
    return [present[row["id"]] for row in rows]


def _split_present(
    tx: Connection, keys: dict[str, Value], rows: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, Message]]:
    """Return the rows with new ids, each once, and the stored messages with the other ids."""
    present = _find_present(tx, keys, sorted({row["id"] for row in rows if row["id"]}))
    fresh: list[dict[str, Any]] = []
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        stored = present.get(row["id"])
        twin = to_row(stored, 0, 0) if stored else first.setdefault(row["id"], row) if row["id"] else row
        if twin is not row and rows_differ(twin, row):
            raise Conflict(
                f"Chat {keys['chat']!r} has another message with the id {row['id']!r}.",
                "Give each message an id of its own, or none.",
            )
        if twin is row:
            fresh.append(row)
    if present and (aside := [id for (id,) in _rows_in(tx, "id", [*present], _IS_ASIDE, "id", **keys)]):
        raise Conflict(
            f"The message with the id {aside[0]!r} is on another branch of chat {keys['chat']!r}.",
            "Switch to that branch, or give the message another id.",
        )
    return fresh, present


def _find_present(tx: Reader, keys: dict[str, Value], ids: Sequence[str]) -> dict[str, Message]:
    """Return the messages of a chat with some ids, by their ids.

    Ids of callers are in an index. Generated ones are not, because an index costs a tenth of an append: they
    begin with the document number.
    """
    docs = [int(identity[:12], 16) for identity in ids if _OUR_ID.fullmatch(identity)]
    numbered = _messages_in(tx, "doc", docs, "AND chat = :chat AND given = 0", **keys)
    wanted = set(ids)
    generated = {message.id: message for _, _, message in numbered if message.id in wanted}
    left = list(wanted.difference(generated))
    given = _messages_in(tx, "id", left, "AND chat = :chat AND given = 1", **keys)
    return generated | {message.id: message for _, _, message in given}


def given_ids(db: Reader, space: str, chat: str, ids: Sequence[str]) -> set[str]:
    """Return those of some ids that callers gave to messages of a chat."""
    is_given = "AND chat = :chat AND given = 1"
    return {id for (id,) in _rows_in(db, "id", ids, is_given, "id", space=space, chat=chat)}


def by_ids(db: Reader, space: str, chat: str, ids: Sequence[str]) -> list[Message]:
    """Return the messages of a chat with some ids."""
    return list(_find_present(db, {"space": space, "chat": chat}, ids).values())


def _insert(
    tx: Connection,
    keys: dict[str, Value],
    agent: str,
    rows: list[dict[str, Any]],
    prompt: LastPrompt,
    now: int,
) -> None:
    times = [row["at"] for row in rows]
    space, chat = str(keys["space"]), str(keys["chat"])
    counted = {**keys, "length": len(rows), "tokens": sum([row["tokens"] for row in rows])}
    counted |= {"oldest": min(times), "newest": max(times)}
    requests = [row["content"] for row in rows if row["role"] == "user"]
    session = tx.all(_ADD_TO_SESSION, **counted)
    if not session:
        session = _begin_session(tx, counted, agent=agent, title=title_of(*requests), created=now)
    length, title, doc, owner, joined, is_touched, aside = session[0]
    if not is_touched:
        agenda.touch(tx, space)
    if agent not in ("", owner, *(joined or "").split("\n")):
        join(tx, space, chat, agent)
    if not title and (title := title_of(*requests)):
        with resealing(tx, "sessions", space, "chat = :chat", chat=chat):
            tx.all(_SET_TITLE, **keys, title=title)
    seq, checksum = length - len(rows), sealer("messages", tx.key)
    answers = [n for n, row in enumerate(rows) if row["role"] == "assistant" and not row["shown"]]
    if answers:
        shown = prompt_receipts.link_answer(tx, space, chat, prompt, seq + answers[0] + 1)
        for n in answers if shown else ():
            rows[n]["shown"] = json.dumps(shown)
    for n, row in enumerate(rows, 1):
        row.update(keys)
        row["seq"], row["doc"], row["given"] = seq + n, doc + n, 1 if row["id"] else 0
        if not row["id"]:
            row["id"] = f"{doc + n:012x}{random.getrandbits(32):08x}"
        if row["calls"] or row["answers"]:
            _link_calls(tx, keys, row, has_branches=aside > 0)
        row["checksum"] = checksum(row)
    tx.add_messages(table_rows.insertion("messages", tuple(rows[0])), rows)


def _begin_session(tx: Connection, counted: dict[str, Value], **fields: Value) -> list[Row]:
    doc = tx.all(NEWEST_DOC, space=str(counted["space"]))[0][0]
    row = {**counted, **fields, "born": doc + 1, "archived": 0, "channel": None, "meta": None, "joined": None}
    table_rows.add(tx, "sessions", {**row, "checksum": seal("sessions", row, tx.key)})
    return [(row["length"], row["title"], doc, row["agent"], None, 0, 0)]


def _link_calls(tx: Connection, keys: dict[str, Value], row: dict[str, Any], *, has_branches: bool) -> None:
    """Index the calls of a message; of the calls that it answers, keep those of this chat."""
    if row["calls"]:
        made = [{**keys, "call": call_key(call[0]), "seq": row["seq"]} for call in json.loads(row["calls"])]
        tx.many(table_rows.replacement("calls", tuple(made[0])), made)
    elif row["answers"]:
        claimed = json.loads(row["answers"])
        present = [call for call in claimed if tx.all(_FIND_CALL, **keys, call=call_key(call))]
        if present and has_branches:
            present = [call for call in present if _is_on_branch(tx, keys, call, row["seq"])]
        row["answers"] = json.dumps(present) if present else None


def _is_on_branch(tx: Connection, keys: dict[str, Value], call: str, seq: int) -> bool:
    """Return whether a message of the current branch, before one that is appended, made a call."""
    space, chat = str(keys["space"]), str(keys["chat"])
    newest = int(tx.all(_FIND_CALL, **keys, call=call_key(call))[0][0])
    aside = first_value(tx, int, _ASIDE_OF, **keys, seq=newest)
    if aside is None:
        # Appended with it, and not inserted yet.
        return newest < seq
    # Another branch may use the same id.
    return not aside or any(call in line.calls for line in outline(tx, space, chat, 0))


def call_of(db: Reader, space: str, chat: str, call: str) -> ToolCall | None:
    """Return a call of a chat by its id, None if no message made it."""
    rows = db.all(_FIND_CALL, space=space, chat=chat, call=call_key(call))
    messages = [message for (seq,) in rows for message in read(db, space, chat, path=[(seq, seq)])]
    return next((made for message in messages for made in message.calls if made.id == call), None)


def call_key(call: str) -> str:
    """Return the key of a call in the index; some providers use ids of thousands of characters."""
    return call if len(call) <= _LONG_CALL else digest(call)


def title_of(*texts: str) -> str:
    """Return the title of a chat by the requests of its user, credentials masked: it is shown everywhere."""
    if not texts:
        return ""
    # Loads the text analysis, which an append of a later message does not need.
    from holdfast.text.titles import title_from

    return title_from(texts, mask)


def read(
    db: Reader,
    space: str,
    chat: str,
    *,
    after: int | None = None,
    before: int | None = None,
    limit: int | None = None,
    path: Sequence[Range] | None = None,
) -> list[Message]:
    """Return messages in order: the oldest `limit` after a seq, or else the newest `limit` before a seq.

    They are those of the current branch, or of a path as rising ranges of seqs.
    """
    order = "ASC" if after is not None and before is None else "DESC"
    after, before = after or 0, MAX_COUNT if before is None else before
    condition = ON_BRANCH if path is None else ""
    sql = f"""
        SELECT {WITH_VERDICTS} FROM messages
        WHERE space = :space AND chat = :chat AND seq > :after AND seq < :before {condition}
        ORDER BY seq {order} LIMIT :limit"""
    rows: list[Row] = []
    for first, last in ((1, MAX_COUNT),) if path is None else path if order == "ASC" else reversed(path):
        span = {"after": max(after, first - 1), "before": min(before, last + 1)}
        most = MAX_COUNT if limit is None else limit - len(rows)
        if most and span["after"] < span["before"]:
            rows += db.all(sql, space=space, chat=chat, limit=most, **span)
    return to_messages(rows if order == "ASC" else reversed(rows), repeat(chat))


def backward(
    db: Reader, space: str, chat: str, expected: int = _PAGE, *, verdicts: bool = False
) -> Iterator[Message]:
    """Iterate over a chat from its newest message back, a page at a time.

    `expected` is the number of messages that the caller will probably take; `verdicts` puts the flags of the
    caller's guard on them, which windows do not need.
    """
    sql = f"""
        SELECT {WITH_VERDICTS if verdicts else WITHOUT_VERDICTS} FROM messages
        WHERE space = :space AND chat = :chat AND seq < :before {ON_BRANCH} ORDER BY seq DESC LIMIT :page"""
    before, page = MAX_COUNT, max(8, min(expected, 4096))
    while True:
        rows = db.all(sql, space=space, chat=chat, before=before, page=page)
        yield from to_messages(rows, repeat(chat))
        if len(rows) < page:
            return
        before, page = rows[-1][0], max(16, page // 2)


def forward(
    db: Reader, space: str, chat: str, after: int, last: int, path: Sequence[Range] | None = None
) -> Iterator[Message]:
    """Iterate over a chat, or a path as of `read`, from after one seq to another, a page at a time."""
    while after < last:
        page = read(db, space, chat, after=after, limit=_PAGE, path=path)
        yield from (message for message in page if message.seq <= last)
        if len(page) < _PAGE:
            return
        after = page[-1].seq


def newest_instructions(db: Reader, space: str, chat: str, before: int) -> Message | None:
    """Return the newest system or developer message before a seq, if the chat begins with one.

    Only the nearest 5,000 messages and the first one are searched, so that the cost has a bound.
    """
    sql = f"""
        SELECT {WITHOUT_VERDICTS} FROM messages
        WHERE space = :space AND chat = :chat AND seq < :before AND seq > :after
        AND role IN ('system', 'developer') {ON_BRANCH} ORDER BY seq DESC LIMIT 1"""
    first = read(db, space, chat, after=0, limit=1)
    if not first or first[0].seq >= before or first[0].role not in ("system", "developer"):
        return None
    rows = db.all(sql, space=space, chat=chat, before=before, after=max(0, before - _NEAR))
    return next(iter(to_messages(rows, repeat(chat))), first[0])


class MessageOutline(NamedTuple):
    """The parts of a message that decide whether a chat can be cut there."""

    seq: int
    tokens: int
    role: str
    calls: tuple[str, ...]
    answers: tuple[str, ...]


def outline(db: Reader, space: str, chat: str, after: int) -> list[MessageOutline]:
    """Return the outlines of the messages after a seq, at a few microseconds each.

    Raises:
        Damaged: the calls of one cannot be decoded.

    """
    sql = f"""
        SELECT seq, tokens, role, calls, answers FROM messages
        WHERE space = :space AND chat = :chat AND seq > :after {ON_BRANCH} ORDER BY seq"""
    outlines = []
    with decoding(f"A message after {write_reference(chat, after)}"):
        for seq, tokens, role, calls, answers in db.all(sql, space=space, chat=chat, after=after):
            made = tuple(call[0] for call in json.loads(calls)) if calls else ()
            answered = tuple(json.loads(answers)) if answers else ()
            outlines.append(MessageOutline(seq, tokens, role, made, answered))
    return outlines


def by_docs(db: Reader, space: str, docs: Sequence[int]) -> list[tuple[int, str, Message]]:
    """Return messages by their document numbers, each with its number and its chat."""
    return _messages_in(db, "doc", docs, space=space)


def by_seq(db: Reader, space: str, chat: str, seq: int) -> list[tuple[int, Message]]:
    """Return a message of a chat with its document number; [] for none."""
    numbered = _messages_in(db, "seq", [seq], "AND chat = :chat", space=space, chat=chat)
    return [(doc, message) for doc, _, message in numbered]


def _messages_in(
    db: Reader, column: str, values: Sequence[Value], also: str = "", **keys: Value
) -> list[tuple[int, str, Message]]:
    """Return the messages with one of some values in a column, each with its document number and its chat."""
    rows = list(_rows_in(db, column, values, also, f"doc, chat, {WITH_VERDICTS}", **keys))
    messages = to_messages((row[2:] for row in rows), (row[1] for row in rows))
    return [(row[0], row[1], message) for row, message in zip(rows, messages, strict=True)]


def _rows_in(
    reader: Reader, column: str, values: Sequence[Value], also: str, columns: str, **keys: Value
) -> Iterator[Row]:
    """Iterate over columns of the messages with one of some values in a column.

    The values are joined, because for `IN` SQLite scans the space instead of using the index of the column.
    """
    for some in batched(values, _PAGE):
        wanted = {f"value{n}": value for n, value in enumerate(some)}
        marks = ", ".join(f"(:{name})" for name in wanted)
        sql = f"""
            WITH wanted (value) AS (VALUES {marks})
            SELECT {columns} FROM wanted
            JOIN messages ON space = :space AND {column} = value {also}"""
        yield from reader.all(sql, **keys, **wanted)
