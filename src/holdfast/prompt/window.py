"""Choose what a model sees of a session: pure policies over its messages, read from the newest back.

All share one core, `prompt/window_selection.py`, that never splits a tool use. Unless all there is fits, or with `user_first=False`,
it lets the messages begin with one of the user: the next newer one, where that leaves out no guaranteed message and at most
half of what fits. Where there is none in reach, `omitted` says so. The three simple policies look at messages only; `Lossless`
and `SummaryBuffer` let the summaries of a session stand for what is older, and say how it is compacted.

Results of tools that take more than `oversize` tokens, or than an eighth of the budget, are shown as placeholders, once
their turn is over and they are no longer among what the policy keeps; None or 0 shows them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import tee
from typing import TYPE_CHECKING, Protocol

from holdfast.compaction.plan import DEFAULTS, Compaction, share_of
from holdfast.errors import InvalidInput, shown
from holdfast.prompt.oversize import SHARE, Oversize
from holdfast.prompt.window_selection import NO_BUDGET, Reach, choose
from holdfast.types import MAX_COUNT, Message, Omission, Summary, Window, check_count

if TYPE_CHECKING:
    from holdfast.prompt.oversize import Shorten
    from holdfast.types import ChatStats


@dataclass(frozen=True, slots=True)
class LastN:
    """Keep the newest `n` messages, whatever they cost.

    There are more than `n` when the oldest belongs to a tool use, which is never split, or when `user_first` extends
    the window back to the user message that starts the turn, if it is among as many again. Broken tool use does not count.

    Raises:
        InvalidInput: `n` is not an int of 0 or more.

    """

    n: int = 20
    user_first: bool = True

    def __post_init__(self) -> None:
        check_count(self.n, "n")

    def select(self, newest_first: Iterable[Message], length: int, tokens: int, erased: int = 0) -> Window:
        """Make the window of a session up to the seq `length`, less the erased; linear in what is taken."""
        older = f"older than the newest {self.n} messages"
        reach = Reach(NO_BUDGET, self.n, user_first=self.user_first, older=older)
        return choose(newest_first, length, tokens, reach, erased)


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Keep the newest messages that fit `budget` tokens, and the newest `keep` messages even if they do not fit.

    Tool use is never split. With `user_first` a window that leaves something out begins with a user message, the next
    newer one, where that leaves out none of the `keep` and at most half of what fits.

    Raises:
        InvalidInput: `budget`, `keep` or `oversize` is not an int of 0 or more.

    """

    budget: int = 8_000
    keep: int = 5
    user_first: bool = True
    oversize: int | None = 2_000

    def __post_init__(self) -> None:
        check_count(self.budget, "budget")
        check_count(self.keep, "keep")
        check_count(self.oversize or 0, "oversize")

    def select(
        self,
        newest_first: Iterable[Message],
        length: int,
        tokens: int,
        erased: int = 0,
        oversize: Oversize | None = None,
    ) -> Window:
        """Make the window of a session up to the seq `length`, less the erased; linear in what is taken."""
        oversize = oversize and oversize.beyond(self.keep)
        reach = Reach(self.budget, self.keep, user_first=self.user_first, oversize=oversize)
        return choose(newest_first, length, tokens, reach, erased)


@dataclass(frozen=True, slots=True)
class FreshTail:
    """Keep the newest messages that fit `budget` tokens, and the newest user turns as far as `cap` tokens.

    A turn is a user message and everything after it until the next one. Of the newest `turns` turns as many as
    together fit `cap` are kept whole, whatever the budget; if not even the newest fits, its newest messages that do;
    and with `turns` of 1 or more always the newest message, with the whole tool use it belongs to. Without a `cap`
    the budget is the cap, so that nothing but that last rule exceeds the budget. `user_first` as for `TokenBudget`.

    Raises:
        InvalidInput: `budget`, `turns`, `cap` or `oversize` is not an int of 0 or more.

    """

    budget: int = 8_000
    turns: int = 6
    cap: int | None = None
    user_first: bool = True
    oversize: int | None = 2_000

    def __post_init__(self) -> None:
        check_count(self.budget, "budget")
        check_count(self.turns, "turns")
        if self.cap is not None:
            check_count(self.cap, "cap")
        check_count(self.oversize or 0, "oversize")

    def select(
        self,
        newest_first: Iterable[Message],
        length: int,
        tokens: int,
        erased: int = 0,
        oversize: Oversize | None = None,
    ) -> Window:
        """Make the window of a session up to the seq `length`, less the erased; linear in what is taken."""
        cap, keep = self.budget if self.cap is None else self.cap, min(1, self.turns)
        if oversize:
            before = self.budget - oversize.fresh if self.cap is None else cap
            oversize = oversize.beyond(keep, self.turns, before)
        reach = Reach(self.budget, keep, self.turns, cap, user_first=self.user_first, oversize=oversize)
        return choose(newest_first, length, tokens, reach, erased)


