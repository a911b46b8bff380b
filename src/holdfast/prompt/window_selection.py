"""Selection of a window: the newest messages that fit, and those that are guaranteed whether they fit or not.

All policies come down to this. Messages of one tool use are one *group*, taken together or not at all. What
has no counterpart (a call that never got its result, a result of an unknown call) is left out, costs nothing,
and is stated. Reading stops one group after the last one taken, so the cost is that of the window, whatever
the length of the session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, dropwhile, islice, takewhile, tee
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from holdfast.errors import InvalidInput, shown
from holdfast.messages.anthropic import INSTRUCTIONS
from holdfast.types import Message, Omission, Shortened, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.prompt.oversize import Oversize
    from holdfast.types import Summary

NO_RESULT = "tool call without a result"
UNKNOWN_CALL = "result of an unknown call"
OVER_BUDGET = "older than the budget reaches"
BEFORE_USER = "before the user message that the window starts with"
NO_USER = "and no user message that the window could start with is in reach"
# A budget that no message fits, not even one without tokens.
NO_BUDGET = -1

# Newest first, as all messages until the window is finished.
Group = list[Message]
# A function that chooses messages, from those of a chat from the newest back, for a budget.
Choose: TypeAlias = "Callable[[Iterator[Message], int], Iterable[Message]]"


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back a window goes, in the terms that all policies come down to.

    As far as `budget` tokens, and in any case `keep` messages and, within `cap` tokens, `turns` user turns.
    With `user_first` it starts at a user message where one is in reach, which leaves at least the share
    `least` of what fits. Results that are `oversize` become placeholders.
    """

    budget: int
    keep: int
    turns: int = 0
    cap: int = NO_BUDGET
    user_first: bool = True
    older: str = OVER_BUDGET
    oversize: Oversize | None = None
    least: float = 1 / 2


class ChatLog:
    """The messages of a chat from the newest back, read again as often as needed.

    They are those after the seq `start` up to the seq `length`. `tokens` is what all of them cost, `gone`
    how many of the numbers are of others: erased, or of other branches.
    """

    def __init__(
        self, newest_first: Iterable[Message], length: int, tokens: int, gone: int = 0, start: int = 0
    ) -> None:
        (self._messages,) = tee(newest_first, 1)
        self.length, self.tokens, self.gone, self.start = length, tokens, gone, start

    def __iter__(self) -> Iterator[Message]:
        return copy(self._messages)

    def after(self, summaries: Sequence[Summary]) -> ChatLog:
        """Return the log after the messages that `summaries`, the oldest ones, cover."""
        if not summaries:
            return self
        start = summaries[-1].last
        tokens = self.tokens - sum(summary.source_tokens for summary in summaries)
        gone = self.gone + self.start - start + sum(summary.messages for summary in summaries)
        later = takewhile(lambda message: message.seq > start, self)
        return ChatLog(later, self.length, tokens, gone, start)


def choose(log: ChatLog, reach: Reach) -> Window:
    """Return the window of a log that goes as far back as `reach` says; linear in what it takes."""
    broken: list[tuple[Message, str]] = []
    originals: dict[int, Message] = {}
    read, taken, fits, is_all = _read_groups(log, reach, broken, originals)
    edge = max(taken, fits)
    # Everything from this seq on was read; what is before it is known by the totals only.
    if is_all and edge == len(read):
        first = log.start + 1
    else:
        first = read[edge - 1][-1].seq if edge else log.length + 1

    groups, large = read[:taken], reach.oversize
    if large and large.fresh and large.is_any_large(groups, reach.budget):
        groups = [*replace(large, fresh=0).shorten_groups(groups, originals, reach.budget, reach.keep)]
    beyond = [message for group in read[taken:fits] for message in group]
    left_out = [(originals.get(message.seq, message), BEFORE_USER) for message in beyond]
    left_out += [(message, why) for message, why in broken if message.seq >= first]
    no_user = reach.user_first and taken and not _starts_with_user(read, taken)
    older = Older(first, f"{reach.older}, {NO_USER}" if no_user else reach.older)
    budget = None if reach.budget == NO_BUDGET else reach.budget
    return _window(log, groups, budget, left_out, older, originals)


