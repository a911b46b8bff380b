"""The log of a chat of the fake provider: its messages, and a tree of summaries over the older ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TypeVar

from holdfast.errors import InvalidInput
from holdfast.testing.minimal import groups, newest, numbered
from holdfast.text.shorten import shorten_line
from holdfast.text.tokens import estimate_tokens
from holdfast.types import (
    ChatInfo,
    ChatStats,
    Description,
    Expansion,
    Level,
    Message,
    Omission,
    Summary,
    Window,
)

TARGET = 0.6  # the share of a budget that compaction goes under
TAIL = 4  # the newest messages, which are never summarised
LEAF = (4, 10)  # messages that a leaf is made of, at least, and about so many where they are there
FAN_IN = 4  # summaries that one is made of; two where there is no other way

Item = TypeVar("Item", Message, Summary)
Part = tuple[Message, ...] | tuple[Summary, ...]
"""What a summary is made of: neighbours, the oldest first."""


@dataclass(slots=True)
class Log:
    """A chat, without a lock: callers hold that of the store."""

    id: str
    agent: str
    writers: set[str] = field(default_factory=set)
    messages: list[Message] = field(default_factory=list)
    tree: dict[str, Summary] = field(default_factory=dict)
    title: str = ""
    archived: bool = False
    ended: bool = False

    def append(self, messages: Iterable[Message]) -> list[Message]:
        """Store messages, all or none."""
        made = {call.id for one in self.messages for call in one.calls}
        stored = []
        for seq, one in enumerate(messages, len(self.messages) + 1):
            answers = (one.call_id,) if one.call_id in made and one.call_id else ()
            stored.append(replace(numbered(one, seq), answers=answers))
            made.update(call.id for call in one.calls)
        self.messages.extend(stored)
        return stored

    def frontier(self) -> list[Summary]:
        """List the summaries that are part of no other, in the order of the messages."""
        return sorted((one for one in self.tree.values() if not one.parent), key=lambda one: one.first)

    def rest(self) -> list[Message]:
        """List the messages that no summary stands for."""
        return self.messages[sum(one.messages for one in self.frontier()) :]

    def stats(self) -> ChatStats:
        """Count messages and tokens."""
        if not self.messages:
            return ChatStats()
        times = [one.at for one in self.messages if one.at]
        frontier = self.frontier()
        return ChatStats(
            len(self.messages),
            _cost(self.messages),
            _cost([*frontier, *self.rest()]),
            min(times),
            max(times),
            summarised=sum(one.messages for one in frontier),
        )

    def info(self, user: str) -> ChatInfo:
        """Describe the chat in a list of chats."""
        stats, now = self.stats(), datetime.now(UTC)
        title = self.title or next(
            (shorten_line(one.content, 80) for one in self.messages if one.role == "user"), ""
        )
        return ChatInfo(
            self.id,
            title,
            self.agent,
            user,
            self.archived,
            stats.messages,
            stats.stored_tokens,
            stats.oldest or now,
            stats.newest or now,
        )

    def window(self, budget: int, keep: int) -> Window:
        """Show the newest messages that fit, then, if these are all, the newest summaries that fit."""
        frontier, rest = self.frontier(), self.rest()
        shown = newest(rest, budget, keep)
        left_out = list(frontier)
        room = budget - shown.tokens
        while not shown.omitted and left_out and left_out[-1].tokens <= room:
            room -= left_out.pop().tokens
        kept = frontier[len(left_out) :]
        omitted = shown.omitted
        if left_out:
            last, tokens = left_out[-1].last, sum(one.source_tokens for one in left_out)
            omitted = (Omission(last, 1, last, tokens, "summaries that do not fit"), *omitted)
        return Window(shown.messages, tuple(kept), shown.tokens + _cost(kept), budget, omitted)

    # Compaction: what is next, and its storing; between the two, the summary is written

    def next_part(self, budget: int, share: float = TARGET) -> Part | None:
        """Return what to summarise next; None if the chat is within a share of the budget, or nothing is."""
        if _cost([*self.frontier(), *self.rest()]) <= share * budget:
            return None
        return self._leaf() or self._condensed()

    def _leaf(self) -> tuple[Message, ...]:
        rest, taken = self.rest(), list[Message]()
        for group in groups(rest):
            if len(taken) >= LEAF[1] or len(taken) + len(group) > len(rest) - TAIL:
                break
            taken += group
        return tuple(taken) if len(taken) >= LEAF[0] else ()

    def _condensed(self) -> tuple[Summary, ...] | None:
        neighbours = [tuple(some) for _, some in groupby(self.frontier(), key=lambda one: one.depth)]
        for size in (FAN_IN, 2):
            enough = [some[:size] for some in neighbours if len(some) >= size]
            if enough:
                return min(enough, key=lambda some: some[0].depth)
        return None

    def store(self, part: Part, id: str, text: str, level: Level) -> Summary | None:
        """Let a summary stand for a part; None if something else stands for it by now."""
        now = datetime.now(UTC)
        children = [one for one in part if isinstance(one, Summary)]
        if children != [one for one in self.frontier() if one in part]:
            return None
        if not children and part[0] not in self.rest():
            return None
        source = [one for one in self.messages if _first(part[0]) <= one.seq <= _last(part[-1])]
        summary = Summary(
            id,
            self.id,
            1 + children[0].depth if children else 0,
            source[0].seq,
            source[-1].seq,
            text,
            tokens=estimate_tokens(text),
            since=min((one.at for one in source if one.at), default=now),
            until=max((one.at for one in source if one.at), default=now),
            level=level,
            messages=len(source),
            source_tokens=_cost(source),
            at=now,
        )
        self.tree[id] = summary
        self.tree.update({one.id: replace(one, parent=id) for one in children})
        return summary

    # The way back

    def describe(self, id: str) -> Description:
        """Place a summary in the tree."""
        parents, one = list[str](), self.tree[id]
        while one.parent:
            parents.append(one.parent)
            one = self.tree[one.parent]
        return Description(self.tree[id], tuple(parents), tuple(one.id for one in self.children(id)))

    def children(self, id: str) -> list[Summary]:
        """List the summaries that one was made of."""
        return sorted((one for one in self.tree.values() if one.parent == id), key=lambda one: one.first)

    def expand(self, id: str, cap: int, cursor: str | None) -> Expansion:
        """Open a summary, from the message after the one that the cursor names.

        Raises:
            InvalidInput: the cursor is none of this summary.

        """
        summary = self.tree[id]
        ends = {str(seq): seq for seq in range(summary.first, summary.last)}
        if cursor is not None and cursor not in ends:
            raise InvalidInput("That is no cursor of this summary.", "Pass the one of its last expansion.")
        after = summary.first - 1 if cursor is None else ends[cursor]
        children = _within([one for one in self.children(id) if one.first > after], cap)
        covered = self.messages[after : summary.last]
        messages = () if summary.depth else _within(covered, cap)
        last = children[-1].last if children else messages[-1].seq
        more = last < summary.last
        return Expansion(summary, tuple(messages), tuple(children), more, str(last) if more else None)


def _cost(items: Iterable[Message | Summary]) -> int:
    return sum(one.tokens for one in items)


def _first(one: Message | Summary) -> int:
    return one.first if isinstance(one, Summary) else one.seq


def _last(one: Message | Summary) -> int:
    return one.last if isinstance(one, Summary) else one.seq


def _within(items: Sequence[Item], cap: int) -> Sequence[Item]:
    """Take items while they fit together, and the first in any case."""
    size = next((size for size in range(len(items), 1, -1) if _cost(items[:size]) <= cap), 1)
    return items[:size]
