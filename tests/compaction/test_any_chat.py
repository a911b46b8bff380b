"""Any chat, any policy: the tree covers 1 … n, expands word for word, and the window holds its budget."""

from __future__ import annotations

from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path

import pytest
from compaction_chats import WAYS, AsyncScribe, Scribe, buffer, compact, lossless
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tree_checks import (
    EVENTS,
    LIMITS,
    MODELS,
    POLICIES,
    TEXTS,
    Event,
    Pair,
    Policy,
    check_result,
    check_tree,
    check_windows,
    covered_by,
    frontier_of,
    mark,
    pairs_of,
    say,
    tail_of,
)

import soak
from holdfast import CompactionResult, Memory, Message
from soak import cases

LABEL = 4  # tokens by which the label of a node may be longer than that of a leaf
HOW_MODELS = st.sampled_from(sorted(MODELS))
HOW = st.sampled_from(WAYS)
FULL = st.booleans()
DISTURBANCES = st.sampled_from(["append", "compact", "erase", "erase all", "erase another"])


class Sessions(RuleBasedStateMachine):
    """One session that all is done to, and another one beside it that nothing may happen to."""

    memory: Memory  # of all examples: each has a user of its own
    users = count(1)

    def __init__(self) -> None:
        super().__init__()
        self.mine = self.memory.scoped(user=f"user {next(self.users)}")
        self.chat = self.mine.chat("monday")
        self.other = self.mine.chat("tuesday")
        self.log: list[Message] = []
        self.said = 0
        self.erased: set[str] = set()
        self.pairs: set[Pair] = set()
        self.length_at: dict[str, int] = {}  # of the session, when a leaf was begun
        self.policies: list[Policy] = [lossless(400), buffer(400), lossless(8_000)]

    @initialize(events=EVENTS)
    def begin(self, events: list[Event]) -> None:
        self.beside = self.other.append(say([*events, ("user", (), "hello " * 200)], 90_000))
        self.other.compact(full=True, policy=lossless(50, turns=0, keep=0, target=0.1))
        self.tree_beside = self.other.tree()

        self.append([*events, *[("user", (), "The tulips in the garden of Ada bloom in April. " * 3)] * 20])

    # What happens

    @rule(roles=st.lists(st.sampled_from(["user", "assistant"]), min_size=10, max_size=40), text=TEXTS)
    def append_many(self, roles: list[str], text: str) -> None:
        self.append([(role, (), text) for role in roles])

    @rule(events=EVENTS)
    def append(self, events: list[Event]) -> None:
        fresh = self.chat.append(say(events, self.said))
        self.said += len(events)
        known = len(self.log)
        self.log += fresh
        self.pairs |= {
            pair for pair in pairs_of(self.log) if pair.result > self.log[known - 1].seq or not known
        }

    @rule(full=FULL, way=HOW, policy=POLICIES, model=HOW_MODELS)
    def compact(self, full: bool, way: str, policy: Policy, model: str) -> None:
        before, stats = self.chat.tree(), self.chat.stats()
        tail = tail_of(self.log, policy)
        covered = covered_by(self.chat)
        answer = MODELS[model]
        llm = answer and (Scribe if way == "called" else AsyncScribe)(answer)
        told: list[CompactionResult] = []
        with self.leaves_made():
            result = compact(way, self.chat, llm, full=full, policy=policy, progress=told.append)
        check_result(self.chat, result, before, stats.summarised, stats.context_tokens, policy)
        check_progress(result, told, policy)
        assert result.calls == (len(llm.prompts) if llm else 0)
        if tail:
            assert covered_by(self.chat) < max(tail[0].seq, covered + 1)
        if not full and stats.context_tokens <= int(policy.compaction.threshold * policy.budget):
            assert result.noop
            assert "No compaction is needed" in result.why or not self.log
        if result.why.startswith(LIMITS):
            return
        tree = self.chat.tree()
        assert not self.chat.needs_compaction(policy=policy)
        again = self.chat.compact(full=full, policy=policy, llm=answer)
        assert again.noop or again.why.startswith(LIMITS)
        assert self.chat.tree() == tree or not again.noop
        if policy.compaction.single and (full or not result.noop):
            frontier, old = frontier_of(tree), frontier_of(before)
            assert len(frontier) <= 1
            if frontier and len(old) == 1 and old[0].depth:
                assert frontier[0].id == old[0].id, "its id stays the same while it grows"

    @rule(full=FULL, way=HOW, policy=POLICIES, steps=st.integers(1, 6), told=st.booleans())
    def crash(self, full: bool, way: str, policy: Policy, steps: int, told: bool) -> None:
        """Let the program end while a model writes, or when it is told what was written."""
        asked = count(1)

        def end(_: object) -> str:
            if next(asked) >= steps:
                raise KeyboardInterrupt
            return "They spoke of a garden."

        with self.leaves_made(), suppress(KeyboardInterrupt):
            compact(
                way,
                self.chat,
                None if told else end,
                full=full,
                policy=policy,
                progress=end if told else None,
            )

    @rule(
        way=HOW,
        policy=POLICIES,
        what=DISTURBANCES,
        when=st.integers(1, 4),
        events=EVENTS,
        part=st.integers(0, 10**6),
    )
    def compact_disturbed(
        self, way: str, policy: Policy, what: str, when: int, events: list[Event], part: int
    ) -> None:
        """Let something else happen while the model thinks for the n-th time."""
        asked = count(1)

        def answer(prompt: str) -> str:
            if next(asked) == when:
                self.disturb(what, policy, events, part)
            return f"They spoke of {mark(int(prompt.split('zq')[1][:5]))}." if "zq" in prompt else "Nothing."

        with self.leaves_made():
            compact(way, self.chat, (Scribe if way == "called" else AsyncScribe)(answer), policy=policy)

    def disturb(self, what: str, policy: Policy, events: list[Event], part: int) -> None:
        if what == "append":
            self.append(events)
        elif what == "compact":
            self.chat.compact(full=True, policy=policy)
        elif what == "erase":
            self.erase(part, part // 7)
        elif what == "erase all":
            self.erase_all()
            self.append(events)
        else:
            self.mine.chat("wednesday").append(role="user", content="hello")
            self.mine.erase(chat="wednesday")

    @rule(start=st.integers(0, 10**6), length=st.integers(0, 10**6))
    def erase(self, start: int, length: int) -> None:
        if not self.log:
            return
        place = start % len(self.log)
        end = min(len(self.log) - 1, place + length % 4)
        first, last = self.log[place].seq, self.log[end].seq
        stay = [one for one in self.chat.tree() if one.last < first]
        gone = [one for one in self.chat.tree() if one.last >= first]
        receipt = self.mine.erase(chat="monday", messages=(first, last))
        self.forget([message for message in self.log if first <= message.seq <= last])
        assert receipt.counts["messages"] == end - place + 1
        assert receipt.counts.get("summaries", 0) >= len(gone)
        left = {(one.id, one.first, one.last, one.text) for one in self.chat.tree()}
        assert left >= {(one.id, one.first, one.last, one.text) for one in stay}
        assert covered_by(self.chat) < first

    @rule()
    def erase_all(self) -> None:
        if self.log:
            self.mine.erase(chat="monday")
            self.forget(self.log)
            self.pairs.clear()
            self.length_at.clear()
            assert self.chat.tree() == []

    def forget(self, gone: list[Message]) -> None:
        self.erased |= {
            mark(number) for number in range(self.said + 1) if any(mark(number) in str(m) for m in gone)
        }
        self.log = [message for message in self.log if message not in gone]

    def leaves_made(self) -> LeavesMade:
        return LeavesMade(self)

    # What is always true

    @invariant()
    def tree_is_exact(self) -> None:
        check_tree(self.chat, self.log, cap=self.said * 7 % 400)

    @invariant()
    def windows_are_true(self) -> None:
        check_windows(self.chat, self.log, self.policies)

    @invariant()
    def no_leaf_ends_within_a_tool_use(self) -> None:
        there = {message.seq for message in self.log}
        for leaf in self.chat.tree():
            for pair in self.pairs if not leaf.depth else ():
                late = pair.result > self.length_at.get(leaf.id, 0)
                parted = leaf.first <= pair.call <= leaf.last < pair.result
                assert late or not parted or not {pair.call, pair.result} <= there

    @invariant()
    def erased_words_are_nowhere(self) -> None:
        texts = " ".join(one.text for one in self.chat.tree())
        assert [word for word in self.erased if word in texts] == []

    @invariant()
    def the_session_beside_is_as_it_was(self) -> None:
        if hasattr(self, "beside"):
            assert self.other.history() == self.beside
            assert self.other.tree() == self.tree_beside


def check_progress(result: CompactionResult, told: list[CompactionResult], policy: Policy) -> None:
    """Check that each summary was told when it was stored, and that none was written that was not needed."""
    stages = [one for one in told if not one.why]
    assert [len(one.summaries) for one in stages] == [*range(1, len(result.summaries) + 1)]
    assert all(stage.summaries == result.summaries[: len(stage.summaries)] for stage in stages)
    sizes = [one.tokens_after for one in stages]
    for stage, following in pairwise(stages):
        # The first leaf of a cumulative summary becomes it, word for word, with the longer label of a node.
        is_copy = following.summaries[-1].text == stage.summaries[-1].text
        assert following.tokens_after <= stage.tokens_after + (LABEL if is_copy else 0)
    assert not sizes or sizes[-1] == result.tokens_after
    if result.why.startswith("It is below the target of") and not policy.compaction.single:
        target = int(policy.compaction.target * policy.budget + 1e-6)
        assert all(size >= target for size in (result.tokens_before, *sizes)[: len(sizes)])


class LeavesMade:
    """Note how long the session was when the leaves of a block were begun."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def __enter__(self) -> None:
        self._length = self._sessions.log[-1].seq if self._sessions.log else 0

    def __exit__(self, *_: object) -> None:
        for leaf in self._sessions.chat.tree():
            self._sessions.length_at.setdefault(leaf.id, self._length)


def run_machine(memory: Memory, examples: int, steps: int) -> None:
    class Bound(Sessions):
        pass

    Bound.memory = memory
    ignored = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    soak.run_machine(Bound, examples, steps, ignored)


@pytest.mark.scaled
def test_any_chat_in_memory() -> None:
    with Memory(":memory:", user="ada", admin=True) as memory:
        run_machine(memory, cases(5, 300), 8)


@pytest.mark.slow
@pytest.mark.scaled
@pytest.mark.parametrize("place", ["memory", "file", "postgres"])
def test_any_chat(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> None:
    if place == "postgres":
        location: str = request.getfixturevalue("postgres_url")
    else:
        location = ":memory:" if place == "memory" else str(tmp_path / "memory.db")
    with Memory(location, user="ada", admin=True, durability="normal") as memory:
        run_machine(memory, cases(15 if place == "memory" else 4, 60), 10)
