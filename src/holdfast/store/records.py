"""Records: append-only, one row for each version; what is known at a version is a condition on two columns."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Conflict, Damaged
from holdfast.kinds import nearest
from holdfast.store.checksums import seal
from holdfast.store.database import repeated
from holdfast.store.log import NEWEST_DOC
from holdfast.store.message_rows import check_time, from_micros
from holdfast.text.json_text import dump
from holdfast.types import MAX_COUNT, Change, Record, Wording

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.store.database import Connection, Database, Row, Value
    from holdfast.types import Scope, Writer

_COLUMNS = (
    "version, id, kind, agent, target, run, chat, first, last, category, tags, meta, priority, source, sources, evidence, "
    "author, trust, flags, replaces, at, since, until, retracted, action, why, text, wordings, created"
)
# Not a join: without statistics PostgreSQL would rather read all versions of the space in the order of their ids.
_USES = ", ".join(
    f"(SELECT u.{name} FROM uses u WHERE u.space = :space AND u.id = r.id) AS {name}"
    for name in ("count", "last")
)
_READ = f"SELECT {', '.join(f'r.{name}' for name in _COLUMNS.split(', '))}, {_USES}"
_FROM = "FROM records r WHERE r.space = :space"
_INSERT = f"""
    INSERT INTO records (space, ended, born, batch, undone, doc, writer, checksum, {_COLUMNS})
    VALUES (:space, :ended, :born, :batch, :undone, :doc, :writer, :checksum, :{_COLUMNS.replace(", ", ", :")})"""
# The kind and target of what all agents of a chat share; all else is its agent's own, or that of no agent.
SESSION_NOTES = ("note", "session")
UNSAID = 0  # the priority of a draft that has none: it keeps that of the record whose place it takes
_USUAL = 5
_PAGE = 256  # rows asked for at once
_STATE = f"""
    SELECT
        (SELECT coalesce(max(version), 0) FROM spaces WHERE space = :space) AS version,
        (SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space) AS epoch,
        ({NEWEST_DOC}) AS doc"""


class Seen(NamedTuple):
    """How far a space was when it was read: its newest change, and its epoch, which grows with each erasure."""

    version: int
    epoch: int


class Moment(NamedTuple):
    """What a space was at a version: its newest version, its newest message, and the time before which messages count."""

    version: int
    doc: int = MAX_COUNT
    until: int = MAX_COUNT


NOW = Moment(MAX_COUNT - 1)

# The current versions of a kind, those of a record, and those that a session has given. On their own, since SQLite would
# rather read all versions of the space than look up the rows of an index.
_CURRENT = "SELECT version FROM records WHERE space = :space AND kind = :kind AND ended = :open"
_OF_CHAT = "SELECT version FROM records WHERE space = :space AND chat = :chat AND kind = :kind"
OF_ID = "version IN (SELECT version FROM records WHERE space = :space AND id = :id)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records to read. None lets all pass; a run of "" leaves out the notes of every run.

    Where a chat is named, its session notes are those of every agent.
    """

    kinds: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    agents: Sequence[str] | None = None
    target: str | None = None
    run: str | None = ""
    chat: str | None = None
    trust: Sequence[str] = ("trusted", "released")
    retracted: bool = False


def version(db: Database, space: str) -> int:
    """Give the number of the newest change of a space, 0 for none."""
    with db.reading() as connection:
        return int(connection.all(_STATE, space=space)[0][0])


def seen(db: Database, space: str) -> Seen:
    """Return how far a space is, before something is read that `Writing.seen` is to tell is unchanged."""
    with db.reading() as connection:
        return Seen(*connection.all(_STATE, space=space)[0][:2])


