"""How records are read, and recalled, as of now or as of an earlier version; nothing here writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast.errors import Denied, InvalidInput
from holdfast.records.draft import check_tags, policy, unknown_version
from holdfast.store import branches, erasure_receipts, grants, records, summaries
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.store.records import NOW, AsOf, RecordFilter
from holdfast.text.clean import clean
from holdfast.types import Record, Scope, Time, as_time, check_name, check_several, is_whole, to_time
from holdfast.types.where import Values, check_where

if TYPE_CHECKING:
    from typing import Unpack

    from holdfast.kinds import Kind
    from holdfast.records.options import RecallFilters, RecordFilters
    from holdfast.search import filters
    from holdfast.search.meaning import QueryVector
    from holdfast.search.query import Query
    from holdfast.search.search import Search
    from holdfast.store.database import Database
    from holdfast.types import Change, Hit, Hits


# Changes that are no versions of records.
OTHER_CHANGES: Mapping[str, Callable[[Database, str], Iterator[Change]]] = {
    "summary": summaries.changes,
    "erasure": erasure_receipts.changes,
    "grant": grants.changes,
    "branch": branches.changes,
}


@dataclass(frozen=True, slots=True)
class PointInTime:
    """An earlier version: the moment of each space, its time, and until when messages count."""

    moments: Mapping[str, AsOf] = field(default_factory=dict)
    time: datetime | None = None


def point_in_time(database: Database, scope: Scope, point: int | Time) -> PointInTime:
    """Return the version that `Memory.at` names, in the space and in those that are read beside it.

    Raises:
        InvalidInput: there is no such version.

    """
    space = scope.space
    with database.one_read():
        newest = records.version(database, space)
        if isinstance(point, datetime | str):
            written = to_micros(to_time(point, "version"))
            own = AsOf(records.version_at(database, space, written), until=written + 1)
        elif is_whole(point) and 0 <= point <= newest:
            own, written = records.as_of(database, space, point)
        else:
            raise unknown_version(point, newest)
        moments = {
            key: AsOf(records.version_at(database, key, written), until=written + 1) for key in scope.spaces
        }
    if own == AsOf(0, 0):
        moments = dict.fromkeys(moments, own)
    return PointInTime({**moments, space: own}, from_micros(written))


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Read the records of a scope, and recall, as of a moment; `RecordReads` has what a program calls."""

    database: Database
    scope: Scope
    kinds: Mapping[str, Kind]
    clock: Callable[[], datetime]
    search: Callable[[], Search]
    at: PointInTime
    embed_missing: Callable[[], str | None]

    def moment(self) -> AsOf:
        """Return the version and the message as of which the space is read."""
        return self.at.moments.get(self.scope.space, NOW)

    def label(self, record: Record) -> Record:
        """Return a record with the name of its space, where several are read."""
        scope = self.scope
        return replace(record, space=scope.reference(scope.space)) if scope.is_layered else record

    def check_filters(self, limit: int, wanted: RecallFilters) -> filters.Filters:
        """Return the filters of a recall, checked."""
        # numpy is loaded by the first recall.
        from holdfast.search import filters

        if (kinds := wanted.get("kinds")) is not None:
            known = (policy(self.kinds, kind) for kind in check_several(kinds, "kinds", "kinds"))
            wanted["kinds"] = [kind.name for kind in known]
        if wanted.get("valid_at") is None:
            wanted["valid_at"] = self.at.time or self.clock()
        zone = self.clock().tzinfo or UTC
        return filters.check(limit=limit, as_of=self.at.moments, zone=zone, **wanted)

    def vector_of(self, query: str, weight: float | None, wanted: filters.Filters) -> QueryVector | None:
        """Return the query as a vector; None for what has none, or as of an earlier version: scores stay."""
        from holdfast.search.filters import check_share
        from holdfast.search.fusion import WEIGHT

        share = WEIGHT if weight is None else check_share(weight, "meaning")
        if wanted.trust or self.at.moments or not isinstance(query, str):
            return None
        return self.search().meaning(self.scope, query, share)

    def find(
        self, query: Query, wanted: filters.Filters, near: QueryVector | None, kinds: Iterable[str] | None
    ) -> Hits:
        """Return the hits of a query, and count the use of those that expire without one."""
        hits = self.search().recall(self.scope, query, wanted, near, kinds)
        if self.at.time is None and not wanted.trust:
            count_hits(self.database, self.scope, self.kinds, to_micros(self.clock()), hits)
        return hits


def agents_of(scope: Scope) -> tuple[str, ...] | None:
    """Return the agents whose records a scope covers: its own and ""; None for all if it has none."""
    return (scope.agent, "") if scope.agent else None


def count_uses(
    database: Database, scope: Scope, kinds: Mapping[str, Kind], now: int, batch: list[Record]
) -> list[Record]:
    """Count a use of each record whose kind counts them, and return the records with their new counts."""
    counted = [record.id for record in batch if record.kind in kinds and kinds[record.kind].counts_use]
    if not counted:
        return batch
    try:
        records.count_use(database, scope.space, counted, now)
    except Denied:
        # Who may only read leaves no trace in a space of others.
        return batch
    return [
        replace(old, uses=old.uses + 1, used=from_micros(now)) if old.id in counted else old for old in batch
    ]


def count_hits(
    database: Database, scope: Scope, kinds: Mapping[str, Kind], now: int, hits: Iterable[Hit]
) -> None:
    """Count a use of each record that was recalled, where its kind lets expire what is not used."""
    counted = {name for name, kind in kinds.items() if kind.expires_unused}
    own = ("", scope.reference(scope.space))
    ids = {hit.id for hit in hits if hit.kind in counted and hit.space in own}
    if ids and not database.read_only:
        # Who may only read leaves no trace in a space of others.
        with suppress(Denied):
            records.count_use(database, scope.space, list(ids), now)


def selection(
    scope: Scope, kinds: Mapping[str, Kind], **filters: Unpack[RecordFilters]
) -> tuple[RecordFilter, Callable[[Record], bool]]:
    """Return the filters that the store applies, and a test of a record by all others.

    Raises:
        InvalidInput: an unknown kind, or a filter of the wrong type.

    """
    kind, target, chat = filters.get("kind"), filters.get("target"), filters.get("chat")
    category, text, source = filters.get("category"), filters.get("text"), filters.get("source")
    names = None if kind is None else (policy(kinds, kind).name,)
    of_target = None if target is None else check_name(target, "target", empty=True)
    of_chat = None if chat is None else check_name(chat, "The id of a chat")
    stored = RecordFilter(kinds=names, agents=agents_of(scope), target=of_target, chat=of_chat)
    for name, value in (("category", category), ("text", text), ("source", source)):
        if not isinstance(value, str | None):
            raise InvalidInput(f"`{name}` must be text, not {type(value).__name__}.", "Pass a string.")
    tags = filters.get("tags")
    any_of = None if tags is None else set(check_tags(tags))
    part = None if text is None else clean(text).strip().casefold()
    time, by_metadata = as_time(filters.get("valid_at"), "valid_at"), check_where(filters.get("where"))

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
