"""Summaries: the tree over the messages of a session. What replaced messages is added in short transactions that look again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Damaged
from holdfast.store.checksums import seal
from holdfast.store.database import repeated
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.text.references import write_reference
from holdfast.types import MAX_COUNT, Change, Level, Summary

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Row, Value
    from holdfast.types import Scope

_COLUMNS = "id, chat, depth, first, last, parent, messages, source_tokens, tokens, since, until, level, model, at, text"
_OF_CHAT = f"""
    SELECT {_COLUMNS} FROM summaries
    WHERE space = :space AND chat = :chat AND parent = :parent AND ended = {MAX_COUNT} ORDER BY first"""
# A chat belongs to the agent that opened it, and so do its summaries; a handle without an agent sees all, and one on
# the chat itself sees those of the chat.
_BY_ID = f"""
    SELECT {_COLUMNS} FROM summaries
    WHERE space = :space AND id = :id AND ended = {MAX_COUNT} AND (:agent = '' OR chat = :chat OR chat IN (
        SELECT chat FROM sessions WHERE space = :space AND agent = :agent))"""
_NEXT_NUMBER = """
    INSERT INTO spaces (space, epoch, summaries) VALUES (:space, 0, 1)
    ON CONFLICT (space) DO UPDATE SET summaries = spaces.summaries + 1 RETURNING summaries"""
_INSERT = f"""
    INSERT INTO summaries (space, number, ended, checksum, {_COLUMNS})
    VALUES (:space, :number, {MAX_COUNT}, :checksum, :{_COLUMNS.replace(", ", ", :")})"""


class Progress(NamedTuple):
    """How far a session is summarised: up to which seq, and what stands for it now."""

    length: int  # the newest seq
    covered: int  # the newest seq that a summary stands for
    tokens: int  # of the summaries of the frontier and the messages after them
    erasures: int  # in the space so far


class Draft(NamedTuple):
    """A summary that was written and is to be added."""

    id: str
    depth: int
    first: int
    last: int
    messages: int
    source_tokens: int
    tokens: int
    since: datetime
    until: datetime
    text: str
    level: Level
    model: str
    erasures: int  # in the space when it was planned


_WRITTEN = """
    SELECT number, id, chat, first, last, level, model, at,
        (SELECT s.agent FROM sessions s WHERE s.space = :space AND s.chat = m.chat) AS agent
    FROM summaries m WHERE space = :space AND number < :before ORDER BY number DESC LIMIT :page"""
_PAGE = 64  # rows asked for at once


def changes(db: Database, space: str) -> Iterator[Change]:
    """Give the summaries that were written as changes, the newest first."""
    before = MAX_COUNT
    while True:
        with db.reading() as connection:
            rows = connection.all(_WRITTEN, space=space, before=before, page=_PAGE)
        for before, identity, chat, first, last, level, model, at, agent in rows:  # noqa: B007 - where to go on
            by = f", by {model}" if model else ""
            why = f"{write_reference(chat, first, last)}, {level}{by}"
            yield Change(
                0,
                "compact",
                "summary",
                identity,
                None,
                None,
                "system",
                chat,
                from_micros(at),
                why,
                agent=agent or "",
            )
        if len(rows) < _PAGE:
            return


def to_summary(row: Row) -> Summary:
    """Make a summary of the columns of a row.

    Raises:
        Damaged: its times are none.

    """
    (
        identity,
        chat,
        depth,
        first,
        last,
        parent,
        messages,
        source,
        tokens,
        since,
        until,
        level,
        model,
        at,
        text,
    ) = row
    try:
        times = [from_micros(time) for time in (since, until, at)]
    except (OverflowError, TypeError) as error:
        raise Damaged(
            f"Summary {identity} has a time that is none, or outside of the calendar.",
            "Restore a backup of the database.",
        ) from error
    return Summary(
        identity,
        chat,
        depth,
        first,
        last,
        text,
        tokens=tokens,
        parent=parent,
        since=times[0],
        until=times[1],
        level=level,
        messages=messages,
        source_tokens=source,
        model=model,
        at=times[2],
    )


def progress(db: Database, space: str, chat: str) -> Progress:
    """Read how far a session is summarised; all zero for an unknown one."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT length, covered, tokens - covered_tokens + summary_tokens, "
            "(SELECT count(*) FROM erasures WHERE space = :space) "
            "FROM sessions WHERE space = :space AND chat = :chat",
            space=space,
            chat=chat,
        )
    return Progress(*rows[0]) if rows else Progress(0, 0, 0, 0)


