"""From drafts to records: check them against the policy of their kind, scan, compare and store them.

All new texts are written here, each call in one transaction. What a comparison needs is read before it, and
compared again if another writer was faster, so no lock is held while texts are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from holdfast.dedup import SEVERAL, Relation, relate
from holdfast.errors import Conflict
from holdfast.kinds import Kind
from holdfast.records.draft import (
    MAX_TAGS,
    OWN_META,
    RecordDraft,
    check_expected,
    check_room,
    content_of,
    has_right,
    prepare,
    quarantine_reason,
    writer_name,
)
from holdfast.records.reader import agents_of
from holdfast.store import learned_texts, record_changes, record_rows, records, runs, snapshots
from holdfast.store.database import retry_transaction
from holdfast.store.message_rows import from_micros
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter, SpaceState
from holdfast.types import CONFLICT, MAX_COUNT, Record, Scope, Wording, Writer

if TYPE_CHECKING:
    from holdfast.store.database import Database

# Records that a new text is compared with, those that share most with it.
COMPARED = 4
# The same for a kind whose texts are always compared: 16 recognise as many repetitions as all records would.
NEAREST = 16
# Of those who say a thing again, the newest; all are named by the versions.
_SOURCES = 20
# Of two concurrent writers one always succeeds, so only ever more of them reach this optimistic-retry limit.
_MAX_ATTEMPTS = 1_000

# The fields of a record that another text leaves as they are, and those that it may set.
_KEPT = ("id", "kind", "version", "target", "agent", "run", "uses", "used", "replaces", "pinned")
_FILLED = ("category", "tags", "meta", "priority", "source")

Compared = TypeVar("Compared")
Written = TypeVar("Written")


class _Candidate(NamedTuple):
    """A text that is to be stored, and the record that it relates to.

    `earlier` is the record learned from the same words of the same source before, `settled` a record in
    conflict with the same text, which a writer with more right now confirms.
    """

    record: Record
    earlier: Record | None = None
    relation: Relation | None = None
    other: Record | None = None
    settled: Record | None = None


@dataclass(frozen=True, slots=True)
class Intake:
    """The way into the records of a scope, for one writer.

    `similar` finds the records of the same kind and target that share most with a text, and how far each
    is nearer to it in meaning than others are. The prompts of `chat` show at once what is written. `throttle`
    is called before each comparison.
    """

    database: Database
    scope: Scope
    kinds: Mapping[str, Kind]
    now: int
    by: Writer
    similar: Callable[[Record, int], list[tuple[Record, float]]]
    chat: str = ""
    throttle: Callable[[], None] = lambda: None

    @property
    def space(self) -> str:
        """The space that is written."""
        return self.scope.space

    @property
    def agents(self) -> tuple[str, ...] | None:
        """The agents whose records may be changed; see `agents_of`."""
        return agents_of(self.scope)

    @retry_transaction
    def remember(
        self,
        drafts: Sequence[RecordDraft],
        *,
        merge: bool | None = None,
        expected: int | None = None,
        also: Callable[[Writing], object] | None = None,
        beside: Callable[[SpaceState], Callable[[Writing], object]] | None = None,
    ) -> list[Record]:
        """Store new texts in one transaction, and return what they became.

        `also` is called in it before anything is written, and what it writes is stored with the texts.
        `beside` is called when they are compared, and what it returns after `also`.

        Raises:
            InvalidInput, Denied, Conflict: one cannot be accepted, or another version than `expected` is
                stored; nothing was stored. So it is with what `also` raises.

        """
        ready = [prepare(draft, self.kinds, self.by) for draft in drafts]
        merged = [self.kinds[record.kind].merge if merge is None else merge for record in ready]

        steps = [also] if also else []

        def compare(seen: SpaceState) -> list[_Candidate]:
            steps[bool(also) :] = [beside(seen)] if beside else []
            return [self._candidate(record, merge=wish) for record, wish in zip(ready, merged, strict=True)]

        def write(changes: Writing, candidates: Sequence[_Candidate]) -> list[Record]:
            for step in steps:
                step(changes)
            written: list[Record] = []
            for candidate in candidates:
                written.append(self._store(changes, candidate, written, expected))
            return written

        if beside or any(merged) or any(map(self._is_learned, ready)):
            return self.write_compared(compare, write)
        with self.writing() as changes:
            return write(changes, list(map(_Candidate, ready)))

    def is_new(self, draft: RecordDraft) -> bool:
        """Return whether a text would be stored: it is not known, nor learned from the same words before."""
        _, earlier, relation, *_ = self._candidate(prepare(draft, self.kinds, self.by), merge=True)
        return earlier is None and (relation is None or relation.kind != "duplicate")

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Open a transaction for changes that compare nothing."""
        with record_changes.writing(self.database, self.space, self.now) as changes:
            yield changes
            self._show(changes)

    def _show(self, changes: Writing) -> None:
        """Advance the snapshot of the chat to what was written."""
        if self.chat:
            snapshots.follow(changes.tx, self.scope, self.chat, changes.version, self.now)

    def write_compared(
        self, compare: Callable[[SpaceState], Compared], write: Callable[[Writing, Compared], Written]
    ) -> Written:
        """Compare without a lock, then write in one transaction; start again if the space changed in between.

        Raises:
            Conflict: the space changed in each of the attempts.

        """
        for _ in range(_MAX_ATTEMPTS):
            seen = records.space_state(self.database, self.space)
            compared = compare(seen)
            with record_changes.writing(self.database, self.space, self.now) as changes:
                if changes.seen == seen:
                    written = write(changes, compared)
                    self._show(changes)
                    return written
        raise Conflict("Other writers keep changing this memory.", "Try again.")

    # Comparing

    def _candidate(self, record: Record, *, merge: bool) -> _Candidate:
        """Compare a text with what was learned from the same words, then with what it may replace."""
        if self._is_learned(record) and (earlier := self._learned_before(record)) is not None:
            return _Candidate(record, earlier)
        if not merge or record.trust == "quarantined" or self.kinds[record.kind].one_per:
            return _Candidate(record)
        self.throttle()
        return self._relate(record)

    def _is_learned(self, record: Record) -> bool:
        """Return whether a text was learned from a source that may be read again."""
        has_source = bool(record.chat or record.source)
        return self.by == "reflect" and has_source and not self.kinds[record.kind].one_per

    def _learned_before(self, record: Record) -> Record | None:
        """Return what was learned from these words before: what was changed or retracted since stays so."""
        known = learned_texts.find(self.database, self.space, record)
        return known or self._same_in(record, records.former_versions(self.database, self.space, record))

    def _relate(self, record: Record) -> _Candidate:
        rules = self.kinds[record.kind]
        if not rules.cap:
            near = self.similar(record, NEAREST if rules.merge else COMPARED)
            now = from_micros(self.now)
            time = max(record.at or now, now)
            weaker = [old for old, _ in near if CONFLICT in old.flags and has_right(old.by, self.by) < 0]
            ended = [old for old, _ in near if old.until is not None and old.until <= time]
            near = [(old, degree) for old, degree in near if old not in (*weaker, *ended)]
            texts, prominence = [old.text for old, _ in near], [degree for _, degree in near]
            relation = relate(record.text, texts, rules.thresholds, prominence)
            other = relation.choose([old for old, _ in near])
            if relation.why == SEVERAL:
                other = max(self._rivals(record, [old for old, _ in near]), key=_right_of, default=other)
            elif relation.kind == "update" and record.at is not None:
                later = [old.at for old in self._rivals(record, ended) if old.at and old.at > record.at]
                record = replace(record, until=min(filter(None, (record.until, *later)), default=None))
            # What is over is no value that another one takes the place of, but who may say how long it holds
            # may say it again.
            ended = [old for old in ended if has_right(self.by, old.by) >= 0]
            if relation.kind not in ("duplicate", "update") and (again := self._same_in(record, ended)):
                relation, other = Relation("duplicate", 0, "it holds again"), again
            return _Candidate(record, None, relation, other, self._same_in(record, weaker))
        # A cap keeps them few: all are compared, also those that share no word.
        agents = tuple(dict.fromkeys((self.scope.agent, "")))
        rows = records.current_texts(
            self.database, self.space, record.kind, record.target, agents, record.run
        )
        rows = [row for row in rows if record.kind != "note" or row[1] == record.chat]
        relation = relate(record.text, [row[2] for row in rows], rules.thresholds)
        row = relation.choose(rows)
        versions = records.by_versions(self.database, self.space, (row[0],)) if row else {}
        return _Candidate(record, None, relation, next(iter(versions.values()), None))

    def _rivals(self, record: Record, others: Sequence[Record]) -> list[Record]:
        """Return the records whose value a text changes."""
        limits = self.kinds[record.kind].thresholds
        return [other for other in others if relate(record.text, [other.text], limits).kind == "update"]

    def _same_in(self, record: Record, others: Sequence[Record]) -> Record | None:
        """Return the record among others that says the same as a text."""
        if not others:
            return None
        relation = relate(record.text, [other.text for other in others], self.kinds[record.kind].thresholds)
        return relation.choose(others) if relation.kind == "duplicate" else None

    def _among(self, candidate: _Candidate, written: Sequence[Record]) -> _Candidate:
        """Compare a text with those of the same call as well, which count more than stored ones."""
        record, _, relation, other, _ = candidate
        if relation is None:
            return candidate
        newest = {new.id: new for new in written}
        same = [
            new
            for new in newest.values()
            if (new.kind, new.target, new.retracted) == (record.kind, record.target, False)
            and new.trust != "quarantined"
        ]
        # An earlier text of this call may have changed what this one was compared with.
        is_changed = other is not None and other.id in newest
        if not same or (relation.kind == "duplicate" and not is_changed):
            return candidate
        here = relate(record.text, [new.text for new in same], self.kinds[record.kind].thresholds)
        beside = here.choose(same)
        if beside is None and not is_changed:
            return candidate
        return candidate._replace(relation=here, other=beside)

    # Storing

    def _store(
        self, changes: Writing, candidate: _Candidate, written: Sequence[Record], expected: int | None
    ) -> Record:
        if candidate.earlier is not None:
            return candidate.earlier
        stored = self._place(changes, self._among(candidate, written), expected)
        if self._is_learned(candidate.record):
            learned_texts.note(changes.tx, self.space, candidate.record, stored)
        return stored

    def _place(self, changes: Writing, candidate: _Candidate, expected: int | None) -> Record:
        record, _, relation, other, settled = candidate
        rules = self.kinds[record.kind]
        if record.run:
            runs.check_run(changes.tx, self.space, record.run)
        before = self.single(changes, record) if rules.one_per else None
        if expected is not None:
            is_agents = rules.one_per == "agent"
            check_expected(self.shown_one(changes, record.kind) if is_agents else before, expected)
        said = record.at or changes.message_time(record)
        # A text without messages is said when it is stored, and two that are stored at once have no order.
        at = said if record.messages else record.at
        if before is not None and self._counts_less(replace(record, at=at), before):
            record = replace(record, flags=(*record.flags, CONFLICT), trust="quarantined")
        if record.trust == "quarantined":
            return self.quarantine(changes, record, before)
        if before is not None:
            return self._put_single(changes, record, before)
        # An earlier text of this call may have settled it.
        if settled is not None and records.is_current(changes.tx, self.space, settled):
            self.take_back(changes, settled, "retract", f"{writer_name(self.by)} says so now")
        if relation is None or other is None:
            return self.put(changes, record, None, "add")
        if _is_same_source(record, other, relation, self.by):
            return other
        if relation.kind == "duplicate":
            confirmed = _confirm(other, replace(record, at=said))
            return changes.put(confirmed, other, by=self.by, action="duplicate", why=relation.why)
        if relation.kind == "update":
            return self._update(changes, replace(record, at=said), other, relation.why)
        if relation.why == SEVERAL and (
            has_right(self.by, other.by) < 0 or _is_earlier(replace(record, at=said), other)
        ):
            record = _in_conflict(record, other)
        added = self.put(changes, record, None, "add", relation.why)
        changes.add_job("tidy", added, other)
        return added

    def _counts_less(self, record: Record, before: Record) -> bool:
        """Return whether a text may not replace the one of its kind: less right, or said earlier.

        Reflection may, whatever the time of its messages, and so may the application and an agent, whoever
        wrote it: they keep up to date what they are shown.
        """
        if before.retracted or record.text == before.text or self.by == "reflect":
            return False
        is_weaker = self.by in ("tool", "import") and has_right(self.by, before.by) < 0
        return is_weaker or _is_earlier(record, before)

    def _update(self, changes: Writing, record: Record, other: Record, why: str) -> Record:
        """Store another value of a record: in its place, as what was true before, or beside it."""
        right, is_earlier = has_right(self.by, other.by), _is_earlier(record, other)
        now = from_micros(self.now)
        is_passing = record.until is not None or (record.since is not None and record.since > now)
        if right < 0:
            why = f"it contradicts what {writer_name(other.by)} said"
        elif not is_earlier and is_passing:
            return self.put(changes, record, None, "add", "it holds for a time of its own")
        elif not is_earlier:
            return self.put(changes, overwrite(other, record), other, "update", why)
        elif right > 0:
            contradicted = f"{writer_name(self.by)} said something else"
            doubted = replace(other, flags=tuple(dict.fromkeys((*other.flags, CONFLICT))))
            changes.put(doubted, other, by=self.by, action="update", why=contradicted)
            return self.put(changes, replace(record, conflicts=(other.id,)), None, "add", why)
        elif other.at is not None and (record.since is None or record.since < other.at):
            until = min(record.until or other.at, other.at)
            return self.put(
                changes, replace(record, until=until), None, "add", "another value was said later"
            )
        else:
            why = "another value was said later"
        return self.put(changes, _in_conflict(record, other), None, "add", why)

    def quarantine(self, changes: Writing, record: Record, before: Record | None) -> Record:
        """Put a text into quarantine; once released, it replaces that of `before`."""
        if before is not None:
            record = replace(record, replaces=before.id, priority=record.priority or before.priority)
        waiting = RecordFilter(kinds=(record.kind,), agents=self.agents, run=None, trust=("quarantined",))
        for held in records.read(changes.tx, self.space, NOW.version, waiting):
            if (held.text, held.by, held.replaces) == (record.text, record.by, record.replaces):
                return held
        why = quarantine_reason(record)
        return changes.put(record, None, by=self.by, action="quarantine", why=why)

    def _put_single(self, changes: Writing, record: Record, before: Record) -> Record:
        # A record of one chat that two agents write belongs to both.
        agent = before.agent if before.agent == record.agent else ""
        after = replace(overwrite(before, record), target=record.target, agent=agent)
        if content_of(after) == content_of(before):
            return before
        return self.put(changes, after, before, "add" if before.retracted else "replace")

    def put(
        self, changes: Writing, record: Record, before: Record | None, action: str, why: str = ""
    ) -> Record:
        """Write a version that has to fit the cap of its kind; one that is not longer always does."""
        counted = before is not None and not before.retracted and before.trust != "quarantined"
        freed = record_rows.capped_length(before) if before is not None and counted else 0
        size = record_rows.capped_length(record)
        if size > freed:
            self.check_total(changes, record, size, freed)
        return changes.put(record, before, by=self.by, action=action, why=why)

    def check_total(self, changes: Writing, record: Record, size: int = 0, freed: int = 0) -> None:
        """Raise InvalidInput if `size` more characters, in place of `freed`, exceed the cap of a kind."""
        rules = self.kinds.get(record.kind)
        cap = rules.cap.get(record.target) if rules else None
        if rules is None or cap is None:
            return
        chat = record.chat if record.kind == "note" and not record.run else None
        used = records.count_characters(
            changes.tx, self.space, record.kind, record.target, record.agent, record.run, chat
        )
        check_room(rules, record.target, cap, used, size, freed)

    def take_back(
        self, changes: Writing, before: Record, action: str, why: str = "", undone: int = 0
    ) -> Record:
        """Write that a record is retracted."""
        gone = replace(before, retracted=True)
        return changes.put(gone, before, by=self.by, action=action, why=why, undone=undone)

    def single(self, changes: Writing, record: Record) -> Record | None:
        """Return the one record of a kind, retracted or not: a new text becomes its next version."""
        place = "chat" if self.kinds[record.kind].one_per == "chat" else "agent"
        return records.latest(
            changes.tx,
            self.space,
            f"r.kind = :kind AND r.{place} = :place AND r.trust <> 'quarantined' AND r.replaces = '' AND "
            "r.ended = :open",
            kind=record.kind,
            place=record.chat if place == "chat" else record.agent,
            open=MAX_COUNT,
        )

    def shown_one(self, changes: Writing, kind: str) -> Record | None:
        """Return the one text of a kind that prompts show; it may be the one that the tenant shares."""
        return records.read_effective(changes.tx, self.scope, kind, from_micros(self.now))


