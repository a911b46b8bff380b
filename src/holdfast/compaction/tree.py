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

R = TypeVar("R")
_CONFLICT = "The chat was changed concurrently, so what was written for it was not stored."

Report = Callable[[CompactionResult], None]
# It yields batches of prompts and receives their answers.
Batches = Generator[list[str], list[str], R]


@dataclass(frozen=True, slots=True)
class CompactionInput:
    """A chat to compact: where it is stored, how its tokens are counted, and the time."""

    database: Database
    space: str
    chat: str
    count: CountTokens
    now: Callable[[], int]

    @property
    def place(self) -> tuple[Database, str, str]:
        """The first arguments of the store's functions."""
        return self.database, self.space, self.chat


class Task(NamedTuple):
    """A summary to be written: its source, its target in tokens, its draft, and what it condenses."""

    source: SummarySource
    target: int
    draft: SummaryDraft
    group: Group | None = None

    @property
    def original(self) -> Summary | None:
        """The one summary that is only lifted to another depth; None where there is something to condense."""
        group = self.group
        return group.parts[0] if group and len(group.parts) == 1 and group.into is None else None


class Compactor:
    """One compaction of a chat: its progress, its cost so far, and its next steps."""

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
            self._load()
            return not self._is_done() and bool(self._leaves(1) or self._groups())

    def run(self, *, full: bool) -> Steps:
        """Compact the chat: yield batches of prompts, receive the answers, and return the result.

        Summaries that a model has not written by the time limit are not stored, and the account names the
        thread on which the call goes on.

        Raises:
            ModelFailed: the model raised an error; nothing of that batch was stored.
        """
        self._load()
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

    def _load(self) -> None:
        with self._chat.database.one_read():
            self._state = summaries.progress(*self._chat.place)
            self._frontier = summaries.frontier(*self._chat.place)

    @cached_property
    def _frame(self) -> int:
        """The tokens that a summary takes besides its text."""
        frame = summary_text(f"sum_{0:016x}", 0, 10_000, 10_000, EPOCH, EPOCH, "", expand=True)
        return MESSAGE_OVERHEAD + self._chat.count(frame)

    def _account(self, why: str) -> CompactionResult:
        """Return the result so far."""
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
        """Return the reason why there is nothing to do; "" if there is."""
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
        """Go over the chat once, or as often as it takes; return the reason for the end."""
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
        """Return the sentence on the limit that is reached; "" for none."""
        if why := self._limit.reached:
            return why
        if self._model and self._calls >= self._how.calls:
            return f"The limit of {self._how.calls} calls of the model is reached."
        return ""

    def _leaf_pass(self) -> Batches[str]:
        """Add leaves until the target is reached; return the reason for an earlier end, else ""."""
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
            # After a compaction by somebody else, the rest of the plan may begin elsewhere.
            is_valid = done and self._state.covered == some[done - 1][-1].seq
            sources = sources[done:] if is_valid else []
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
        span = first, last, len(messages), tokens, 0, min(times), max(times)
        draft = SummaryDraft(_new_id(), 0, *span, erasures=self._state.erasures)
        previous = self._previous(len(self._frontier))
        work = work_passages(messages, ongoing=any(map(is_work, previous)))
        source = SummarySource(passages(messages), tokens, 0, previous, work)
        return Task(source, plan.target_of(tokens, 3, self._how.leaf_target, self._budget), draft)

    def _previous(self, end: int) -> tuple[str, ...]:
        return tuple(summary.text for summary in self._frontier[max(0, end - self._how.previous) : end])

    def _condensing_pass(self) -> Batches[str]:
        """Condense summaries until the target is reached; return the reason for an earlier end, else ""."""
        while groups := self._groups(self._batch_size()):
            if why := self._limit_reached():
                return why
            stopped = yield from self._make([self._node(group) for group in groups])
            if stopped is not None:
                return stopped
        return ""

    def _groups(self, at_once: int = 1) -> list[Group]:
        """Return the groups to condense next; none once the target is reached.

        An eighth of the budget is left to summaries, even where the tail alone reaches the target.
        """
        if self._how.single:
            return plan.single(self._frontier)[:1]
        summarised = sum(summary.tokens for summary in self._frontier)
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
        tokens = sum(part.tokens for part in parts)
        draft = SummaryDraft(
            into.id if into else _new_id(),
            into.depth if into else parts[0].depth + 1,
            parts[0].first,
            parts[-1].last,
            sum(part.messages for part in parts),
            sum(part.source_tokens for part in parts),
            0,
            min(part.since for part in parts),
            max(part.until for part in parts),
            erasures=self._state.erasures,
        )
        place = sum(summary.last < draft.first for summary in self._frontier)
        said = [passage for part in parts for passage in from_summary(part.text)]
        source = SummarySource(said, tokens, draft.depth, self._previous(place))
        return Task(source, group.target or self._single_target(tokens), draft, group)

    def _single_target(self, source: int) -> int:
        """Return the tokens of a cumulative summary: few enough for the target, within its limits."""
        least = plan.target_of(source, 2, self._how.condensed_target, self._budget)
        spare = source - (self._state.tokens - self._target + 1) - self._frame
        return max(least, min(spare, source // 2, self._how.condensed_target))

    def _batch_size(self) -> int:
        return max(1, min(self._at_once, self._how.calls - self._calls))

    def _make(self, batch: Sequence[Task]) -> Batches[str | None]:
        """Write a batch of summaries, and store them in their order as long as they are needed.

        Returns:
            Why the pass cannot go on, "" if a summary would save nothing; None if it can.

        """
        requests = self._affordable(batch)
        if not requests:
            return f"The limit of {self._how.spend:,} tokens for the model allows no further summary."
        if self._model and self._report:
            first, last = batch[0].draft.first, batch[len(requests) - 1].draft.last
            reference = write_reference(self._chat.chat, first, last)
            self._report(self._account(f"{self._model.name} summarises messages {reference}."))
        written = yield from together(requests)
        self._calls += sum(answer.calls for answer in written)
        self._prompt_tokens += sum(answer.prompt_tokens for answer in written)
        self._answer_tokens += sum(answer.answer_tokens for answer in written)
        for number, (task, answer) in enumerate(zip(batch, written, strict=False)):
            # Those before it in the batch may have reached the target.
            if number and self._state.tokens < self._target:
                break
            draft = self._draft(task, answer)
            if draft.tokens >= task.source.tokens and not task.original:
                return ""
            summary = self._store(task, draft)
            self._load()
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
        """Begin as many summaries of a batch as the limits of the model allow."""
        left = self._how.calls - self._calls
        tries = 0 if self._model is None else 2 if left >= 2 * len(batch) else 1
        bounds = [
            Bounds(
                task.target, self._chat.count, partial(self._cost, task.draft), tries * (not task.original)
            )
            for task in batch
        ]
        if self._how.spend is not None and tries:
            left_to_spend = self._how.spend - self._prompt_tokens - self._answer_tokens
            bounds = share_out([task.source for task in batch], bounds, left_to_spend, self._prompts)
        return [
            _copy(task.original) if task.original else write(task.source, bound, self._prompts)
            for task, bound in zip(batch, bounds, strict=False)
        ]

    def _cost(self, draft: SummaryDraft, text: str) -> int:
        """Count the tokens that a text takes at most in a window as a summary."""
        place = draft.id, draft.depth, draft.first, draft.last, draft.since, draft.until
        return MESSAGE_OVERHEAD + self._chat.count(summary_text(*place, text, expand=True))

    def _draft(self, task: Task, written: WrittenSummary) -> SummaryDraft:
        text, level, prompt = written.text, written.level, written.prompt
        model = self._model.name if self._model and written.calls else ""
        model = task.original.model if task.original else model
        tokens = self._cost(task.draft, text)
        return task.draft._replace(tokens=tokens, text=text, level=level, model=model, prompt=prompt)

    def _store(self, task: Task, draft: SummaryDraft) -> Summary | None:
        parts, into = (task.group.parts, task.group.into) if task.group else ((), None)
        return summaries.add(*self._chat.place, draft, self._chat.now(), parts, into)


def _new_id() -> str:
    return f"sum_{os.urandom(8).hex()}"


def _copy(summary: Summary) -> Requests[WrittenSummary]:
    yield from ()
    return WrittenSummary(summary.text, summary.level, prompt=summary.prompt)
