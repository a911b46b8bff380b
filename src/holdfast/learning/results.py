"""The results of learning: the jobs that were run, what they learned and dropped, and their cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from holdfast.types import Job, Record
from holdfast.types.reprs import brief


@dataclass(frozen=True, slots=True)
class WorkResult:
    """The result of work: the jobs done, to be tried again, and failed for good; `why` it ended.

    `records` were learned, `dropped` counts the proposals that were left out (reason → number), `notes` are
    remarks on single jobs. `calls` and tokens are those of models; of a dry run, what they would be.
    `waiting` jobs are left: not due yet, or in need of a model, also to read again what rules have read; of
    all users, those of whom something was new or due.
    """

    done: tuple[Job, ...] = ()
    postponed: tuple[Job, ...] = ()
    failed: tuple[Job, ...] = ()
    records: tuple[Record, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    seconds: float = 0.0
    waiting: int = 0
    why: str = ""
    dry_run: bool = False

    __repr__ = brief

    @property
    def count(self) -> int:
        """The number of jobs that were run."""
        return len(self.done) + len(self.postponed) + len(self.failed)

    @property
    def noop(self) -> bool:
        """Whether there was nothing to do."""
        return not self.count


def explain(done: WorkResult) -> WorkResult:
    """Return a result whose `why` begins with the failure, where all jobs failed."""
    failed = [job for job in (*done.postponed, *done.failed) if job.reason]
    if not failed or len(failed) < done.count:
        return done
    what = "The only job failed" if len(failed) == 1 else f"All {len(failed):,} jobs failed; the first"
    return replace(done, why=f"{what}: {failed[0].error} {done.why}".rstrip())


def total(results: Sequence[WorkResult]) -> WorkResult:
    """Return the sum of several results, with the `why` of the last one."""
    last = results[-1] if results else WorkResult(why="Nothing is due.")
    dropped: Counter[str] = Counter()
    for result in results:
        dropped.update(result.dropped)
    names = [attr.name for attr in fields(WorkResult) if attr.name not in ("dropped", "why", "dry_run")]
    empty = WorkResult()
    sums: dict[str, Any] = {
        name: sum((getattr(result, name) for result in results), getattr(empty, name)) for name in names
    }
    return replace(last, **sums, dropped=dict(+dropped))


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was extracted from a text or a chat: findings, insights and lessons, as stored records.

    `why` says what was not extracted or waits, and the reason, "" for nothing; `job` is the id of the job
    that tries again later, "" for none. `dropped` counts the proposals that were left out (reason → number).
    """

    records: tuple[Record, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict, hash=False)
    why: str = ""
    job: str = ""
    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0

    def of(self, kind: str) -> list[Record]:
        """Return the records of a kind: "finding", "insight" or "lesson"."""
        return [record for record in self.records if record.kind == kind]

    @property
    def findings(self) -> list[Record]:
        """The findings."""
        return self.of("finding")

    @property
    def insights(self) -> list[Record]:
        """The insights."""
        return self.of("insight")

    @property
    def lessons(self) -> list[Record]:
        """The lessons."""
        return self.of("lesson")


@dataclass(frozen=True, slots=True)
class UsageLine:
    """The calls of one purpose and model that ended in the same way."""

    purpose: str
    model: str
    outcome: str
    calls: int
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    counted: int

    @classmethod
    def of_row(cls, row: Sequence[str | int]) -> UsageLine:
        """Return the line of a row of `store.llm_calls.totals`."""
        purpose, model, outcome = map(str, row[:3])
        calls, prompts, answers, micros, counted = map(int, row[3:])
        return cls(purpose, model, outcome, calls, prompts, answers, micros / 1_000_000, counted)


@dataclass(frozen=True, slots=True)
class Usage:
    """The calls of models since a time. Of `calls`, `counted` have the tokens that the provider counted."""

    since: datetime | None
    lines: tuple[UsageLine, ...] = ()

    @property
    def calls(self) -> int:
        """The number of calls, including those that failed."""
        return sum(line.calls for line in self.lines)

    @property
    def prompt_tokens(self) -> int:
        """The tokens of all prompts."""
        return sum(line.prompt_tokens for line in self.lines)

    @property
    def answer_tokens(self) -> int:
        """The tokens of all answers."""
        return sum(line.answer_tokens for line in self.lines)

    @property
    def seconds(self) -> float:
        """The time that all calls took, in seconds."""
        return sum(line.seconds for line in self.lines)

    @property
    def counted(self) -> int:
        """The number of calls whose tokens the provider counted."""
        return sum(line.counted for line in self.lines)


@dataclass(frozen=True, slots=True)
class EmbeddingProgress:
    """How far an embedder has come: of all messages, versions and summaries, `done` are embedded."""

    model: str
    dimension: int
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Relearning:
    """The difference between what was learned and what another prompt or model learns from the same words.

    `added` is new, `removed` is not found again, `kept` counts what says the same. `applied` is whether
    the records were changed so. `failed` names the chats that could not be done, and why.
    """

    kind: str
    prompt: str
    chats: tuple[str, ...] = ()
    added: tuple[Record, ...] = ()
    removed: tuple[Record, ...] = ()
    kept: int = 0
    failed: Mapping[str, str] = field(default_factory=dict, hash=False)
    applied: bool = False
    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0

    @property
    def diff(self) -> str:
        """The difference as lines: each chat with one, then what is removed after "-" and added after "+"."""
        lines = []
        for chat in self.chats:
            rows = [(sign, row) for sign, some in (("-", self.removed), ("+", self.added)) for row in some]
            own = [f"{sign} {row.kind}: {row.text}" for sign, row in rows if row.chat == chat]
            lines += [chat, *own] if own else []
        return "\n".join(lines)