def moment(db: Database, space: str, at: int) -> tuple[Moment, int]:
    """Give the moment of a version, and its time; before the first, and if all up to it were erased, that of nothing."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT doc, created FROM records WHERE space = :space AND version <= :at ORDER BY version DESC LIMIT 1",
            space=space,
            at=at,
        )
    return (Moment(at, rows[0][0]), rows[0][1]) if rows else (Moment(0, 0), 0)


def version_at(db: Database, space: str, time: int) -> int:
    """Return the newest version that was stored at a time or before it, 0 for none."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT version FROM records WHERE space = :space AND created <= :time ORDER BY version DESC LIMIT 1",
            space=space,
            time=time,
        )
    return rows[0][0] if rows else 0


def read(source: Database | Connection, space: str, at: int, wanted: Wanted) -> list[Record]:
    """Read the records as of a version, in the order in which they were first written."""
    if wanted.kinds is None:
        return [_to_record(row) for _, row in _rows(source, space, at, wanted, None)]
    # A statement for each kind: for several at once SQLite would rather read all versions of the space.
    found = [row for kind in dict.fromkeys(wanted.kinds) for row in _rows(source, space, at, wanted, kind)]
    found.sort(key=lambda row: row[0])
    return [_to_record(row) for _, row in found]


def each(db: Database, space: str, at: int, wanted: Wanted) -> Iterator[Record]:
    """Read the records of one kind, or of all, one by one, in the order in which they were first written."""
    kind = None if wanted.kinds is None else wanted.kinds[0]
    after = (0, 0)
    while True:
        rows = _rows(db, space, at, wanted, kind, after, _PAGE)
        for after, row in rows:  # noqa: B007 - where to go on
            yield _to_record(row)
        if len(rows) < _PAGE:
            return


def the_one(
    source: Database | Connection,
    scope: Scope,
    kind: str,
    now: datetime,
    own: Moment = NOW,
    shared: Moment = NOW,
) -> Record | None:
    """Read the one text of a kind as prompts show it: the `nearest` that is true at a time; None if there is none."""
    wanted = Wanted(kinds=(kind,), agents=tuple(dict.fromkeys((scope.agent, ""))))

    def true(space: str, at: Moment) -> list[Record]:
        return [one for one in read(source, space, at.version, wanted) if one.valid(now)]

    mine = true(scope.space, own)
    theirs = [] if mine or scope.space == scope.shared.space else true(scope.shared.space, shared)
    return nearest(mine, theirs, scope.agent)


def tagged(db: Database, space: str, tags: Iterable[str]) -> list[int]:
    """Give the versions that may have one of some tags, and all that do."""
    marks = {f"tag{n}": f"%{_escaped(json.dumps(tag))}%" for n, tag in enumerate(tags)}
    if not marks:
        return []
    with db.reading() as connection:
        likes = [f"tags LIKE :{mark} ESCAPE '!'" for mark in marks]
        rows = connection.all(
            "SELECT version FROM records WHERE space = :space AND tags IS NOT NULL AND "
            f"({' OR '.join(likes)})",
            space=space,
            **marks,
        )
    return [row[0] for row in rows]


def _escaped(text: str) -> str:
    return re.sub(r"([!%_])", r"!\1", text)


class Outline(NamedTuple):
    """What decides whether a prompt shows a version of a record: the times are those at which it is true in the world."""

    version: int
    id: str
    target: str
    by: str
    priority: int
    evidence: int
    length: int
    since: int | None
    until: int | None


def outlines(
    source: Database | Connection, space: str, at: int, kind: str, agents: Sequence[str]
) -> list[Outline]:
    """Read the outlines of a kind as of a version, in the order in which the records were first written."""
    marks = {f"agent{n}": agent for n, agent in enumerate(agents)}
    rows = _all(
        source,
        f"""SELECT version, id, target, author, priority, evidence, length(text), since, until FROM records
        WHERE space = :space AND kind = :kind AND version <= :at AND ended > :at AND retracted = 0
        AND trust <> 'quarantined' AND run = '' AND agent IN ({", ".join(f":{mark}" for mark in marks)})
        ORDER BY born, version""",
        space=space,
        kind=kind,
        at=at,
        **marks,
    )
    return [Outline(*row) for row in rows]


