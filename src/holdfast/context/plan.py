"""Where a session may be cut and what is summarised next: pure functions over its outline and its summaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.types import MAX_COUNT, Summary, check_count

if TYPE_CHECKING:
    from holdfast.store.log import Line


@dataclass(frozen=True, slots=True)
class Compaction:
    """Say when a session is compacted, how far, and within which bounds.

    Shares are fractions of the budget of the window. The defaults are those that compaction systems in use converge to
    (see `docs/decisions.md`); those of summaries are lowered to an eighth of the budget, so that it holds several.

    Args:
        threshold: the share from which on a session is crowded.
        target: the share that compaction goes under, and where it stops.
        turns: the newest user turns, the fresh tail, which are never summarised …
        tail: … as far as they fit this share. Of a newest turn that alone is larger, its newest messages that fit.
        keep: the newest messages that are never summarised, whatever they cost.
        leaf_source: tokens of messages that one leaf is made of, at most, unless a single tool use is larger.
        leaf_target: tokens of a leaf, at most; and at most a third of its source.
        condensed_target: tokens of a condensed summary, at most; and at most half of its children.
        fan_in: how many leaves, and how many condensed summaries, are condensed into one.
        pressed: how many do when there is no other way to get under the target.
        previous: how many preceding summaries a model is shown, for continuity.
        passes: how often a full compaction goes over the session, at most.
        seconds: that it takes at most: no summary is begun later, and no answer of a model waited for.
        patience: seconds that one answer of a model is waited for. A function that hangs is left to its thread.
        calls: how often it asks the model, at most.
        spend: how many tokens it spends on prompts and answers, at most; None for no limit but that of the calls.
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
    fan_in: tuple[int, int] = (8, 4)
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
        if self.spend is not None:
            check_count(self.spend, "spend")
        for name in ("turns", "keep", "previous", "passes", "calls"):
            check_count(getattr(self, name), name)
        for name in ("leaf_source", "leaf_target", "condensed_target"):
            if check_count(getattr(self, name), name) < 1:
                raise InvalidInput(f"`{name}` is 0.", "Pass 1 or more.")
        fan_in: object = self.fan_in
        if not isinstance(fan_in, tuple) or len(fan_in) != 2:
            raise InvalidInput(f"`fan_in` is {self.fan_in!r}.", "Pass two numbers: of leaves, and of others.")
        if min(check_count(size, "fan_in") for size in (*self.fan_in, self.pressed)) < 2:
            raise InvalidInput("Fewer than two summaries are not condensed.", "Pass a fan-in of 2 or more.")


