"""Whatever happens to a session, in any order, its tree is exact and leads to every word."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tree_logs import (
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
    check_words,
    covered_by,
    frontier_of,
    mark,
    pairs_of,
    say,
    steps_of,
    tail_of,
)

from holdfast import Memory, Message
from holdfast.compaction.driver import advance
from holdfast.prompt.window import Compaction, Lossless, SummaryBuffer
from soak import cases

HOW_MODELS = st.sampled_from(sorted(MODELS))
MODE = st.sampled_from(("incremental", "full"))
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
        self.policies: list[Policy] = [Lossless(400), SummaryBuffer(400), Lossless(8_000)]

    @initialize(events=EVENTS)
    def begin(self, events: list[Event]) -> None:
        self.beside = self.other.append(say([*events, ("user", (), "hello " * 200)], 90_000))
        self.other.compact(full=True, policy=Lossless(50, Compaction(turns=0, keep=0, target=0.1)))
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

    @rule(mode=MODE, policy=POLICIES, model=HOW_MODELS)
    def compact(self, mode: str, policy: Policy, model: str) -> None:
        before, stats = self.chat.tree(), self.chat.stats()
        tail = tail_of(self.log, policy)
        covered = covered_by(self.chat)
        with self.leaves_made():
            result = self.chat.compact(full=mode == "full", policy=policy, llm=MODELS[model])
        check_result(self.chat, result, before, stats.summarised, stats.context_tokens)
        if tail:
            assert covered_by(self.chat) < max(tail[0].seq, covered + 1)
        policy_tokens = stats.context_tokens
        if mode == "incremental" and policy_tokens <= int(policy.compaction.threshold * policy.budget):
            assert result.noop
            assert "No compaction is needed" in result.why or not self.log
        if result.why.startswith(LIMITS):
            return
        tree = self.chat.tree()
        assert not self.chat.needs_compaction(policy=policy)
        again = self.chat.compact(full=mode == "full", policy=policy, llm=MODELS[model])
        assert again.noop
        assert self.chat.tree() == tree
        if isinstance(policy, SummaryBuffer) and (mode == "full" or not result.noop):
            assert len(frontier_of(tree)) <= 1

    @rule(mode=MODE, policy=POLICIES, steps=st.integers(0, 4), closes=st.booleans())
    def crash(self, mode: str, policy: Policy, steps: int, closes: bool) -> None:
        with self.leaves_made():
            running = steps_of(self.chat, mode, policy)
            batch = advance(running.__next__)
            for _ in range(steps):
                if not isinstance(batch, list):
                    return
                batch = advance(running.send, ["They spoke of a garden."] * len(batch))
            if closes:
                running.close()

    @rule(
        policy=POLICIES, what=DISTURBANCES, when=st.integers(1, 4), events=EVENTS, part=st.integers(0, 10**6)
    )
    def compact_disturbed(self, policy: Policy, what: str, when: int, events: list[Event], part: int) -> None:
        """Let something else happen while the model thinks for the n-th time."""
        asked = count(1)

        def answer(prompt: str) -> str:
            if next(asked) == when:
                self.disturb(what, policy, events, part)
            return f"They spoke of {mark(int(prompt.split('zq')[1][:5]))}." if "zq" in prompt else "Nothing."

        with self.leaves_made():
            self.chat.compact(full=True, policy=policy, llm=answer)

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
        check_tree(self.mine, self.chat, self.log)

    @invariant()
    def every_word_is_reached(self) -> None:
        check_words(self.chat, self.log, cap=1 + self.said * 7 % 400)

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
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        Bound,
        settings=settings(max_examples=examples, stateful_step_count=steps, suppress_health_check=checks),
    )


@pytest.mark.slow
@pytest.mark.scaled
def test_a_session_in_memory_stays_true() -> None:
    with Memory(":memory:", user="ada", admin=True) as memory:
        run_machine(memory, cases(15, 300), 10)


@pytest.mark.slow
@pytest.mark.scaled
def test_a_session_on_disk_stays_true(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", user="ada", admin=True, durability="normal") as memory:
        run_machine(memory, cases(4, 40), 8)


@pytest.mark.slow
@pytest.mark.scaled
def test_a_session_on_a_server_stays_true(postgres_url: str) -> None:
    with Memory(postgres_url, user="ada", admin=True) as memory:
        run_machine(memory, cases(4, 40), 8)


@pytest.mark.soak
def test_a_session_in_memory_stays_true_for_long() -> None:
    with Memory(":memory:", user="ada", admin=True) as memory:
        run_machine(memory, 120, 20)
