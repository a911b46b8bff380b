"""Compaction: summaries stand for the older messages of a chat, and summaries for those.

Plan (read) → summarise (no lock, no transaction) → commit (short, looks again). The whole is a generator of
prompts, run by a driver (`compaction/driver.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from holdfast.compaction import plan
from holdfast.compaction.driver import Requests, Steps, TimeLimit, together
from holdfast.compaction.plan import Group
from holdfast.compaction.summarize import Bounds, SummarySource, WrittenSummary, prompts_of, share_out, write
from holdfast.compaction.summary_passages import from_summary, is_work
from holdfast.compaction.work_steps import work_passages
from holdfast.errors import ModelFailed
from holdfast.messages.passages import passages
from holdfast.prompt.summary_block import summary_text
from holdfast.prompt.window import Compaction, share_of
from holdfast.store import log, summaries
from holdfast.store.message_rows import EPOCH
from holdfast.store.summaries import SummaryDraft
from holdfast.text.tokens import MESSAGE_OVERHEAD
from holdfast.types import MAX_COUNT, CompactionResult, Summary
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.llm.model import Model
    from holdfast.store.database import Database
    from holdfast.store.log import MessageOutline
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Level

R = TypeVar("R")
_CONFLICT = "The chat was changed concurrently, so what was written for it was not stored."

Report = Callable[[CompactionResult], None]
# It yields batches of prompts and receives their answers.
Batches = Generator[list[str], list[str], R]


@dataclass(frozen=True, slots=True)
class CompactionInput:
    """A chat that is to be compacted: where it is stored, how its tokens are counted, and what time it is."""

    database: Database
    space: str
    chat: str
    count: CountTokens
    now: Callable[[], int]

    @property
    def place(self) -> tuple[Database, str, str]:
        """Where it is stored, as the functions of the store take it."""
        return self.database, self.space, self.chat


class Task(NamedTuple):
    """A summary that is to be made: its source, its target in tokens, its draft, its group."""

    source: SummarySource
    target: int
    draft: SummaryDraft
    group: Group | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it has nothing to condense: it only lifts one summary to another depth."""
        return self.group is not None and len(self.group.parts) == 1 and self.group.into is None


