"""Policies: what a model sees of a chat, and when and how the older part of it is summarised.

All share one core, `prompt/window_selection.py`, which never splits a tool use. Unless everything fits, or
with `user_first=False`, it lets the messages begin with one of the user: the next newer one, where that
leaves out no guaranteed message and at most half of what fits. Where none is in reach, `omitted` says so. The
three simple policies look at messages only; `Lossless` and `SummaryBuffer` let the summaries of a chat stand
for what is older, and their `Compaction` says how these are made.

Results of tools that take more than `oversize` tokens, or than an eighth of the budget, are shown as
placeholders, once their turn is over, or no longer fits, and they are no longer among what the policy keeps;
None or 0 shows them as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar, runtime_checkable

from holdfast.errors import InvalidInput, shown
from holdfast.prompt.window_selection import NO_BUDGET, Reach
from holdfast.types import MAX_COUNT, check_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.prompt.oversize import Oversize
    from holdfast.types import Message


def is_share(value: object) -> bool:
    """Return whether a value is a fraction above 0 and up to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


def share_of(budget: int, share: float) -> int:
    """Return a share of a budget in whole tokens; 0.57 of 10,000 is 5,700, as no float has it."""
    return math.floor(share * min(budget, MAX_COUNT) + 1e-6)


def _check_counts(policy: object, *names: str, optional: tuple[str, ...] = ()) -> None:
    """Check that fields are whole numbers of 0 or more; those that are `optional` may be None."""
    for name in (*names, *(field for field in optional if getattr(policy, field) is not None)):
        check_count(getattr(policy, name), name)


@dataclass(frozen=True, slots=True)
class Compaction:
    """When a chat is compacted, how far, and within which bounds.

    Shares are fractions of the budget of the window. The defaults are those that compaction systems in use
    converge to (see `docs/decisions.md`); those of summaries are lowered to an eighth of the budget, so that
    it holds several.

    Args:
        threshold: the share above which a chat is to be compacted.
        target: the share below which compaction stops.
        turns: the newest turns, which are never summarised …
        tail: … as far as they fit this share. Of a newest turn that alone is larger, its newest messages that
            fit.
        keep: the newest messages that are never summarised, whatever they cost.
        leaf_source: tokens of messages that one leaf is made of, at most, unless a single tool use is larger.
        leaf_target: tokens of a leaf, at most; and at most a third of its source.
        condensed_target: tokens of a condensed summary, at most; and at most half of its children.
        fan_in: how many leaves, and how many condensed summaries, one summary is made of at most. There are
            more only where the chat would not fit its budget otherwise, and the result names it in `beyond`.
        pressed: how many at least.
        previous: how many preceding summaries a model is shown, for continuity.
        passes: how often a full compaction goes over the chat, at most.
        seconds: that it takes at most: no summary is begun later, and no answer of a model waited for.
        patience: seconds that one answer of a model is waited for. A function that hangs is left to its
            thread.
        calls: calls of the model, at most.
        spend: tokens of prompts and answers, at most; None for no limit but that of the calls.
        single: keep one summary that grows, instead of a tree whose upper levels are made when there is need.

    Raises:
        InvalidInput: a number is out of range.
    """

    threshold: float = 0.75
    target: float = 0.6
    turns: int = 6
    tail: float = 0.4
    keep: int = 1
    leaf_source: int = 20_000
    leaf_target: int = 2_400
    condensed_target: int = 2_000
    fan_in: tuple[int, int] = (8, 8)
    pressed: int = 2
    previous: int = 2
    passes: int = 12
    seconds: float = 120.0
    patience: float = 60.0
    calls: int = 24
    spend: int | None = None
    single: bool = False

    def __post_init__(self) -> None:
        for name in ("threshold", "target", "tail"):
            share = getattr(self, name)
            if not is_share(share):
                raise InvalidInput(f"`{name}` is {share!r}.", "Pass a fraction above 0 and up to 1.")
        if self.target > self.threshold:
            raise InvalidInput(
                f"The target, {self.target}, is above the threshold, {self.threshold}.", "Lower the target."
            )
        for name in ("seconds", "patience"):
            if not isinstance(span := getattr(self, name), int | float) or not span >= 0:
                raise InvalidInput(f"`{name}` is {span!r}.", "Pass a number of seconds, 0 or more.")
        _check_counts(self, "turns", "keep", "previous", "passes", "calls", optional=("spend",))
        for name in ("leaf_source", "leaf_target", "condensed_target"):
            if check_count(getattr(self, name), name) < 1:
                raise InvalidInput(f"`{name}` is 0.", "Pass 1 or more.")
        fan_in: object = self.fan_in
        if not isinstance(fan_in, tuple) or len(fan_in) != 2:
            raise InvalidInput(f"`fan_in` is {self.fan_in!r}.", "Pass two numbers: of leaves, and of others.")
        if min(check_count(size, "fan_in") for size in (*self.fan_in, self.pressed)) < 2:
            raise InvalidInput("Fewer than two summaries are not condensed.", "Pass a fan-in of 2 or more.")