def frontier(db: Database, space: str, chat: str) -> list[Summary]:
    """Read the summaries of a session that are part of no other, the oldest first."""
    return children(db, space, chat, "")


def widths(db: Database, space: str, chat: str) -> dict[str, int]:
    """Count the parts of each condensed summary that is part of no other."""
    with db.reading() as connection:
        rows = connection.all(
            """SELECT above.id, (
                SELECT count(*) FROM summaries part
                WHERE part.space = :space AND part.chat = :chat AND part.parent = above.id AND part.ended = :alive)
            FROM summaries above
            WHERE above.space = :space AND above.chat = :chat AND above.parent = '' AND above.ended = :alive
                AND above.depth > 0""",
            space=space,
            chat=chat,
            alive=MAX_COUNT,
        )
    return {row[0]: int(row[1]) for row in rows}


def children(db: Database, space: str, chat: str, parent: str) -> list[Summary]:
    """Read the summaries that a condensed one was made of, the oldest first."""
    with db.reading() as connection:
        rows = connection.all(_OF_CHAT, space=space, chat=chat, parent=parent)
    return [to_summary(row) for row in rows]


def find(db: Database, scope: Scope, chat: str, identity: str) -> tuple[str, Summary] | None:
    """Find a summary by its id, and its space: that of the user, or the one that the tenant shares.

    It is one of `chat`, or of any chat of the scope's agent.
    """
    for space in dict.fromkeys((scope.space, scope.shared.space)):
        with db.reading() as connection:
            own = chat if space == scope.space else ""
            rows = connection.all(_BY_ID, space=space, id=identity, agent=scope.agent, chat=own)
        if rows:
            return space, to_summary(rows[0])
    return None


def ancestors(db: Database, space: str, summary: Summary) -> list[str]:
    """Give the ids of the summaries that contain one, the nearest first."""
    found: list[str] = []
    parent = summary.parent
    while parent and parent not in found:
        found.append(parent)
        with db.reading() as connection:
            rows = connection.all(_BY_ID, space=space, id=parent, agent="", chat="")
        parent = rows[0][5] if rows else ""
    return found


def by_numbers(db: Database, space: str, numbers: Sequence[int]) -> dict[int, Summary]:
    """Read a few summaries by their numbers; those that were erased, or have grown since, are not among them."""
    marks = {f"n{place}": number for place, number in enumerate(numbers)}
    if not marks:
        return {}
    with db.reading() as connection:
        rows = connection.all(
            f"SELECT number, {_COLUMNS} FROM summaries WHERE space = :space AND ended = {MAX_COUNT} "
            f"AND number IN ({', '.join(f':{mark}' for mark in marks)})",
            space=space,
            **marks,
        )
    return {row[0]: to_summary(row[1:]) for row in rows}


def numbers(db: Database, space: str, chat: str) -> list[int]:
    """Give the numbers of the summaries of a session."""
    with db.reading() as connection:
        rows = connection.all(
            f"SELECT number FROM summaries WHERE space = :space AND chat = :chat AND ended = {MAX_COUNT}",
            space=space,
            chat=chat,
        )
    return [row[0] for row in rows]


def documents(db: Database, space: str, after: int, limit: int) -> list[Row]:
    """Read what the index needs of the rows of the next numbers: number, id, agent, time, text."""
    with db.reading() as connection:  # as `segments.documents` does
        return connection.all(
            """SELECT n.number, n.id, coalesce((
                SELECT s.agent FROM sessions s WHERE s.space = :space AND s.chat = n.chat), ''), n.until, n.text
            FROM summaries n WHERE n.space = :space AND n.number > :after AND n.number <= :until ORDER BY n.number""",
            space=space,
            after=after,
            until=after + limit,
        )


