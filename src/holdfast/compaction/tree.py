"""Compaction: summaries come to stand for the older messages of a session, and summaries of those, until it fits.

Plan (read) → summarise (no lock, no transaction) → commit (short, looks again). The whole is a generator that yields
batches of what is to be written, each a generator of its own that yields prompts; so one implementation serves every
kind of model. `drive` runs it for a model that is called; `aio.py` has the driver for one that is awaited.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from holdfast.compaction import plan
from holdfast.compaction.plan import Group
from holdfast.compaction.summarize import Asking, Bounds, Source, Written, first_cost, write
from holdfast.errors import InvalidInput, ModelFailed
from holdfast.prompt.summary_block import summary_text
from holdfast.prompt.window import Compaction, share_of
from holdfast.store import log, summaries
from holdfast.store.message_rows import EPOCH
from holdfast.store.summaries import Draft
from holdfast.text.message_text import from_summary, passages
from holdfast.text.references import write_reference
from holdfast.text.shorten import shown
from holdfast.text.tokens import MESSAGE_OVERHEAD
from holdfast.types import MAX_COUNT, CompactionResult, Summary

if TYPE_CHECKING:
    from holdfast.llm.model import Model
    from holdfast.store.database import Database
    from holdfast.store.log import Line
    from holdfast.text.tokens import CountTokens

Y = TypeVar("Y")
Mode = Literal["incremental", "full"]
MODES: tuple[Mode, ...] = ("incremental", "full")
_NO_TIME = 0.001  # seconds, for which nobody is asked
_LOST = "Somebody else changed the session first, so what was written for it was not stored."

Steps = Generator[list[Asking], list[Written], CompactionResult]
Report = Callable[[CompactionResult], None]
Ask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Session:
    """A session that is to be compacted: where it is stored, how its tokens are counted, and what time it is."""

    database: Database
    space: str
    chat: str
    count: CountTokens
    now: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Task:
    """A summary that is to be made of messages, or of other summaries, and what it is written from."""

    source: Source
    target: int
    first: int
    last: int
    messages: int
    tokens: int
    since: datetime
    until: datetime
    erasures: int
    group: Group | None = None
    id: str = field(default_factory=lambda: f"sum_{os.urandom(8).hex()}")

    @property
    def is_copy(self) -> bool:
        """Say whether it has nothing to condense: it only lifts one summary to another depth."""
        return self.group is not None and len(self.group.parts) == 1 and self.group.into is None


class Span:
    """The time that a compaction may take, which begins now."""

    def __init__(self, how: Compaction) -> None:
        self._how, self._began = how, time.monotonic()

    @property
    def taken(self) -> float:
        """The seconds that it has taken."""
        return time.monotonic() - self._began

    @property
    def over(self) -> str:
        """Why it is over; "" if it is not."""
        return (
            f"The {self._how.seconds:g} seconds that it may take are over." if self._left <= _NO_TIME else ""
        )

    @property
    def _left(self) -> float:
        return self._how.seconds - self.taken

    def wait(self) -> float:
        """Return for how many seconds an answer is waited for: no longer than until it is over.

        Raises:
            ModelFailed: it is.

        """
        if why := self.over:
            raise ModelFailed(why, "Allow more: Compaction(seconds=…).", reason="timeout")
        return min(self._how.patience, self._left)


def crowded(session: Session, budget: int, threshold: float, how: Compaction) -> bool:
    """Say whether what stands for a session takes more than a share of the budget, and compaction can do something."""
    with session.database.one_read():
        state = summaries.progress(session.database, session.space, session.chat)
        if state.tokens <= share_of(budget, threshold):
            return False
        work = _Work(session, budget, how, None, 1, None)
        return not work.done() and bool(work.leaves(1) or work.groups())


def compact(
    session: Session,
    mode: Mode,
    budget: int,
    how: Compaction,
    model: Model | None = None,
    *,
    at_once: int = 1,
    report: Report | None = None,
    span: Span | None = None,
) -> Steps:
    """Compact a session: yield batches of what is to be written, receive them written, and return the account.

    What a model has not answered when the time is over is not stored, and the account names the thread it is left to.

    Raises:
        InvalidInput: an unknown mode.
        ModelFailed: the model raised an error; nothing of that batch was stored.

    """
    if mode not in MODES:
        raise InvalidInput(f"{shown(mode)} is no mode of compaction.", f"Use one of {', '.join(MODES)}.")
    work = _Work(session, budget, how, model, at_once, report, span)
    if why := work.idle(mode):
        return work.account(why)
    try:
        for _ in range(1 if mode == "incremental" else how.passes):
            before = len(work.made)
            why = (yield from work.leaf_pass()) or (yield from work.condensing_pass())
            if not why and work.done():
                why = f"It is under the target of {work.target:,} tokens."
            if not why and len(work.made) == before:
                why = work.stuck()
            if why:
                return work.account(why)
    except ModelFailed as error:
        if error.reason == "timeout" and (over := work.over()):
            return work.account(over if error.what == over else f"{over} {error.what}")
        if not work.made:
            raise
        made = len(work.made)
        kept = "1 summary was stored before." if made == 1 else f"{made} summaries were stored before."
        raise ModelFailed(f"{error.what} {kept}", error.todo, reason=error.reason) from error
    return work.account(
        "An incremental compaction goes over the session once."
        if mode == "incremental"
        else f"It went over the session {how.passes} times."
    )


class _Work:
    """One compaction: how far it came, what that took, and what can be done next."""

    def __init__(
        self,
        session: Session,
        budget: int,
        how: Compaction,
        model: Model | None,
        at_once: int,
        report: Report | None,
        span: Span | None = None,
    ) -> None:
        self._session, self._budget, self._how = session, min(budget, MAX_COUNT), how
        self._model, self._at_once, self._report = model, at_once, report
        self._span = span or Span(how)
        self.target = share_of(budget, how.target)
        frame = summary_text(f"sum_{0:016x}", 0, 10_000, 10_000, EPOCH, EPOCH, "", expand=True)
        self._frame = MESSAGE_OVERHEAD + session.count(frame)
        self.made: list[Summary] = []
        self._beyond: list[str] = []
        self._messages = self._calls = self._asked = self._answered = 0
        self._read()
        self._before = self._state.tokens

    def _read(self) -> None:
        session = self._session
        with session.database.one_read():
            self._state = summaries.progress(session.database, session.space, session.chat)
            self._frontier = summaries.frontier(session.database, session.space, session.chat)

    def account(self, why: str) -> CompactionResult:
        """Account for what was done so far."""
        beyond = tuple(dict.fromkeys(self._beyond))
        if why and beyond:
            why += f" As a last resort, more parts than `fan_in` were put into {', '.join(beyond)}."
        return CompactionResult(
            tuple(self.made),
            self._messages,
            self._before,
            self._state.tokens,
            self._calls,
            self._asked,
            self._answered,
            self._span.taken,
            why,
            beyond,
        )

    def done(self) -> bool:
        """Say whether the target is reached."""
        return self._state.tokens < self.target and not (self._how.single and len(self._frontier) > 1)

    def idle(self, mode: Mode) -> str:
        """Say why there is nothing to do; "" if there is."""
        tokens, limit = self._state.tokens, share_of(self._budget, self._how.threshold)
        if not self._state.length:
            return "The session has no messages."
        if mode == "incremental" and tokens <= limit:
            return (
                f"It is not crowded: {tokens:,} tokens, and the threshold is {limit:,} of {self._budget:,}."
            )
        if self.done():
            return f"It is under the target already: {tokens:,} tokens, and the target is {self.target:,}."
        return ""

    def stuck(self) -> str:
        """Say why nothing was made although the target is not reached."""
        return (
            f"There is no progress to make: the {self._state.tokens:,} tokens that are left are the newest turns, "
            "summaries without neighbours of their depth, and what is too short for a summary."
        )

    def over(self) -> str:
        """Return why there is no more time; "" if there is."""
        return self._span.over

    def _spent(self) -> str:
        """Say which limit lets nothing more be written; "" if none."""
        how = self._how
        if why := self.over():
            return why
        if self._model and self._calls >= how.calls:
            return f"The model was asked {how.calls} times, which is the limit."
        return ""

    # Leaves

    def leaf_pass(self) -> Generator[list[Asking], list[Written], str]:
        """Let leaves stand for the oldest messages until the target is reached; say what stopped it, "" for that."""
        sources: list[list[Line]] = []
        while self._state.tokens >= self.target:
            sources = sources or self.leaves(self._state.tokens - self.target + 1)
            if not sources:
                break
            if why := self._spent():
                return why
            some = sources[: self._batch_size()]
            starts = [self._state.covered, *(lines[-1].seq for lines in some)]
            batch = [self._leaf(start + 1, lines) for start, lines in zip(starts, some, strict=False)]
            made = len(self.made)
            stopped = yield from self._make(batch)
            if stopped is not None:
                return stopped
            done = len(self.made) - made
            # If somebody else was at work as well, what was planned may begin elsewhere.
            going_on = done and self._state.covered == some[done - 1][-1].seq
            sources = sources[done:] if going_on else []
        return ""

    def leaves(self, need: float) -> list[list[Line]]:
        """Plan the sources of leaves until `need` tokens are saved, or nothing but the tail is left."""
        session, state = self._session, self._state
        lines = log.outline(session.database, session.space, session.chat, state.covered)
        allowed = plan.cuts(lines)
        until = plan.tail_start(lines, allowed, self._budget, self._how)
        spans = plan.chunks(lines, allowed, until, self._budget, need, self._frame, self._how)
        return [lines[start:end] for start, end in spans]

    def _leaf(self, first: int, lines: Sequence[Line]) -> Task:
        session, last = self._session, lines[-1].seq
        messages = log.read(session.database, session.space, session.chat, after=first - 1, before=last + 1)
        times = [message.at or EPOCH for message in messages] or [EPOCH]
        tokens = sum(message.tokens for message in messages)
        previous = tuple(one.text for one in self._latest(len(self._frontier)))
        return Task(
            Source(passages(messages), tokens, 0, previous),
            plan.target_of(tokens, 3, self._how.leaf_target, self._budget),
            first,
            last,
            len(messages),
            tokens,
            min(times),
            max(times),
            self._state.erasures,
        )

    def _latest(self, end: int) -> list[Summary]:
        return self._frontier[max(0, end - self._how.previous) : end] if self._how.previous else []

    # Summaries of summaries

    def condensing_pass(self) -> Generator[list[Asking], list[Written], str]:
        """Condense summaries until the target is reached; say what stopped it, "" for that."""
        while groups := self.groups(self._batch_size()):
            if why := self._spent():
                return why
            stopped = yield from self._make([self._node(group) for group in groups])
            if stopped is not None:
                return stopped
        return ""

    def groups(self, at_once: int = 1) -> list[Group]:
        """Plan what is condensed next; nothing once the target is reached.

        An eighth of the budget is left to summaries also where the tail alone takes the target.
        """
        if self._how.single:
            return plan.single(self._frontier)[:1]
        session, summarised = self._session, sum(one.tokens for one in self._frontier)
        need = min(self._state.tokens - self.target + 1, summarised - self._budget // 8)
        if need <= 0:
            return []
        want = plan.Want(need, self._budget, self._frame)
        widths = summaries.widths(session.database, session.space, session.chat)
        if groups := plan.groups(self._frontier, widths, want, self._how, at_once):
            return groups
        fits = self._state.tokens <= self._budget
        group = None if fits else plan.condense(self._frontier, widths, want, self._how, beyond=True)
        return [group] if group else []

    def _node(self, group: Group) -> Task:
        parts = group.whole
        tokens = sum(one.tokens for one in parts)
        place = sum(one.last < parts[0].first for one in self._frontier)
        previous = tuple(one.text for one in self._latest(place))
        said = [passage for one in parts for passage in from_summary(one.text)]
        depth = group.into.depth if group.into else parts[0].depth + 1
        return Task(
            Source(said, tokens, depth, previous),
            group.target or self._single_target(tokens),
            parts[0].first,
            parts[-1].last,
            sum(one.messages for one in parts),
            sum(one.source_tokens for one in parts),
            min(one.since for one in parts),
            max(one.until for one in parts),
            self._state.erasures,
            group,
            group.into.id if group.into else f"sum_{os.urandom(8).hex()}",
        )

    def _single_target(self, source: int) -> int:
        """Give the tokens of a cumulative summary: no fewer than are needed to reach the target, within its limits."""
        least = plan.target_of(source, 2, self._how.condensed_target, self._budget)
        spare = source - (self._state.tokens - self.target + 1) - self._frame
        return max(least, min(spare, source // 2, self._how.condensed_target))

    # Both

    def _batch_size(self) -> int:
        return max(1, min(self._at_once, self._how.calls - self._calls))

    def _make(self, batch: Sequence[Task]) -> Generator[list[Asking], list[Written], str | None]:
        """Have some summaries written, and store them in their order as long as they are needed.

        Says why that cannot go on, "" if they would not save anything; None if it can.
        """
        asking = self._affordable(batch)
        if not asking:
            return (
                f"The limit of {self._how.spend:,} tokens for the model does not reach for another summary."
            )
        if self._model and self._report:
            first, last = batch[0].first, batch[len(asking) - 1].last
            said = write_reference(self._session.chat, first, last)
            self._report(self.account(f"{self._model.name} is asked about messages {said}."))
        written = yield asking
        self._calls += sum(one.calls for one in written)
        self._asked += sum(one.prompt_tokens for one in written)
        self._answered += sum(one.answer_tokens for one in written)
        for number, (task, text) in enumerate(zip(batch, written, strict=False)):
            if number and self._state.tokens < self.target:
                break  # what was written at the same time is not needed any more
            draft = self._draft(task, text)
            if draft.tokens >= task.source.tokens and not task.is_copy:
                return ""
            summary = self._store(task, draft)
            self._read()
            if summary is None:
                return _LOST
            self.made.append(summary)
            if task.group and task.group.beyond:
                self._beyond.append(summary.id)
            self._messages += 0 if task.group else task.messages
            if self._report:
                self._report(self.account(""))
        return None

    def _affordable(self, batch: Sequence[Task]) -> list[Asking]:
        """Begin as many of some summaries as the limits of the model let be written."""
        left = self._how.calls - self._calls
        tries = 0 if self._model is None else 2 if left >= 2 * len(batch) else 1
        bounds = [
            Bounds(task.target, self._session.count, partial(self._cost, task), 0 if task.is_copy else tries)
            for task in batch
        ]
        if self._how.spend is not None and tries:
            bounds = self._allowed(batch, bounds, self._how.spend - self._asked - self._answered)
        return [
            _copy(task.group.parts[0]) if task.group and task.is_copy else write(task.source, one)
            for task, one in zip(batch, bounds, strict=False)
        ]

    @staticmethod
    def _allowed(batch: Sequence[Task], bounds: Sequence[Bounds], room: int) -> list[Bounds]:
        """Share out the tokens that are left; those that get too few to ask once are left out."""
        costs: list[int] = []
        for task, one in zip(batch, bounds, strict=True):
            costs.append(first_cost(task.source, one))
            if sum(costs) > room:
                costs.pop()
                break
        spare = (room - sum(costs)) // max(1, len(costs))
        return [replace(one, allowance=cost + spare) for one, cost in zip(bounds, costs, strict=False)]

    def _cost(self, task: Task, text: str) -> int:
        """Count what a text costs at most in a window as the summary that a task asks for."""
        one = task.source
        shown = summary_text(
            task.id, one.depth, task.first, task.last, task.since, task.until, text, expand=True
        )
        return MESSAGE_OVERHEAD + self._session.count(shown)

    def _draft(self, task: Task, written: Written) -> Draft:
        model = self._model.name if self._model and written.calls else ""
        return Draft(
            id=task.id,
            depth=task.source.depth,
            first=task.first,
            last=task.last,
            messages=task.messages,
            source_tokens=task.tokens,
            tokens=self._cost(task, written.text),
            since=task.since,
            until=task.until,
            text=written.text,
            level=written.level,
            model=task.group.parts[0].model if task.group and task.is_copy else model,
            erasures=task.erasures,
        )

    def _store(self, task: Task, draft: Draft) -> Summary | None:
        session = self._session
        db, space, chat, now = session.database, session.space, session.chat, session.now()
        if task.group is None:
            return summaries.add_leaf(db, space, chat, draft, now)
        if task.group.into is None:
            return summaries.add_node(db, space, chat, draft, task.group.parts, now)
        return summaries.grow(db, space, chat, draft, task.group.into, task.group.parts, now)


def _copy(summary: Summary) -> Asking:
    yield from ()
    return Written(summary.text, summary.level)


# Drivers


def drive(steps: Steps, ask: Ask) -> CompactionResult:
    """Run a compaction, writing one summary after the other."""
    moved = advance(partial(next, steps))
    while not isinstance(moved, CompactionResult):
        try:
            written = [_written(asking, ask) for asking in moved]
        except ModelFailed as error:
            moved = advance(partial(steps.throw, error))
        else:
            moved = advance(partial(steps.send, written))
    return moved


def _written(asking: Asking, ask: Ask) -> Written:
    moved = advance(partial(next, asking))
    while not isinstance(moved, Written):
        moved = advance(partial(asking.send, ask(moved)))
    return moved


def advance(step: Callable[[], Y]) -> Y | Any:
    """Make a step of a generator, and give what it yields or, at its end, what it returns.

    A StopIteration could not leave the thread on which the step was made.
    """
    try:
        return step()
    except StopIteration as end:
        return end.value
