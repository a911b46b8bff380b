"""The windows of one chat by a policy: its messages are read once, however many windows are made of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, islice, takewhile
from typing import TYPE_CHECKING, Protocol

from holdfast.messages.anthropic import INSTRUCTIONS
from holdfast.prompt.oversize import SAID, SHARE, Oversize, Shorten
from holdfast.prompt.window import (
    SUMMARISED,
    BuiltInPolicy,
    CheckedPolicy,
    Chosen,
    LastN,
    Lossless,
    SummaryBuffer,
    name_of,
    share_of,
    within,
)
from holdfast.prompt.window_selection import ChatLog, Reach, choose, choose_by
from holdfast.types import MAX_COUNT, Message, Omission, Shortened, Summary, Window

if TYPE_CHECKING:
    from holdfast.types import ChatStats

IN_TURN = "between the request of a turn that is longer than the budget reaches, and its end"
# Messages of a turn that are read at most to find its request.
_LONGEST_TURN = 2_000


class Select(Protocol):
    """A function that makes windows of one chat."""

    def __call__(self, budget: int, summaries: int = ..., fresh: int = ..., /) -> Window:
        """Return the window for `budget` tokens, of which summaries take at most `summaries`.

        Its start is where it was before the newest `fresh` tokens were said, whatever became a placeholder
        since, unless this leaves more than an eighth of the budget unused.
        """


def expected_messages(policy: CheckedPolicy, stats: ChatStats) -> int:
    """Estimate how many messages a policy will read, to size the first page; never more than there are."""
    if isinstance(policy, LastN):
        return min(policy.n + 1, stats.messages)
    average = stats.stored_tokens / max(1, stats.messages)
    there = stats.messages - (stats.summarised if isinstance(policy, SUMMARISED) else 0)
    return min(math.ceil(min(policy.budget, MAX_COUNT) / max(1.0, average)) + 8, there)


def selector(
    policy: CheckedPolicy,
    newest_first: Iterable[Message],
    stats: ChatStats,
    frontier: Sequence[Summary] = (),
    shorten: Shorten | None = None,
) -> Select:
    """Return a function from a token budget to a window of a chat, which reads each message only once.

    `stats` are its totals, `frontier` its summaries that are part of no other, oldest first. A window that
    begins within a turn has its request before it, where both fit and no summary has it; the newest always.
    """
    gone = stats.erased + stats.aside
    log = ChatLog(newest_first, stats.messages + gone, stats.stored_tokens, gone)
    if isinstance(policy, Chosen):
        why = f"not chosen by {name_of(policy)}"
        return lambda budget, *_: choose_by(log, policy.policy.choose, min(budget, policy.budget), why)
    return _Selector(policy, log, frontier, _oversize(policy, shorten))


@dataclass(frozen=True, slots=True)
class _Selector:
    """Make windows of a chat; see `Select`."""

    policy: BuiltInPolicy
    log: ChatLog
    frontier: Sequence[Summary]
    oversize: Oversize | None

    def __call__(self, budget: int, summaries: int = MAX_COUNT, fresh: int = 0, /) -> Window:
        window = self._with_its_request(budget, summaries, fresh)
        if not fresh or window.tokens >= (1 - SHARE) * budget:
            return window
        # Results of the last turn that are whole in one of both may leave it emptier.
        return max(window, self._with_its_request(budget, summaries, 0), key=lambda window: window.tokens)

    def _with_its_request(self, budget: int, summaries: int, fresh: int, *, fit: bool = False) -> Window:
        window, log = self._window(budget, summaries, fresh), self.log.after(self.frontier)
        if self.oversize is None or (request := _lost_request(log, window)) is None:
            return window
        short = self.oversize.shortest(request, fit=fit)
        room = min(self.policy.budget, budget) - short.tokens
        # First the request, and the end of its turn in the room that it leaves.
        rest = self._window(max(0, room), summaries, fresh, 1)
        if room > 0 and rest.messages and rest.messages[0].seq <= request.seq:
            return replace(self._with_its_request(room, summaries, fresh), budget=window.budget)
        if rest.tokens > room or not _is_behind(request, rest, window, log):
            if not self.policy.user_first and any(message.role == "user" for message in window.messages):
                return window
            # Else from the next message of the user on.
            later = self._window(budget, summaries, fresh, 0)
            newest = [message.seq for message in later.messages[-1:]]
            if newest == [window.messages[-1].seq] and _lost_request(log, later) is None:
                return later
            # Else from what was said within a step that is left out, at last the newest request and what is
            # guaranteed; of a request that leaves no room for it, the beginning and the end.
            request = _lost_request(log, rest) or request
            short = self.oversize.shortest(request, fit=fit)
            if not rest.messages or rest.tokens + short.tokens > budget:
                rest = self._window(0, summaries, fresh, 0)
                request = next(message for message in log if message.role == "user")
                short = self.oversize.shortest(request, fit=fit)
                if request in rest.messages or not rest.messages or short.tokens >= budget:
                    return window if fit else self._with_its_request(budget, summaries, fresh, fit=True)
        return _with_request(replace(rest, budget=window.budget), request, short, self.log)

    def _window(self, budget: int, summaries: int, fresh: int, least: float = 1 / 2) -> Window:
        large = self.oversize and replace(self.oversize, fresh=fresh)
        is_kept = isinstance(self.policy, SummaryBuffer)
        some = self.frontier if is_kept else _newest_within(self.frontier, summaries)
        rest = self.log.after(self.frontier)
        window = _choose(within(self.policy, budget), rest, some, large, least)
        hidden = self.frontier[: len(self.frontier) - len(window.summaries)]
        return replace(window, omitted=(*_omissions(hidden), *window.omitted))


def _lost_request(log: ChatLog, window: Window) -> Message | None:
    """Return the request of the turn within which a window begins, if the window lacks it."""
    roles = [message.role for message in window.messages if message.role not in INSTRUCTIONS]
    if not roles or window.budget is None or roles[0] == "user":
        return None
    first = window.messages[0].seq
    before = islice(dropwhile(lambda message: message.seq >= first, log), _LONGEST_TURN)
    return next((message for message in before if message.role == "user"), None)


def _is_behind(request: Message, rest: Window, window: Window, log: ChatLog) -> bool:
    """Return whether the smaller of two windows begins behind a request, and leaves out no other for it."""
    lost = _lost_request(log, rest)
    is_one_turn = [message.role for message in window.messages].count("user") <= 1
    first = min((message.seq for message in rest.messages), default=0)
    return lost is request or (lost is None and is_one_turn and request.seq < first)


def _with_request(window: Window, request: Message, short: Message, log: ChatLog) -> Window:
    """Return a window with the request of its turn before its messages, and the gap as an omission."""
    omitted: list[Omission] = []
    for omission in window.omitted:
        if not omission.first <= request.seq <= omission.last:
            omitted.append(omission)
            continue
        turn = takewhile(lambda message: message.seq > request.seq, log)
        costs = [message.tokens for message in turn if message.seq <= omission.last]
        older, tokens = omission.messages - 1 - len(costs), omission.tokens - request.tokens - sum(costs)
        if older > 0:
            omitted.append(Omission(older, omission.first, request.seq - 1, max(0, tokens), omission.why))
        if costs:
            omitted.append(Omission(len(costs), request.seq + 1, omission.last, sum(costs), IN_TURN))
    saved = request.tokens - short.tokens
    return replace(
        window,
        messages=(short, *window.messages),
        tokens=window.tokens + short.tokens,
        omitted=tuple(omitted),
        shortened=(*([Shortened(short.seq, request.tokens, saved)] if saved else []), *window.shortened),
    )


def _oversize(policy: BuiltInPolicy, shorten: Shorten | None) -> Oversize | None:
    """Return which results are placeholders.

    The budget of the policy counts, not the part of it that a window has.
    """
    if shorten is None or not policy.oversize:
        return None
    made: dict[tuple[int, int, bool], Message] = {}

    def shorten_once(message: Message, limit: int, /, *, fit: bool = False) -> Message:
        # A prompt makes several windows of the same messages.
        key = message.seq, limit, fit
        return made.get(key) or made.setdefault(key, shorten(message, limit, fit=fit))

    limit = min(policy.oversize, share_of(policy.budget, SHARE))
    return Oversize(limit, shorten_once, said=share_of(policy.budget, SAID))


def _choose(
    policy: BuiltInPolicy, rest: ChatLog, frontier: Sequence[Summary], oversize: Oversize | None, least: float
) -> Window:
    """Return the window of the messages after all summaries, and those of the newest ones that fit."""
    reach = replace(policy.reach(oversize), least=least)
    if not least and reach.keep == 1:
        # A newest step that a policy does not ask for must not take the place of the request.
        reach = replace(reach, keep=0)
    if not frontier:
        return choose(rest, reach)
    shown, cap, budget = frontier, reach.cap, policy.budget
    if isinstance(policy, Lossless) and rest.tokens + _cost(frontier) > budget:
        cap = int(budget * policy.compaction.tail)
        guaranteed = choose(rest, Reach(0, reach.keep, reach.turns, cap))
        spent = guaranteed.tokens
        if oversize and spent > budget and guaranteed.messages[-1].role != "user":
            # A step that is larger than all of the budget is made to fit, as far as its many messages can be
            # shortened; words of a user are not.
            spent = max(oversize.said, choose(rest, replace(reach, budget=oversize.said, cap=0)).tokens)
        shown = _newest_within(frontier, budget - spent)
    room = max(0, budget - _cost(shown))
    window = choose(rest, replace(reach, budget=room, cap=min(cap, room)))
    return replace(window, summaries=tuple(shown), tokens=window.tokens + _cost(shown), budget=budget)


def _cost(summaries: Iterable[Summary]) -> int:
    return sum([summary.tokens for summary in summaries])


def _newest_within(frontier: Sequence[Summary], room: int) -> Sequence[Summary]:
    """Return the newest summaries that fit together; they stay in one piece."""
    for place in range(len(frontier), 0, -1):
        room -= frontier[place - 1].tokens
        if room < 0:
            return frontier[place:]
    return frontier


def _omissions(hidden: Iterable[Summary]) -> Iterator[Omission]:
    for summary in hidden:
        why = f"summarised in {summary.id}, for which there is no room"
        yield Omission(summary.messages, summary.first, summary.last, summary.source_tokens, why)
