"""From a text to a record: check it against the policy of its kind, scan it, compare it, and store it.

Every write goes through here, whoever makes it. The whole call is one transaction; what a comparison needs is read
before it and compared again if somebody else wrote in between, so no lock is held while texts are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.errors import Conflict, Denied, InvalidInput
from holdfast.kinds import Kind
from holdfast.learning.throttle import rest
from holdfast.records.draft import (
    allow,
    check_expected,
    check_length,
    check_room,
    policy,
    prepare,
    quarantine_reason,
    rules_of,
    says,
    scan,
)
from holdfast.safety.guard import mask
from holdfast.store import learned_texts, record_changes, record_rows, records, runs, snapshots
from holdfast.store.database import retry_transaction
from holdfast.store.message_rows import from_micros
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, UNSET_PRIORITY, RecordFilter
from holdfast.text.clean import clean
from holdfast.text.shorten import shorten_line
from holdfast.types import MAX_COUNT, Record, Scope, Wording, Writer

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.dedup.merge import Verdict
    from holdfast.store.database import Database

COMPARED = 4  # records that a new text is compared with, those that share most with it
# The same of a kind whose texts are always compared: of sixteen, as many repetitions are recognised as of all.
NEAREST = 16
_ATTEMPTS = 1_000  # of two that write at once one always succeeds, so that many others must have
_CANDIDATES = 10  # shown when a text names several records


@dataclass(frozen=True, slots=True)
class Intake:
    """Write records for a scope. `similar` finds the records about the same that share most with a draft.

    The prompts of `chat`, if it is named, show what is written from the same transaction on.
    """

    database: Database
    scope: Scope
    kinds: Mapping[str, Kind]
    now: int
    by: Writer
    similar: Callable[[Record, int], list[Record]]
    chat: str = ""

    @property
    def space(self) -> str:
        """The space that is written."""
        return self.scope.space

    @property
    def agents(self) -> tuple[str, ...] | None:
        """Whose records may be changed: the agent's own and those of no agent; all, if there is no agent."""
        return (self.scope.agent, "") if self.scope.agent else None

    @staticmethod
    def classify(text: str, existing: Sequence[str]) -> Verdict:
        """Compare a new text with those that are there."""
        # Its tables are loaded by the first comparison.
        from holdfast.dedup import merge

        return merge.classify(text, existing)

    @retry_transaction
    def remember(
        self,
        drafts: Sequence[Record],
        *,
        merge: bool | None = None,
        expected: int | None = None,
        also: Callable[[Writing], None] | None = None,
    ) -> list[Record]:
        """Store new texts in one transaction, and return what they became.

        `also` is called within the transaction, before anything is written: what it does is stored with the texts, and
        what it raises lets nothing be stored.

        Raises:
            InvalidInput, Denied: one cannot be accepted; none was stored.
            Conflict: what is there has another version than `expected`.

        """
        ready = [prepare(draft, self.kinds, self.by) for draft in drafts]
        merging = [self.kinds[draft.kind].merge if merge is None else merge for draft in ready]
        compared = any(merging) or any(map(self._is_learned, ready))
        for _ in range(_ATTEMPTS):
            seen = records.space_state(self.database, self.space) if compared else None
            settled = [self._settled_before(draft) for draft in ready]
            verdicts = [
                self._compare(draft) if wish and before is None else None
                for draft, wish, before in zip(ready, merging, settled, strict=True)
            ]
            with record_changes.writing(self.database, self.space, self.now) as changes:
                if compared and changes.seen != seen:
                    continue  # somebody wrote or erased in between: what was compared may be no more
                if also is not None:
                    also(changes)
                written: list[Record] = []
                for draft, verdict, before in zip(ready, verdicts, settled, strict=True):
                    near = verdict and self._among(draft, written, verdict)
                    became = before or self._place(changes, draft, near, expected)
                    if before is None and self._is_learned(draft):
                        learned_texts.note(changes.tx, self.space, draft, became)
                    written.append(became)
                self._show(changes)
                return written
        raise Conflict("Others keep changing what is known.", "Try again.")

    def is_new(self, draft: Record) -> bool:
        """Say whether a new text would be stored: it is neither known, nor was it learned from the same words before."""
        ready = prepare(draft, self.kinds, self.by)
        if self._settled_before(ready) is not None:
            return False
        near = self._compare(ready)
        return near is None or near[0].relation != "duplicate"

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Open a transaction for changes that compare nothing."""
        with record_changes.writing(self.database, self.space, self.now) as changes:
            yield changes
            self._show(changes)

    def _show(self, changes: Writing) -> None:
        if self.chat:
            snapshots.follow(changes.tx, self.scope, self.chat, changes.version, self.now)

    def _compare(self, draft: Record) -> tuple[Verdict, Record | None] | None:
        """Compare a text with those of its kind that it may repeat or replace."""
        rest()
        rules = self.kinds[draft.kind]
        if draft.trust == "quarantined" or rules.one_per:
            return None
        if not rules.cap:
            there = self.similar(draft, NEAREST if rules.merge else COMPARED)
            verdict = self.classify(draft.text, [one.text for one in there])
            return verdict, None if verdict.place is None else there[verdict.place]
        # The cap keeps them few: they are compared all, also those that share no word.
        rows = records.current_texts(
            self.database, self.space, draft.kind, draft.target, self._own, draft.run
        )
        rows = [row for row in rows if draft.kind != "note" or row[1] == draft.chat]
        verdict = self.classify(draft.text, [row[2] for row in rows])
        if verdict.place is None:
            return verdict, None
        version = rows[verdict.place][0]
        return verdict, records.by_versions(self.database, self.space, (version,)).get(version)

    def _among(
        self, draft: Record, written: Sequence[Record], before: tuple[Verdict, Record | None]
    ) -> tuple[Verdict, Record | None]:
        """Compare a text that is not known with those of the same call: what they say of it counts more than what was there."""
        verdict, other = before
        if other is not None:  # as an earlier text of this call has left it
            other = next((one for one in reversed(written) if one.id == other.id), other)
        if verdict.relation == "duplicate":
            return verdict, other
        same = [one for one in written if (one.kind, one.target) == (draft.kind, draft.target)]
        here = self.classify(draft.text, [one.text for one in same]) if same else verdict
        if not same or here.place is None:
            return verdict, other
        return here, same[here.place]

    @property
    def _own(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.scope.agent, "")))

    def _place(
        self,
        changes: Writing,
        draft: Record,
        compared: tuple[Verdict, Record | None] | None,
        expected: int | None,
    ) -> Record:
        rules = self.kinds[draft.kind]
        if draft.run:
            runs.check_run(changes.tx, self.space, draft.run)
        before = self.single(changes, draft) if rules.one_per else None
        if expected is not None:
            check_expected(
                self.shown_one(changes, draft.kind) if rules.one_per == "agent" else before, expected
            )
        if draft.trust == "quarantined":
            priority = draft.priority or (before.priority if before else UNSET_PRIORITY)
            aside = replace(draft, replaces=before.id if before else "", priority=priority)
            return changes.put(aside, None, by=self.by, action="quarantine", why=quarantine_reason(draft))
        if before is not None:
            return self._put_single(changes, draft, before)
        verdict, other = compared or (None, None)
        if verdict is None or other is None or verdict.relation == "new":
            return self.put(changes, draft, None, "add")
        if self._is_heard_again(draft, other, verdict.relation):
            return other
        if verdict.relation == "duplicate":
            return changes.put(
                _confirmed(other, draft, changes.message_time(draft)),
                other,
                by=self.by,
                action="duplicate",
                why=verdict.why,
            )
        if verdict.relation == "update":
            return self.put(changes, _over(other, draft), other, "update", verdict.why)
        added = self.put(changes, draft, None, "add", verdict.why)
        changes.add_job("judge", added, other)
        return added

    def _settled_before(self, draft: Record) -> Record | None:
        """Find what was learned from these words before; what was changed since, taken back or put into quarantine stays so."""
        if not self._is_learned(draft):
            return None
        known = learned_texts.find(self.database, self.space, draft)
        if known is not None:
            return known
        former = records.former_versions(self.database, self.space, draft)
        verdict = self.classify(draft.text, [one.text for one in former])
        same = verdict.relation == "duplicate" and verdict.place is not None
        return former[verdict.place] if same and verdict.place is not None else None

    def _is_learned(self, draft: Record) -> bool:
        """Say whether a text was learned from a source that may be read again."""
        return (
            self.by == "reflect" and not self.kinds[draft.kind].one_per and bool(draft.chat or draft.source)
        )

    def _is_heard_again(self, draft: Record, other: Record, relation: str) -> bool:
        """Return whether a text comes from words that were learned from before: that is no evidence, and no news.

        Nor is what a session says in one place news after what it says in a later one.
        """
        if relation == "duplicate":
            if draft.messages is not None:
                places: tuple[Record | Wording, ...] = (other, *other.wordings)
                return any(_is_within(draft, one) for one in places)
            texts = {other.text, *(one.text for one in other.wordings)}
            return self.by == "reflect" and _is_source(draft, other) and draft.text in texts
        same_chat = other.chat == draft.chat and None not in (draft.messages, other.messages)
        later = same_chat and draft.messages and other.messages and draft.messages[1] < other.messages[0]
        return relation == "update" and bool(later)

    def _put_single(self, changes: Writing, draft: Record, before: Record) -> Record:
        # What two agents told of one chat belongs to both.
        agent = before.agent if before.agent == draft.agent else ""
        over = replace(_over(before, draft), target=draft.target, agent=agent)
        if says(over) == says(before):
            return before
        return self.put(changes, over, before, "add" if before.retracted else "replace")

    def put(
        self,
        changes: Writing,
        record: Record,
        before: Record | None,
        action: str,
        why: str = "",
        undone: int = 0,
    ) -> Record:
        """Write a version that has to fit the cap of its kind."""
        self._check_cap(changes, record, before)
        return changes.put(record, before, by=self.by, action=action, why=why, undone=undone)

    def _check_cap(self, changes: Writing, record: Record, before: Record | None) -> None:
        """Raise InvalidInput if a record would not fit; one that takes no more room than before always does."""
        counted = before is not None and not before.retracted and before.trust != "quarantined"
        freed = record_rows.capped_length(before) if before is not None and counted else 0
        size = record_rows.capped_length(record)
        if size > freed:
            self.check_total(changes, record, size, freed)

    def check_total(self, changes: Writing, record: Record, size: int = 0, freed: int = 0) -> None:
        """Raise InvalidInput if what stands beside a record exceeds the cap of its kind, with a new text of some size.

        The new text takes the place of one of `freed` characters.
        """
        rules = self.kinds.get(record.kind)
        cap = rules.cap.get(record.target) if rules else None
        if rules is None or cap is None:
            return
        chat = record.chat if record.kind == "note" and not record.run else None
        used = records.count_characters(
            changes.tx, self.space, record.kind, record.target, record.agent, record.run, chat
        )
        check_room(rules, record.target, cap, used, size, freed)

    def single(self, changes: Writing, draft: Record) -> Record | None:
        """Find the one record of a kind, also if it was retracted: it goes on."""
        place = "r.chat = :place" if self.kinds[draft.kind].one_per == "chat" else "r.agent = :place"
        return records.latest(
            changes.tx,
            self.space,
            f"r.kind = :kind AND {place} AND r.trust <> 'quarantined' AND r.replaces = '' AND r.ended = :open",
            kind=draft.kind,
            place=draft.chat if self.kinds[draft.kind].one_per == "chat" else draft.agent,
            open=MAX_COUNT,
        )

    def shown_one(self, changes: Writing, kind: str) -> Record | None:
        """Find the one text of a kind that prompts show; it may be the one that the tenant shares."""
        return records.read_effective(changes.tx, self.scope, kind, from_micros(self.now))

    @retry_transaction
    def replace(self, what: str, draft: Record, *, kind: str | None, expected: int | None) -> Record:
        """Give a record another text; see `Memory.replace`."""
        scanned = scan(draft, self.by)
        with self.writing() as changes:
            before = self.find(changes, what, kind, draft.run)
            check_expected(before, expected)
            rules = rules_of(self.kinds, before.kind)
            allow(rules, self.by, "change")
            check_length(scanned.text, rules)
            ready = replace(
                scanned, kind=before.kind, target=before.target, agent=before.agent, run=before.run
            )
            if before.run:
                runs.check_run(changes.tx, self.space, before.run)
            if ready.trust == "quarantined":
                priority = ready.priority or before.priority
                aside = replace(ready, replaces=before.id, chat=ready.chat or before.chat, priority=priority)
                return changes.put(aside, None, by=self.by, action="quarantine", why=quarantine_reason(ready))
            if not ready.chat or rules.one_per == "chat" or before.kind == "note":
                ready = replace(ready, chat=before.chat, messages=before.messages, at=from_micros(self.now))
            over = replace(
                _over(before, ready),
                since=draft.since or before.since,
                until=draft.until or before.until,
            )
            return self.put(changes, over, before, "replace")

    @retry_transaction
    def retract(
        self, what: str, *, kind: str | None, run: str = "", why: str = "", expected: int | None = None
    ) -> Record:
        """Take a record back; see `Memory.retract`."""
        with self.writing() as changes:
            before = self.find(changes, what, kind, run)
            check_expected(before, expected)
            allow(rules_of(self.kinds, before.kind), self.by, "remove")
            return self.take_back(changes, before, "retract", why)

    def take_back(
        self, changes: Writing, before: Record, action: str, why: str = "", undone: int = 0
    ) -> Record:
        """Write that a record is not there any more."""
        gone = replace(before, retracted=True)
        return changes.put(gone, before, by=self.by, action=action, why=why, undone=undone)

    @retry_transaction
    def clear(self, wanted: RecordFilter, passes: Callable[[Record], bool]) -> list[Record]:
        """Retract all records that are wanted, in one transaction; see `Memory.clear`."""
        with self.writing() as changes:
            found = [one for one in records.read(changes.tx, self.space, NOW.version, wanted) if passes(one)]
            for one in found:
                allow(rules_of(self.kinds, one.kind), self.by, "remove")
            return [self.take_back(changes, one, "retract", "cleared") for one in found]

    def find(self, changes: Writing, what: object, kind: str | None, run: str = "") -> Record:
        """Find the one current record that is meant by its id, by a part of its text, or by a kind that has only one.

        Raises:
            InvalidInput: there is none, or there are several: their ids and beginnings are shown.
            Denied: it is the one that the tenant shares.

        """
        if not isinstance(what, str) or not what.strip():
            raise InvalidInput("It is not said which record is meant.", "Pass its id or a part of its text.")
        if kind is not None:
            policy(self.kinds, kind)
        if what in self.kinds and self.kinds[what].one_per == "agent" and kind in (None, what) and not run:
            return self._find_one(changes, what)
        wanted = RecordFilter(kinds=None if kind is None else (kind,), agents=self.agents, run=run)
        what = clean(what)
        named = replace(wanted, ids=(what,))
        for one in (named, replace(named, chat=self.chat)) if self.chat else (named,):
            if found := records.read(changes.tx, self.space, NOW.version, one):
                return found[0]
        part, quoted = what.strip().casefold(), shorten_line(mask(what), 60)
        there = records.read(changes.tx, self.space, NOW.version, wanted)
        matches = [one for one in there if part in one.text.casefold()]
        if len(matches) > 1:
            matches = [one for one in matches if part == one.text.casefold()] or matches
        if not matches:
            raise InvalidInput(
                f"No record has the id or the text {quoted!r}.",
                "See `memory.records()` for what is there.",
            )
        if len(matches) > 1:
            listed = "; ".join(
                f"{one.id} ({one.kind}) {shorten_line(one.text, 60)!r}" for one in matches[:_CANDIDATES]
            )
            more = f" and {len(matches) - _CANDIDATES} more" if len(matches) > _CANDIDATES else ""
            raise InvalidInput(
                f"{len(matches)} records have the text {quoted!r}: {listed}{more}.",
                "Pass the id of one, or more of its text.",
            )
        return matches[0]

    def _find_one(self, changes: Writing, kind: str) -> Record:
        found = self.shown_one(changes, kind)
        if found is None:
            raise InvalidInput(f"There is no {kind}.", "Write one first.")
        own = records.read(changes.tx, self.space, NOW.version, RecordFilter(ids=(found.id,)))
        if not own:
            raise Denied(
                f"The {kind} is the one that the tenant shares, which is not this user's to change.",
                "Change it through a handle of the tenant: memory.scoped(user='').",
            )
        return own[0]


def _over(before: Record, draft: Record) -> Record:
    """Put a draft over a record; what the draft leaves open stays as it was."""
    return replace(
        before,
        text=draft.text,
        category=draft.category or before.category,
        tags=draft.tags or before.tags,
        meta=draft.meta or before.meta,
        priority=draft.priority or before.priority,
        source=draft.source or before.source,
        by=draft.by,
        chat=draft.chat,
        messages=draft.messages,
        at=draft.at,
        since=draft.since,
        until=draft.until,
        trust=draft.trust,
        flags=draft.flags,
        evidence=1,
        sources=(),
        wordings=(),
        retracted=False,
    )


def _confirmed(before: Record, draft: Record, at: datetime) -> Record:
    """Add evidence to a record: one more who said it, in which words and when. The same source without a place is none."""
    known = (before.source, *before.sources, "")
    sources = before.sources if draft.source in known else (*before.sources, draft.source)
    again = draft.by == "reflect" and draft.messages is None and _is_source(draft, before)
    said = Wording(draft.text, by=draft.by, chat=draft.chat, messages=draft.messages)
    wordings = (*(one for one in before.wordings if one != said), said)
    return replace(
        before,
        priority=draft.priority or before.priority,
        evidence=before.evidence + (not again),
        sources=sources,
        wordings=wordings,
        at=max(before.at or at, at),
    )


def _is_source(draft: Record, other: Record) -> bool:
    """Return whether a record was learned from the source of a draft."""
    return draft.source in {other.source, *other.sources} - {""}


def _is_within(draft: Record, heard: Record | Wording) -> bool:
    """Return whether all messages of a draft were heard."""
    if draft.chat != heard.chat or draft.messages is None or heard.messages is None:
        return False
    return heard.messages[0] <= draft.messages[0] and draft.messages[1] <= heard.messages[1]
