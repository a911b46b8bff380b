"""The plan of a compaction: the cuts of a chat and the next sources of summaries, by pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from holdfast.prompt.window import Compaction, share_of
from holdfast.types import Summary

if TYPE_CHECKING:
    from holdfast.store.log import MessageOutline

    Outlines = Sequence[MessageOutline]
Frontier = Sequence[Summary]


# The rank of a summary that would have less detail than an older one, or be hardly shorter than its parts.
_DISORDERED = 3
# Tokens of a text that says anything.
_SHORTEST = 16
# Times the target: models write as much without missing it.
_OVERRUN = 1.1


def cuts(lines: Outlines) -> list[bool]:
    """Return for each line whether a chat may be cut before it, and lastly whether after the last.

    A call is never parted from its result. A result belongs to the nearest earlier call with its id. A call
    may still get its result while no assistant has gone on without it; after that it is taken for lost.
    Linear.
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


def tail_start(lines: Outlines, allowed: Sequence[bool], budget: int, how: Compaction) -> int:
    """Return where the fresh tail begins; the number of lines if there is none."""
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
            # All turns are kept, and with them what was said before the first.
            whole = 0
        if len(lines) <= how.keep:
            kept = 0
    # A call that waits for its result stays as well: there is no cut after the last line.
    end = max(place for place, may in enumerate(allowed) if may)
    return min(whole, part if how.turns else whole, kept, end)


class Want(NamedTuple):
    """The aim of a compaction: to save `need` tokens, in a window of `budget` tokens.

    `frame` are the tokens of a summary besides its text.
    """

    need: int
    budget: int
    frame: int


