"""Whatever is written, in any order: reads, views of the past and ways back agree with a list of states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import soak
from holdfast import Conflict, Denied, InvalidInput, Memory, Record, View
from learning_scripts import Clock
from soak import cases

MANY = ("finding", "insight", "lesson", "fact")
SINGLE = ("profile", "soul", "episode")  # one for each agent, or each chat
CHATS = ("", "a", "b")
CATEGORIES = ("", "fruit", "tools")
SOURCES = ("", "GOAL:eat")
TARGETS = ("user", "env")  # of facts
TAGS = ("ripe", "old")
WORDS = ("garden", "gate", "rose", "shed", "water")
SYLLABLES = ("ba", "ko", "zu", "vi", "re", "mo", "du", "fa")
QUERY = "water for the roses in the garden"

SOME_WORDS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
NUMBERS = st.integers(0, 10**6)
FIELDS = {
    "category": st.sampled_from(CATEGORIES),
    "tags": st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple),
    "priority": st.integers(1, 10),
    "source": st.sampled_from(SOURCES),
}
# Filters of `retract_all`, and those that only lists have as well.
CLEARED = {
    "kind": st.sampled_from(MANY),
    "category": st.sampled_from(CATEGORIES),
    "tags": st.lists(st.sampled_from((*TAGS, "no such")), max_size=2),
    "target": st.sampled_from((*TARGETS, "no such")),
    "chat": st.sampled_from(CHATS[1:]),
}
LISTED = CLEARED | {"source": st.sampled_from(SOURCES), "text": st.sampled_from(("GARDEN", "gate", "Fruit"))}


def unique(number: int) -> str:
    """Make a word of a number that is like no other."""
    # No two are a slip of each other.
    return "".join(3 * SYLLABLES[number // 8**place % 8] for place in (3, 2, 1, 0)) + "x"


@dataclass(frozen=True)
class Row:
    """What a record says, as the model has it; the number is that of the word that only it has."""

    kind: str
    number: int
    text: str
    chat: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    priority: int = 5
    source: str = ""
    target: str = ""
    evidence: int = 1

    def passes(self, wanted: dict[str, Any]) -> bool:
        """Say whether all filters hold; of tags one is enough."""
        other = {name: value for name, value in wanted.items() if name not in ("tags", "text")}
        return (
            all(getattr(self, name) == value for name, value in other.items())
            and ("tags" not in wanted or bool({*wanted["tags"]} & {*self.tags}))
            and wanted.get("text", "").lower() in f"{self.text}\n{self.category}"
        )


State = dict[str, Row]


def row_of(record: Record, number: int) -> Row:
    shared = {one.name: getattr(record, one.name) for one in fields(Row) if one.name != "number"}
    return Row(number=number, **shared)


def fact(number: int, text: str, chat: str = "") -> Row:
    return Row("fact", number, text, chat, target="user")


@dataclass
class Space:
    """The model: the state after each version, what a recall gave then, and which calls can be undone."""

    states: list[State] = field(default_factory=lambda: [{}])
    ends: list[int] = field(
        default_factory=lambda: [0]
    )  # of the calls, each of which may take several versions
    times: dict[int, datetime] = field(default_factory=dict)  # of each end
    recalled: dict[int, object] = field(default_factory=dict)
    undoable: list[tuple[int, int]] = field(default_factory=list)  # versions before and after a call
    words: int = 0

    @property
    def now(self) -> State:
        return self.states[-1]

    def of(self, kind: str) -> list[str]:
        return [identity for identity, row in self.now.items() if row.kind == kind]


class Records(RuleBasedStateMachine):
    """One user's records that all is done to, and those of others beside them."""

    memory: Memory  # of all examples: each has a user of its own
    clock: Clock
    users = count(1)

    def __init__(self) -> None:
        super().__init__()
        number = next(self.users)
        self.mine = self.memory.scoped(user=f"user {number}")
        self.others = [
            self.memory.scoped(user=f"another {number}"),
            self.memory.scoped(tenant="another", user=f"user {number}"),
        ]
        self.beside = [other.remember("the garden of another", "finding") for other in self.others]
        self.space = Space(times={0: self.clock()})
        self.births: dict[str, int] = {}
        self.erased: set[int] = set()  # numbers of words

    @initialize(is_empty=st.booleans())
    def begin(self, is_empty: bool) -> None:
        self.chat = self.mine.chat("monday")
        self.chat.append(role="user", content="Good morning.")
        self.frozen = self.chat.prompt().system
        if not is_empty:
            one = {"category": "fruit", "tags": ("ripe",), "priority": 3, "source": "GOAL:eat"}
            self.remember("finding", "garden gate", "a", "", one)
            self.remember("fact", "rose", "", "env", {**one, "category": "", "source": ""})

    # What happens

    @contextmanager
    def call(self, *actions: str, by: str = "agent") -> Iterator[State]:
        """Let a call change a copy of the state, which it must lead to in the versions that it takes."""
        space, before = self.space, len(self.space.states) - 1
        state = dict(space.now)
        self.clock.move(seconds=1)
        yield state
        now = self.mine.version()
        assert now - before >= (state != space.now)
        space.states += [state] * (now - before)
        if now > before:
            made = [one for one in self.mine.changes() if one.version > before]
            assert {(one.batch, one.by, one.at) for one in made} == {(before + 1, by, self.clock())}
            assert {one.action for one in made} <= {*actions}
            space.ends.append(now)
            space.times[now] = self.clock()
            space.undoable.append((before, now))
            space.recalled[now] = recalled(self.mine)

    def text(self, words: str) -> tuple[int, str]:
        self.space.words += 1
        return self.space.words, f"{words} {unique(self.space.words)}"

    @rule(
        kind=st.sampled_from(MANY),
        words=SOME_WORDS,
        chat=st.sampled_from(CHATS),
        about=st.sampled_from(TARGETS),
        told=st.fixed_dictionaries(FIELDS),
    )
    def remember(self, kind: str, words: str, chat: str, about: str, told: dict[str, Any]) -> None:
        number, text = self.text(words)
        told = {**told, "target": about if kind == "fact" else ""}
        with self.call("add") as state:
            record = self.mine.remember(text, kind, chat=chat or None, merge=False, **told)
            state[record.id] = Row(kind, number, text, chat, **told)
            self.births[record.id] = record.version

    @rule(kind=st.sampled_from(MANY), words=st.lists(SOME_WORDS, min_size=2, max_size=5))
    def remember_several(self, kind: str, words: list[str]) -> None:
        told = [self.text(some) for some in words]
        with self.call("add") as state:
            records = self.mine.remember([text for _, text in told], kind, merge=False)
            for record, (number, text) in zip(records, told, strict=True):
                state[record.id] = fact(number, text) if kind == "fact" else Row(kind, number, text)
                self.births[record.id] = record.version

    @rule(kind=st.sampled_from(SINGLE), words=SOME_WORDS, chat=st.sampled_from(CHATS[1:]))
    def remember_the_one(self, kind: str, words: str, chat: str) -> None:
        number, text = self.text(words)
        there = [one for one in self.space.of(kind) if kind != "episode" or self.space.now[one].chat == chat]
        assert len(there) <= 1
        with self.call("replace" if there else "add") as state:
            record = self.mine.remember(text, kind, chat=chat if kind == "episode" else None)
            assert not there or record.id == there[0]
            old = state.get(record.id, Row(kind, number, text))
            state[record.id] = replace(old, number=number, text=text, chat=record.chat, evidence=1)
            self.births.setdefault(record.id, record.version)
        assert self.mine.remember(text, kind, chat=chat if kind == "episode" else None) == record

    @rule(number=NUMBERS)
    def say_a_fact_again(self, number: int) -> None:
        if facts := self.space.of("fact"):
            identity = facts[number % len(facts)]
            with self.call("duplicate") as state:
                again = self.mine.remember(state[identity].text, target=state[identity].target)
                assert (again.id, again.action) == (identity, "duplicate")
                state[identity] = replace(state[identity], evidence=state[identity].evidence + 1)

    @rule(
        number=NUMBERS,
        words=SOME_WORDS,
        by_id=st.booleans(),
        more=st.fixed_dictionaries({}, optional={"category": st.just("changed"), "source": st.just("me")}),
    )
    def replace(self, number: int, words: str, by_id: bool, more: dict[str, Any]) -> None:
        if not self.space.now:
            return
        identity = list(self.space.now)[number % len(self.space.now)]
        seen = max(one.version for one in self.mine.changes(id=identity))
        with pytest.raises(Conflict, match=f"version {seen}"):
            self.mine.replace(identity, words, expected_version=seen + 1)
        word, text = self.text(words)
        with self.call("replace") as state:
            old = state[identity]
            what = identity if by_id else unique(old.number).upper()
            record = self.mine.replace(what, text, expected_version=seen, **more)
            assert (record.id, record.action) == (identity, "replace")
            state[identity] = replace(old, number=word, text=text, evidence=1, **more)

    @rule(number=NUMBERS, by_id=st.booleans())
    def retract(self, number: int, by_id: bool) -> None:
        if self.space.now:
            identity = list(self.space.now)[number % len(self.space.now)]
            with self.call("retract") as state:
                row = state.pop(identity)
                gone = self.mine.retract(identity if by_id else unique(row.number), why="no more")
                assert (gone.id, gone.retracted) == (identity, True)
            assert self.mine.changes(limit=1)[0].why == "no more"

    @rule(wanted=st.fixed_dictionaries({}, optional=CLEARED))
    def retract_all(self, wanted: dict[str, Any]) -> None:
        if not wanted.keys() & {"kind", "category", "tags"}:
            with pytest.raises(InvalidInput):
                self.mine.retract_all(**wanted)
            return
        with self.call("retract") as state:
            meant = {identity for identity, row in state.items() if row.passes(wanted)}
            assert {one.id for one in self.mine.retract_all(**wanted)} == meant
            for identity in meant:
                del state[identity]

    @rule()
    def undo(self) -> None:
        space = self.space
        if not space.undoable:
            with pytest.raises(InvalidInput, match="nothing to undo"):
                self.mine.undo()
            return
        before, after = space.undoable.pop()
        then, later = space.states[before], space.states[after]
        with self.call("undo", by="user") as state:
            self.mine.undo()
            for identity in then.keys() | later.keys():
                if then.get(identity) != later.get(identity):
                    put(state, identity, then.get(identity))
        space.undoable.pop()  # an undo is not undone

    @rule(number=NUMBERS, version=NUMBERS)
    def roll_back(self, number: int, version: int) -> None:
        space = self.space
        identities = sorted({identity for state in space.states for identity in state})
        if not identities:
            return
        identity, version = identities[number % len(identities)], space.ends[version % len(space.ends)]
        then = space.states[version].get(identity)
        single = (
            [one for one in space.of(then.kind) if one != identity] if then and then.kind in SINGLE else []
        )
        if single:
            return
        with self.call("rollback", by="user") as state:
            if then is None:
                with pytest.raises(InvalidInput):
                    self.mine.rollback(identity, version)
            else:
                self.mine.rollback(identity, version)
                state[identity] = then

    @rule(kind=st.sampled_from(MANY), version=NUMBERS)
    def roll_back_a_kind(self, kind: str, version: int) -> None:
        version = self.space.ends[version % len(self.space.ends)]
        then = self.space.states[version]
        if any(row.kind == kind for state in self.space.states for row in state.values()):
            with self.call("rollback", by="user") as state:
                try:
                    self.mine.rollback(kind, version)
                except InvalidInput:
                    assert not any(row.kind == kind for row in (*then.values(), *state.values()))
                for identity in {*self.space.of(kind), *then}:
                    row = then.get(identity) or state.get(identity)
                    if row and row.kind == kind:
                        put(state, identity, then.get(identity))

    @rule(number=NUMBERS)
    def erase(self, number: int) -> None:
        """Forget a record in all its versions; the numbers of the others stay."""
        identities = sorted({identity for state in self.space.states for identity in state})
        if not identities:
            return
        gone, states = identities[number % len(identities)], self.space.states
        self.erased |= {state[gone].number for state in states if gone in state}
        others = [one.version for one in self.mine.changes() if one.id != gone]
        self.mine.erase(record=gone)
        self.space.states = [{key: row for key, row in state.items() if key != gone} for state in states]
        # Also a call that wrote the same again can be undone, as long as it wrote of anything else.
        self.space.undoable = [
            (before, after)
            for before, after in self.space.undoable
            if any(before < version <= after for version in others)
        ]
        self.space.recalled.clear()
        self.frozen = self.chat.prompt().system
        assert not [number for number in self.erased if unique(number) in self.frozen]

    @rule(words=SOME_WORDS)
    def refuse(self, words: str) -> None:
        """No call that is refused takes a number, or is shown."""
        with pytest.raises(InvalidInput):
            self.mine.remember([words, " "], "finding")
        with pytest.raises(Denied):
            self.mine.remember(words, "constraint")
        with pytest.raises(InvalidInput):
            self.mine.rollback("finding", len(self.space.states))
        former = {row.number for state in self.space.states for row in state.values()}
        current = {row.number for row in self.space.now.values()}
        for number in sorted(former - current)[-2:]:
            with pytest.raises(InvalidInput, match="No record"):
                self.mine.retract(unique(number))
        for other in self.others:
            for identity in list(self.space.now)[-1:]:
                assert other.get(identity) is None
                for what in (identity, unique(self.space.now[identity].number)):
                    with pytest.raises(InvalidInput, match="No record"):
                        other.replace(what, words)
                    with pytest.raises(InvalidInput, match="No record"):
                        other.retract(what)
                with pytest.raises(InvalidInput):
                    other.rollback(identity, 1)

    @rule()
    def rebuild(self) -> None:
        assert self.mine.verify(repair=True).ok

    @rule(words=SOME_WORDS)
    def remember_in_the_chat(self, words: str) -> None:
        number, text = self.text(words)
        with self.call("add") as state:
            record = self.chat.remember(text, merge=False)
            state[record.id] = fact(number, text, "monday")
            self.births[record.id] = record.version
        self.moves_on()

    @rule()
    def refresh(self) -> None:
        assert self.chat.refresh() == self.mine.version()
        self.moves_on()

    def moves_on(self) -> None:
        self.frozen = self.chat.prompt().system
        assert self.chat.snapshot() == self.mine.version()
        new = self.mine.chat(f"new at {self.mine.version()}")
        assert new.prompt().system == self.frozen, "as for a new chat"

    # What is always true

    @invariant()
    def reads_agree_with_the_state(self) -> None:
        version = len(self.space.states) - 1
        self.check_view(self.mine, version)
        by_id = {identity: (row.kind, row.text) for identity, row in self.space.now.items()}
        for identity, (kind, text) in by_id.items():
            record = self.mine.get(identity)
            assert record is not None
            assert (record.kind, record.text) == (kind, text)
        for kind in SINGLE[:2]:
            there = [text for one, text in by_id.values() if one == kind]
            record = self.mine.get(kind)
            assert ([record.text] if record else []) == there

    @rule(version=NUMBERS, by_time=st.booleans())
    def look_back(self, version: int, by_time: bool) -> None:
        version = self.space.ends[version % len(self.space.ends)]
        view = self.mine.at(self.space.times[version] if by_time else version)
        self.check_view(view, version)
        for identity in {identity for state in self.space.states for identity in state}:
            found, row = view.get(identity), self.space.states[version].get(identity)
            assert (found and found.text) == (row and row.text)
        if version in self.space.recalled:
            assert recalled(view) == self.space.recalled[version], "to the last bit"

    @rule(
        version=NUMBERS,
        wanted=st.fixed_dictionaries({}, optional=LISTED),
        since=st.none() | NUMBERS,
        limit=st.integers(0, 4),
    )
    def filter(self, version: int, wanted: dict[str, Any], since: int | None, limit: int) -> None:
        """Filters leave of the list, and of the full ranking, what passes them."""
        version = self.space.ends[version % len(self.space.ends)]
        view, state = self.mine.at(version), self.space.states[version]
        meant = [one.id for one in view.records() if state[one.id].passes(wanted)]
        assert [one.id for one in view.records(**wanted)] == meant
        hits = view.recall(QUERY, sources=["record"], limit=1_000)
        asked: dict[str, Any] = {name: wanted[name] for name in ("tags", "chat") if name in wanted}
        more: dict[str, Any] = {"kinds": [wanted["kind"], "lesson"]} if "kind" in wanted else {}
        if since is not None and hits:
            more["since"] = hits[since % len(hits)].at
        expected = [
            replace(hit, score=0)
            for hit in hits
            if state[hit.id].passes(asked)
            and ("kinds" not in more or hit.kind in more["kinds"])
            and ("since" not in more or hit.at >= more["since"])
        ]
        found = view.recall(QUERY, sources=["record"], limit=1_000, **asked, **more)
        # A hit is the likelier, the less there is beside it.
        assert [replace(hit, score=0) for hit in found] == expected
        least = found[len(found) // 2].score if found else 0.0
        some = view.recall(QUERY, sources=["record"], limit=limit, min_score=least, **asked, **more)
        assert some == [hit for hit in found if hit.score >= least][:limit]

    def check_view(self, view: Memory | View, version: int) -> None:
        """Check what a view shows of a version: its records in their order, filters, recall and changes."""
        state = self.space.states[version]
        assert view.version() == version or (self.erased and view.version() < version)
        records = view.records()
        assert {one.id: row_of(one, state[one.id].number) for one in records} == state
        assert [one.id for one in records] == sorted(state, key=self.births.__getitem__)
        assert view.records(kind="finding", limit=2, offset=1) == view.records(kind="finding")[1:3]
        for number in {*list(range(self.space.words + 1))[-3:], *sorted(self.erased)[:2]}:
            meant = [identity for identity, row in state.items() if row.number == number]
            assert [one.id for one in view.records(text=unique(number).upper())] == meant
            assert [hit.id for hit in view.recall(unique(number), sources=["record"])] == meant

    @invariant()
    def changes_lead_from_each_state_to_the_next(self) -> None:
        changes = [one for one in self.mine.changes()[::-1] if one.kind != "erasure"]
        assert [one.version for one in changes] == sorted({one.version for one in changes})
        texts: dict[str, str | None] = {}
        for change in changes:
            assert change.before == texts.get(change.id)
            assert change.batch <= change.version
            texts[change.id] = change.after
        assert {identity: text for identity, text in texts.items() if text is not None} == {
            identity: row.text for identity, row in self.space.now.items()
        }
        changes = self.mine.changes()
        assert self.mine.changes(limit=2) == changes[:2]
        for kind in ("finding", "episode"):
            assert self.mine.changes(kind=kind) == [one for one in changes if one.kind == kind]
        for newest in changes[:1]:
            assert self.mine.changes(id=newest.id) == [one for one in changes if one.id == newest.id]

    @invariant()
    def the_chat_shows_what_it_showed(self) -> None:
        if hasattr(self, "chat"):
            assert self.chat.prompt().system == self.frozen

    @invariant()
    def others_are_untouched(self) -> None:
        for other, beside in zip(self.others, self.beside, strict=True):
            assert other.records() == [beside]
            assert [hit.id for hit in other.recall(QUERY)] == [beside.id]
            assert (other.version(), len(other.changes())) == (1, 1)

    def teardown(self) -> None:
        assert self.mine.verify().problems == ()


def put(state: State, identity: str, row: Row | None) -> None:
    if row is None:
        state.pop(identity, None)
    else:
        state[identity] = row


def recalled(view: Memory | View) -> object:
    """Recall records, alone and beside messages."""
    alone = view.recall(QUERY, sources=["record"], limit=1_000)
    beside = [hit for hit in view.recall(QUERY, limit=1_000) if hit.source == "record"]
    return [[(hit.id, hit.text, hit.score.hex(), dict(hit.why)) for hit in hits] for hits in (alone, beside)]


def run_machine(location: str, examples: int, steps: int) -> None:
    class Bound(Records):
        pass

    Bound.clock = Clock()
    Bound.memory = Memory(location, user="ada", admin=True, durability="normal", clock=Bound.clock)
    with Bound.memory:
        soak.run_machine(Bound, examples, steps, [HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.scaled
def test_any_records_in_memory() -> None:
    run_machine(":memory:", cases(8, 300), 15)


@pytest.mark.slow
@pytest.mark.scaled
@pytest.mark.parametrize("place", ["memory", "file", "postgres"])
def test_any_records(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> None:
    locations = {"memory": ":memory:", "file": str(tmp_path / "memory.db")}
    location = locations.get(place) or request.getfixturevalue("postgres_url")
    run_machine(location, cases(20 if place == "memory" else 4, 60), 25)