def _in_conflict(record: Record, other: Record) -> Record:
    return replace(record, flags=(*record.flags, CONFLICT), conflicts=(other.id,))


def overwrite(before: Record, draft: Record) -> Record:
    """Return a record with the text of a draft; what the draft leaves open stays as it was."""
    kept: dict[str, Any] = {name: getattr(before, name) for name in _KEPT}
    filled = {name: getattr(draft, name) or getattr(before, name) for name in _FILLED}
    return replace(draft, **kept, **filled)


def _is_earlier(record: Record, other: Record) -> bool:
    return record.at is not None and other.at is not None and record.at < other.at


def _right_of(record: Record) -> int:
    """Return the rank of the writer of a record: the higher, the more that writer's word counts."""
    return has_right(record.by, "import")


def _confirm(before: Record, draft: Record) -> Record:
    """Return a record with more evidence: who else said it, in which words and when, and what they add.

    The same source without messages is no evidence. How long it holds, and labels of which there is one, are
    those said last, by somebody with as much right.
    """
    known = (before.source, *before.sources, "")
    sources = before.sources if draft.source in known else (*before.sources, draft.source)[-_SOURCES:]
    again = draft.by == "reflect" and draft.messages is None and _is_source(draft, before)
    wording = Wording(draft.text, by=draft.by, chat=draft.chat, messages=draft.messages)
    is_later = before.at is None or draft.at is None or draft.at >= before.at
    is_last = is_later and has_right(draft.by, before.by) >= 0
    since, until = _validity(before, draft) if is_last else (before.since, before.until)
    first, last = (before, draft) if is_last else (draft, before)
    added = {key: value for key, value in draft.meta.items() if key not in OWN_META}
    return replace(
        before,
        since=since,
        until=until,
        category=last.category or first.category,
        tags=tuple(dict.fromkeys((*before.tags, *draft.tags)))[:MAX_TAGS],
        meta={**before.meta, **added} if is_last else {**added, **before.meta},
        priority=draft.priority or before.priority,
        by=draft.by if has_right(draft.by, before.by) > 0 else before.by,
        evidence=before.evidence + (not again),
        sources=sources,
        # Where else the same words stand is said by the versions before.
        wordings=(*(old for old in before.wordings if _words_of(old) != _words_of(wording)), wording),
        at=max(filter(None, (before.at, draft.at)), default=None),
    )