def chunks(
    lines: Outlines, allowed: Sequence[bool], until: int, want: Want, how: Compaction
) -> list[tuple[int, int]]:
    """Return the sources of leaves, oldest first, as ranges of lines before the tail.

    They go on until enough is saved. They end where a turn begins, as far as that is no further than a leaf
    is long, so that the messages after them begin with one of the user.
    """
    ranges: list[tuple[int, int]] = []
    need: float = want.need
    budget, frame = want.budget, want.frame
    most = target_of(math.inf, 1, how.leaf_target, budget)
    # A smaller leaf says as much of a smaller source.
    largest = how.leaf_source * most // how.leaf_target
    # Messages of fewer tokens are not worth a summary.
    worth = frame * 3 // 2
    least = max(worth, min(1_000, budget // 10))
    until = _turn(lines, allowed, until, 1, most) if until else 0
    start = 0
    while start < until and (need > 0 or not ranges):
        wanted = max(min(1.5 * need, need + most), least)
        end = _enough(lines, allowed, start, until, wanted, worth, largest)
        room = min(most, largest - _tokens(lines, start, end))
        turn = _turn(lines, allowed, end, until, room)
        if _tokens(lines, start, turn) - wanted > most:
            # A leaf much larger than needed: rather the turn before, if that is long enough.
            before = _turn(lines, allowed, end, start, math.inf)
            turn = before if _tokens(lines, start, before) >= least else turn
        end, size = turn, _tokens(lines, start, turn)
        if size < (worth if end < until else least):
            break
        ranges.append((start, end))
        need -= size - min(size / 3, most) - frame
        start = end
    return ranges


def _enough(
    lines: Outlines, allowed: Sequence[bool], start: int, until: int, wanted: float, worth: int, largest: int
) -> int:
    """Return the end of a leaf from `start` on: where it has enough, or may be no larger."""
    end, size = start, 0
    while end < until and size < wanted:
        stop = next(place for place in range(end + 1, len(lines) + 1) if allowed[place])
        group = _tokens(lines, end, stop)
        # A source too short for a leaf goes with the next lines, however large these are; and a short one
        # with lines that are too large for any leaf, which are a leaf by themselves in any case.
        least_alone = largest // 8 if group > largest else worth
        if stop > until or (size >= max(worth, least_alone) and size + group > largest):
            break
        end, size = stop, size + group
    return end


def _tokens(lines: Outlines, start: int, end: int) -> int:
    return sum(line.tokens for line in lines[start:end])


def _turn(lines: Outlines, allowed: Sequence[bool], start: int, stop: int, most: float) -> int:
    """Return the place nearest to `start`, towards `stop`, where a turn begins, or `start`."""
    step = 1 if start < stop else -1
    for place in range(start, stop + step, step):
        if place == len(lines) or (allowed[place] and lines[place].role == "user"):
            return place
        most -= lines[min(place, place + step)].tokens
        if most < 0:
            break
    return start


class Group(NamedTuple):
    """Neighbours that are condensed into one summary, or taken in by the one before, `into`.

    `target` is what its text should take, `beyond` says that it gets more parts than it should have.
    """

    parts: Sequence[Summary]
    into: Summary | None = None
    target: int = 0
    beyond: bool = False

    @property
    def whole(self) -> list[Summary]:
        """All of the frontier that the summary replaces."""
        return [*([self.into] if self.into else []), *self.parts]


def condense(
    frontier: Frontier, widths: Mapping[str, int], want: Want, how: Compaction, *, beyond: bool = False
) -> Group | None:
    """Return the group to condense next; None if nothing can be condensed.

    `widths` has the number of parts of each summary. Only the oldest of one depth are condensed, so no
    summary is ever deeper than an older one; and none is to be kept in less detail than an older one, or in
    more than a newer one. Of the groups that save enough, a smallest is chosen whose parts stand for about as
    much as each other: so words are condensed as often as the logarithm of the session. Where none saves
    enough, a largest is chosen, to go on from there. Where nothing can be put together, a condensed summary
    is written shorter. `beyond` lifts the limit of parts.
    """
    places = _neighbours(frontier, widths, how, beyond=beyond)
    choices = [_choice(frontier, start, end, want, how) for start, end in places]
    if not choices:
        places = ((place, place + 1) for place, summary in enumerate(frontier) if summary.depth)
        alone = [_choice(frontier, start, end, want, how) for start, end in places]
        choices = [choice for choice in alone if choice.rank < _DISORDERED]
    if not choices:
        return None
    best = min(choices)
    parts = frontier[best.start : best.end]
    grows = len(parts) == 1 or parts[0].depth > parts[-1].depth
    return Group(parts[grows:], parts[0] if grows else None, best.target, beyond)


def groups(
    frontier: Frontier, widths: Mapping[str, int], want: Want, how: Compaction, at_once: int
) -> list[Group]:
    """Return the groups to condense next, up to `at_once` that do not depend on each other."""
    chosen: list[Group] = []
    planned, need = list(frontier), want.need
    while need > 0 and len(chosen) < at_once:
        group = condense(planned, widths, want._replace(need=need), how)
        if group is None or any(not part.id for part in group.whole):
            break
        chosen.append(group)
        parts = group.whole
        tokens, source = sum(part.tokens for part in parts), sum(part.source_tokens for part in parts)
        place = planned.index(parts[0])
        depth = group.into.depth if group.into else group.parts[0].depth + 1
        made = replace(parts[0], id="", depth=depth, tokens=group.target + want.frame, source_tokens=source)
        planned[place : place + len(parts)] = [made]
        need -= tokens - made.tokens
    return chosen


def _neighbours(
    frontier: Frontier, widths: Mapping[str, int], how: Compaction, *, beyond: bool
) -> Iterator[tuple[int, int]]:
    """Yield ranges that may become one summary: the oldest of a depth, with or without the one before."""
    start = 0
    for depth, some in groupby(frontier, key=lambda summary: summary.depth):
        count = len(list(some))
        most = count if beyond else max(how.pressed, how.fan_in[min(depth, 1)])
        for size in range(how.pressed, min(count, most) + 1):
            yield start, start + size
        before = frontier[start - 1] if start else None
        if before and before.depth == depth + 1:
            free = count if beyond else most - widths.get(before.id, 0)
            for size in range(1, min(count, free) + 1):
                yield start - 1, start + size
        start += count


class _Choice(NamedTuple):
    """Neighbours that may be condensed, in the order of preference."""

    # The rank is 0 if it saves enough, 1 if it does as a very short text, 2 if it does not.
    rank: int
    size: int
    uneven: float
    start: int
    end: int
    target: int


def _choice(frontier: Frontier, start: int, end: int, want: Want, how: Compaction) -> _Choice:
    """Return the value of condensing some neighbours, and the tokens that its text should have."""
    parts, alone = frontier[start:end], end - start == 1
    tokens, source = sum(part.tokens for part in parts), sum(part.source_tokens for part in parts)
    floor = source * _detail(frontier[start - 1]) - want.frame if start else 0
    ceiling = source * _detail(frontier[end]) - want.frame if end < len(frontier) else math.inf
    shortest = max(_SHORTEST, want.budget / 32)
    half = (tokens - want.frame if alone else tokens) / 2
    most = min(half, how.condensed_target, max(ceiling, _SHORTEST))
    usual = max(target_of(tokens, 2, how.condensed_target, want.budget), floor)
    tight = max(min(usual, shortest), floor)
    spare = (tokens - want.need - want.frame) / _OVERRUN
    if floor > most or (alone and shortest > most):
        rank = _DISORDERED
    else:
        rank = 0 if spare >= max(tight, usual / 2) else 1 if spare >= tight else 2
    target = min(most, max(spare, usual if rank > 1 and not alone else tight))
    uneven = max(part.source_tokens for part in parts) / max(1, source)
    size = -len(parts) if rank else len(parts)
    return _Choice(rank, size, uneven, start, end, max(_SHORTEST, int(target)))


def _detail(summary: Summary) -> float:
    """Return the share of the tokens of its messages that a summary keeps."""
    return summary.tokens / max(1, summary.source_tokens)


def single(frontier: Frontier) -> list[Group]:
    """Return the next group of a policy by which one summary takes in all others, step by step."""
    if len(frontier) < 2:
        return []
    first, rest = frontier[0], list(frontier[1:])
    depths = {summary.depth for summary in rest}
    if depths == {first.depth - 1}:
        return [Group(rest, first)]
    if depths == {first.depth}:
        return [Group(list(frontier))]
    neighbours = [list(some) for _, some in groupby(frontier, key=lambda summary: summary.depth)]
    return [Group(min(neighbours, key=lambda some: some[0].depth))]


def target_of(source: float, share: int, most: int, budget: int) -> int:
    """Return the tokens of a summary: a share of its source, within a limit and an eighth of the budget."""
    return max(_SHORTEST, int(min(source / share, most, max(64, budget // 8))))