DEFAULTS = Compaction()


@dataclass(frozen=True, slots=True)
class LastN:
    """Keep the newest `n` messages, whatever they cost.

    There are more than `n` when the oldest belongs to a tool use, which is never split, or when `user_first`
    extends the window back to the user message that starts the turn, if it is among as many again. Broken
    tool use does not count.

    Raises:
        InvalidInput: `n` is not an int of 0 or more.
    """

    n: int = 20
    user_first: bool = True
    # That of a prompt, where none is named; a window of so many messages has none.
    budget: ClassVar[int] = 8_000
    oversize: ClassVar[None] = None

    def __post_init__(self) -> None:
        check_count(self.n, "n")

    def reach(self, oversize: Oversize | None = None) -> Reach:
        """Return how far a window goes back."""
        older = f"older than the newest {self.n} messages"
        return Reach(NO_BUDGET, self.n, user_first=self.user_first, older=older, oversize=oversize)


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Keep the newest messages that fit `budget` tokens, and the newest `keep` in any case.

    Tool use is never split. With `user_first` a window that leaves something out begins with a user message,
    the next newer one, where that leaves out none of the `keep` and at most half of what fits.

    Raises:
        InvalidInput: `budget`, `keep` or `oversize` is not an int of 0 or more.

    """

    budget: int = 8_000
    keep: int = 5
    user_first: bool = True
    oversize: int | None = 2_000

    def __post_init__(self) -> None:
        _check_counts(self, "budget", "keep", optional=("oversize",))

    def reach(self, oversize: Oversize | None = None) -> Reach:
        """Return how far a window goes back."""
        oversize = oversize and replace(oversize, keep=self.keep)
        return Reach(self.budget, self.keep, user_first=self.user_first, oversize=oversize)


@dataclass(frozen=True, slots=True)
class FreshTail:
    """Keep the newest messages that fit `budget` tokens, and the newest turns as far as `cap` tokens.

    Of the newest `turns` turns as many as together fit `cap` are kept whole, whatever the budget; if not even
    the newest fits, its newest messages that do; and with `turns` of 1 or more always the newest message,
    with the whole tool use it belongs to. Without a `cap` the budget is the cap, so that nothing but that
    last rule exceeds the budget. `user_first` as for `TokenBudget`.

    Raises:
        InvalidInput: `budget`, `turns`, `cap` or `oversize` is not an int of 0 or more.
    """

    budget: int = 8_000
    turns: int = 6
    cap: int | None = None
    user_first: bool = True
    oversize: int | None = 2_000

    def __post_init__(self) -> None:
        _check_counts(self, "budget", "turns", optional=("cap", "oversize"))

    def reach(self, oversize: Oversize | None = None) -> Reach:
        """Return how far a window goes back."""
        cap, keep = self.budget if self.cap is None else self.cap, min(1, self.turns)
        if oversize:
            before = self.budget - oversize.fresh if self.cap is None else cap
            oversize = replace(oversize, keep=keep, turns=self.turns, cap=before)
        return Reach(self.budget, keep, self.turns, cap, user_first=self.user_first, oversize=oversize)


@dataclass(frozen=True, slots=True)
class Lossless:
    """Let summaries stand for the older part of a chat, followed by the messages after them.

    This is the default. While all of that fits, nothing of the chat is missing, but for results that are
    `oversize`. Where it does not, the newest messages go first, as `FreshTail` keeps them, then the
    summaries, the newest first, then older messages; what is left out is named. `compaction` says when
    `Chat.compact` summarises how much. `user_first` as for `TokenBudget`. The newest `keep` messages are
    there even if they do not fit; None for the newest one, unless the compaction keeps no turns. Where one is
    kept and its tool use does not fit beside the request, it is shortened.

    Raises:
        InvalidInput: `budget`, `keep` or `oversize` is not an int of 0 or more, or `compaction` is not a
            `Compaction`.

    """

    budget: int = 8_000
    compaction: Compaction = DEFAULTS
    user_first: bool = True
    keep: int | None = None
    oversize: int | None = 2_000

    def __post_init__(self) -> None:
        _check_counts(self, "budget", optional=("oversize", "keep"))
        compaction: object = self.compaction
        if not isinstance(compaction, Compaction):
            raise InvalidInput(f"`compaction` is {compaction!r}.", "Pass a Compaction.")

    def reach(self, oversize: Oversize | None = None) -> Reach:
        """Return how far a window without summaries goes back."""
        turns = self.compaction.turns
        keep = min(1, turns) if self.keep is None else self.keep
        oversize = oversize and replace(oversize, keep=keep)
        return Reach(self.budget, keep, turns, self.budget, user_first=self.user_first, oversize=oversize)


@dataclass(frozen=True, slots=True)
class SummaryBuffer:
    """Let one summary stand for all that is older, followed by the newest messages.

    The summary is in the window in any case. The summary is cumulative: `Chat.compact(policy=…)` makes one
    from the old one and from what is older than the newest messages, once the chat takes more than
    `threshold` of the budget, so that it comes under `target`. The newest `keep` messages are never
    summarised; of a small budget fewer, one for 60 tokens of the target.

    Raises:
        InvalidInput: `budget`, `keep` or `oversize` is not an int of 0 or more; a share is not above 0 and up
            to 1, or the target is above the threshold.

    """

    budget: int = 8_000
    threshold: float = 0.85
    target: float = 0.7
    keep: int = 10
    user_first: bool = True
    oversize: int | None = 2_000

    def __post_init__(self) -> None:
        _check_counts(self, "budget", "keep", optional=("oversize",))
        # This checks both.
        Compaction(threshold=self.threshold, target=self.target)

    @property
    def compaction(self) -> Compaction:
        """When and how `Chat.compact` summarises."""
        keep = min(self.keep, max(2, int(self.budget * self.target / 60)))
        return Compaction(
            self.threshold, self.target, MAX_COUNT, tail=0.8 * self.target, keep=keep, single=True
        )

    def reach(self, oversize: Oversize | None = None) -> Reach:
        """Return how far a window without summaries goes back."""
        oversize = oversize and replace(oversize, keep=self.compaction.keep)
        return Reach(self.budget, min(1, self.keep), user_first=self.user_first, oversize=oversize)


@runtime_checkable
class MessagePolicy(Protocol):
    """A policy of your own: any object with a budget that chooses messages.

    >>> class WithFirst:
    ...     budget = 8_000
    ...
    ...     def choose(self, messages, budget):
    ...         every = list(messages)
    ...         return [*every[:10], *every[-1:]]
    """

    @property
    def budget(self) -> int:
        """The tokens of a window, where none are named."""

    def choose(self, messages: Iterator[Message], budget: int, /) -> Iterable[Message]:
        """Return the messages of a window, in any order.

        A tool call and its results stay together: a window has all of them where it has one. What is left out
        is stated in `Window.omitted`, also where a window takes more than the budget.

        Args:
            messages: those of the chat, the newest first; as many are read as are taken from it.
            budget: tokens for the window, at most `self.budget`; in a prompt what the other parts leave, so
                that it may be called several times.

        """


@dataclass(frozen=True, slots=True)
class Chosen:
    """A policy of the caller's at a budget."""

    policy: MessagePolicy
    budget: int
    oversize: ClassVar[None] = None


