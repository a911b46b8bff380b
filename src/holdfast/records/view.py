"""What is known, as of now or as of an earlier version: all reads of records and recall, and nothing that writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput, shown
from holdfast.kinds import FIL
from holdfast.logs import logged
from holdfast.records.draft import check_tags, policy, unknown_version
from holdfast.safety.guard import Secrets, is_masked, masked_hit
from holdfast.store import erasure_receipts, record_changes, records, summaries
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.store.records import NOW, AsOf, RecordFilter
from holdfast.text.clean import clean
from holdfast.types import (
    MAX_COUNT,
    Change,
    Hit,
    Record,
    Role,
    Scope,
    Source,
    Time,
    as_time,
    check_count,
    check_name,
    is_whole,
    to_time,
)

if TYPE_CHECKING:
    from holdfast.runtime import Opened
    from holdfast.store.database import Database


# What is no version of a record, but a change as well.
_BESIDE: Mapping[str, Callable[[Database, str], Iterator[Change]]] = {
    "summary": summaries.changes,
    "erasure": erasure_receipts.changes,
}


@dataclass(frozen=True, slots=True)
class At:
    """An earlier version: its moment in each space, its time, and until when messages count."""

    moments: Mapping[str, AsOf] = field(default_factory=dict)
    time: datetime | None = None


class View:
    """Read what is known. Made by `Memory.at`; a `Memory` itself is the view of now."""

    def __init__(self, opened: Opened, scope: Scope, at: At) -> None:
        self._open = opened
        self._bound = scope
        self._at = at

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        return self._bound

    def _moment(self) -> AsOf:
        return self._at.moments.get(self.scope.space, NOW)

    def _agents(self) -> tuple[str, ...] | None:
        """Whose records this handle covers: the agent's own and those of no agent; all, if it has no agent."""
        return (self.scope.agent, "") if self.scope.agent else None

    def _known_kinds(self, kinds: Iterable[str]) -> list[str]:
        if not isinstance(kinds, Iterable):
            raise InvalidInput(f"`kinds` is {shown(kinds)}.", "Pass a kind, or a list of kinds.")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return [policy(self._open.kinds, kind).name for kind in kinds]

    def version(self) -> int:
        """Give the number of the newest change of this space that the view shows; 0 before the first."""
        newest = records.version(self._open.database, self.scope.space)
        return min(newest, self._moment().version)

    @logged
    def get(self, what: str) -> Record | None:
        """Read a record by its id, or the one of a kind of which there is one, such as "profile"; None if there is none.

        The profile and the soul are those that prompts show: this agent's own, else the one of no agent, else the one that
        the tenant shares. Asking for a note counts as a use of it. A record in quarantine is found by its id.

        Raises:
            InvalidInput: it is not text.

        """
        check_name(what, "The id of a record")
        scope, at = self.scope, self._moment().version
        kind = self._open.kinds.get(what)
        if kind is not None:
            if kind.one_per != "agent":
                raise InvalidInput(f"There may be many of the kind {what!r}.", "Use `records(kind=…)`.")
            return self._one(what)
        wanted = RecordFilter(
            ids=(what,), agents=self._agents(), trust=("trusted", "released", "quarantined")
        )
        found = records.read(self._open.database, scope.space, at, wanted)
        if found and self._at.time is None:
            found = self._open.used(scope, found)
        return found[0] if found else None

    @logged
    def records(
        self,
        *,
        kind: str | None = None,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        text: str | None = None,
        target: str | None = None,
        chat: str | None = None,
        source: str | None = None,
        valid_at: Time | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Record]:
        """List records in the order in which they were first written. All filters must hold.

        What is in quarantine is not among them, nor what a run noted for itself. Linear in the records of the kind.

        Args:
            kind: only of this kind.
            category: only of this category.
            tags: only with one of these tags at least.
            text: only with this in the text or the category, in any case of letters.
            target: only about this ("user", "env"), or in this compartment of notes ("session", "plan").
            chat: only those learned in this session.
            source: only from this source.
            valid_at: only what is true in the world at this time; None lists what has passed as well.
            limit: at most so many.
            offset: leave out so many of the first.

        Raises:
            InvalidInput: an unknown kind, or a filter of the wrong type.

        """
        if kind is not None:
            policy(self._open.kinds, kind)
        passes = selection(category=category, tags=tags, text=text, source=source, valid_at=valid_at)
        wanted = RecordFilter(
            kinds=None if kind is None else (kind,),
            agents=self._agents(),
            target=None if target is None else check_name(target, "target", empty=True),
            chat=None if chat is None else check_name(chat, "The id of a chat"),
        )
        first = check_count(offset, "offset")
        last = None if limit is None else first + check_count(limit, "limit")
        db = self._open.database
        with db.one_read():
            found = filter(passes, records.iterate(db, self.scope.space, self._moment().version, wanted))
            return list(
                islice(found, min(first, MAX_COUNT), MAX_COUNT if last is None else min(last, MAX_COUNT))
            )

    @logged
    def recall(
        self,
        query: str,
        *,
        sources: Iterable[Source] | None = None,
        chat: str | None = None,
        roles: Sequence[Role] | None = None,
        kinds: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        valid_at: Time | None = None,
        limit: int = 10,
        min_score: float = 0.0,
        secrets: Secrets = "mask",
    ) -> list[Hit]:
        """Find the messages, summaries and records that answer a question, best first, without a model.

        Everything that was acknowledged before the call is found, whichever process stored it; of records those that
        are current and true in the world now. What the tenant shares (the space of the empty user) is searched as
        well. All characters of the query are plain text. Takes a few milliseconds per 100,000 messages.

        Args:
            query: a question or some words, in any language.
            sources: some of "message", "summary" and "record"; all of them by default. A summary counts for less than a turn
                that says the same, and `Chat.expand` leads from it to the turns; a view of the past has none.
            chat: only this session, and what was learned in it.
            roles: only messages, of these roles.
            kinds: only records, of these kinds.
            tags: only records, with one of these tags at least.
            since: only what was said or written at this time or later; here and below a datetime, or ISO 8601 text.
            until: only what was said or written before this time.
            valid_at: records that are true in the world at this time, in place of now.
            limit: at most so many hits.
            min_score: only hits with at least this score, 0 to 1.
            secrets: "mask" puts what it is in place of each credential in a hit; "show" leaves hits as they were said.

        Raises:
            InvalidInput: the query is blank, or a filter is of the wrong kind.

        """
        masked = is_masked(secrets)
        # numpy is loaded by the first recall.
        from holdfast.search import filters

        checked = filters.check(
            sources=sources,
            chat=chat,
            roles=roles,
            kinds=None if kinds is None else self._known_kinds(kinds),
            tags=tags,
            since=since,
            until=until,
            valid_at=self._at.time or self._open.clock() if valid_at is None else valid_at,
            limit=limit,
            min_score=min_score,
            as_of=self._at.moments,
        )
        hits = self._open.search.recall(self.scope, query, checked)
        return list(map(masked_hit, hits)) if masked else hits

    def recall_fil(self, query: str, limit_per_kind: int = 5) -> dict[str, list[Hit]]:
        """Find findings, insights and lessons, grouped by kind, each best first; every kind is a key.

        Raises:
            InvalidInput: the query is blank, or the limit is negative.

        """
        # numpy is loaded by the first recall
        from holdfast.search import filters
        from holdfast.search import query as question

        known = filters.check(
            sources=("record",),
            valid_at=self._at.time or self._open.clock(),
            limit=limit_per_kind,
            as_of=self._at.moments,
        )
        asked = question.parse(query)
        with self._open.search.one_read(self.scope, known) as read:
            return {kind: read.find(asked, replace(known, kinds=frozenset((kind,)))) for kind in FIL}

    def profile(self) -> str:
        """Give the profile of the user, "" if there is none.

        It is the one that prompts show: this agent's own, else the one of no agent, else the one that the tenant shares.
        """
        return self._text_of("profile")

    def soul(self) -> str:
        """Give what the agent is to this user, "" if that was not said; chosen as the profile is."""
        return self._text_of("soul")

    def constraints(self) -> list[Record]:
        """List what always holds, the oldest first."""
        return self.records(kind="constraint")

    def _text_of(self, kind: str) -> str:
        found = self._one(kind)
        return found.text if found else ""

    def _one(self, kind: str) -> Record | None:
        scope, opened = self.scope, self._open
        own, shared = (self._at.moments.get(space, NOW) for space in (scope.space, scope.shared.space))
        with opened.database.one_read():
            return records.read_effective(
                opened.database, scope, kind, self._at.time or opened.clock(), own, shared
            )

    @logged
    def changes(
        self,
        *,
        kind: str | None = None,
        id: str | None = None,
        limit: int | None = None,
    ) -> list[Change]:
        """List what changed, the newest first: by whom, when, and the text before and after.

        Compactions and erasures are among them, as of their times; they are no versions, and `undo` passes them over.

        Args:
            kind: only records of this kind; "summary" for compactions, "erasure" for erasures.
            id: only of this record, summary or erasure.
            limit: at most so many.

        Raises:
            InvalidInput: an unknown kind, or a negative limit.

        """
        if kind is not None and kind not in tuple(_BESIDE):  # what cannot be hashed is no kind either
            policy(self._open.kinds, kind)
        identity = None if id is None else check_name(id, "The id of a record")
        most = None if limit is None else check_count(limit, "limit")
        db, space, agents, until = self._open.database, self.scope.space, self._agents(), self._at.time

        def is_shown(change: Change) -> bool:
            is_meant = identity in (None, change.id) and (agents is None or change.agent in agents)
            return is_meant and (until is None or change.at <= until)

        with db.one_read():
            written = record_changes.read(
                db, space, self._moment().version, kind=kind, identity=identity, agents=agents, limit=most
            )
            read = () if identity and not identity.startswith(("sum_", "era_")) else tuple(_BESIDE)
            beside = [filter(is_shown, _BESIDE[one](db, space)) for one in read if kind in (None, one)]
            by_time = merge(written, *beside, key=lambda change: change.at, reverse=True)
            return list(islice(by_time, MAX_COUNT if most is None else min(most, MAX_COUNT)))

    def __repr__(self) -> str:
        return f"View({self.scope}, version={self._moment().version})"