def choose_by(log: ChatLog, choose: Choose, budget: int, why: str) -> Window:
    """Return the window of a log with the messages that a function chooses; `why` others are left out.

    Linear in what is read: as far back as the function reads, and the tool use of the oldest one chosen.

    Raises:
        InvalidInput: it returned something that is not a message of this log.

    """
    given: dict[int, Message] = {}

    def newest_first() -> Iterator[Message]:
        for message in dropwhile(lambda message: message.seq > log.length, log):
            given[message.seq] = message
            yield message

    chosen: set[int] = set()
    every: object = choose(newest_first(), budget)
    for message in every if isinstance(every, Iterable) else (every,):
        seq = getattr(message, "seq", 0)
        if seq not in given or given[seq] is not message:
            raise InvalidInput(f"The policy chose {shown(message)}.", "Return messages that it was given.")
        chosen.add(seq)
    broken: list[tuple[Message, str]] = []
    groups: list[Group] = []
    left_out: list[tuple[Message, str]] = []
    first = log.length + 1
    for group in _groups(newest_first(), broken) if chosen else ():
        if group[0].seq < min(chosen):
            break
        first = group[-1].seq
        if chosen.isdisjoint([message.seq for message in group]):
            left_out += [(message, why) for message in group]
        else:
            groups.append(group)
    left_out += [(message, reason) for message, reason in broken if message.seq >= first]
    return _window(log, groups, budget, left_out, Older(first, why), {})


class Older(NamedTuple):
    """The messages before those that a window has read: the seq that they end before, and why they are."""

    end: int
    why: str


def _window(
    log: ChatLog,
    groups: Sequence[Group],
    budget: int | None,
    left_out: list[tuple[Message, str]],
    older: Older,
    originals: Mapping[int, Message],
) -> Window:
    """Return the window of some groups, the newest first; others of those that were read are left out."""
    messages = [message for group in reversed(groups) for message in reversed(group)]
    left_out.sort(key=lambda item: item[0].seq)
    tokens = sum([message.tokens for message in messages])
    cuts = ((message, originals[message.seq]) for message in messages if message.seq in originals)
    shortened = tuple(Shortened(cut.seq, whole.tokens, whole.tokens - cut.tokens) for cut, whole in cuts)
    omitted = _merge(left_out)
    count = log.length - log.start - log.gone - len(messages) - len(left_out)
    if older.end > log.start + 1 and count > 0:
        stated = tokens + sum(gap.tokens for gap in omitted) + sum(cut.saved for cut in shortened)
        unread = max(0, log.tokens - stated)
        omitted.insert(0, Omission(count, log.start + 1, older.end - 1, unread, older.why))
    return Window(tuple(messages), (), tokens, budget, tuple(omitted), shortened)


def _read_groups(
    log: ChatLog, reach: Reach, broken: list[tuple[Message, str]], originals: dict[int, Message]
) -> tuple[list[Group], int, int, bool]:
    """Read groups, and put placeholders in place of what is too large.

    Returns:
        The groups read, how many of them make the window, how many would fit, and whether these were all.

    """
    # What was appended after the totals were read is left for the next window.
    length = log.length
    groups = _groups(dropwhile(lambda message: message.seq > length, log), broken)
    read, guaranteed, fits, is_all = _measure(groups, reach)
    if reach.oversize and reach.oversize.is_any_large(read, reach.budget):
        groups = reach.oversize.shorten_groups(chain(read, groups), originals, reach.budget, reach.keep)
        read, guaranteed, fits, is_all = _measure(groups, reach)
    if not reach.user_first or (is_all and fits == len(read)):
        return read, fits, fits, is_all
    return read, _user_start(read, groups, guaranteed, fits, reach), fits, is_all


def _measure(groups: Iterator[Group], reach: Reach) -> tuple[list[Group], int, int, bool]:
    """Read as far as the window can go.

    Returns:
        The groups read, how many of them are guaranteed, how many make the window, and whether these were
            all.
    """
    budget, keep, turns, cap = reach.budget, reach.keep, reach.turns, reach.cap
    read: list[Group] = []
    n = count = tokens = users = 0
    fits = kept = whole_turns = part_of_turn = 0
    is_all = False
    for group in groups:
        read.append(group)
        n += 1
        seen = users
        for message in group:
            tokens += message.tokens
            users += message.role == "user"
        if tokens <= budget:
            fits = n
        if count < keep:
            kept = n
        count += len(group)
        if seen < turns and tokens <= cap:
            part_of_turn = n
            if users > seen:
                whole_turns = n
        if tokens > budget and count >= keep and (users >= turns or tokens > cap):
            break
    else:
        is_all = True
    guaranteed = max(kept, whole_turns or part_of_turn)
    if is_all and part_of_turn == n and users < turns:
        # All turns are kept, so what was said before the first user message is kept with them.
        fits = n
    return read, guaranteed, max(fits, guaranteed), is_all


