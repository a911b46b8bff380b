"""The windows of one chat by a policy: its messages are read once, however many windows are made of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, islice, takewhile
from typing import TYPE_CHECKING, Protocol

from holdfast.messages.anthropic import INSTRUCTIONS
from holdfast.prompt.oversize import SAID, SHARE, Oversize
from holdfast.prompt.window import (
    SUMMARISED,
    LastN,
    Lossless,
    Policy,
    SummaryBuffer,
    share_of,
    within,
)
from holdfast.prompt.window_selection import ChatLog, Reach, choose
from holdfast.types import MAX_COUNT, Message, Omission, Shortened, Summary, Window

if TYPE_CHECKING:
    from holdfast.prompt.oversize import Shorten
    from holdfast.types import ChatStats

IN_TURN = "between the request of a turn that is longer than the budget reaches, and its end"
# Messages of a turn that are read at most to find its request.
_LONGEST_TURN = 2_000


class Select(Protocol):
    """A function that makes windows of one chat."""

    def __call__(self, budget: int, summaries: int = ..., fresh: int = ..., /) -> Window:
        """Return the window for `budget` tokens, of which summaries take at most `summaries`.

        Its start is where it was before the newest `fresh` tokens were said, whatever became a placeholder
        since.
        """


def expected_messages(policy: Policy, stats: ChatStats) -> int:
    """Estimate how many messages a policy will read, to size the first page; never more than there are."""
    if isinstance(policy, LastN):
        return min(policy.n + 1, stats.messages)
    average = stats.stored_tokens / max(1, stats.messages)
    there = stats.messages - (stats.summarised if isinstance(policy, SUMMARISED) else 0)
    return min(math.ceil(min(policy.budget, MAX_COUNT) / max(1.0, average)) + 8, there)


def selector(
    policy: Policy,
    newest_first: Iterable[Message],
    stats: ChatStats,
    frontier: Sequence[Summary] = (),
    shorten: Shorten | None = None,
) -> Select:
    """Return a function from a token budget to a window of a chat, which reads each message only once.

    `newest_first` reads its messages, `stats` are its totals, `frontier` its summaries that are part of no
    other, oldest first; `shorten` writes the placeholders, None for none. The summary of a `SummaryBuffer` is
    always there. A window that begins within a turn has its request, the message of the user that the turn
    began with, before it, where both fit and no summary stands for it.
    """
    log = ChatLog(newest_first, stats.messages + stats.erased, stats.stored_tokens, stats.erased)
    unsummarised, oversize = log.after(frontier), _oversize(policy, shorten)

    def choose_within(budget: int, summaries: int, fresh: int, lost: int = 0) -> Window:
        large = oversize and replace(oversize, fresh=fresh, lost=lost)
        some = frontier if isinstance(policy, SummaryBuffer) else _newest_within(frontier, summaries)
        hidden = frontier[: len(frontier) - len(some)]
        window = _choose(within(policy, budget), log.after(hidden), some, large)
        return replace(window, omitted=(*_omissions(hidden), *window.omitted)) if hidden else window

    def select(budget: int, summaries: int = MAX_COUNT, fresh: int = 0) -> Window:
        window = choose_within(budget, summaries, fresh)
        if oversize is None or (request := _lost_request(unsummarised, window)) is None:
            return window
        short = oversize.shorten(request, oversize.limit) if request.tokens > oversize.limit else request
        if short is not request:
            window = choose_within(budget, summaries, fresh, request.seq)
        room = min(policy.budget, budget) - short.tokens
        if room < 0 or _lost_request(unsummarised, window) is None:
            return window
        rest = choose_within(room, summaries, fresh)
        is_lost = rest.tokens <= room and _is_behind(request, rest, window, unsummarised)
        return _with_request(replace(rest, budget=window.budget), request, short, log) if is_lost else window

    return select


def _lost_request(log: ChatLog, window: Window) -> Message | None:
    """Return the message of the user with which the turn began that a window begins within."""
    roles = [one.role for one in window.messages if one.role not in INSTRUCTIONS]
    if not roles or window.budget is None or roles[0] == "user":
        return None
    first = window.messages[0].seq
    before = islice(dropwhile(lambda one: one.seq >= first, log), _LONGEST_TURN)
    return next((one for one in before if one.role == "user"), None)


def _is_behind(request: Message, rest: Window, window: Window, log: ChatLog) -> bool:
    """Return whether the smaller of two windows begins behind a request, and leaves out no other for it."""
    found = _lost_request(log, rest)
    is_one_turn = [one.role for one in window.messages].count("user") <= 1
    first = min((one.seq for one in rest.messages), default=0)
    return found is request or (found is None and is_one_turn and request.seq < first)


def _with_request(window: Window, request: Message, short: Message, log: ChatLog) -> Window:
    """Return a window with the request of its turn before its messages, and what is between them stated."""
    omitted: list[Omission] = []
    for one in window.omitted:
        if not one.first <= request.seq <= one.last:
            omitted.append(one)
            continue
        turn = takewhile(lambda message: message.seq > request.seq, log)
        costs = [message.tokens for message in turn if message.seq <= one.last]
        older, tokens = one.messages - 1 - len(costs), one.tokens - request.tokens - sum(costs)
        if older > 0:
            omitted.append(Omission(older, one.first, request.seq - 1, max(0, tokens), one.why))
        if costs:
            omitted.append(Omission(len(costs), request.seq + 1, one.last, sum(costs), IN_TURN))
    saved = request.tokens - short.tokens
    return replace(
        window,
        messages=(short, *window.messages),
        tokens=window.tokens + short.tokens,
        omitted=tuple(omitted),
        shortened=(*([Shortened(short.seq, request.tokens, saved)] if saved else []), *window.shortened),
    )


def _oversize(policy: Policy, shorten: Shorten | None) -> Oversize | None:
    """Return which results are placeholders.

    The budget of the policy counts, not the part of it that a window has.
    """
    if shorten is None or not policy.oversize:
        return None
    limit = min(policy.oversize, share_of(policy.budget, SHARE))
    return Oversize(limit, shorten, said=share_of(policy.budget, SAID))


def _choose(policy: Policy, log: ChatLog, frontier: Sequence[Summary], oversize: Oversize | None) -> Window:
    reach = policy.reach(oversize)
    if not frontier or not isinstance(policy, SUMMARISED):
        return choose(log, reach)
    rest, shown, cap, budget = log.after(frontier), frontier, reach.cap, policy.budget
    if isinstance(policy, Lossless) and rest.tokens + _cost(frontier) > budget:
        cap = int(budget * policy.compaction.tail)
        guaranteed = choose(rest, Reach(0, reach.keep, reach.turns, cap))
        shown = _newest_within(frontier, budget - guaranteed.tokens)
    room = max(0, budget - _cost(shown))
    window = choose(rest, replace(reach, budget=room, cap=min(cap, room)))
    hidden = frontier[: len(frontier) - len(shown)]
    return replace(
        window,
        summaries=tuple(shown),
        tokens=window.tokens + _cost(shown),
        budget=budget,
        omitted=(*_omissions(hidden), *window.omitted),
    )


def _cost(summaries: Iterable[Summary]) -> int:
    return sum([one.tokens for one in summaries])


def _newest_within(frontier: Sequence[Summary], room: int) -> Sequence[Summary]:
    """Return the newest summaries that fit together; they stay in one piece."""
    for place in range(len(frontier), 0, -1):
        room -= frontier[place - 1].tokens
        if room < 0:
            return frontier[place:]
    return frontier


def _omissions(hidden: Iterable[Summary]) -> Iterator[Omission]:
    for one in hidden:
        why = f"summarised in {one.id}, for which there is no room"
        yield Omission(one.messages, one.first, one.last, one.source_tokens, why)