def _words_of(wording: Wording) -> tuple[Writer, list[str]]:
    return wording.by, re.findall(r"\w+", wording.text.casefold())


def _validity(before: Record, draft: Record) -> tuple[datetime | None, datetime | None]:
    """Return the start and the end of the validity of a repeated record; one that had ended holds again."""
    has_ended = before.until is not None and draft.at is not None and before.until <= draft.at
    since = draft.since or (draft.at if has_ended else before.since)
    until = draft.until or (None if has_ended else before.until)
    return (draft.since if since and until and since >= until else since), until


def _is_same_source(draft: Record, other: Record, relation: Relation, by: Writer) -> bool:
    """Return whether a text repeats a source that was learned from: neither evidence nor an update.

    Nor does an earlier part of a chat update what a later one says.
    """
    if relation.kind == "duplicate":
        if draft.messages is not None:
            return _is_within(draft, other) or any(_is_within(draft, wording) for wording in other.wordings)
        texts = {other.text, *(wording.text for wording in other.wordings)}
        return by == "reflect" and _is_source(draft, other) and draft.text in texts
    if relation.kind != "update" or other.chat != draft.chat:
        return False
    return bool(draft.messages and other.messages and draft.messages[1] < other.messages[0])


def _is_source(draft: Record, other: Record) -> bool:
    """Return whether a record was learned from the source of a draft."""
    return draft.source in {other.source, *other.sources} - {""}


def _is_within(draft: Record, other: Record | Wording) -> bool:
    """Return whether a text was learned from all messages of a draft."""
    if draft.chat != other.chat or draft.messages is None or other.messages is None:
        return False
    return other.messages[0] <= draft.messages[0] and draft.messages[1] <= other.messages[1]