def texts(db: Database, space: str, kind: str, target: str, agents: Sequence[str], run: str) -> list[Row]:
    """Read of the current records of a kind and target what a comparison needs: version, chat, text; oldest first."""
    marks = {f"agent{n}": agent for n, agent in enumerate(agents)}
    with db.reading() as connection:
        return connection.all(
            f"""SELECT version, chat, text FROM records
            WHERE space = :space AND version IN ({_CURRENT}) AND target = :target AND run = :run
            AND retracted = 0 AND trust <> 'quarantined' AND agent IN ({", ".join(f":{mark}" for mark in marks)})
            ORDER BY born""",
            space=space,
            kind=kind,
            open=MAX_COUNT,
            target=target,
            run=run,
            **marks,
        )


def _rows(
    source: Database | Connection,
    space: str,
    at: int,
    wanted: Wanted,
    kind: str | None,
    after: tuple[int, int] = (0, 0),
    limit: int = MAX_COUNT,
) -> list[tuple[tuple[int, int], Row]]:
    """Read the rows of one kind, or of all, each with its place in the order: the first after a place."""
    conditions = ["r.version <= :at", "r.ended > :at"]
    values: dict[str, Value] = {"at": at}
    if after > (0, 0):
        # No version is older than the birth of its record: that is where the index is entered.
        conditions.append("r.version >= :born AND (r.born, r.version) > (:born, :after)")
        values |= {"born": after[0], "after": after[1]}
    columns = (("kind", kind), ("target", wanted.target), ("chat", wanted.chat), ("run", wanted.run))
    for column, one in columns:
        if one is not None:
            conditions.append(f"r.{column} = :{column}")
            values[column] = one
    lists = (("id", wanted.ids), ("agent", wanted.agents), ("trust", wanted.trust))
    for column, several in lists:
        if several is not None:
            marks = {f"{column}{n}": value for n, value in enumerate(several)}
            one_of = f"r.{column} IN ({', '.join(f':{mark}' for mark in marks) or 'NULL'})"
            if column == "agent" and wanted.chat:
                one_of = f"({one_of} OR (r.kind = '{SESSION_NOTES[0]}' AND r.target = '{SESSION_NOTES[1]}'))"
            conditions.append(one_of)
            values.update(marks)
    if not wanted.retracted:
        conditions.append("r.retracted = 0")
    sql = f"{_READ}, r.born {_FROM} AND {' AND '.join(conditions)} ORDER BY r.born, r.version LIMIT :limit"
    return [((row[-1], row[0]), row[:-1]) for row in _all(source, sql, space=space, limit=limit, **values)]


def by_versions(source: Database | Connection, space: str, versions: Sequence[int]) -> dict[int, Record]:
    """Read some versions of records, whatever became of them since."""
    found = {}
    for start in range(0, len(versions), _PAGE):
        marks = {f"v{n}": number for n, number in enumerate(versions[start : start + _PAGE])}
        sql = f"{_READ} {_FROM} AND r.version IN ({', '.join(f':{mark}' for mark in marks)})"
        found.update({row[0]: _to_record(row) for row in _all(source, sql, space=space, **marks)})
    return found


def latest(tx: Connection, space: str, conditions: str, **values: Value) -> Record | None:
    """Read the newest version among those that meet a condition, retracted or not."""
    sql = f"{_READ} {_FROM} AND {conditions} ORDER BY r.version DESC LIMIT 1"
    rows = tx.all(sql, space=space, **values)
    return _to_record(rows[0]) if rows else None


def former(db: Database, space: str, like: Record) -> list[Record]:
    """Read what was learned from the same words as a record, of its kind, and is not so any more, or is not to be used.

    The same words are overlapping messages of its chat or, without a chat, the same source.
    """
    first, last = like.messages or (0, MAX_COUNT)
    sql = f"""{_READ} {_FROM} AND r.version IN ({_OF_CHAT})
        AND (:chat = '' OR (r.first <= :last AND r.last >= :first)) AND (:chat <> '' OR r.source = :said_in)
        AND (r.ended < :open OR r.retracted = 1 OR r.trust = 'quarantined') ORDER BY r.version"""
    rows = _all(
        db,
        sql,
        space=space,
        chat=like.chat,
        kind=like.kind,
        first=first,
        last=last,
        said_in=like.source,
        open=MAX_COUNT,
    )
    return [_to_record(row) for row in rows]