@dataclass(frozen=True, slots=True)
class Lossless:
    """Let summaries stand for the older part of a session, then the messages that none of them covers. The default.

    While all of that fits, nothing of the session is missing, but for results that are `oversize`. Where it does not,
    the newest messages go first, as `FreshTail` keeps them, then the summaries, the newest first, then older messages;
    what is left out is named.
    `compaction` says when `Chat.compact` summarises how much. `user_first` as for `TokenBudget`. The newest `keep`
    messages are there even if they do not fit; None for the newest one, unless the compaction keeps no turns.

    Raises:
        InvalidInput: `budget`, `keep` or `oversize` is not an int of 0 or more, or `compaction` is none.

    """

    budget: int = 8_000
    compaction: Compaction = DEFAULTS
    user_first: bool = True
    keep: int | None = None
    oversize: int | None = 2_000

    def __post_init__(self) -> None:
        check_count(self.budget, "budget")
        check_count(self.oversize or 0, "oversize")
        if self.keep is not None:
            check_count(self.keep, "keep")
        compaction: object = self.compaction
        if not isinstance(compaction, Compaction):
            raise InvalidInput(f"`compaction` is {compaction!r}.", "Pass a Compaction.")

    def select(
        self,
        newest_first: Iterable[Message],
        length: int,
        tokens: int,
        erased: int = 0,
        frontier: Sequence[Summary] = (),
        oversize: Oversize | None = None,
    ) -> Window:
        """Make the window of a session up to the seq `length`, less the erased; `frontier` stands for its oldest part."""
        budget, turns = self.budget, self.compaction.turns
        keep = min(1, turns) if self.keep is None else self.keep
        oversize = oversize and oversize.beyond(keep)
        if not frontier:
            reach = Reach(budget, keep, turns, budget, user_first=self.user_first, oversize=oversize)
            return choose(newest_first, length, tokens, reach, erased)
        rest = _Rest(newest_first, length, tokens, erased, frontier)
        cap = budget
        kept = frontier
        if rest.tokens + _cost(frontier) > budget:
            cap = int(budget * self.compaction.tail)
            kept = _newest_within(frontier, budget - rest.choose(Reach(0, keep, turns, cap)).tokens)
        room = max(0, budget - _cost(kept))
        reach = Reach(room, keep, turns, min(cap, room), user_first=self.user_first, oversize=oversize)
        window = rest.choose(reach)
        return _joined(kept, window, budget, frontier[: len(frontier) - len(kept)])


@dataclass(frozen=True, slots=True)
class SummaryBuffer:
    """Let one summary stand for all that is older, and keep it in the window whatever happens; then the newest messages.

    The summary is cumulative: `Chat.compact(policy=…)` makes one from the old one and from what is older than the newest
    messages, once the session takes more than `threshold` of the budget, so that it comes under `target`. The newest
    `keep` messages are never summarised; of a small budget fewer, one for 60 tokens of the target.

    Raises:
        InvalidInput: `budget`, `keep` or `oversize` is not an int of 0 or more; a share is not above 0 and up to 1, or the target is
            above the threshold.

    """

    budget: int = 8_000
    threshold: float = 0.85
    target: float = 0.7
    keep: int = 10
    user_first: bool = True
    oversize: int | None = 2_000

    def __post_init__(self) -> None:
        check_count(self.budget, "budget")
        check_count(self.keep, "keep")
        check_count(self.oversize or 0, "oversize")
        Compaction(threshold=self.threshold, target=self.target)  # checks both

    @property
    def compaction(self) -> Compaction:
        """Say when and how `Chat.compact` summarises."""
        keep = min(self.keep, max(2, int(self.budget * self.target / 60)))
        return Compaction(
            threshold=self.threshold,
            target=self.target,
            turns=MAX_COUNT,
            tail=0.8 * self.target,
            keep=keep,
            single=True,
        )

    def select(
        self,
        newest_first: Iterable[Message],
        length: int,
        tokens: int,
        erased: int = 0,
        frontier: Sequence[Summary] = (),
        oversize: Oversize | None = None,
    ) -> Window:
        """Make the window of a session up to the seq `length`, less the erased; `frontier` stands for its oldest part."""
        rest = _Rest(newest_first, length, tokens, erased, frontier)
        room = max(0, self.budget - _cost(frontier))
        oversize = oversize and oversize.beyond(self.compaction.keep)
        window = rest.choose(Reach(room, min(1, self.keep), user_first=self.user_first, oversize=oversize))
        return _joined(frontier, window, self.budget, ())


