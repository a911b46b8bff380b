"""What learning gives back: accounts of what was done, what it cost, and what was left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from holdfast.types import Job, Record


@dataclass(frozen=True, slots=True)
class WorkResult:
    """Account for some work: the jobs that were done, are to be tried again, and failed for good; `why` it ended.

    `records` are what was learned, `dropped` says how many things were left out (reason → number), `notes` tell of
    each job what it came to. `calls` and tokens are what models were asked for; of a dry run, what they would be. `waiting` jobs
    are left: not due yet, or in need of a model.
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

    @property
    def count(self) -> int:
        """Count the jobs that were run."""
        return len(self.done) + len(self.postponed) + len(self.failed)

    @property
    def noop(self) -> bool:
        """Say that there was nothing to do."""
        return not self.count


def explained(done: WorkResult) -> WorkResult:
    """Say first that all jobs failed, where they did."""
    failed = [job for job in (*done.postponed, *done.failed) if job.reason]
    if not failed or len(failed) < done.count:
        return done
    what = "The only job failed" if len(failed) == 1 else f"All {len(failed):,} jobs failed; the first"
    return replace(done, why=f"{what}: {failed[0].error} {done.why}".rstrip())


def together(results: Sequence[WorkResult]) -> WorkResult:
    """Add up what was done for several users."""
    dropped: Counter[str] = Counter()
    for one in results:
        dropped.update(one.dropped)
    last = results[-1] if results else WorkResult(why="There are no sessions.")
    return WorkResult(
        done=tuple(job for one in results for job in one.done),
        postponed=tuple(job for one in results for job in one.postponed),
        failed=tuple(job for one in results for job in one.failed),
        records=tuple(record for one in results for record in one.records),
        dropped=dict(dropped),
        notes=tuple(note for one in results for note in one.notes),
        calls=sum(one.calls for one in results),
        prompt_tokens=sum(one.prompt_tokens for one in results),
        answer_tokens=sum(one.answer_tokens for one in results),
        seconds=sum(one.seconds for one in results),
        waiting=sum(one.waiting for one in results),
        why=last.why,
        dry_run=last.dry_run,
    )


@dataclass(frozen=True, slots=True)
class Extraction:
    """Hold what was extracted from a text or a session: findings, insights and lessons, as the records they became.

    `why` says what kept it from giving anything, "" if nothing did; `job` is the id of the job that tries again later,
    "" if none. `dropped` says how many things were left out (reason → number).
    """

    records: tuple[Record, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict, hash=False)
    why: str = ""
    job: str = ""
    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0

    def of(self, kind: str) -> list[Record]:
        """Give the records of a kind: "finding", "insight" or "lesson"."""
        return [record for record in self.records if record.kind == kind]

    @property
    def findings(self) -> list[Record]:
        """Give the findings."""
        return self.of("finding")

    @property
    def insights(self) -> list[Record]:
        """Give the insights."""
        return self.of("insight")

    @property
    def lessons(self) -> list[Record]:
        """Give the lessons."""
        return self.of("lesson")


@dataclass(frozen=True, slots=True)
class SpendLine:
    """Sum up the calls of one purpose and model that ended in the same way."""

    purpose: str
    model: str
    outcome: str
    calls: int
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    counted: int


@dataclass(frozen=True, slots=True)
class Spend:
    """Sum up what models were asked since a time. Of `calls`, `counted` have the tokens that the provider counted."""

    since: datetime | None
    lines: tuple[SpendLine, ...] = ()

    @property
    def calls(self) -> int:
        """Count the calls, those included that failed."""
        return sum(line.calls for line in self.lines)

    @property
    def prompt_tokens(self) -> int:
        """Count the tokens of prompts."""
        return sum(line.prompt_tokens for line in self.lines)

    @property
    def answer_tokens(self) -> int:
        """Count the tokens of answers."""
        return sum(line.answer_tokens for line in self.lines)

    @property
    def seconds(self) -> float:
        """Sum up how long the calls took."""
        return sum(line.seconds for line in self.lines)

    @property
    def counted(self) -> int:
        """Count the calls whose tokens the provider counted."""
        return sum(line.counted for line in self.lines)


@dataclass(frozen=True, slots=True)
class Relearning:
    """Compare what was learned with what another prompt, or model, learns of the same words.

    `added` is what would be new, `removed` what nothing stands for any more, `kept` how many say the same. `applied`
    says that the records are so now. `failed` names the sessions that could not be done, and why.
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
