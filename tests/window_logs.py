"""Logs for tests: made by hand, or at random with every kind of tool use that a log can hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import cast

from hypothesis import settings
from hypothesis import strategies as st

from holdfast.prompt.window import BuiltInPolicy as Policy
from holdfast.prompt.window_selection import ChatLog, choose
from holdfast.types import Message, Role, ToolCall, Window

settings.register_profile("shared machine")  # a busy one must not fail a property
settings.load_profile("shared machine")

Event = tuple[str, tuple[str, ...], int]  # kind, ids, tokens
IDS = st.lists(st.sampled_from(["call_0", "call_1", "call_2"]), min_size=1, max_size=3, unique=True).map(
    tuple
)
PLAIN = st.tuples(
    st.sampled_from(["user", "user", "assistant", "system", "tool"]), st.just(()), st.integers(1, 30)
)
TOOLS = st.tuples(st.sampled_from(["call", "result", "result"]), IDS, st.integers(1, 30))
EVENTS: st.SearchStrategy[list[Event]] = st.lists(st.one_of(PLAIN, TOOLS), max_size=24)


def make(events: Sequence[Event]) -> list[Message]:
    """Make the log that `append` would: results name only calls that came before them."""
    log: list[Message] = []
    called: set[str] = set()
    for seq, (kind, ids, tokens) in enumerate(events, 1):
        if kind == "call":
            called.update(ids)
            calls = tuple(ToolCall(identity, "tool") for identity in ids)
            log.append(Message("assistant", calls=calls, seq=seq, tokens=tokens))
        elif kind == "result":
            answers = tuple(identity for identity in ids if identity in called)
            log.append(Message("tool", "r", call_id=ids[0], answers=answers, seq=seq, tokens=tokens))
        else:
            log.append(Message(cast("Role", kind), kind, seq=seq, tokens=tokens))
    return log


LOGS = EVENTS.map(make)


def parse(script: str, tokens: int = 10) -> list[Message]:
    """Read a log from words: `u a s t` are roles, `+x,y` calls x and y, `-x` answers x, `:5` are tokens."""
    names = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}
    events: list[Event] = []
    for word in script.split():
        head, _, cost = word.partition(":")
        kind = {"+": "call", "-": "result"}.get(head[0]) or names[head]
        ids = tuple(head[1:].split(",")) if head[0] in "+-" else ()
        events.append((kind, ids, int(cost) if cost else tokens))
    return make(events)


def window(policy: Policy, log: Sequence[Message]) -> Window:
    return window_of(policy, iter(log[::-1]), len(log), sum(message.tokens for message in log))


def window_of(policy: Policy, newest_first: Iterable[Message], length: int, tokens: int) -> Window:
    return choose(ChatLog(newest_first, length, tokens), policy.reach())


def seqs(result: Window) -> list[int]:
    return [message.seq for message in result.messages]


class Reference:
    """Do what the window's core does, on the whole log at once, oldest first, by definition."""

    def __init__(self, log: Sequence[Message]) -> None:
        self.log = log
        self.orphans = {m.seq for m in log if m.call_id and not m.answers}
        self.pairs = [(self._caller(m, answer), m.seq) for m in log for answer in m.answers]
        self.broken = self._broken()
        self.groups = self._grouped()

    def _caller(self, result: Message, answer: str) -> int:
        return max(m.seq for m in self.log[: result.seq] if answer in {call.id for call in m.calls})

    def _broken(self) -> set[int]:
        answered = {(self._caller(m, answer), answer) for m in self.log for answer in m.answers}
        broken = {m.seq for m in self.log if any((m.seq, call.id) not in answered for call in m.calls)}
        while True:
            more = {seq for pair in self.pairs for seq in pair if broken.intersection(pair)} | broken
            if more == broken:
                return broken
            broken = more

    def _grouped(self) -> list[list[Message]]:
        """Group what remains, newest group first, each in order."""
        groups: list[list[Message]] = []
        out = self.broken | self.orphans
        for message in self.log:
            if message.seq in out:
                continue
            joined = any(
                call < message.seq <= result and any(m.seq >= call for m in groups[-1])
                for call, result in self.pairs
                if call not in out and groups
            )
            if joined:
                groups[-1].append(message)
            else:
                groups.append([message])
        return groups[::-1]

    def tokens(self, n: int) -> int:
        return sum(m.tokens for group in self.groups[:n] for m in group)

    def users(self, n: int) -> int:
        return sum(m.role == "user" for group in self.groups[:n] for m in group)

    def fitting(self, budget: int) -> int:
        return len(list(takewhile(lambda n: self.tokens(n) <= budget, range(1, len(self.groups) + 1))))

    def newest(self, messages: int) -> int:
        counts = [sum(map(len, self.groups[:n])) for n in range(len(self.groups) + 1)]
        return next((n for n, count in enumerate(counts) if count >= messages), len(self.groups))

    def tail(self, turns: int, cap: int) -> int:
        """Count the groups of the newest turns: whole ones within the cap, else a part of the newest."""
        inside = [n for n in range(1, self.fitting(cap) + 1) if self.users(n - 1) < turns]
        if inside and inside[-1] == len(self.groups) and self.users(inside[-1]) < turns:
            return len(self.groups)
        whole = [n for n in inside if self.users(n) > self.users(n - 1)]
        return (whole or inside or [min(1, turns, len(self.groups))])[-1]


def counting(log: Sequence[Message], read: list[int]) -> Iterator[Message]:
    """Read a log from the newest message back, and note what was read."""
    for message in reversed(log):
        read.append(message.seq)
        yield message