class Select(Protocol):
    """A function that makes windows of one session."""

    def __call__(self, budget: int, summaries: int = ..., fresh: int = ..., /) -> Window:
        """Make the window for a number of tokens, of which summaries take at most `summaries`.

        Its start is where it was before the newest `fresh` tokens were said, whatever became a placeholder since.
        """


Policy = LastN | TokenBudget | FreshTail | Lossless | SummaryBuffer
"""A way to choose the window of a session."""
SUMMARISED = (Lossless, SummaryBuffer)
"""The policies that let summaries stand for messages; only these say how a session is compacted."""
_BY_NAME: dict[str, Callable[..., Policy]] = {
    "none": lambda: LastN(MAX_COUNT),
    "last_n": LastN,
    "token_budget": TokenBudget,
    "fresh_tail": FreshTail,
    "summary_buffer": SummaryBuffer,
    "lossless": Lossless,
}


def make_policy(name: str | None = None, **options: float) -> Policy:
    """Make the policy that a configuration names: "none" (all messages; also for None), "last_n", "token_budget",
    "fresh_tail", "summary_buffer" or "lossless", with its parameters as options.

    Raises:
        InvalidInput: an unknown name, or an option that the policy does not have.

    """  # noqa: D205 - the names belong together
    name = "none" if name is None else name
    if name not in _BY_NAME:
        raise InvalidInput(f"{name!r} is no policy for a window.", f"Use one of {', '.join(_BY_NAME)}.")
    try:
        return _BY_NAME[name](**options)
    except TypeError as error:
        raise InvalidInput(
            f"The policy {name!r} does not have all of the options {', '.join(options)}.",
            "See `holdfast.prompt.window`.",
        ) from error


def expected_messages(policy: Policy, stats: ChatStats) -> int:
    """Estimate how many messages a policy will read, to size the first page; never more than there are."""
    if isinstance(policy, LastN):
        return min(policy.n + 1, stats.messages)
    average = stats.stored_tokens / max(1, stats.messages)
    there = stats.messages - (stats.summarised if isinstance(policy, SUMMARISED) else 0)
    return min(math.ceil(min(policy.budget, MAX_COUNT) / max(1.0, average)) + 8, there)


def check_policy(policy: object) -> Policy:
    """Return `policy` if it is a way to choose a window, or raise InvalidInput."""
    if not isinstance(policy, Policy):
        raise InvalidInput(
            f"`policy` is {shown(policy)}.",
            "Pass a policy of holdfast.prompt.window, such as Lossless(8_000).",
        )
    return policy


def within(policy: Policy, budget: int) -> Policy:
    """Give the same policy with a budget of at most `budget` tokens; one that counts messages stays as it is."""
    return policy if isinstance(policy, LastN) else replace(policy, budget=min(policy.budget, budget))


def at_budget(policy: Policy, budget: int | None) -> Policy:
    """Give the same policy with another budget, None for its own; one that counts messages stays as it is."""
    if budget is None or isinstance(policy, LastN):
        return policy
    return replace(policy, budget=budget)


def unshortened(policy: Policy) -> Policy:
    """Return the same policy, with every result of a tool as it is."""
    return policy if isinstance(policy, LastN) else replace(policy, oversize=None)


def own_budget(policy: Policy) -> int:
    """Return the budget of a policy; of one that counts messages, that of the default one."""
    return min(Lossless().budget if isinstance(policy, LastN) else policy.budget, MAX_COUNT)


def with_tail(policy: Policy, tail: int | None) -> Policy:
    """Give the same policy, in whose windows the newest `tail` messages are; None for as many as it keeps.

    Raises:
        InvalidInput: it is none in which a number of messages is kept, or a negative tail.

    """
    if tail is None:
        return policy
    if not isinstance(policy, Lossless | TokenBudget):
        raise InvalidInput(
            f"A tail is given, and the policy of this memory, {type(policy).__name__}, keeps its own.",
            "Pass a policy that keeps as many messages.",
        )
    return replace(policy, keep=tail)