BuiltInPolicy = LastN | TokenBudget | FreshTail | Lossless | SummaryBuffer
CheckedPolicy = BuiltInPolicy | Chosen
Policy = CheckedPolicy | MessagePolicy
"""A way to choose the window of a chat."""
P = TypeVar("P", bound=CheckedPolicy)
SUMMARISED = (Lossless, SummaryBuffer)
"""The policies that let summaries stand for messages; only these say how a chat is compacted."""


def check_policy(policy: object) -> CheckedPolicy:
    """Return `policy` if it is a way to choose a window, or raise InvalidInput."""
    if isinstance(policy, CheckedPolicy):
        return policy
    if isinstance(policy, type) or not isinstance(policy, MessagePolicy) or not callable(policy.choose):
        raise InvalidInput(
            f"`policy` is {shown(policy)}.",
            "Pass one of holdfast.prompt.window, such as Lossless(8_000), or one with `budget` and `choose`.",
        )
    return Chosen(policy, check_count(policy.budget, "budget"))


def name_of(policy: CheckedPolicy) -> str:
    """Return the name of the class of a policy."""
    return type(policy.policy if isinstance(policy, Chosen) else policy).__name__


def at_budget(policy: P, budget: int | None) -> P:
    """Return the policy with another budget, None for its own; `LastN` stays as it is."""
    if budget is None or isinstance(policy, LastN):
        return policy
    return replace(policy, budget=budget)


def within(policy: P, budget: int) -> P:
    """Return the policy with a budget of at most `budget` tokens; `LastN` stays as it is."""
    return at_budget(policy, min(policy.budget, budget))


def unshortened(policy: CheckedPolicy) -> CheckedPolicy:
    """Return the same policy, with every result of a tool as it is."""
    return policy if isinstance(policy, LastN | Chosen) else replace(policy, oversize=None)


def with_tail(policy: CheckedPolicy, tail: int | None) -> CheckedPolicy:
    """Return the same policy, in whose windows the newest `tail` messages are; None for as many as it keeps.

    Raises:
        InvalidInput: the policy does not keep a number of messages, or `tail` is negative.

    """
    if tail is None:
        return policy
    if not isinstance(policy, Lossless | TokenBudget):
        raise InvalidInput(
            f"A tail is given, and the policy of this memory, {name_of(policy)}, keeps its own.",
            "Pass a policy that keeps as many messages.",
        )
    return replace(policy, keep=tail)