class Compactor:
    """One compaction of a chat: how far it came, what that took, and what can be done next."""

    def __init__(
        self,
        chat: CompactionInput,
        budget: int,
        how: Compaction,
        model: Model | None = None,
        prompts: Mapping[str, str] | None = None,
        *,
        at_once: int = 1,
        report: Report | None = None,
        limit: TimeLimit | None = None,
    ) -> None:
        self._chat, self._budget, self._how = chat, min(budget, MAX_COUNT), how
        self._model, self._at_once, self._report = model, at_once, report
        self._prompts = () if model is None and prompts is None else prompts_of(prompts)
        self._limit = limit or TimeLimit(how)
        self._target = share_of(budget, how.target)
        self._made: list[Summary] = []
        self._beyond: list[str] = []
        self._messages = self._calls = self._prompt_tokens = self._answer_tokens = 0

    def is_needed(self, threshold: float) -> bool:
        """Return whether the chat takes more than a share of the budget, and can be compacted."""
        with self._chat.database.one_read():
            if summaries.progress(*self._chat.place).tokens <= share_of(self._budget, threshold):
                return False
            self._read()
            return not self._is_done() and bool(self._leaves(1) or self._groups())

    def run(self, *, full: bool) -> Steps:
        """Compact the chat: yield batches of prompts, receive the answers, and return the result.

        What a model has not answered when the time limit is reached is not stored, and the account names the
        thread it is left to.

        Raises:
            ModelFailed: the model raised an error; nothing of that batch was stored.
        """
        self._read()
        self._before = self._state.tokens
        try:
            return self._account(self._idle(full=full) or (yield from self._passes(full=full)))
        except ModelFailed as error:
            if error.reason == "timeout" and (why := self._limit.reached):
                return self._account(why if error.what == why else f"{why} {error.what}")
            if not self._made:
                raise
            made = len(self._made)
            stored = "1 summary was stored before." if made == 1 else f"{made} summaries were stored before."
            raise ModelFailed(f"{error.what} {stored}", error.todo, reason=error.reason) from error

    def _read(self) -> None:
        with self._chat.database.one_read():
            self._state = summaries.progress(*self._chat.place)
            self._frontier = summaries.frontier(*self._chat.place)

    @cached_property
    def _frame(self) -> int:
        """The tokens that a summary takes besides its text."""
        frame = summary_text(f"sum_{0:016x}", 0, 10_000, 10_000, EPOCH, EPOCH, "", expand=True)
        return MESSAGE_OVERHEAD + self._chat.count(frame)

    def _account(self, why: str) -> CompactionResult:
        """Return the account of what was done so far."""
        beyond = tuple(dict.fromkeys(self._beyond))
        if why and beyond:
            why += f" As a last resort, more parts than `fan_in` were put into {', '.join(beyond)}."
        return CompactionResult(
            tuple(self._made),
            self._messages,
            self._before,
            self._state.tokens,
            self._calls,
            self._prompt_tokens,
            self._answer_tokens,
            self._limit.taken,
            why,
            beyond,
        )

    def _is_done(self) -> bool:
        """Return whether the target is reached."""
        return self._state.tokens < self._target and not (self._how.single and len(self._frontier) > 1)

    def _idle(self, *, full: bool) -> str:
        """Return why there is nothing to do; "" if there is."""
        tokens, most = self._state.tokens, share_of(self._budget, self._how.threshold)
        if not self._state.length:
            return "The chat has no messages."
        if not full and tokens <= most:
            threshold = f"the threshold is {most:,} of {self._budget:,}"
            return f"No compaction is needed: {tokens:,} tokens, and {threshold}."
        if self._is_done():
            return f"It is below the target already: {tokens:,} tokens, and the target is {self._target:,}."
        return ""

    def _passes(self, *, full: bool) -> Batches[str]:
        """Go over the chat once, or as often as it takes; return what stopped it."""
        for _ in range(self._how.passes if full else 1):
            made = len(self._made)
            why = (yield from self._leaf_pass()) or (yield from self._condensing_pass())
            if why:
                return why
            if self._is_done():
                return f"It is below the target of {self._target:,} tokens."
            if len(self._made) == made:
                return (
                    f"Nothing more can be compacted: the {self._state.tokens:,} tokens that are left are "
                    "the newest turns, summaries without neighbours of their depth, and messages too short "
                    "for one."
                )
        if full:
            return f"It made {self._how.passes} passes over the chat."
        return "An incremental compaction makes one pass over the chat."

    def _limit_reached(self) -> str:
        """Return which limit lets nothing more be written; "" if none."""
        if why := self._limit.reached:
            return why
        if self._model and self._calls >= self._how.calls:
            return f"The limit of {self._how.calls} calls of the model is reached."
        return ""

    def _leaf_pass(self) -> Batches[str]:
        """Add leaves until the target is reached; return what stopped it, "" for the target."""
        sources: list[list[MessageOutline]] = []
        while self._state.tokens >= self._target:
            sources = sources or self._leaves(self._state.tokens - self._target + 1)
            if not sources:
                break
            if why := self._limit_reached():
                return why
            some = sources[: self._batch_size()]
            starts = [self._state.covered, *(lines[-1].seq for lines in some)]
            batch = [self._leaf(start + 1, lines) for start, lines in zip(starts, some, strict=False)]
            made = len(self._made)
            stopped = yield from self._make(batch)
            if stopped is not None:
                return stopped
            done = len(self._made) - made
            # If somebody else was at work as well, what was planned may begin elsewhere.
            going_on = done and self._state.covered == some[done - 1][-1].seq
            sources = sources[done:] if going_on else []
        return ""

    def _leaves(self, need: int) -> list[list[MessageOutline]]:
        """Return the sources of leaves until `need` tokens are saved, or nothing but the tail is left."""
        lines = log.outline(*self._chat.place, self._state.covered)
        allowed = plan.cuts(lines)
        until = plan.tail_start(lines, allowed, self._budget, self._how)
        spans = plan.chunks(lines, allowed, until, plan.Want(need, self._budget, self._frame), self._how)
        return [lines[start:end] for start, end in spans]

    def _leaf(self, first: int, lines: Sequence[MessageOutline]) -> Task:
        last = lines[-1].seq
        messages = log.read(*self._chat.place, after=first - 1, before=last + 1)
        times = [message.at or EPOCH for message in messages] or [EPOCH]
        tokens = sum(message.tokens for message in messages)
        draft = SummaryDraft(
            _new_id(), 0, first, last, len(messages), tokens, 0, min(times), max(times), *self._unwritten()
        )
        previous = self._previous(len(self._frontier))
        work = work_passages(messages, ongoing=any(map(is_work, previous)))
        source = SummarySource(passages(messages), tokens, 0, previous, work)
        return Task(source, plan.target_of(tokens, 3, self._how.leaf_target, self._budget), draft)

    def _previous(self, end: int) -> tuple[str, ...]:
        return tuple(one.text for one in self._frontier[max(0, end - self._how.previous) : end])

    def _condensing_pass(self) -> Batches[str]:
        """Condense summaries until the target is reached; return what stopped it, "" for the target."""
        while groups := self._groups(self._batch_size()):
            if why := self._limit_reached():
                return why
            stopped = yield from self._make([self._node(group) for group in groups])
            if stopped is not None:
                return stopped
        return ""

    def _groups(self, at_once: int = 1) -> list[Group]:
        """Return what is condensed next; nothing once the target is reached.

        An eighth of the budget is left to summaries also where the tail alone takes the target.
        """
        if self._how.single:
            return plan.single(self._frontier)[:1]
        summarised = sum(one.tokens for one in self._frontier)
        need = min(self._state.tokens - self._target + 1, summarised - self._budget // 8)
        if need <= 0:
            return []
        want = plan.Want(need, self._budget, self._frame)
        widths = summaries.part_counts(*self._chat.place)
        if groups := plan.groups(self._frontier, widths, want, self._how, at_once):
            return groups
        fits = self._state.tokens <= self._budget
        group = None if fits else plan.condense(self._frontier, widths, want, self._how, beyond=True)
        return [group] if group else []

    def _node(self, group: Group) -> Task:
        parts, into = group.whole, group.into
        tokens = sum(one.tokens for one in parts)
        draft = SummaryDraft(
            into.id if into else _new_id(),
            into.depth if into else parts[0].depth + 1,
            parts[0].first,
            parts[-1].last,
            sum(one.messages for one in parts),
            sum(one.source_tokens for one in parts),
            0,
            min(one.since for one in parts),
            max(one.until for one in parts),
            *self._unwritten(),
        )
        place = sum(one.last < draft.first for one in self._frontier)
        said = [passage for one in parts for passage in from_summary(one.text)]
        source = SummarySource(said, tokens, draft.depth, self._previous(place))
        return Task(source, group.target or self._single_target(tokens), draft, group)

    def _single_target(self, source: int) -> int:
        """Return the tokens of a cumulative summary: what reaches the target, within its limits."""
        least = plan.target_of(source, 2, self._how.condensed_target, self._budget)
        spare = source - (self._state.tokens - self._target + 1) - self._frame
        return max(least, min(spare, source // 2, self._how.condensed_target))

    def _unwritten(self) -> tuple[str, Level, str, str, int]:
        """Return the last fields of a draft before its text is written."""
        return "", "normal", "", "", self._state.erasures

    def _batch_size(self) -> int:
        return max(1, min(self._at_once, self._how.calls - self._calls))

    def _make(self, batch: Sequence[Task]) -> Batches[str | None]:
        """Have some summaries written, and store them in their order as long as they are needed.

        Returns:
            Why that cannot go on, "" if they would not save anything; None if it can.

        """
        requests = self._affordable(batch)
        if not requests:
            return f"The limit of {self._how.spend:,} tokens for the model allows no further summary."
        if self._model and self._report:
            first, last = batch[0].draft.first, batch[len(requests) - 1].draft.last
            reference = write_reference(self._chat.chat, first, last)
            self._report(self._account(f"{self._model.name} summarises messages {reference}."))
        written = yield from together(requests)
        self._calls += sum(one.calls for one in written)
        self._prompt_tokens += sum(one.prompt_tokens for one in written)
        self._answer_tokens += sum(one.answer_tokens for one in written)
        for number, (task, one) in enumerate(zip(batch, written, strict=False)):
            # What was written at the same time may not be needed any more.
            if number and self._state.tokens < self._target:
                break
            draft = self._draft(task, one)
            if draft.tokens >= task.source.tokens and not task.is_copy:
                return ""
            summary = self._store(task, draft)
            self._read()
            if summary is None:
                return _CONFLICT
            self._made.append(summary)
            if task.group and task.group.beyond:
                self._beyond.append(summary.id)
            self._messages += 0 if task.group else draft.messages
            if self._report:
                self._report(self._account(""))
        return None

    def _affordable(self, batch: Sequence[Task]) -> list[Requests[WrittenSummary]]:
        """Begin as many of some summaries as the limits of the model let be written."""
        left = self._how.calls - self._calls
        tries = 0 if self._model is None else 2 if left >= 2 * len(batch) else 1
        asked = self._prompts
        bounds = [
            Bounds(
                task.target, self._chat.count, partial(self._cost, task.draft), 0 if task.is_copy else tries
            )
            for task in batch
        ]
        if self._how.spend is not None and tries:
            left_to_spend = self._how.spend - self._prompt_tokens - self._answer_tokens
            bounds = share_out([task.source for task in batch], bounds, left_to_spend, asked)
        return [
            _copy(task.group.parts[0]) if task.group and task.is_copy else write(task.source, one, asked)
            for task, one in zip(batch, bounds, strict=False)
        ]

    def _cost(self, draft: SummaryDraft, text: str) -> int:
        """Count what a text costs at most in a window as a summary."""
        id, depth, first, last = draft.id, draft.depth, draft.first, draft.last
        block = summary_text(id, depth, first, last, draft.since, draft.until, text, expand=True)
        return MESSAGE_OVERHEAD + self._chat.count(block)

    def _draft(self, task: Task, written: WrittenSummary) -> SummaryDraft:
        model = self._model.name if self._model and written.calls else ""
        return task.draft._replace(
            tokens=self._cost(task.draft, written.text),
            text=written.text,
            level=written.level,
            model=task.group.parts[0].model if task.group and task.is_copy else model,
            prompt=written.prompt,
        )

    def _store(self, task: Task, draft: SummaryDraft) -> Summary | None:
        place, now = self._chat.place, self._chat.now()
        if task.group is None:
            return summaries.add_leaf(*place, draft, now)
        return summaries.add_node(*place, draft, task.group.parts, now, extended=task.group.into)


def _new_id() -> str:
    return f"sum_{os.urandom(8).hex()}"


def _copy(summary: Summary) -> Requests[WrittenSummary]:
    yield from ()
    return WrittenSummary(summary.text, summary.level, prompt=summary.prompt)