def all_of(db: Database, space: str, chat: str) -> list[Summary]:
    """Read all summaries of a session, leaves first, each level in the order of the messages."""
    with db.reading() as connection:
        rows = connection.all(
            f"SELECT {_COLUMNS} FROM summaries WHERE space = :space AND chat = :chat AND ended = {MAX_COUNT} "
            "ORDER BY depth, first",
            space=space,
            chat=chat,
        )
    return [to_summary(row) for row in rows]


def covered(
    db: Database, space: str, chat: str, first: int, last: int
) -> tuple[int, int, datetime, datetime] | None:
    """Count the messages from one seq to another, and their tokens, and give their earliest and latest time."""
    with db.reading() as connection:
        count, tokens, since, until = connection.all(
            "SELECT count(*), coalesce(sum(tokens), 0), min(at), max(at) FROM messages "
            "WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last",
            space=space,
            chat=chat,
            first=first,
            last=last,
        )[0]
    try:
        return (count, int(tokens), from_micros(since), from_micros(until)) if count else None
    except (OverflowError, TypeError, ValueError) as error:
        raise Damaged(
            f"A message of {write_reference(chat, first, last)} has a time or tokens that are none.",
            "Restore a backup of the database.",
        ) from error


def erase(tx: Connection, space: str, chat: str, first: int) -> list[Row]:
    """Delete all that may hold words of messages from a seq on, and return number, text and id of what is gone.

    That is not only what covers them: a model is shown the summaries before those that it writes. So whatever covers that
    message or a later one goes, the messages stand for themselves again, and what covers earlier ones only stays.
    """
    gone = tx.all(
        "DELETE FROM summaries WHERE space = :space AND chat = :chat AND last >= :first RETURNING number, text, id",
        space=space,
        chat=chat,
        first=first,
    )
    # A summary that had grown is again what it was before.
    tx.all(
        """UPDATE summaries SET ended = :alive WHERE space = :space AND chat = :chat AND ended < :alive AND NOT EXISTS (
            SELECT 1 FROM summaries later WHERE later.space = :space AND later.number = summaries.ended)""",
        space=space,
        chat=chat,
        alive=MAX_COUNT,
    )
    tx.all(
        """UPDATE summaries SET parent = '' WHERE space = :space AND chat = :chat AND parent <> '' AND NOT EXISTS (
            SELECT 1 FROM summaries above WHERE above.space = :space AND above.id = summaries.parent
            AND above.ended = :alive AND above.last >= summaries.last)""",
        space=space,
        chat=chat,
        alive=MAX_COUNT,
    )
    covered, messages, source, tokens = tx.all(
        f"""SELECT coalesce(max(last), 0), coalesce(sum(messages), 0), coalesce(sum(source_tokens), 0),
            coalesce(sum(tokens), 0)
        FROM summaries WHERE space = :space AND chat = :chat AND parent = '' AND ended = {MAX_COUNT}""",
        space=space,
        chat=chat,
    )[0]
    tx.all(
        """UPDATE sessions SET covered = :covered, covered_messages = :messages, covered_tokens = :source,
            summary_tokens = :tokens
        WHERE space = :space AND chat = :chat""",
        space=space,
        chat=chat,
        covered=int(covered),
        messages=int(messages),
        source=int(source),
        tokens=int(tokens),
    )
    return gone


@repeated
def add_leaf(db: Database, space: str, chat: str, draft: Draft, now: int) -> Summary | None:
    """Let a summary stand for the messages after the frontier; None if they are not what was summarised any more."""
    with suppress(_Lost), db.writing() as tx:
        _begin(tx, space, draft)
        rows = tx.all(
            """SELECT s.covered, count(m.seq), coalesce(sum(m.tokens), 0)
            FROM sessions s JOIN messages m ON m.space = s.space AND m.chat = s.chat
            WHERE s.space = :space AND s.chat = :chat AND m.seq >= :first AND m.seq <= :last GROUP BY s.covered""",
            space=space,
            chat=chat,
            first=draft.first,
            last=draft.last,
        )
        if not rows or tuple(map(int, rows[0])) != (draft.first - 1, draft.messages, draft.source_tokens):
            raise _Lost
        summary = _make(draft, chat, now)
        _insert(tx, space, summary)
        tx.all(
            """UPDATE sessions SET covered = :last, covered_messages = covered_messages + :messages,
                covered_tokens = covered_tokens + :source, summary_tokens = summary_tokens + :tokens
            WHERE space = :space AND chat = :chat""",
            space=space,
            chat=chat,
            last=draft.last,
            messages=draft.messages,
            source=draft.source_tokens,
            tokens=draft.tokens,
        )
        return summary
    return None