def selector(
    policy: Policy,
    newest_first: Iterable[Message],
    stats: ChatStats,
    frontier: Sequence[Summary] = (),
    shorten: Shorten | None = None,
) -> Select:
    """Make a function from a token budget to a window that reads each message once, however often it is called.

    It may be given the tokens that all summaries together take at most; the one of a `SummaryBuffer` is always there.
    """
    (read,) = tee(newest_first, 1)
    oversize = _oversize(policy, shorten)

    def select(budget: int, summaries: int = MAX_COUNT, fresh: int = 0) -> Window:
        large = oversize and replace(oversize, fresh=fresh)
        some = frontier if isinstance(policy, SummaryBuffer) else _newest_within(frontier, summaries)
        hidden = frontier[: len(frontier) - len(some)]
        if not hidden:
            return _choose(within(policy, budget), copy(read), stats, frontier, large)
        # What is hidden counts as what is erased does: it has numbers, and takes nothing.
        start = hidden[-1].last
        there = _without(stats, hidden)
        window = _choose(within(policy, budget), _after(start, copy(read)), there, some, large)
        after = (replace(one, first=max(one.first, start + 1)) for one in window.omitted)
        return replace(window, omitted=(*_named(hidden), *after))

    return select


def _without(stats: ChatStats, hidden: Sequence[Summary]) -> ChatStats:
    messages = sum(one.messages for one in hidden)
    tokens = stats.stored_tokens - sum(one.source_tokens for one in hidden)
    return replace(
        stats, messages=stats.messages - messages, erased=stats.erased + messages, stored_tokens=tokens
    )


def choose_window(
    policy: Policy,
    newest_first: Iterable[Message],
    stats: ChatStats,
    frontier: Sequence[Summary] = (),
    shorten: Shorten | None = None,
) -> Window:
    """Make the window of a session; `frontier` are its summaries that are part of no other.

    `shorten` writes the placeholders; without it there are none.
    """
    return _choose(policy, newest_first, stats, frontier, _oversize(policy, shorten))


def _oversize(policy: Policy, shorten: Shorten | None) -> Oversize | None:
    """Say which results of a session are placeholders; what counts is the budget of its policy, not a part of it."""
    if shorten is None or isinstance(policy, LastN) or not policy.oversize:
        return None
    return Oversize(min(policy.oversize, share_of(policy.budget, SHARE)), shorten)


def _choose(
    policy: Policy,
    newest_first: Iterable[Message],
    stats: ChatStats,
    frontier: Sequence[Summary],
    oversize: Oversize | None,
) -> Window:
    length, tokens, erased = stats.messages + stats.erased, stats.stored_tokens, stats.erased
    if isinstance(policy, LastN):
        return policy.select(newest_first, length, tokens, erased)
    if isinstance(policy, SUMMARISED):
        return policy.select(newest_first, length, tokens, erased, frontier, oversize)
    return policy.select(newest_first, length, tokens, erased, oversize)


class _Rest:
    """What no summary covers of a session, to choose from as often as needed."""

    def __init__(
        self,
        newest_first: Iterable[Message],
        length: int,
        tokens: int,
        erased: int,
        frontier: Sequence[Summary],
    ) -> None:
        self._start = frontier[-1].last if frontier else 0
        (self._read,) = tee(_after(self._start, newest_first), 1)
        self._length = length
        self.tokens = tokens - sum(one.source_tokens for one in frontier)
        there = length - erased - sum(one.messages for one in frontier)
        self._erased = length - self._start - there

    def choose(self, reach: Reach) -> Window:
        return choose(copy(self._read), self._length, self.tokens, reach, self._erased, self._start)


def _after(seq: int, newest_first: Iterable[Message]) -> Iterator[Message]:
    for message in newest_first:
        if message.seq <= seq:
            return
        yield message


def _cost(summaries: Iterable[Summary]) -> int:
    return sum([one.tokens for one in summaries])


def _newest_within(frontier: Sequence[Summary], room: int) -> Sequence[Summary]:
    """Keep the newest summaries that fit together; they stay in one piece."""
    for place in range(len(frontier), 0, -1):
        room -= frontier[place - 1].tokens
        if room < 0:
            return frontier[place:]
    return frontier


def _joined(kept: Sequence[Summary], window: Window, budget: int, left_out: Sequence[Summary]) -> Window:
    return replace(
        window,
        summaries=tuple(kept),
        tokens=window.tokens + _cost(kept),
        budget=budget,
        omitted=(*_named(left_out), *window.omitted),
    )


def _named(left_out: Iterable[Summary]) -> Iterator[Omission]:
    for one in left_out:
        why = f"summarised in {one.id}, for which there is no room"
        yield Omission(one.messages, one.first, one.last, one.source_tokens, why)