def is_share(value: object) -> bool:
    """Say whether something is a fraction above 0 and up to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


DEFAULTS = Compaction()


def share_of(budget: int, share: float) -> int:
    """Give the whole tokens of a share of a budget; 0.57 of 10,000 is 5,700, whatever a float makes of it."""
    return math.floor(share * min(budget, MAX_COUNT) + 1e-6)


def cuts(lines: Sequence[Line]) -> list[bool]:
    """Say before which lines a session may be cut, and whether after the last: never between a call and its result.

    A result belongs to the nearest earlier call with its id. A call may still get its result while no assistant has
    gone on without it; after that it is taken for lost. Linear.
    """
    made: dict[str, int] = {}
    waiting: dict[str, int] = {}
    reach = list(range(len(lines)))
    for place, line in enumerate(lines):
        for call in line.answers:
            if call in made:
                reach[made[call]] = place
            waiting.pop(call, None)
        made.update((call, place) for call in line.calls)
        waiting.update((call, place) for call in line.calls)
    newest = next((place for place in range(len(lines) - 1, -1, -1) if lines[place].role == "assistant"), -1)
    still = set(waiting.values())
    while newest >= 0 and lines[newest].role == "assistant":
        if newest in still:
            reach[newest] = len(lines)
        newest -= 1
    allowed, furthest = [True], -1
    for place, end in enumerate(reach):
        furthest = max(furthest, end)
        allowed.append(furthest <= place)
    return allowed


def tail_start(lines: Sequence[Line], allowed: Sequence[bool], budget: int, how: Compaction) -> int:
    """Give the place where the fresh tail begins; the number of lines if there is none."""
    cap = share_of(budget, how.tail)
    whole = part = kept = len(lines)
    tokens = users = 0
    for place in range(len(lines) - 1, -1, -1):
        is_user = lines[place].role == "user"
        tokens += lines[place].tokens
        users += is_user
        if not allowed[place]:
            continue
        if kept == len(lines) and len(lines) - place >= how.keep > 0:
            kept = place
        if tokens <= cap:
            if users <= min(1, how.turns) and (is_user or not users):
                part = place
            if is_user and users <= how.turns:
                whole = place
        elif kept < len(lines) or not how.keep:
            break
    else:
        if tokens <= cap and users < how.turns:
            whole = 0  # all turns are kept, and with them what was said before the first
        if len(lines) <= how.keep:
            kept = 0
    # What waits for the result of a call stays as well: it cannot be cut after the last line.
    end = max(place for place, may in enumerate(allowed) if may)
    return min(whole, part if how.turns else whole, kept, end)


def chunks(
    lines: Sequence[Line],
    allowed: Sequence[bool],
    until: int,
    budget: int,
    need: float,
    frame: int,
    how: Compaction,
) -> list[tuple[int, int]]:
    """Cut what is before the tail into the sources of leaves, from the oldest on, until `need` tokens are saved.

    `frame` is what a summary takes besides its text.
    """
    found: list[tuple[int, int]] = []
    most = target_of(math.inf, 1, how.leaf_target, budget)
    largest = how.leaf_source * most // how.leaf_target  # a smaller leaf says as much of a smaller source
    worth = frame * 3 // 2  # what costs less is not worth a summary
    least = max(worth, min(1_000, budget // 10))
    start = 0
    while start < until and (need > 0 or not found):
        end, size = start, 0
        wanted = max(min(1.5 * need, need + most), least)
        blocked = False
        while end < until and size < wanted and not blocked:
            stop = next(place for place in range(end + 1, len(lines) + 1) if allowed[place])
            group = sum(line.tokens for line in lines[end:stop])
            # What is too short for a leaf goes with what follows it, however large that is, and what is short with
            # what is too large for any leaf, which is one by itself in any case.
            least_alone = largest // 8 if group > largest else worth
            blocked = stop > until or (size >= max(worth, least_alone) and size + group > largest)
            if not blocked:
                end, size = stop, size + group
        if size < (worth if end < until else least):
            break
        found.append((start, end))
        need -= size - min(size / 3, most) - frame
        start = end
    return found


class Group(NamedTuple):
    """Neighbours of one depth that are condensed into one summary, or taken in by the one before them, `into`."""

    parts: list[Summary]
    into: Summary | None = None


def runs(frontier: Sequence[Summary], budget: int, need: float, how: Compaction) -> list[Group]:
    """Group the neighbours of the shallowest depth that has enough of them, the oldest first.

    Where none has, as few as save `need` tokens are enough, but `pressed` at least and the oldest ones; and where there
    are not even so many, the newest condensed summary takes in those after it.
    """
    neighbours = [list(some) for _, some in groupby(frontier, key=lambda one: one.depth)]
    full: list[Group] = []
    for some in sorted(neighbours, key=lambda some: some[0].depth):
        if full and some[0].depth > full[0].parts[0].depth:
            break
        size = how.fan_in[min(some[0].depth, 1)]
        full += [Group(some[start : start + size]) for start in range(0, len(some) - size + 1, size)]
    if full:
        return full
    enough = [some for some in neighbours if len(some) >= how.pressed]
    shallowest = min(enough, key=lambda some: some[0].depth, default=[])
    for size in range(how.pressed, len(shallowest) + 1):
        tokens = sum(one.tokens for one in shallowest[:size])
        if size == len(shallowest) or tokens - target_of(tokens, 2, how.condensed_target, budget) >= need:
            return [Group(shallowest[:size])]
    for before, some in reversed(list(pairwise(neighbours))):
        if before[-1].depth == some[0].depth + 1:
            return [Group(some, before[-1])]
    return []


def single(frontier: Sequence[Summary]) -> list[Group]:
    """Group a frontier so that, step by step, one summary remains that has taken in all others."""
    if len(frontier) < 2:
        return []
    first, rest = frontier[0], list(frontier[1:])
    depths = {one.depth for one in rest}
    if depths == {first.depth - 1}:
        return [Group(rest, first)]
    if depths == {first.depth}:
        return [Group(list(frontier))]
    neighbours = [list(some) for _, some in groupby(frontier, key=lambda one: one.depth)]
    return [Group(min(neighbours, key=lambda some: some[0].depth))]


def target_of(source: float, share: int, most: int, budget: int) -> int:
    """Give the tokens of a summary: a share of its source, within a limit and an eighth of the budget."""
    return max(16, int(min(source / share, most, max(64, budget // 8))))
