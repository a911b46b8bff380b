"""Reads of what is known, and recall, as a program calls them: of a `Memory`, and of a `View` of its past."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidInput
from holdfast.events import logged
from holdfast.kinds import FEEDBACK
from holdfast.records.draft import policy
from holdfast.records.reader import OTHER_CHANGES, RecordReader, agents_of, count_uses, selection
from holdfast.safety.guard import Secrets, is_masked
from holdfast.search.display import Display
from holdfast.store import record_changes, records
from holdfast.store.message_rows import to_micros
from holdfast.store.records import RecordFilter
from holdfast.types import (
    MAX_COUNT,
    ConflictingRecords,
    Hit,
    Hits,
    Prefer,
    Record,
    Role,
    Scope,
    Source,
    Time,
    Untrusted,
    check_count,
    check_flag,
    check_name,
)
from holdfast.types.handles import Handle

if TYPE_CHECKING:
    from holdfast.records.options import RecallFilters, RecordFilters
    from holdfast.types import Change, Explanation, Trust


class RecordReads(Handle):
    """The reads that a `Memory` and a `View` have in common."""

    @property
    def _reader(self) -> RecordReader:
        raise NotImplementedError

    @logged
    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        sources: Source | Iterable[Source] | None = None,
        chat: str | None = None,
        outside: str | None = None,
        roles: Role | Iterable[Role] | None = None,
        kinds: str | Iterable[str] | None = None,
        tags: str | Iterable[str] | None = None,
        trust: Untrusted | None = None,
        since: Time | None = None,
        until: Time | None = None,
        valid_at: Time | None = None,
        where: Mapping[str, object] | None = None,
        min_score: float = 0.0,
        prefer: Prefer | None = None,
        branches: bool = False,
        per_kind: int | None = None,
        secrets: Secrets = "mask",
        meaning: float | None = None,
        fresh: bool = False,
    ) -> Hits:
        """Find the messages, summaries and records that answer a question, best first.

        No language model is asked. With an embedder what is near in meaning is found as well, but for `at`.
        Everything that was stored before the call is found, by whichever process, and what the tenant shares
        (the space of the empty user); of records those that are current and true in the world now.

        Args:
            query: a question or some words, in any language; all characters of it are plain text.
            limit: at most so many hits.
            sources: some of "message", "summary" and "record"; None for all.
            chat: only this chat, with what was learned in it.
            outside: not this chat, the chats below it (`<chat>/…`), and what was learned in them.
            roles: only messages, of these roles.
            kinds: only records, of these kinds.
            tags: only records, with one of these tags.
            trust: "untrusted" searches what waits in quarantine, by its words, and nothing else; see
                `Memory.quarantine`.
            since: only what was said or written at this time or later: a datetime, or ISO 8601 text.
            until: only what was said or written before this time.
            valid_at: records that are true in the world at this time, in place of now.
            where: a filter on the `meta` of records and messages, these with that of their chat, such as
                {"lang": "de", "stars": {"$gte": 4}}; summaries have none. See `docs/filters.md`.
            min_score: the least probability, from 0 to 1, with which a hit answers; see `Hit`.
            prefer: "latest" puts the later of messages first that answer nearly as well, of whichever chats;
                within a chat that is always so.
            branches: also what was taken back, of all branches of chats; see `Chat.rewind`.
            per_kind: at most so many records of each kind, in place of `limit` and `sources`.
            secrets: "mask" or "show", of credentials in hits.
            meaning: of a memory with an embedder, the weight of meaning against words, from 0 (words alone)
                to 1 (meaning first); None for the usual one.
            fresh: of a memory with an embedder, whether to embed first what has no vector yet, up to a
                thousand texts.

        Raises:
            InvalidInput: the query is blank, a filter is of the wrong kind, or `fresh` without an embedder.

        """
        wanted: RecallFilters = {"sources": sources, "chat": chat, "outside": outside, "branches": branches}
        wanted |= {"kinds": kinds, "tags": tags, "trust": trust, "where": where, "min_score": min_score}
        wanted |= {"roles": roles, "since": since, "until": until, "valid_at": valid_at, "prefer": prefer}
        reader = self._reader
        masked, each = is_masked(secrets), None
        if per_kind is not None:
            wanted["sources"], limit, each = "record", check_count(per_kind, "per_kind"), reader.kinds
        checked = reader.check_filters(limit, wanted)
        # numpy is loaded by the first recall.
        from holdfast.search.query import parse

        parsed = parse(query, reader.clock(), checked.since, checked.until)
        near = reader.vector_of(query, meaning, checked) if limit else None
        behind = reader.embed_missing() if check_flag(fresh, "fresh") else None
        hits = reader.find(parsed, checked, near, each)
        return Hits(_masked(reader, hits) if masked else hits, behind or hits.degraded)

    @logged
    def explain(
        self,
        query: str,
        what: Hit | str,
        *,
        limit: int = 10,
        sources: Source | Iterable[Source] | None = None,
        chat: str | None = None,
        outside: str | None = None,
        roles: Role | Iterable[Role] | None = None,
        kinds: str | Iterable[str] | None = None,
        tags: str | Iterable[str] | None = None,
        trust: Untrusted | None = None,
        since: Time | None = None,
        until: Time | None = None,
        valid_at: Time | None = None,
        where: Mapping[str, object] | None = None,
        min_score: float = 0.0,
        prefer: Prefer | None = None,
        branches: bool = False,
        secrets: Secrets = "mask",
        meaning: float | None = None,
    ) -> Explanation:
        """Explain why a document is a hit of a query, or why not: its words, its rank, what excludes it.

        Costs as much as a recall with a limit as high as its rank.

        Args:
            query: as that of the recall.
            what: a hit, a message as `chat#seq` or, of another space, `space|chat#seq`, or the id of a record
                or a summary.
            limit: as that of the recall, and so are all that follow.
            sources: some of "message", "summary" and "record".
            chat: only this chat.
            outside: not this chat, and the chats below it.
            roles: only messages, of these roles.
            kinds: only records, of these kinds.
            tags: only records, with one of these tags.
            trust: "untrusted" for what waits in quarantine.
            since: only what was said or written at this time or later.
            until: only what was said or written before this time.
            valid_at: records that are true in the world at this time.
            where: a filter on metadata.
            min_score: the least probability with which a hit answers.
            prefer: "latest" for the later of messages first.
            branches: what was taken back as well.
            secrets: "mask" or "show", of credentials.
            meaning: the weight of meaning against words.

        Raises:
            InvalidInput: the query is blank, a filter is of the wrong kind, or there is no such document in
                this scope.

        """
        wanted: RecallFilters = {"sources": sources, "chat": chat, "outside": outside, "branches": branches}
        wanted |= {"kinds": kinds, "tags": tags, "trust": trust, "where": where, "min_score": min_score}
        wanted |= {"roles": roles, "since": since, "until": until, "valid_at": valid_at, "prefer": prefer}
        reader = self._reader
        masked = is_masked(secrets)
        # numpy is loaded by the first recall.
        from holdfast.search.explain import explain

        checked = reader.check_filters(limit, wanted)
        near = reader.vector_of(query, meaning, checked)
        explanation = explain(reader.search(), reader.scope, query, what, checked, near, reader.clock())
        if not masked:
            return explanation
        hit, *above = _masked(reader, [explanation.hit, *explanation.outranked_by])
        return replace(explanation, hit=hit, outranked_by=tuple(above))

    @logged
    def get(self, what: str) -> Record | None:
        """Return a record by its id, or the one text of a kind, such as "profile"; None if there is none.

        The profile and the soul are those that prompts show: this agent's own, else the one of no agent, else
        the one that the tenant shares. Asking for a note counts as a use of it. A record in quarantine is
        found by its id.

        Args:
            what: the id of a record, or the name of a kind of which an agent has one text.

        Raises:
            InvalidInput: it is not text.

        """
        reader = self._reader
        check_name(what, "The id of a record")
        scope = reader.scope
        kind = reader.kinds.get(what)
        if kind is not None:
            if kind.one_per != "agent":
                raise InvalidInput(f"There may be many of the kind {what!r}.", "Use `records(kind=…)`.")
            db, at = reader.database, reader.at
            with db.one_read():
                return records.read_effective(db, scope, what, at.time or reader.clock(), at.moments)
        trust: tuple[Trust, ...] = ("trusted", "released", "quarantined")
        wanted = RecordFilter(ids=(what,), agents=agents_of(scope), trust=trust)
        matches = records.read(reader.database, scope.space, reader.moment().version, wanted)
        if matches and reader.at.time is None:
            matches = count_uses(reader.database, scope, reader.kinds, to_micros(reader.clock()), matches)
        return reader.label(matches[0]) if matches else None

    @logged
    def records(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        kind: str | None = None,
        category: str | None = None,
        tags: str | Iterable[str] | None = None,
        text: str | None = None,
        target: str | None = None,
        chat: str | None = None,
        source: str | None = None,
        valid_at: Time | None = None,
        where: Mapping[str, object] | None = None,
    ) -> list[Record]:
        """List records in the order in which they were first written. All filters must hold.

        What is in quarantine is not among them, nor the notes of runs, nor, unless it is asked for, feedback.
        Linear in the records of the kind.

        Args:
            limit: at most so many, after the first `offset`.
            offset: how many of the first are left out.
            kind: a row of `holdfast.kinds`, such as "fact".
            category: the word for what they belong to.
            tags: of these, one is enough.
            text: stands in the text or the category, in any case of letters.
            target: what a fact is about ("user", "env"), or the compartment of a note ("session", "plan").
            chat: the chat that they were learned in.
            source: where they come from.
            valid_at: only what is true in the world at this time.
            where: a filter on `meta`, such as {"lang": "de", "stars": {"$gte": 4}}; see `docs/filters.md`.

        Raises:
            InvalidInput: an unknown kind, or a filter of the wrong type.

        """
        filters: RecordFilters = {"kind": kind, "category": category, "tags": tags, "text": text}
        filters |= {"target": target, "chat": chat, "source": source, "valid_at": valid_at, "where": where}
        reader = self._reader
        stored, passes = selection(reader.scope, reader.kinds, **filters)
        first = check_count(offset, "offset")
        end = MAX_COUNT if limit is None else min(first + check_count(limit, "limit"), MAX_COUNT)
        db, space = reader.database, reader.scope.space
        with db.one_read():
            every = records.iterate(db, space, reader.moment().version, stored)
            visible = (record for record in every if filters.get("kind") or record.kind != FEEDBACK)
            return list(map(reader.label, islice(filter(passes, visible), first, end)))

    @logged
    def conflicts(self, *, kind: str | None = None) -> list[ConflictingRecords]:
        """List the pairs of records that contradict each other and are both kept, the oldest first.

        One that somebody with more right, or a later statement, contradicts does not take the other's place.
        A pair is noted when its second record is stored; it ends when one of them is replaced, retracted or
        erased, ceases to be true, or is settled by `Memory.resolve`. Linear in the records of the kind.

        Args:
            kind: only records of this kind.

        Raises:
            InvalidInput: an unknown kind.

        """
        reader = self._reader
        kinds = tuple(reader.kinds) if kind is None else (policy(reader.kinds, kind).name,)
        db, scope, at = reader.database, reader.scope, reader.moment().version
        # Loaded by the first that asks.
        from holdfast.records import conflicts

        with db.one_read():
            now = reader.at.time or reader.clock()
            return conflicts.pairs(db, scope.space, at, kinds, agents_of(scope), now)

    @logged
    def changes(
        self, *, kind: str | None = None, id: str | None = None, limit: int | None = None
    ) -> list[Change]:
        """List what changed, the newest first: by whom, when, and the text before and after.

        Compactions, erasures, grants and rewinds are among them, as of their times; they are no versions, and
        `undo` passes them over, but for rewinds. The receipt of an erasure is its `erasure`.

        Args:
            kind: only records of this kind; "summary" for compactions, "erasure" for erasures, "grant" for
                grants and revocations; "branch" for rewinds, edits and switches of chats.
            id: only of this record, summary or erasure.
            limit: at most so many.

        Raises:
            InvalidInput: an unknown kind, or a negative limit.

        """
        reader = self._reader
        # In a tuple, as a value that cannot be hashed is refused as an unknown kind.
        is_other = kind in tuple(OTHER_CHANGES)
        if kind is not None and not is_other:
            policy(reader.kinds, kind)
        identity = None if id is None else check_name(id, "The id of a record")
        most = None if limit is None else check_count(limit, "limit")
        db, scope, until = reader.database, reader.scope, reader.at.time
        space, agents = scope.space, agents_of(scope)

        def is_shown(change: Change) -> bool:
            is_meant = identity in (None, change.id) and (agents is None or change.agent in agents)
            return is_meant and (until is None or change.at <= until)

        wanted: dict[str, Any] = {"kind": kind, "identity": identity, "agents": agents, "limit": most}
        at = reader.moment().version
        with db.one_read():
            written = [] if is_other else record_changes.read(db, space, at, **wanted)
            names_other = not identity or identity.startswith(("sum_", "era_", "gra_", "bra_"))
            read = tuple(OTHER_CHANGES) if names_other else ()
            others = [filter(is_shown, OTHER_CHANGES[key](db, space)) for key in read if kind in (None, key)]
            by_time = merge(written, *others, key=lambda change: change.at, reverse=True)
            return list(islice(by_time, MAX_COUNT if most is None else min(most, MAX_COUNT)))

    def version(self) -> int:
        """Return the number of the newest change of this space that is shown; 0 before the first."""
        reader = self._reader
        newest = records.version(reader.database, reader.scope.space)
        return min(newest, reader.moment().version)


class View(RecordReads):
    """What is known, read as of now or as of an earlier version. Made by `Memory.at`."""

    def __init__(self, reader: RecordReader) -> None:
        self._as_of = reader

    @property
    def _reader(self) -> RecordReader:
        return self._as_of

    @property
    def scope(self) -> Scope:
        """Whose memory is read."""
        return self._as_of.scope

    def __repr__(self) -> str:
        return f"View({self.scope}, version={self._as_of.moment().version})"


def _masked(reader: RecordReader, hits: Iterable[Hit]) -> list[Hit]:
    display = Display(reader.database, reader.scope)
    shown = display.mask(hits)
    display.keep()
    return shown