def learned(db: Database, space: str, kind: str, chat: str) -> int:
    """Count the records of a kind that a session has given, also those that are not there any more, or changed since."""
    with db.reading() as connection:
        rows = connection.all(
            f"SELECT count(DISTINCT id) FROM records WHERE space = :space AND version IN ({_OF_CHAT}) "
            "AND author = 'reflect' AND action IN ('add', 'update', 'quarantine')",
            space=space,
            chat=chat,
            kind=kind,
        )
    return int(rows[0][0])


def owners(db: Database, space: str, kind: str) -> list[str]:
    """Return the agents that have current records of a kind, the one with the oldest first."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT agent, min(born) FROM records WHERE space = :space AND kind = :kind AND ended = :open "
            "AND retracted = 0 AND trust <> 'quarantined' AND run = '' GROUP BY agent ORDER BY 2",
            space=space,
            kind=kind,
            open=MAX_COUNT,
        )
    return [row[0] for row in rows]


def changed_since(db: Database, space: str, kind: str, agent: str, seen: int, *, but: str) -> bool:
    """Return whether a current record of a kind was written after a version, otherwise than by one action."""
    with db.reading() as connection:
        return bool(
            connection.all(
                "SELECT version FROM records WHERE space = :space AND kind = :kind AND ended = :open "
                "AND version > :seen AND agent = :agent AND action <> :but AND retracted = 0 LIMIT 1",
                space=space,
                kind=kind,
                open=MAX_COUNT,
                seen=seen,
                agent=agent,
                but=but,
            )
        )


def begun(db: Database, space: str, ids: Sequence[str]) -> dict[str, datetime]:
    """Return when some records were first written."""
    marks = {f"id{n}": identity for n, identity in enumerate(ids)}
    with db.reading() as connection:
        rows = connection.all(
            f"""SELECT id, created FROM records WHERE space = :space AND born = version
            AND id IN ({", ".join(f":{mark}" for mark in marks) or "NULL"})""",
            space=space,
            **marks,
        )
    return {identity: from_micros(created) for identity, created in rows}


def size(record: Record) -> int:
    """Count the characters of a record that a cap counts: of its text, and of its metadata as JSON."""
    return len(record.text) + (len(dump(dict(record.meta), "`meta` of a record")) if record.meta else 0)


def is_current(tx: Connection, space: str, record: Record) -> bool:
    """Say whether a version of a record is its newest one."""
    rows = tx.all(
        "SELECT ended FROM records WHERE space = :space AND version = :version",
        space=space,
        version=record.version,
    )
    return bool(rows) and rows[0][0] == MAX_COUNT


def versions_of(db: Database | Connection, space: str, identity: str) -> list[Record]:
    """Read all versions of a record, the oldest first."""
    sql = f"{_READ} {_FROM} AND {OF_ID} ORDER BY r.version"
    return [_to_record(row) for row in _all(db, sql, space=space, id=identity)]


def characters(
    tx: Connection, space: str, kind: str, target: str, agent: str, run: str, chat: str | None
) -> int:
    """Count the characters of the current texts of a kind and target, with their metadata, that an agent has to do with.

    These are its own and those of no agent; for no agent, those that the agent with the most has to do with. Only of a
    run, and of a chat unless it is None. The session notes of a chat are those of all its agents.
    """
    rows = tx.all(
        f"""SELECT agent, sum(length(text) + coalesce(length(meta), 0)) FROM records
        WHERE space = :space AND version IN ({_CURRENT}) AND target = :target AND run = :run
        AND (:any = 1 OR chat = :chat) AND retracted = 0 AND trust <> 'quarantined' GROUP BY agent""",
        space=space,
        kind=kind,
        open=MAX_COUNT,
        target=target,
        run=run,
        any=int(chat is None),
        chat=chat or "",
    )
    sums = {owner: int(total) for owner, total in rows}
    if kind == SESSION_NOTES[0] and target == SESSION_NOTES[1]:
        return sum(sums.values())
    shared = sums.pop("", 0)
    return shared + (sums.get(agent, 0) if agent else max(sums.values(), default=0))


@repeated
def count_use(db: Database, space: str, ids: Sequence[str], now: int) -> None:
    """Count that some records were asked for."""
    with db.writing() as tx:
        tx.many(
            "INSERT INTO uses (space, id, count, last) VALUES (:space, :id, 1, :now) "
            "ON CONFLICT (space, id) DO UPDATE SET count = uses.count + 1, last = excluded.last",
            # In one order, or two that count the same would wait for each other.
            [{"space": space, "id": identity, "now": now} for identity in sorted(ids)],
        )


class Writing:
    """Write changes in one transaction: a batch, each with the next version of the space.

    `seen` is how far the space was at its beginning: what was read then, and at the same `seen`, is as it was.
    """

    def __init__(self, tx: Connection, space: str, now: int) -> None:
        self.tx = tx
        self.space = space
        self.now = now
        self.version, epoch, self._doc = tx.all(_STATE, space=space)[0]
        self.seen = Seen(self.version, epoch)
        self._batch = self.version + 1

    def put(
        self,
        record: Record,
        before: Record | None,
        *,
        by: Writer,
        action: str,
        why: str = "",
        undone: int = 0,
    ) -> Record:
        """Write the next version of a record, after `before` if there is one, and return it as stored.

        `by` makes the change; `record.by` wrote the text. A record without a time gets that of its messages.

        Raises:
            Conflict: `before` was erased since it was read.

        """
        self.version += 1
        identity = before.id if before else f"rec_{self.version:08x}{random.getrandbits(32):08x}"
        at, created = record.at or self.said(record), from_micros(self.now)
        record = replace(
            record,
            id=identity,
            version=self.version,
            priority=record.priority or _USUAL,
            at=at,
            created=created,
            action=action,
            why=why,
        )
        row = _to_row(record)
        born = self.version
        if before:
            rows = self.tx.all(
                "UPDATE records SET ended = :version WHERE space = :space AND version = :before RETURNING born",
                space=self.space,
                version=self.version,
                before=before.version,
            )
            if not rows:
                raise Conflict(
                    "What was to be changed was erased meanwhile; nothing was stored.", "Read it again."
                )
            born = rows[0][0]
        row |= {"space": self.space, "ended": MAX_COUNT, "born": born, "batch": self._batch}
        row |= {"undone": undone, "doc": self._doc, "writer": by}
        self.tx.all(_INSERT, **row, checksum=seal("records", row, self.tx.key))
        return record

    def said(self, record: Record) -> datetime:
        """Return the time of the last message that a record was learned from; now, if it names none."""
        rows: list[Row] = []
        if record.messages:
            rows = self.tx.all(
                "SELECT at FROM messages WHERE space = :space AND chat = :chat AND seq BETWEEN :first AND :last "
                "ORDER BY seq DESC LIMIT 1",
                space=self.space,
                chat=record.chat,
                first=record.messages[0],
                last=record.messages[1],
            )
        return from_micros(rows[0][0] if rows else self.now)

    def end(self, record: Record, *, why: str) -> Record:
        """Retract a record in the name of the system."""
        return self.put(replace(record, retracted=True), record, by="system", action="retract", why=why)

    def leave(self, job: str, record: Record, other: Record) -> None:
        """Leave a job about two records for later."""
        self.tx.all(
            "INSERT INTO jobs (space, id, kind, status, record, other, at, agent) "
            "VALUES (:space, :id, :kind, 'open', :record, :other, :at, :agent)",
            space=self.space,
            id=f"job_{self.version:08x}{random.getrandbits(32):08x}",
            kind=job,
            agent=record.agent,
            record=record.id,
            other=other.id,
            at=self.now,
        )

    def finish(self) -> None:
        """Note the newest version of the space."""
        if self.version >= self._batch:
            self.tx.all(
                "INSERT INTO spaces (space, epoch, version) VALUES (:space, 0, :version) "
                "ON CONFLICT (space) DO UPDATE SET version = excluded.version",
                space=self.space,
                version=self.version,
            )


@contextmanager
def writing(db: Database, space: str, now: int) -> Iterator[Writing]:
    """Open a transaction for changes of a space. Nobody else changes it before this ends."""
    with db.writing() as tx:
        tx.lock(space)
        changes = Writing(tx, space, now)
        yield changes
        changes.finish()


_CHANGES = """
    SELECT r.version, r.action, r.kind, r.id, b.text, b.retracted, r.text, r.retracted, r.writer, r.chat, r.created, r.why,
        r.batch, r.wordings, r.agent
    FROM records r LEFT JOIN records b ON b.space = r.space AND b.id = r.id AND b.ended = r.version
    WHERE r.space = :space AND r.version <= :at"""


def changes(
    db: Database,
    space: str,
    at: int,
    *,
    kind: str | None = None,
    identity: str | None = None,
    agents: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[Change]:
    """Read changes up to a version, the newest first. The words of quarantined records are among them."""
    conditions: list[str] = []
    values: dict[str, Value] = {}
    for column, one in (("kind", kind), ("id", identity)):
        if one is not None:
            conditions.append(f"AND r.{column} = :{column}")
            values[column] = one
    if agents is not None:
        values.update({f"agent{n}": agent for n, agent in enumerate(agents)})
        conditions.append(f"AND r.agent IN ({', '.join(f':agent{n}' for n in range(len(agents)))})")
    with db.reading() as connection:
        rows = connection.all(
            f"{_CHANGES} {' '.join(conditions)} ORDER BY r.version DESC LIMIT :limit",
            space=space,
            at=at,
            limit=MAX_COUNT if limit is None else limit,
            **values,
        )
    return [_to_change(row) for row in rows]


def to_undo(tx: Connection, space: str, agents: Sequence[str] | None) -> list[int]:
    """Give the versions of the newest batch that is not an undo and was not undone; none if there is none."""
    undone = {
        row[0]
        for row in tx.all("SELECT undone FROM records WHERE space = :space AND undone > 0", space=space)
    }
    before = MAX_COUNT
    while rows := tx.all(
        """SELECT version, batch FROM records
        WHERE space = :space AND version < :before AND undone = 0 AND run = '' ORDER BY version DESC LIMIT 64""",
        space=space,
        before=before,
    ):
        for _, batch in rows:
            if batch in undone:
                continue
            found = tx.all(
                "SELECT version, agent FROM records WHERE space = :space AND version >= :batch AND batch = :batch "
                "ORDER BY version DESC",
                space=space,
                batch=batch,
            )
            if agents is None or all(agent in agents for _, agent in found):
                return [row[0] for row in found]
            undone.add(batch)  # not this agent's to undo
        before = rows[-1][0]
    return []


def documents(db: Database, space: str, after: int, limit: int) -> list[Row]:
    """Read what the index needs of the versions of the next numbers: version, id, agent, kind, at, text, wordings.

    What was retracted or put into quarantine can not, nor what a run noted for itself.
    """
    with db.reading() as connection:
        return connection.all(
            """SELECT version, id, agent, kind, at,
                CASE WHEN retracted = 0 AND trust <> 'quarantined' AND run = '' THEN text ELSE '' END AS text,
                CASE WHEN retracted = 0 AND trust <> 'quarantined' AND run = '' THEN wordings END AS wordings
            FROM records WHERE space = :space AND version > :after AND version <= :until ORDER BY version""",
            space=space,
            after=after,
            until=after + limit,
        )


def numbers(db: Database, space: str) -> list[Row]:
    """Read the version, the id and the end of every version of a space, in order."""
    with db.reading() as connection:
        return connection.all(
            "SELECT version, id, ended FROM records WHERE space = :space ORDER BY version", space=space
        )


def _all(source: Database | Connection, sql: str, **values: Value) -> list[Row]:
    # Only to tell the two apart.
    from holdfast.store.database import Database

    if isinstance(source, Database):
        with source.reading() as connection:
            return connection.all(sql, **values)
    return source.all(sql, **values)


def _to_row(record: Record) -> dict[str, Value]:
    first, last = record.messages or (0, 0)
    return {
        "version": record.version,
        "id": record.id,
        "kind": record.kind,
        "agent": record.agent,
        "target": record.target,
        "run": record.run,
        "chat": record.chat,
        "first": first,
        "last": last,
        "category": record.category,
        "tags": json.dumps(record.tags) if record.tags else None,
        "meta": dump(dict(record.meta), "`meta` of a record") if record.meta else None,
        "priority": record.priority,
        "source": record.source,
        "sources": json.dumps(record.sources) if record.sources else None,
        "evidence": record.evidence,
        "author": record.by,
        "trust": record.trust,
        "flags": json.dumps(record.flags) if record.flags else None,
        "replaces": record.replaces,
        "at": check_time(record.at) if record.at else 0,
        "created": check_time(record.created) if record.created else 0,
        "since": check_time(record.since) if record.since else None,
        "until": check_time(record.until) if record.until else None,
        "retracted": int(record.retracted),
        "action": record.action,
        "why": record.why,
        "text": record.text,
        "wordings": json.dumps([_to_list(one) for one in record.wordings]) if record.wordings else None,
    }


def _to_list(wording: Wording) -> list[object]:
    return [wording.text, wording.by, wording.chat, *(wording.messages or (0, 0))]


def _to_wordings(written: str | None) -> tuple[Wording, ...]:
    return tuple(
        [
            Wording(text, by=by, chat=chat, messages=(first, last) if first else None)
            for text, by, chat, first, last in json.loads(written or "[]")
        ]
    )


def _to_record(row: Row) -> Record:
    """Make a record of a row.

    Raises:
        Damaged: a part of the row is not what was stored.

    """
    (
        version, identity, kind, agent, target, run, chat, first, last, category, tags, meta, priority, source, sources,
        evidence, author, trust, flags, replaces, at, since, until, retracted, action, why, text,
        wordings, created, uses, used,
    ) = row  # fmt: skip
    try:
        return Record(
            identity,
            kind,
            text,
            version=version,
            target=target,
            category=category,
            tags=tuple(json.loads(tags)) if tags else (),
            meta=json.loads(meta) if meta else {},
            priority=priority,
            agent=agent,
            source=source,
            sources=tuple(json.loads(sources)) if sources else (),
            evidence=evidence,
            wordings=_to_wordings(wordings),
            by=author,
            run=run,
            chat=chat,
            messages=(first, last) if first else None,
            at=from_micros(at),
            created=from_micros(created),
            since=None if since is None else from_micros(since),
            until=None if until is None else from_micros(until),
            trust=trust,
            flags=tuple(json.loads(flags)) if flags else (),
            replaces=replaces,
            retracted=bool(retracted),
            action=action,
            why=why,
            uses=uses or 0,
            used=None if used is None else from_micros(used),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise Damaged(
            f"Version {row[0]} of what is known cannot be read ({error}).",
            "Restore a backup of the database.",
        ) from error


def _to_change(row: Row) -> Change:
    (
        number, action, kind, identity, before, gone_before, after, gone, by, chat, at, why, batch, wordings, agent,
    ) = row  # fmt: skip
    said = _to_wordings(wordings)[-1:] if action == "duplicate" else ()
    return Change(
        version=number,
        action=action,
        kind=kind,
        id=identity,
        before=None if gone_before is None or gone_before else before,
        after=None if gone else after,
        by=by,
        chat=chat,
        at=from_micros(at),
        why=why,
        batch=batch,
        said=said[0].text if said else "",
        agent=agent,
    )
