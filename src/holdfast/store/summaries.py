"""Summaries: the tree over the messages of a chat, extended by short transactions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast import types
from holdfast.store import agenda, table_rows, vectors
from holdfast.store.checksums import seal
from holdfast.store.database import RolledBack, decoding, one_of, retry_transaction
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.store.sessions import JOINED, OF_AGENT, ON_BRANCH, agent_values
from holdfast.types import MAX_COUNT
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader, Row
    from holdfast.types import Change, Level, Range, Scope, Summary

# In place of the number that took its place: of a summary that is not of the current branch.
ASIDE = MAX_COUNT - 1
# Each is a field of `Summary`.
_COLUMNS = (
    "id, chat, depth, first, last, parent, messages, source_tokens, tokens, since, until, level, model, at, "
    "text, prompt"
)
_FIELDS = _COLUMNS.split(", ")
_TIMES = ("since", "until", "at")
_FROM_CHAT = f"FROM summaries WHERE space = :space AND chat = :chat AND ended = {MAX_COUNT}"
_CHILDREN = f"SELECT {_COLUMNS} {_FROM_CHAT} AND parent = :parent ORDER BY first"
# Summaries belong to the agents of their chat. A handle without an agent sees all, and one on the chat itself
# sees those of the chat.
_BY_ID = f"""
    SELECT {_COLUMNS} FROM summaries
    WHERE space = :space AND id = :id AND ended >= {ASIDE} AND (:agent = '' OR chat = :chat OR chat IN (
        SELECT chat FROM sessions WHERE space = :space AND {OF_AGENT}))"""
_JOINED = f"SELECT id FROM summaries WHERE space = :space AND ended = {MAX_COUNT} AND chat IN ({JOINED})"
_ERASURES = "SELECT count(*) FROM erasures WHERE space = :space"
_PROGRESS = f"""
    SELECT length, covered, tokens - covered_tokens + summary_tokens, ({_ERASURES})
    FROM sessions WHERE space = :space AND chat = :chat"""
_PART_COUNTS = f"""
    SELECT above.id, (
        SELECT count(*) FROM summaries part
        WHERE part.space = :space AND part.chat = :chat AND part.parent = above.id
            AND part.ended = {MAX_COUNT})
    FROM summaries above
    WHERE above.space = :space AND above.chat = :chat AND above.parent = '' AND above.ended = {MAX_COUNT}
        AND above.depth > 0"""
_MESSAGE_TOTALS = f"""
    SELECT count(*), coalesce(sum(tokens), 0), min(at), max(at) FROM messages
    WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last {ON_BRANCH}"""
# With the agent looked up for each row, as in `segments.documents`.
_DOCUMENTS = """
    SELECT n.number, n.id, coalesce((
        SELECT s.agent FROM sessions s WHERE s.space = :space AND s.chat = n.chat), ''), n.until, n.text
    FROM summaries n WHERE n.space = :space AND n.number > :after AND n.number <= :until ORDER BY n.number"""
_WRITTEN = """
    SELECT number, id, chat, first, last, level, model, prompt, at,
        (SELECT s.agent FROM sessions s WHERE s.space = :space AND s.chat = m.chat) AS agent
    FROM summaries m WHERE space = :space AND number < :before ORDER BY number DESC LIMIT :page"""
_PAGE = 64


class SummaryProgress(NamedTuple):
    """The progress of summaries in a chat."""

    # The newest seq.
    length: int
    # The newest seq that a summary stands for.
    covered: int
    # Those of the frontier and of the messages after it.
    tokens: int
    # In the space so far.
    erasures: int


class SummaryDraft(NamedTuple):
    """A summary that is to be added; `erasures` is the number in the space when it was planned."""

    id: str
    depth: int
    first: int
    last: int
    messages: int
    source_tokens: int
    tokens: int
    since: datetime
    until: datetime
    text: str = ""
    level: Level = "normal"
    model: str = ""
    prompt: str = ""
    erasures: int = 0


def changes(db: Reader, space: str) -> Iterator[Change]:
    """Iterate over all written summaries as changes, the newest first."""
    before = MAX_COUNT
    while rows := db.all(_WRITTEN, space=space, before=before, page=_PAGE):
        for _, identity, chat, first, last, level, model, prompt, at, agent in rows:
            how = (write_reference(chat, first, last), level, model and f"by {model}", prompt)
            why, of = ", ".join(filter(None, how)), agent or ""
            with decoding(f"Summary {identity}"):
                then = from_micros(at)
            yield types.Change(
                0, "compact", "summary", identity, None, None, "system", chat, then, why, agent=of
            )
        before = rows[-1][0]


def _to_summary(row: Row) -> Summary:
    """Return the summary of a row of `_COLUMNS`.

    Raises:
        Damaged: one of its times is invalid.

    """
    values: dict[str, Any] = dict(zip(_FIELDS, row, strict=True))
    with decoding(f"Summary {values['id']}"):
        values |= {name: from_micros(values[name]) for name in _TIMES} | {"prompt": values["prompt"] or ""}
    return types.Summary(**values)


def progress(db: Reader, space: str, chat: str) -> SummaryProgress:
    """Return the progress of summaries in a chat; all zero for an unknown chat."""
    rows = db.all(_PROGRESS, space=space, chat=chat)
    return SummaryProgress(*rows[0]) if rows else SummaryProgress(0, 0, 0, 0)


def frontier(db: Reader, space: str, chat: str) -> list[Summary]:
    """Return the summaries of a chat that are not parts of others, the oldest first."""
    return children(db, space, chat, "")


def part_counts(db: Reader, space: str, chat: str) -> dict[str, int]:
    """Return the number of parts of each condensed summary of the frontier, by its id."""
    return {row[0]: int(row[1]) for row in db.all(_PART_COUNTS, space=space, chat=chat)}


def children(db: Reader, space: str, chat: str, parent: str) -> list[Summary]:
    """Return the parts of a condensed summary, the oldest first."""
    return [_to_summary(row) for row in db.all(_CHILDREN, space=space, chat=chat, parent=parent)]


def find(db: Reader, scope: Scope, chat: str, identity: str) -> tuple[str, Summary] | None:
    """Return the space of a summary, the nearest that the scope reads, and the summary, by its id.

    It belongs to `chat`, or to any chat of the scope's agent.
    """
    for space in scope.spaces:
        own = chat if space == scope.space else ""
        rows = db.all(_BY_ID, space=space, id=identity, **agent_values(scope.agent), chat=own)
        if rows:
            return space, _to_summary(rows[0])
    return None


def ancestors(db: Reader, space: str, summary: Summary) -> list[str]:
    """Return the ids of the summaries that contain a summary, the nearest first."""
    ids: list[str] = []
    parent = summary.parent
    while parent and parent not in ids:
        ids.append(parent)
        rows = db.all(_BY_ID, space=space, id=parent, **agent_values(""), chat="")
        parent = rows[0][5] if rows else ""
    return ids


def by_numbers(db: Reader, space: str, numbers: Sequence[int]) -> dict[int, Summary]:
    """Return a few summaries by their numbers; those that were erased or extended are left out.

    Those of other branches are among them.
    """
    if not numbers:
        return {}
    condition, values = one_of("number", numbers)
    sql = f"""
        SELECT number, {_COLUMNS} FROM summaries
        WHERE space = :space AND ended >= {ASIDE} AND {condition}"""
    return {row[0]: _to_summary(row[1:]) for row in db.all(sql, space=space, **values)}


def joined(db: Reader, space: str, agent: str) -> frozenset[str]:
    """Return the summaries of the chats of `sessions.joined`."""
    rows = db.all(_JOINED, space=space, **agent_values(agent)) if agent else ()
    return frozenset(id for (id,) in rows)


def numbers(db: Reader, space: str, chat: str) -> list[int]:
    """Return the numbers of the summaries of a chat."""
    return [row[0] for row in db.all(f"SELECT number {_FROM_CHAT}", space=space, chat=chat)]


def documents(db: Reader, space: str, after: int, limit: int) -> list[Row]:
    """Return columns of the next summaries for the index: number, id, agent, time, text."""
    return db.all(_DOCUMENTS, space=space, after=after, until=after + limit)


def read_all(db: Reader, space: str, chat: str) -> list[Summary]:
    """Return all summaries of a chat, leaves first, each level in the order of the messages."""
    sql = f"SELECT {_COLUMNS} {_FROM_CHAT} ORDER BY depth, first"
    return [_to_summary(row) for row in db.all(sql, space=space, chat=chat)]


def message_totals(
    db: Reader, space: str, chat: str, first: int, last: int
) -> tuple[int, int, datetime, datetime] | None:
    """Return count, tokens, earliest and latest time of messages `first` to `last`; None for none."""
    count, tokens, since, until = db.all(_MESSAGE_TOTALS, space=space, chat=chat, first=first, last=last)[0]
    with decoding(f"A message of {write_reference(chat, first, last)}"):
        return (count, int(tokens), from_micros(since), from_micros(until)) if count else None


# Writing

_SOURCE = """
    SELECT s.covered, count(m.seq), coalesce(sum(m.tokens), 0), max(m.seq)
    FROM sessions s JOIN messages m ON m.space = s.space AND m.chat = s.chat
    WHERE s.space = :space AND s.chat = :chat AND m.seq >= :first AND m.seq <= :last AND m.aside = 0
    GROUP BY s.covered"""
_IS_UNCHANGED = f"id = :id AND parent = '' AND last = :last AND ended = {MAX_COUNT}"
_ADOPT = f"UPDATE summaries SET parent = :parent WHERE space = :space AND {_IS_UNCHANGED} RETURNING id"
_END = f"""
    UPDATE summaries SET ended = (SELECT summaries + 1 FROM spaces WHERE space = :space)
    WHERE space = :space AND {_IS_UNCHANGED} RETURNING number"""
_ERASE = """
    DELETE FROM summaries WHERE space = :space AND chat = :chat AND last >= :first
    RETURNING number, text, id"""
# A summary is current again when its extension is deleted.
_REVIVE = f"""
    UPDATE summaries SET ended = {MAX_COUNT}
    WHERE space = :space AND chat = :chat AND ended < {ASIDE} AND NOT EXISTS (
        SELECT 1 FROM summaries later WHERE later.space = :space AND later.number = summaries.ended)
    RETURNING number"""
_ORPHAN = f"""
    UPDATE summaries SET parent = '' WHERE space = :space AND chat = :chat AND parent <> '' AND NOT EXISTS (
        SELECT 1 FROM summaries above WHERE above.space = :space AND above.id = summaries.parent
        AND above.ended = {MAX_COUNT} AND above.last >= summaries.last)"""
_COUNT = f"""
    UPDATE sessions SET (covered, covered_messages, covered_tokens, summary_tokens) = (
        SELECT coalesce(max(last), 0), coalesce(sum(messages), 0), coalesce(sum(source_tokens), 0),
            coalesce(sum(tokens), 0)
        {_FROM_CHAT} AND parent = '')
    WHERE space = :space AND chat = :chat"""


def count_in_chat(tx: Connection, space: str, chat: str) -> None:
    """Store the counts of a chat for the summaries of its frontier and for their messages."""
    tx.all(_COUNT, space=space, chat=chat)


def erase(tx: Connection, space: str, chat: str, first: int) -> list[Row]:
    """Delete all summaries that may hold words of messages from a seq on; return number, text and id of each.

    These are not only those that cover erased messages, because a model is shown the summaries before those
    that it writes: all that cover the message at the seq or a later one are deleted, and their messages stand
    for themselves again. Summaries of earlier messages only stay.
    """
    gone = tx.all(_ERASE, space=space, chat=chat, first=first)
    vectors.bring_back(
        tx, space, "summary", [number for (number,) in tx.all(_REVIVE, space=space, chat=chat)]
    )
    tx.all(_ORPHAN, space=space, chat=chat)
    count_in_chat(tx, space, chat)
    return gone


class _Node(NamedTuple):
    """A summary of a chat, of whichever branch."""

    number: int
    id: str
    depth: int
    first: int
    last: int
    parent: str
    ended: int


_NODES = f"""
    SELECT {", ".join(_Node._fields)} FROM summaries
    WHERE space = :space AND chat = :chat AND ended >= {ASIDE} ORDER BY depth, first, last DESC"""
_PLACE = "UPDATE summaries SET parent = :parent, ended = :ended WHERE space = :space AND number = :number"
_OF_BRANCHES = f"SELECT number FROM summaries WHERE space = :space AND ended = {ASIDE}"


def follow(tx: Connection, space: str, chat: str, path: Sequence[Range]) -> None:
    """Let the summaries of a chat be those of another branch, whose messages are rising ranges of seqs.

    A summary is of a branch that its last message is on: what comes before a message is the same on all. One
    that is cut falls back to its parts, a leaf to its messages, and both come back with their branch.
    """
    nodes = [_Node(*row) for row in tx.all(_NODES, space=space, chat=chat)]
    whole = [node for node in nodes if any(first <= node.last <= last for first, last in path)]
    chosen: list[_Node] = []
    parents: dict[int, str] = {}
    for node in whole:
        if not node.depth and node.first == (chosen[-1].last + 1 if chosen else 1):
            chosen.append(node)
            parents[node.number] = ""
        start = bisect_left(chosen, node.first, key=attrgetter("first"))
        end = bisect_left(chosen, node.last, start, key=attrgetter("last")) + 1
        parts = chosen[start:end]
        is_tiled = parts and (parts[0].first, parts[-1].last) == (node.first, node.last)
        if is_tiled and {part.depth for part in parts} == {node.depth - 1}:
            chosen[start:end] = [node]
            parents |= {part.number: node.id for part in parts} | {node.number: ""}
    for node in nodes:
        after = parents.get(node.number, ""), MAX_COUNT if node.number in parents else ASIDE
        if after != (node.parent, node.ended):
            tx.all(_PLACE, space=space, number=node.number, parent=after[0], ended=after[1])
    count_in_chat(tx, space, chat)


def aside(db: Reader, space: str) -> list[int]:
    """Return the numbers of the summaries that are not of the current branches of their chats."""
    return [number for (number,) in db.all(_OF_BRANCHES, space=space)]


@retry_transaction
def add(
    db: Database,
    space: str,
    chat: str,
    draft: SummaryDraft,
    now: int,
    parts: Sequence[Summary] = (),
    extended: Summary | None = None,
) -> Summary | None:
    """Let a leaf stand for the messages after the frontier, or another summary for parts of the frontier.

    With `extended`, it takes the place of that summary, and includes its parts. None if its sources have
    changed, or something was erased, since the draft was planned.
    """
    with suppress(RolledBack), db.writing_to(space) as tx:
        if not _take_sources(tx, space, chat, draft, parts, extended):
            raise RolledBack
        return _insert(tx, space, chat, draft, now)
    return None


def _take_sources(
    tx: Connection,
    space: str,
    chat: str,
    draft: SummaryDraft,
    parts: Sequence[Summary],
    extended: Summary | None,
) -> bool:
    """Put a draft above its parts, and return whether its sources are as they were when it was planned."""
    if tx.all(_ERASURES, space=space) != [(draft.erasures,)]:
        return False
    if not parts and not extended:
        rows = tx.all(_SOURCE, space=space, chat=chat, first=draft.first, last=draft.last)
        # A branch on which the last message is has those before it as well.
        planned = draft.first - 1, draft.messages, draft.source_tokens, draft.last
        return [tuple(map(int, row)) for row in rows] == [planned]
    if extended and not tx.all(_END, space=space, id=extended.id, last=extended.last):
        return False
    return all(tx.all(_ADOPT, space=space, id=part.id, last=part.last, parent=draft.id) for part in parts)


def _insert(tx: Connection, space: str, chat: str, draft: SummaryDraft, now: int) -> Summary:
    values = {name: value for name, value in draft._asdict().items() if name != "erasures"}
    summary = types.Summary(chat=chat, at=from_micros(now), **values)
    row: dict[str, Any] = {name: getattr(summary, name) for name in _FIELDS}
    row |= {name: to_micros(row[name]) for name in _TIMES} | {"prompt": summary.prompt or None}
    row |= {"space": space, "number": table_rows.count_up(tx, space, "summaries"), "ended": MAX_COUNT}
    table_rows.add(tx, "summaries", {**row, "checksum": seal("summaries", row, tx.key)})
    count_in_chat(tx, space, chat)
    agenda.touch(tx, space)
    return summary
