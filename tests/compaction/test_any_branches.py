"""Any order of append, rewind, edit, compact, switch and undo: a window has the messages of its branch."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from compaction_chats import lossless
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tree_checks import EVENTS, POLICIES, TEXTS, Event, Policy, check_tree, check_windows, mark, pairs_of, say

import soak
from holdfast import InvalidInput, Memory, Message
from soak import cases

PLACE = st.floats(0, 1)  # in the branch
SMALL = lossless(300, turns=0, keep=0, target=0.1)


class Branches(RuleBasedStateMachine):
    """A chat of which the whole tree is known, through one of two open memories at each step."""

    memories: tuple[Memory, ...]  # of all examples: each has a user of its own
    users = count(1)

    def __init__(self) -> None:
        super().__init__()
        user = f"user {next(self.users)}"
        self.mine = [memory.scoped(user=user) for memory in self.memories]
        self.turn = 0
        self.parents: dict[int, int] = {}
        self.stored: dict[int, Message] = {}
        self.head = 0
        self.moves: list[int] = []  # the heads before those moves that were not undone
        self.policies: list[Policy] = [lossless(400), lossless(8_000)]

    @property
    def memory(self) -> Memory:
        return self.mine[self.turn % len(self.mine)]

    def path(self, head: int) -> list[Message]:
        messages = []
        while head:
            messages.append(self.stored[head])
            head = self.parents[head]
        return messages[::-1]

    @property
    def log(self) -> list[Message]:
        return self.path(self.head)

    def heads(self) -> list[int]:
        return sorted({self.head, *self.stored} - (set(self.parents.values()) - {self.head}))

    def take(self, messages: list[Message]) -> None:
        for message in messages:
            self.parents[message.seq], self.stored[message.seq] = self.head, message
            self.head = message.seq

    def move(self, head: int) -> None:
        if head != self.head:
            self.moves.append(self.head)
            self.head = head

    @initialize(events=EVENTS, place=PLACE)
    def begin(self, events: list[Event], place: float) -> None:
        """Begin with two branches that have trees of their own above the one that they share."""
        turns: list[Event] = [("user", (), "The tulips in the garden of Ada bloom in April. " * 3)] * 20
        for turn in range(2):
            self.append([*events, *turns], turn)
            self.compact(full=True, policy=SMALL)
            self.rewind(0.4 + place / 2, 1 - turn)
        self.switch(0, 0)

    # What happens

    @rule(events=EVENTS, turn=st.integers(0, 1))
    def append(self, events: list[Event], turn: int) -> None:
        self.turn = turn
        self.take(self.memory.chat("monday").append(say(events, len(self.stored))))

    @rule(place=PLACE, turn=st.integers(0, 1))
    def rewind(self, place: float, turn: int) -> None:
        self.turn, log = turn, self.log
        keep = int(place * len(log))
        to = log[keep - 1].seq if keep else 0
        chat = self.memory.chat("monday")
        if any(pair.call <= to < pair.result for pair in pairs_of(log)):
            with pytest.raises(InvalidInput, match="tool call"):
                chat.rewind(to)
        else:
            chat.rewind(to)
            self.move(to)

    @rule(place=PLACE, text=TEXTS)
    def edit(self, place: float, text: str) -> None:
        log, chat = self.log, self.memory.chat("monday")
        if not log:
            return
        old = log[int(place * (len(log) - 1))]
        before = self.parents[old.seq]
        words = f"{text} {mark(len(self.stored) + 1)}"
        is_parted = any(pair.call <= before < pair.result for pair in pairs_of(log))
        if old.calls or old.role == "tool" or is_parted:
            with pytest.raises(InvalidInput, match="tool call"):
                chat.edit(old.seq, words)
            return
        new = chat.edit(old.seq, words)
        assert (new.role, new.content) == (old.role, words)
        self.move(before)
        self.take([new])

    @rule()
    def regenerate(self) -> None:
        log, chat = self.log, self.memory.chat("monday")
        request = next((message for message in reversed(log) if message.role == "user"), None)
        if request is None or any(pair.call < request.seq < pair.result for pair in pairs_of(log)):
            with pytest.raises(InvalidInput):
                chat.regenerate()
        else:
            assert chat.regenerate() == request
            self.move(request.seq)

    @rule(choice=st.integers(0, 99), turn=st.integers(0, 1))
    def switch(self, choice: int, turn: int) -> None:
        self.turn = turn
        chat, heads = self.memory.chat("monday"), self.heads()
        every = chat.branches()
        assert [branch.head for branch in every] == heads
        assert [branch.head for branch in every if branch.is_current] == [self.head]
        branch = every[choice % len(every)]
        assert chat.history(branch=branch) == self.path(branch.head)
        assert branch.messages == len(self.path(branch.head))
        chat.switch(branch)
        self.move(branch.head)

    @rule(turn=st.integers(0, 1))
    def undo(self, turn: int) -> None:
        self.turn = turn
        if self.moves:
            assert self.memory.undo() == []
            self.head = self.moves.pop()
        else:
            with pytest.raises(InvalidInput, match="nothing to undo"):
                self.memory.undo()

    @rule(full=st.booleans(), policy=POLICIES | st.just(SMALL))
    def compact(self, full: bool, policy: Policy) -> None:
        self.memory.chat("monday").compact(full=full, policy=policy)

    # What holds

    @invariant()
    def the_window_has_the_messages_of_the_branch(self) -> None:
        for memory in self.mine:
            chat = memory.chat("monday")
            log = self.log
            check_tree(chat, log)
            check_windows(chat, log, self.policies)

    @invariant()
    def recall_finds_what_is_on_the_branch(self) -> None:
        log = {message.seq for message in self.log}
        for message in list(self.stored.values())[-3:]:
            words = message.content.split()[-1:]
            for memory in self.mine if words else ():
                hits = memory.recall(words[0], sources="message", branches=False)
                seqs = {hit.seq for hit in hits if words[0] in hit.text}
                assert seqs <= log
                assert (message.seq in seqs) == (message.seq in log)
                every = memory.recall(words[0], sources="message", branches=True)
                assert message.seq in {hit.seq for hit in every}


def run_machine(memories: tuple[Memory, ...], examples: int, steps: int) -> None:
    machine = type("Bound", (Branches,), {"memories": memories})
    ignored = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    soak.run_machine(machine, examples, steps, ignored)


@pytest.mark.scaled
def test_any_branches_in_memory() -> None:
    with Memory(":memory:", user="ada", admin=True) as memory:
        run_machine((memory,), cases(3, 300), 10)


@pytest.mark.slow
@pytest.mark.scaled
@pytest.mark.parametrize("place", ["file", "postgres"])
def test_any_branches(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> None:
    """Two open memories, as two processes have them."""
    of_server = place == "postgres"
    location = str(request.getfixturevalue("postgres_url")) if of_server else str(tmp_path / "memory.db")
    with (
        Memory(location, user="ada", admin=True, durability="normal") as one,
        Memory(location, user="ada", admin=True, durability="normal") as other,
    ):
        run_machine((one, other), cases(4, 100), cases(12, 20))