@repeated
def add_node(
    db: Database, space: str, chat: str, draft: Draft, parts: Sequence[Summary], now: int
) -> Summary | None:
    """Let a summary stand for some of the frontier; None if they are not all in it any more, as they were read."""
    summary = _make(draft, chat, now)
    with suppress(_Lost), db.writing() as tx:
        _begin(tx, space, draft)
        _adopt(tx, space, summary.id, parts)
        _insert(tx, space, summary)
        _recount(tx, space, chat, summary.tokens - sum(part.tokens for part in parts))
        return summary
    return None


@repeated
def grow(
    db: Database, space: str, chat: str, draft: Draft, node: Summary, parts: Sequence[Summary], now: int
) -> Summary | None:
    """Let a condensed summary of the frontier take in those that follow it, under the id that it has; None as above."""
    grown = _make(draft, chat, now)
    with suppress(_Lost), db.writing() as tx:
        _begin(tx, space, draft)
        ended = tx.all(
            "UPDATE summaries SET ended = (SELECT summaries + 1 FROM spaces WHERE space = :space) "
            "WHERE space = :space AND id = :id AND parent = '' AND last = :last AND ended = :alive RETURNING number",
            space=space,
            id=node.id,
            last=node.last,
            alive=MAX_COUNT,
        )
        if not ended:
            raise _Lost
        _adopt(tx, space, node.id, parts)
        _insert(tx, space, grown)
        _recount(tx, space, chat, grown.tokens - node.tokens - sum(part.tokens for part in parts))
        return grown
    return None


def _begin(tx: Connection, space: str, draft: Draft) -> None:
    """Keep others from writing, and see that nothing was erased since the summary was planned: it may have those words."""
    tx.lock(space)
    if tx.all("SELECT count(*) FROM erasures WHERE space = :space", space=space)[0][0] != draft.erasures:
        raise _Lost


class _Lost(Exception):
    """Somebody else was faster: the transaction is rolled back."""


def _make(draft: Draft, chat: str, now: int) -> Summary:
    return Summary(
        draft.id,
        chat,
        draft.depth,
        draft.first,
        draft.last,
        draft.text,
        tokens=draft.tokens,
        since=draft.since,
        until=draft.until,
        level=draft.level,
        messages=draft.messages,
        source_tokens=draft.source_tokens,
        model=draft.model,
        at=from_micros(now),
    )


def _insert(tx: Connection, space: str, summary: Summary) -> int:
    number = int(tx.all(_NEXT_NUMBER, space=space)[0][0])
    row: dict[str, Value] = {
        "space": space,
        "number": number,
        "id": summary.id,
        "chat": summary.chat,
        "depth": summary.depth,
        "first": summary.first,
        "last": summary.last,
        "parent": summary.parent,
        "messages": summary.messages,
        "source_tokens": summary.source_tokens,
        "tokens": summary.tokens,
        "since": to_micros(summary.since),
        "until": to_micros(summary.until),
        "level": summary.level,
        "model": summary.model,
        "at": to_micros(summary.at),
        "text": summary.text,
    }
    tx.all(_INSERT, **row, checksum=seal("summaries", row, tx.key))
    return number


def _adopt(tx: Connection, space: str, parent: str, parts: Sequence[Summary]) -> None:
    """Make some summaries of the frontier part of another one, if they still are what they were when they were read."""
    for part in parts:
        found = tx.all(
            """UPDATE summaries SET parent = :parent
            WHERE space = :space AND id = :id AND parent = '' AND last = :last AND ended = :alive RETURNING id""",
            space=space,
            id=part.id,
            last=part.last,
            parent=parent,
            alive=MAX_COUNT,
        )
        if not found:
            raise _Lost


def _recount(tx: Connection, space: str, chat: str, more: int) -> None:
    tx.all(
        "UPDATE sessions SET summary_tokens = summary_tokens + :more WHERE space = :space AND chat = :chat",
        space=space,
        chat=chat,
        more=more,
    )