def _user_start(read: list[Group], groups: Iterator[Group], guaranteed: int, fits: int, reach: Reach) -> int:
    """Return how many groups a window has whose start is moved to a user message, `fits` if none is in reach.

    In reach is the next newer one, where that leaves out no guaranteed message and leaves enough of the
    tokens. Without a budget all messages are guaranteed, and in reach is the next older one, among as many
    groups again.
    """
    left = total = _tokens(read[:fits])
    for start in range(fits, max(guaranteed, 1) - 1, -1):
        if left < reach.least * total:
            break
        if _starts_with_user(read, start):
            return start
        left -= _tokens(read[start - 1 : start])
    if reach.budget == NO_BUDGET and fits:
        for group in islice(groups, fits):
            read.append(group)
            if group[-1].role == "user":
                return len(read)
    return fits


def _tokens(groups: Iterable[Group]) -> int:
    return sum([message.tokens for group in groups for message in group])


def _starts_with_user(read: list[Group], start: int) -> bool:
    """Return whether a window of `start` groups starts with a user message or instructions before it."""
    while start and read[start - 1][-1].role in INSTRUCTIONS:
        start -= 1
    return start > 0 and read[start - 1][-1].role == "user"


def _groups(newest_first: Iterable[Message], broken: list[tuple[Message, str]]) -> Iterator[Group]:
    """Yield what must stay together: a message, or tool calls with all up to their results.

    A result belongs to the nearest earlier call with its id, because models use the same ids again and again
    in one chat. Broken tool use goes to `broken` with the reason. So does a call at the very end whose
    results are still to come: no model accepts it before they are there, and then it is whole.
    """
    group: Group = []
    # Calls whose results have been read and which have not been read themselves.
    waiting: set[str] = set()
    unanswered: list[int] = []
    for message in newest_first:
        calls, answers = message.calls, message.answers
        if not (waiting or calls or answers or message.call_id):
            yield [message]
            continue
        if message.call_id and not answers:
            broken.append((message, UNKNOWN_CALL))
            continue
        waiting.update(answers)
        if calls:
            ids = {call.id for call in calls}
            if not ids <= waiting:
                unanswered.append(len(group))
            waiting -= ids
        group.append(message)
        if not waiting:
            if unanswered:
                yield from _mend(group, unanswered, broken)
            else:
                yield group
            group, unanswered = [], []
    if group:
        yield from _mend(group, unanswered, broken)


def _mend(group: Group, unanswered: list[int], broken: list[tuple[Message, str]]) -> Iterator[Group]:
    """Take broken tool use out of a group and yield what remains, grouped anew.

    A message is broken if it is an unanswered call or a result whose call is missing, and so is what is
    linked to it as call or result. What is merely in between stays.
    """
    links: dict[int, list[int]] = defaultdict(list)
    waiting: dict[str, list[int]] = defaultdict(list)
    for place, message in enumerate(group):
        for call in message.calls:
            for result in waiting.pop(call.id, ()):
                links[place].append(result)
                links[result].append(place)
        for answer in message.answers:
            waiting[answer].append(place)
    out: dict[int, str] = {}
    missing = [place for places in waiting.values() for place in places]
    for todo, why in (([*unanswered], NO_RESULT), (missing, UNKNOWN_CALL)):
        while todo:
            place = todo.pop()
            if place not in out:
                out[place] = why
                todo.extend(links[place])
    broken.extend((group[place], why) for place, why in out.items())
    yield from _groups([message for place, message in enumerate(group) if place not in out], broken)


def _merge(left_out: Iterable[tuple[Message, str]]) -> list[Omission]:
    """Return omissions for messages, oldest first: one for neighbours with the same reason."""
    merged: list[Omission] = []
    for message, why in left_out:
        last = merged[-1] if merged else None
        if last and last.why == why and last.last + 1 == message.seq:
            tokens = last.tokens + message.tokens
            merged[-1] = Omission(last.messages + 1, last.first, message.seq, tokens, why)
        else:
            merged.append(Omission(1, message.seq, message.seq, message.tokens, why))
    return merged
