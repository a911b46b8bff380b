"""Records as of a version: a condition on two columns, because each version is a row of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.kinds import FEEDBACK, nearest
from holdfast.store.database import batched, first_value, matching, one_of, retry_transaction
from holdfast.store.log import NEWEST_DOC
from holdfast.store.message_rows import from_micros
from holdfast.store.record_rows import FROM, PINNED, SELECT, to_record
from holdfast.types import MAX_COUNT, Record

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.store.database import Connection, Database, Reader, Row, Value
    from holdfast.types import Scope

# The kind and target of the notes that all agents of a chat share. All else belongs to one agent, or to none.
SESSION_NOTES = ("note", "session")
_OR_SESSION_NOTE = " OR (r.kind = '{}' AND r.target = '{}')".format(*SESSION_NOTES)
# The priority of a draft that has none: it keeps that of the record whose place it takes.
UNSET_PRIORITY = 0
# Rows read at once.
_PAGE = 256
STATE = f"""
    SELECT coalesce(max(version), 0) AS version, coalesce(max(epoch), 0) AS epoch, ({NEWEST_DOC}) AS doc
    FROM spaces WHERE space = :space"""
# The current versions of a kind, those learned from a chat, and those of a record. As subqueries, since
# SQLite would otherwise read all versions of the space instead of an index.
_CURRENT = "SELECT version FROM records WHERE space = :space AND kind = :kind AND ended = :open"
_OF_CHAT = "SELECT version FROM records WHERE space = :space AND chat = :chat AND kind = :kind"
OF_ID = "version IN (SELECT version FROM records WHERE space = :space AND id = :id)"
_IN_USE = "retracted = 0 AND trust <> 'quarantined'"
_IS_RECALLED = f"run = '' AND kind <> '{FEEDBACK}' AND retracted = 0"
IS_PINNED = f"flags LIKE '%\"{PINNED}\"%'"
_WAITS = "trust = 'quarantined'"
# Records that reflection learned from a missing chat, but for those derived from other records, which may
# name any chat.
_CHAT_IS_MISSING = """
    SELECT r.version, r.chat FROM records r
    WHERE r.space = :space AND r.chat <> '' AND r.author = 'reflect'
    AND r.meta LIKE :learned AND r.meta NOT LIKE :of
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.space = r.space AND s.chat = r.chat)
    ORDER BY r.version"""


class SpaceState(NamedTuple):
    """The newest version of a space, and its epoch, which grows with each erasure."""

    version: int
    epoch: int


class AsOf(NamedTuple):
    """A space as of a version: its newest message then, and the time before which messages count."""

    version: int
    doc: int = MAX_COUNT
    until: int = MAX_COUNT


NOW = AsOf(MAX_COUNT - 1)


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """A selection of records. None lets all pass; a run of "" leaves out the notes of all runs.

    With a chat, the session notes of all agents are included.
    """

    kinds: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    agents: Sequence[str] | None = None
    target: str | None = None
    run: str | None = ""
    chat: str | None = None
    trust: Sequence[str] = ("trusted", "released")
    retracted: bool = False


def version(db: Reader, space: str) -> int:
    """Return the newest version of a space, 0 for none."""
    return space_state(db, space).version


def space_state(db: Reader, space: str) -> SpaceState:
    """Return the state of a space, to compare with `Writing.seen` after something was read."""
    return SpaceState(*db.all(STATE, space=space)[0][:2])


def as_of(db: Reader, space: str, at: int) -> tuple[AsOf, int]:
    """Return a space as of a version, with the time of the version; an empty space before the first one."""
    sql = """
        SELECT doc, created FROM records WHERE space = :space AND version <= :at
        ORDER BY version DESC LIMIT 1"""
    rows = db.all(sql, space=space, at=at)
    return (AsOf(at, rows[0][0]), rows[0][1]) if rows else (AsOf(0, 0), 0)


def version_at(db: Reader, space: str, time: int) -> int:
    """Return the newest version up to a time, 0 for none."""
    sql = (
        "SELECT version FROM records WHERE space = :space AND created <= :time ORDER BY version DESC LIMIT 1"
    )
    return first_value(db, int, sql, space=space, time=time) or 0


def read(reader: Reader, space: str, at: int, wanted: RecordFilter) -> list[Record]:
    """Return the records as of a version, in the order in which they were first written."""
    if wanted.kinds is None:
        return [to_record(row[:-1]) for row in _select(reader, space, at, wanted, None)]
    # A statement for each kind: for several at once SQLite reads all versions of the space.
    rows = [row for kind in dict.fromkeys(wanted.kinds) for row in _select(reader, space, at, wanted, kind)]
    rows.sort(key=lambda row: (row[-1], row[0]))
    return [to_record(row[:-1]) for row in rows]


def iterate(db: Database, space: str, at: int, wanted: RecordFilter) -> Iterator[Record]:
    """Iterate over the records of one kind, or of all, in the order in which they were first written."""
    kind = None if wanted.kinds is None else wanted.kinds[0]
    after = (0, 0)
    while True:
        rows = _select(db, space, at, wanted, kind, after, _PAGE)
        yield from (to_record(row[:-1]) for row in rows)
        if len(rows) < _PAGE:
            return
        after = (rows[-1][-1], rows[-1][0])


def newest(reader: Reader, space: str, kind: str, limit: int, outside: str = "") -> list[Record]:
    """Return the newest current records of a kind, newest first, without those of the chat `outside`."""
    values = {"outside": outside} if outside else {}
    condition = " AND r.chat <> :outside" if outside else ""
    sql = f"""{SELECT} {FROM} AND r.kind = :kind AND r.ended = :open AND {_IN_USE} AND r.run = ''{condition}
        ORDER BY r.version DESC LIMIT :limit"""
    rows = reader.all(sql, space=space, kind=kind, open=MAX_COUNT, limit=limit, **values)
    return [to_record(row) for row in rows]


def _select(
    reader: Reader,
    space: str,
    at: int,
    wanted: RecordFilter,
    kind: str | None,
    after: tuple[int, int] = (0, 0),
    limit: int = MAX_COUNT,
) -> list[Row]:
    """Return the rows of one kind, or of all, ordered by birth, which is the last column, and version."""
    condition, values = matching(
        {"r.kind": kind, "r.target": wanted.target, "r.chat": wanted.chat, "r.run": wanted.run},
        {"r.id": wanted.ids, "r.trust": wanted.trust},
    )
    if wanted.agents is not None:
        of_agents, names = one_of("r.agent", wanted.agents)
        condition += f" AND ({of_agents}{_OR_SESSION_NOTE if wanted.chat else ''})"
        values |= names
    if after > (0, 0):
        # No version is older than the birth of its record, so the index is entered there.
        condition += " AND r.version >= :born AND (r.born, r.version) > (:born, :after)"
        values |= {"born": after[0], "after": after[1]}
    if not wanted.retracted:
        condition += " AND r.retracted = 0"
    sql = f"""{SELECT}, r.born {FROM} AND r.version <= :at AND r.ended > :at{condition}
        ORDER BY r.born, r.version LIMIT :limit"""
    return reader.all(sql, space=space, at=at, limit=limit, **values)


def read_effective(
    reader: Reader, scope: Scope, kind: str, now: datetime, moments: Mapping[str, AsOf] | None = None
) -> Record | None:
    """Return the record of a kind that prompts show: that of the nearest space, valid at a time, if any."""
    wanted = RecordFilter(kinds=(kind,), agents=tuple(dict.fromkeys((scope.agent, ""))))
    for space in scope.spaces:
        at = (moments or {}).get(space, NOW).version
        if valid := [record for record in read(reader, space, at, wanted) if record.valid(now)]:
            record = nearest(valid, (), scope.agent)
            return replace(record, space=scope.reference(space)) if record and scope.is_layered else record
    return None


def by_versions(reader: Reader, space: str, versions: Sequence[int]) -> dict[int, Record]:
    """Return some versions of records, current or not."""
    records = {}
    for some in batched(versions):
        condition, values = one_of("r.version", some)
        rows = reader.all(f"{SELECT} {FROM} AND {condition}", space=space, **values)
        records.update({row[0]: to_record(row) for row in rows})
    return records


def latest(tx: Reader, space: str, condition: str, **values: Value) -> Record | None:
    """Return the newest version among those that meet a condition, retracted or not."""
    sql = f"{SELECT} {FROM} AND {condition} ORDER BY r.version DESC LIMIT 1"
    rows = tx.all(sql, space=space, **values)
    return to_record(rows[0]) if rows else None


def versions_of(reader: Reader, space: str, identity: str) -> list[Record]:
    """Return all versions of a record, the oldest first."""
    rows = reader.all(f"{SELECT} {FROM} AND {OF_ID} ORDER BY r.version", space=space, id=identity)
    return [to_record(row) for row in rows]


def former_versions(db: Reader, space: str, like: Record) -> list[Record]:
    """Return the ended or unused versions with the kind and the source of a record.

    They have the same source if their messages overlap in its chat or, without a chat, by its name.
    """
    first, last = like.messages or (0, MAX_COUNT)
    sql = f"""{SELECT} {FROM} AND r.version IN ({_OF_CHAT})
        AND (:chat = '' OR (r.first <= :last AND r.last >= :first)) AND (:chat <> '' OR r.source = :source)
        AND (r.ended < :open OR r.retracted = 1 OR r.trust = 'quarantined') ORDER BY r.version"""
    values: dict[str, Value] = {"chat": like.chat, "kind": like.kind, "first": first, "last": last}
    rows = db.all(sql, space=space, source=like.source, open=MAX_COUNT, **values)
    return [to_record(row) for row in rows]


def versions_by_source(db: Reader, space: str, sources: Sequence[str]) -> dict[str, list[Record]]:
    """Return all versions of the records imported from some sources, the oldest first; a linear scan."""
    records: dict[str, list[Record]] = {}
    for some in batched(sources):
        condition, values = one_of("source", some)
        sql = f"""{SELECT} {FROM} AND r.id IN (
            SELECT id FROM records WHERE space = :space AND writer = 'import' AND {condition}
        ) ORDER BY r.version"""
        origins: dict[str, str] = {}
        for row in db.all(sql, space=space, **values):
            record = to_record(row)
            source = origins.setdefault(record.id, record.source)
            records.setdefault(source, []).append(record)
    return records


class RecordOutline(NamedTuple):
    """The columns that decide whether a prompt shows a version, which is valid from `since` to `until`."""

    version: int
    id: str
    target: str
    by: str
    priority: int
    evidence: int
    length: int
    since: int | None
    until: int | None
    trust: str
    pinned: int


def outlines(reader: Reader, space: str, at: int, kind: str, agents: Sequence[str]) -> list[RecordOutline]:
    """Return the outlines of a kind as of a version, in the order in which the records were first written."""
    condition, values = one_of("agent", agents)
    sql = f"""
        SELECT version, id, target, author, priority, evidence, length(text), since, until, trust,
            CASE WHEN {IS_PINNED} THEN 1 ELSE 0 END AS pinned
        FROM records
        WHERE space = :space AND kind = :kind AND version <= :at AND ended > :at AND {_IN_USE} AND run = ''
        AND {condition} ORDER BY born, version"""
    return [RecordOutline(*row) for row in reader.all(sql, space=space, kind=kind, at=at, **values)]


def current_texts(
    db: Reader, space: str, kind: str, target: str, agents: Sequence[str], run: str
) -> list[Row]:
    """Return version, chat and text of the current records of a kind and target, the oldest first."""
    condition, values = one_of("agent", agents)
    sql = f"""
        SELECT version, chat, text FROM records
        WHERE space = :space AND version IN ({_CURRENT}) AND target = :target AND run = :run AND {_IN_USE}
        AND {condition} ORDER BY born"""
    return db.all(sql, space=space, kind=kind, open=MAX_COUNT, target=target, run=run, **values)


def versions_with_tags(db: Reader, space: str, tags: Iterable[str]) -> list[int]:
    """Return all versions with one of some tags, and possibly some without."""
    escaped = (re.sub(r"([!%_])", r"!\1", json.dumps(tag)) for tag in tags)
    patterns = {f"tag{n}": f"%{tag}%" for n, tag in enumerate(escaped)}
    if not patterns:
        return []
    either = " OR ".join(f"tags LIKE :{name} ESCAPE '!'" for name in patterns)
    sql = f"SELECT version FROM records WHERE space = :space AND tags IS NOT NULL AND ({either})"
    return [row[0] for row in db.all(sql, space=space, **patterns)]


def count_learned(db: Reader, space: str, kind: str, chat: str) -> int:
    """Return the number of records of a kind learned from a chat, even if changed or retracted since."""
    sql = f"""
        SELECT count(DISTINCT id) FROM records WHERE space = :space AND version IN ({_OF_CHAT})
        AND author = 'reflect' AND action IN ('add', 'update', 'quarantine')"""
    return int(db.all(sql, space=space, chat=chat, kind=kind)[0][0])


def agents_with_records(db: Reader, space: str, kind: str) -> list[str]:
    """Return the agents that have current records of a kind, the one with the oldest first."""
    sql = f"""
        SELECT agent, min(born) FROM records WHERE space = :space AND version IN ({_CURRENT})
        AND {_IN_USE} AND run = '' GROUP BY agent ORDER BY 2"""
    return [row[0] for row in db.all(sql, space=space, kind=kind, open=MAX_COUNT)]


def changed_since(db: Reader, space: str, kind: str, agent: str, seen: int, *, but: str) -> bool:
    """Return whether a current record of a kind was written after a version, but for one action."""
    sql = """
        SELECT version FROM records WHERE space = :space AND kind = :kind AND ended = :open
        AND version > :seen AND agent = :agent AND action <> :but AND retracted = 0 LIMIT 1"""
    return bool(db.all(sql, space=space, kind=kind, open=MAX_COUNT, seen=seen, agent=agent, but=but))


def first_written(db: Reader, space: str, ids: Sequence[str]) -> dict[str, datetime]:
    """Return the times at which some records were first written."""
    condition, values = one_of("id", ids)
    sql = f"SELECT id, created FROM records WHERE space = :space AND born = version AND {condition}"
    return {identity: from_micros(created) for identity, created in db.all(sql, space=space, **values)}


def batch_of(tx: Reader, space: str, version: int) -> int | None:
    """Return the batch of a version, None if it was erased or taken back."""
    sql = """
        SELECT batch FROM records WHERE space = :space AND version = :version
        AND NOT EXISTS (
            SELECT 1 FROM records u WHERE u.space = :space AND u.undone > 0 AND u.undone = records.batch)"""
    return first_value(tx, int, sql, space=space, version=version)


def is_current(tx: Reader, space: str, record: Record) -> bool:
    """Return whether a version of a record is its newest one."""
    sql = "SELECT ended FROM records WHERE space = :space AND version = :version"
    return tx.all(sql, space=space, version=record.version) == [(MAX_COUNT,)]


def count_characters(
    tx: Connection, space: str, kind: str, target: str, agent: str, run: str, chat: str | None
) -> int:
    """Return the characters of the current records of a kind and target that an agent sees.

    Texts and metadata are counted. An agent sees its own records and those of no agent; for no agent, the
    count is that of the agent that sees the most. Only records of the run count, and those of the chat unless
    it is None. All agents see the session notes of a chat.
    """
    sql = f"""
        SELECT agent, sum(length(text) + coalesce(length(meta), 0)) FROM records
        WHERE space = :space AND version IN ({_CURRENT}) AND target = :target AND run = :run
        AND (:any = 1 OR chat = :chat) AND {_IN_USE} GROUP BY agent"""
    values: dict[str, Value] = {"kind": kind, "target": target, "run": run, "chat": chat or ""}
    rows = tx.all(sql, space=space, open=MAX_COUNT, any=int(chat is None), **values)
    sums = {owner: int(total) for owner, total in rows}
    if (kind, target) == SESSION_NOTES:
        return sum(sums.values())
    shared = sums.pop("", 0)
    return shared + (sums.get(agent, 0) if agent else max(sums.values(), default=0))


@retry_transaction
def count_use(db: Database, space: str, ids: Sequence[str], now: int) -> None:
    """Count one use of some records."""
    sql = """
        INSERT INTO uses (space, id, count, last) VALUES (:space, :id, 1, :now)
        ON CONFLICT (space, id) DO UPDATE SET count = uses.count + 1, last = excluded.last"""
    with db.writing() as tx:
        # In one order, or two that count the same would wait for each other.
        tx.many(sql, [{"space": space, "id": identity, "now": now} for identity in sorted(ids)])


def documents(db: Reader, space: str, after: int, limit: int, *, waiting: bool = False) -> list[Row]:
    """Return columns of the next versions for the index: version, id, agent, kind, at, text, wordings.

    Records that cannot be found have no texts: retracted ones, those of a run, feedback, and those in
    quarantine, or with `waiting` all others.
    """
    is_found = f"{_IS_RECALLED} AND {'' if waiting else 'NOT '}{_WAITS}"
    sql = f"""
        SELECT version, id, agent, kind, at,
            CASE WHEN {is_found} THEN text ELSE '' END AS text,
            CASE WHEN {is_found} THEN wordings END AS wordings
        FROM records WHERE space = :space AND version > :after AND version <= :until ORDER BY version"""
    return db.all(sql, space=space, after=after, until=after + limit)


def version_numbers(db: Reader, space: str) -> list[Row]:
    """Return the version, the id and the end of every version of a space, in order."""
    return db.all("SELECT version, id, ended FROM records WHERE space = :space ORDER BY version", space=space)


def learned_from_missing_chats(db: Reader, space: str) -> list[Row]:
    """Return the versions that reflection learned from missing chats, each with the id of the chat."""
    return db.all(_CHAT_IS_MISSING, space=space, learned='%"learned":%', of='%"of":%')
