"""Reads of records, and recall, as of now or as of an earlier version; nothing here writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.errors import Denied, InvalidInput, shown
from holdfast.kinds import FEEDBACK
from holdfast.records.draft import check_tags, policy
from holdfast.records.point_in_time import PointInTime
from holdfast.safety.guard import Secrets, is_masked, masked_hit
from holdfast.store import erasure_receipts, grants, record_changes, records, summaries
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.store.records import NOW, AsOf, RecordFilter
from holdfast.text.clean import clean
from holdfast.types import (
    MAX_COUNT,
    Hit,
    Hits,
    Prefer,
    Record,
    Scope,
    Time,
    as_time,
    check_count,
    check_flag,
    check_name,
)
from holdfast.types.where import Values, check_where

if TYPE_CHECKING:
    from typing import Unpack

    from holdfast.kinds import Kind
    from holdfast.records.options import RecallFilters, RecordFilters
    from holdfast.search import filters
    from holdfast.search.meaning import QueryVector
    from holdfast.search.search import Search
    from holdfast.store.database import Database
    from holdfast.types import Change, Explanation


# What is no version of a record, but a change as well.
_OTHER_CHANGES: Mapping[str, Callable[[Database, str], Iterator[Change]]] = {
    "summary": summaries.changes,
    "erasure": erasure_receipts.changes,
    "grant": grants.changes,
}


class View:
    """What is known, read as of now or as of an earlier version. Made by `Memory.at`."""

    def __init__(
        self,
        database: Database,
        scope: Scope,
        kinds: Mapping[str, Kind],
        clock: Callable[[], datetime],
        search: Callable[[], Search],
        at: PointInTime | None = None,
        embed_missing: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._database = database
        self._scope = scope
        self._kinds = kinds
        self._clock = clock
        self._search = search
        self._at = at or PointInTime()
        self._embed_missing = embed_missing

    @property
    def scope(self) -> Scope:
        """Whose memory is read."""
        return self._scope

    def _moment(self) -> AsOf:
        return self._at.moments.get(self.scope.space, NOW)

    def version(self) -> int:
        """Return the number of the newest change of this space that the view shows; 0 before the first."""
        newest = records.version(self._database, self.scope.space)
        return min(newest, self._moment().version)

    def get(self, what: str) -> Record | None:
        """Return a record by its id, or the one text of a kind, such as "profile"; None if there is none.

        The profile and the soul are those that prompts show: this agent's own, else the one of no agent, else
        the one that the tenant shares. Asking for a note counts as a use of it. A record in quarantine is
        found by its id.

        Raises:
            InvalidInput: it is not text.

        """
        check_name(what, "The id of a record")
        scope, at = self.scope, self._moment().version
        kind = self._kinds.get(what)
        if kind is not None:
            if kind.one_per != "agent":
                raise InvalidInput(f"There may be many of the kind {what!r}.", "Use `records(kind=…)`.")
            return self._one_text(what)
        wanted = RecordFilter(
            ids=(what,), agents=agents_of(self.scope), trust=("trusted", "released", "quarantined")
        )
        found = records.read(self._database, scope.space, at, wanted)
        if found and self._at.time is None:
            found = count_uses(self._database, scope, self._kinds, to_micros(self._clock()), found)
        return self._labelled(found[0]) if found else None

    def _labelled(self, record: Record) -> Record:
        """Return a record with the name of its space, where several are read."""
        scope = self._scope
        return replace(record, space=scope.reference(scope.space)) if scope.is_layered else record

    def records(
        self, *, limit: int | None = None, offset: int = 0, **filters: Unpack[RecordFilters]
    ) -> list[Record]:
        """List records in the order in which they were first written. All filters must hold.

        What is in quarantine is not among them, nor the notes of runs, nor, unless it is asked for, feedback.
        Linear in the records of the kind.

        Args:
            limit: at most so many, after the first `offset`.
            offset: how many of the first are left out.
            filters: see `RecordFilters`.

        Raises:
            InvalidInput: an unknown kind, or a filter of the wrong type.

        """
        stored, passes = selection(self.scope, self._kinds, **filters)
        first = check_count(offset, "offset")
        end = MAX_COUNT if limit is None else min(first + check_count(limit, "limit"), MAX_COUNT)
        db, space = self._database, self.scope.space
        with db.one_read():
            every = records.iterate(db, space, self._moment().version, stored)
            asked = (one for one in every if filters.get("kind") or one.kind != FEEDBACK)
            return list(map(self._labelled, islice(filter(passes, asked), first, end)))

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        per_kind: int | None = None,
        min_score: float = 0.0,
        prefer: Prefer | None = None,
        secrets: Secrets = "mask",
        meaning: float | None = None,
        fresh: bool = False,
        **wanted: Unpack[RecallFilters],
    ) -> Hits:
        """Find the messages, summaries and records that answer a question, best first.

        No language model is asked. With an embedder what is near in meaning is found as well, but for `at`.
        Everything that was stored before the call is found, by whichever process, and what the tenant shares
        (the space of the empty user); of records those that are current and true in the world now.

        Args:
            query: a question or some words, in any language; all characters of it are plain text.
            limit: at most so many hits.
            per_kind, min_score, prefer, secrets, meaning, fresh, wanted: see `RecallOptions`.

        Raises:
            InvalidInput: the query is blank, a filter is of the wrong kind, or `fresh` without an embedder.

        """
        masked, each = is_masked(secrets), None
        if per_kind is not None:
            wanted["sources"], limit, each = ("record",), check_count(per_kind, "per_kind"), self._kinds
        checked = self._filters(limit, min_score, prefer, wanted)
        # numpy is loaded by the first recall.
        from holdfast.search.query import parse

        parsed = parse(query)
        near = self._meaning(query, meaning, checked) if limit else None
        behind = self._embed_missing() if check_flag(fresh, "fresh") else None
        hits = self._search().recall(self.scope, parsed, checked, near, each)
        return Hits(map(masked_hit, hits) if masked else hits, behind or hits.degraded)

    def explain(
        self,
        query: str,
        what: Hit | str,
        *,
        limit: int = 10,
        min_score: float = 0.0,
        prefer: Prefer | None = None,
        secrets: Secrets = "mask",
        meaning: float | None = None,
        **wanted: Unpack[RecallFilters],
    ) -> Explanation:
        """Explain why a document is a hit of a query, or why not: its words, its rank, what excludes it.

        Costs as much as a recall with a limit as high as its rank.

        Args:
            query: as that of the recall.
            what: a hit, a message as `chat#seq` or, of another space, `space|chat#seq`, or the id of a record
                or a summary.
            limit: as that of the recall.
            min_score, prefer, secrets, meaning, wanted: see `ExplainOptions`.

        Raises:
            InvalidInput: the query is blank, a filter is of the wrong kind, or there is no such document in
                this scope.

        """
        masked = is_masked(secrets)
        # numpy is loaded by the first recall.
        from holdfast.search.explain import explain

        checked = self._filters(limit, min_score, prefer, wanted)
        near = self._meaning(query, meaning, checked)
        found = explain(self._search(), self.scope, query, what, checked, near)
        if not masked:
            return found
        above = tuple(map(masked_hit, found.outranked_by))
        return replace(found, hit=masked_hit(found.hit), outranked_by=above)

    def _filters(
        self, limit: int, min_score: float, prefer: Prefer | None, wanted: RecallFilters
    ) -> filters.Filters:
        """Return the filters of a recall, checked."""
        # numpy is loaded by the first recall.
        from holdfast.search import filters

        if (kinds := wanted.get("kinds")) is not None:
            wanted["kinds"] = self._known_kinds(kinds)
        if wanted.get("valid_at") is None:
            wanted["valid_at"] = self._at.time or self._clock()
        moments = self._at.moments
        return filters.check(limit=limit, min_score=min_score, prefer=prefer, as_of=moments, **wanted)

    def _meaning(self, query: str, weight: float | None, wanted: filters.Filters) -> QueryVector | None:
        """Return the query as a vector; None for what has none, or as of an earlier version: scores stay."""
        from holdfast.search.filters import check_share
        from holdfast.search.fusion import WEIGHT

        share = WEIGHT if weight is None else check_share(weight, "meaning")
        if wanted.trust or self._at.moments or not isinstance(query, str):
            return None
        return self._search().meaning(self.scope, query, share)

    def _known_kinds(self, kinds: Iterable[str]) -> list[str]:
        if not isinstance(kinds, Iterable):
            raise InvalidInput(f"`kinds` is {shown(kinds)}.", "Pass a kind, or a list of kinds.")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return [policy(self._kinds, kind).name for kind in kinds]

    def _one_text(self, kind: str) -> Record | None:
        database, moments = self._database, self._at.moments
        with database.one_read():
            return records.read_effective(database, self.scope, kind, self._at.time or self._clock(), moments)

    def changes(
        self,
        *,
        kind: str | None = None,
        id: str | None = None,
        limit: int | None = None,
    ) -> list[Change]:
        """List what changed, the newest first: by whom, when, and the text before and after.

        Compactions, erasures and grants are among them, as of their times; they are no versions, and `undo`
        passes them over. The receipt of an erasure is its `erasure`.

        Args:
            kind: only records of this kind; "summary" for compactions, "erasure" for erasures, "grant" for
                grants and revocations.
            id: only of this record, summary or erasure.
            limit: at most so many.

        Raises:
            InvalidInput: an unknown kind, or a negative limit.

        """
        # In a tuple, as a value that cannot be hashed is refused as an unknown kind.
        if kind is not None and kind not in tuple(_OTHER_CHANGES):
            policy(self._kinds, kind)
        identity = None if id is None else check_name(id, "The id of a record")
        most = None if limit is None else check_count(limit, "limit")
        db, space, agents, until = self._database, self.scope.space, agents_of(self.scope), self._at.time

        def is_shown(change: Change) -> bool:
            is_meant = identity in (None, change.id) and (agents is None or change.agent in agents)
            return is_meant and (until is None or change.at <= until)

        with db.one_read():
            written = self._written(kind, identity, most)
            is_other = not identity or identity.startswith(("sum_", "era_", "gra_"))
            read = tuple(_OTHER_CHANGES) if is_other else ()
            others = [filter(is_shown, _OTHER_CHANGES[one](db, space)) for one in read if kind in (None, one)]
            by_time = merge(written, *others, key=lambda change: change.at, reverse=True)
            return list(islice(by_time, MAX_COUNT if most is None else min(most, MAX_COUNT)))

    def _written(self, kind: str | None, identity: str | None, limit: int | None) -> list[Change]:
        """Return the changes of records; they are not read where only receipts are meant."""
        if kind in tuple(_OTHER_CHANGES):
            return []
        at, agents = self._moment().version, agents_of(self.scope)
        return record_changes.read(
            self._database, self.scope.space, at, kind=kind, identity=identity, agents=agents, limit=limit
        )

    def __repr__(self) -> str:
        return f"View({self.scope}, version={self._moment().version})"


def agents_of(scope: Scope) -> tuple[str, ...] | None:
    """Return the agents whose records a scope covers: its own and ""; None for all if it has none."""
    return (scope.agent, "") if scope.agent else None


def count_uses(
    database: Database, scope: Scope, kinds: Mapping[str, Kind], now: int, found: list[Record]
) -> list[Record]:
    """Count a use of each record whose kind counts them, and return the records with their new counts."""
    counted = [one.id for one in found if one.kind in kinds and kinds[one.kind].counts_use]
    if not counted:
        return found
    try:
        records.count_use(database, scope.space, counted, now)
    except Denied:
        # Who may only read leaves no trace in a space of others.
        return found
    return [
        replace(one, uses=one.uses + 1, used=from_micros(now)) if one.id in counted else one for one in found
    ]


def selection(
    scope: Scope,
    kinds: Mapping[str, Kind],
    *,
    kind: str | None = None,
    category: str | None = None,
    tags: Iterable[str] | None = None,
    text: str | None = None,
    target: str | None = None,
    chat: str | None = None,
    source: str | None = None,
    valid_at: Time | None = None,
    where: Mapping[str, object] | None = None,
) -> tuple[RecordFilter, Callable[[Record], bool]]:
    """Return the filters that the store applies, and a test of a record by all others; see `RecordFilters`.

    Raises:
        InvalidInput: an unknown kind, or a filter of the wrong type.

    """
    names = None if kind is None else (policy(kinds, kind).name,)
    of_target = None if target is None else check_name(target, "target", empty=True)
    of_chat = None if chat is None else check_name(chat, "The id of a chat")
    stored = RecordFilter(kinds=names, agents=agents_of(scope), target=of_target, chat=of_chat)
    _check_texts(category=category, text=text, source=source)
    any_of = None if tags is None else set(check_tags(tags))
    part = None if text is None else clean(text).strip().casefold()
    time, by_metadata = as_time(valid_at, "valid_at"), check_where(where)

    def passes(record: Record) -> bool:
        return (
            category in (None, record.category)
            and source in (None, record.source)
            and (any_of is None or not any_of.isdisjoint(record.tags))
            and (part is None or part in record.text.casefold() or part in record.category.casefold())
            and (time is None or record.valid(time))
            and (by_metadata is None or by_metadata.passes(Values(record.meta)))
        )

    return stored, passes


def _check_texts(**values: object) -> None:
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"`{name}` must be text, not {type(value).__name__}.", "Pass a string.")