def place(opened: Opened, scope: Scope, point: int | Time) -> At:
    """Find the version that `Memory.at` names, in the space and in the one that its tenant shares.

    Raises:
        InvalidInput: there is no such version.

    """
    db, space, shared = opened.database, scope.space, scope.shared.space
    with db.one_read():
        newest = records.version(db, space)
        if isinstance(point, datetime | str):
            written = to_micros(to_time(point, "version"))
            own = AsOf(records.version_at(db, space, written), until=written + 1)
        elif is_whole(point) and 0 <= point <= newest:
            own, written = records.as_of(db, space, point)
        else:
            raise unknown_version(point, newest)
        beside = AsOf(records.version_at(db, shared, written), until=written + 1)
    if own == AsOf(0, 0):
        beside = own
    return At({shared: beside, space: own}, from_micros(written))


def selection(
    *,
    category: str | None = None,
    tags: Iterable[str] | None = None,
    text: str | None = None,
    source: str | None = None,
    valid_at: Time | None = None,
) -> Callable[[Record], bool]:
    """Make the test that a record passes if it meets all conditions; of tags, one is enough.

    Raises:
        InvalidInput: a condition is of the wrong type.

    """
    for value, what in ((category, "category"), (text, "text"), (source, "source")):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"`{what}` must be text, not {type(value).__name__}.", "Pass a string.")
    any_of = None if tags is None else set(check_tags(tags))
    part = None if text is None else clean(text).strip().casefold()
    time = as_time(valid_at, "valid_at")

    def passes(record: Record) -> bool:
        return (
            (category is None or record.category == category)
            and (any_of is None or not any_of.isdisjoint(record.tags))
            and (part is None or part in record.text.casefold() or part in record.category.casefold())
            and (source is None or record.source == source)
            and (time is None or record.valid(time))
        )

    return passes
