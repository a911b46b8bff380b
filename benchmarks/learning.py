"""`python -m benchmarks learn`: how fast learning is, what it asks of models, what it stores.

The sessions are those of the given files, imported once. The model is one that follows a script (see
`scripted`): how many calls and tokens of prompts there are depends on the sessions and on us; how long
answers are depends on the script.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.clock import Cost, timed
from benchmarks.measurement import Measurement, at_most, figures, table
from benchmarks.report import Report, Table
from benchmarks.scripted import Scripted
from holdfast.errors import InvalidInput
from holdfast.learning.results import Usage
from holdfast.memory import Memory
from holdfast.settings import Learning
from holdfast_cli.formats.importing import import_paths

_USER = "ada"
# All at once: no session is waited for, and agents reflect until nothing is new. Nothing here costs anything.
_LEARNING = Learning(idle=timedelta(0), every=timedelta(0), limits={})
_FIGURES = ("calls", "prompt_tokens", "answer_tokens")


@dataclass(frozen=True, slots=True)
class LearningLab:
    """What a measurement works with: a file with the sessions, their number of messages, where to copy it."""

    sessions: Path
    messages: int
    progress: Callable[[str], None]
    asked: dict[str, dict[str, float]] = field(default_factory=dict)  # per 1,000 messages, by what for

    def copy(self, name: str, of: Path | None = None) -> Path:
        """Copy the sessions, or another file."""
        return Path(shutil.copy(of or self.sessions, self.sessions.with_name(f"{name}.db")))


# Learning ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Learned:
    """Count the jobs that were done and that were not, and what is known then: records and changes."""

    jobs: int
    undone: int  # failed, or left to be tried again
    cost: Cost
    records: int  # those in quarantine included
    changes: int
    spend: Usage


def learning(lab: LearningLab) -> Iterator[Measurement]:
    """Learn from all sessions, and once more as if it had never been done: without a model, and with one."""
    _load()
    for how, model in (("without a model", None), ("with a model", Scripted())):
        lab.progress(f"learning {how}")
        path = lab.copy(how.replace(" ", "-"))
        first = _learn(path, model)
        yield from _speed(how, first, lab.messages)
        lab.asked.update(_per_thousand(first.spend, lab.messages))
        again = {"": model} if model is None else {"": model, ", in other words": Scripted(otherwise=True)}
        for words, other in again.items():
            lab.progress(f"learning {how} once more{words}")
            second = _learn(_unlearned(lab.copy("again", path)), other)
            yield from _growth(f"{how} once more{words}", first, second, is_asked_for=not words)


def _load() -> None:
    """Compare two texts: what that loads the first time is no part of any job."""
    with Memory(":memory:") as memory:
        for text in ("The cat sleeps.", "The cat is asleep."):
            memory.remember(text, "finding", merge=True)


def _learn(path: Path, model: Scripted | None) -> Learned:
    """End all sessions, and work until nothing is left to do."""
    jobs = undone = 0
    with Memory(path, user=_USER, learning=_LEARNING) as memory:
        for info in memory.chats():
            memory.chat(info.id).end()
        with timed() as cost:
            while not (result := memory.learning.work(llm=model)).noop:
                jobs += len(result.done)
                undone += len(result.postponed) + len(result.failed)
        records = len(memory.records()) + len(list(memory.quarantine))
        return Learned(jobs, undone, cost, records, memory.version(), memory.learning.usage())


def _unlearned(path: Path) -> Path:
    """Set all watermarks back: every session is news again, and what was learned from it stays."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM watermarks")
    return path


def _speed(how: str, done: Learned, messages: int) -> Iterator[Measurement]:
    for name, count, unit in (
        ("jobs", done.jobs, "jobs / s"),
        ("messages", messages, "messages / s"),
    ):
        per_second = done.cost / (1e3 * count)
        yield Measurement(f"{name} {how}", 1 / per_second.cpu, unit, 1 / per_second.wall)
    yield _failures(how, done)


def _failures(how: str, done: Learned) -> Measurement:
    return Measurement(f"jobs that failed {how}", done.undone, "jobs", bar=at_most(done.undone, 0, "jobs"))


def _growth(how: str, first: Learned, second: Learned, *, is_asked_for: bool) -> Iterator[Measurement]:
    more = second.records - first.records
    bar = at_most(more, 0, "records") if is_asked_for else None
    yield Measurement(
        f"records more, learning {how}",
        more,
        "records",
        against="records before",
        against_value=first.records,
        bar=bar,
    )
    for name, before, after in (
        ("changes of records", first.changes, second.changes),
        ("calls of the model", first.spend.calls, second.spend.calls),
    ):
        title = f"{name}, learning {how}"
        yield Measurement(title, after - before, name.split()[0], against="before", against_value=before)
    yield _failures(how, second)


def _per_thousand(spend: Usage, messages: int) -> dict[str, dict[str, float]]:
    """Sum up calls and tokens by what they were for, for every 1,000 messages."""
    figures: dict[str, dict[str, float]] = {}
    for line in spend.lines:
        for name in (line.purpose, "all"):
            sums = figures.setdefault(name, dict.fromkeys(_FIGURES, 0.0))
            for figure in _FIGURES:
                sums[figure] += 1_000 * getattr(line, figure) / messages
    return figures


# The whole --------------------------------------------------------------------------------------------------


def run(
    paths: Sequence[Path],
    *,
    folder: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure, in some minutes.

    Args:
        paths: files that `holdfast import` reads, or folders of them: logs of the sessions of agents.
        folder: where the measured databases are made and removed again; its disk is the one that counts.
        progress: is told what is being done.

    Raises:
        InvalidInput: there is no such file, or no message in any of them.

    """
    with TemporaryDirectory(prefix="holdfast-bench-", dir=folder) as place:
        sessions = Path(place) / "sessions.db"
        progress("importing the sessions")
        with Memory(sessions, user=_USER, durability="normal") as memory:
            import_paths(memory, paths)
            chats = memory.chats()
        if not chats:
            raise InvalidInput("None of these files has messages.", "Give logs of the sessions of agents.")
        lab = LearningLab(sessions, sum(chat.messages for chat in chats), progress)
        done = list(learning(lab))
    of = f"{len(chats)} sessions with {lab.messages:,} messages"
    tables = [table(f"Learning from {of}", done)]
    tables += [_asked(lab.asked)] if lab.asked else []
    counts = {"sessions": len(chats), "messages": lab.messages, "asked_per_1000_messages": lab.asked}
    return Report({**counts, **figures(done)}, tuple(tables))


def _asked(asked: dict[str, dict[str, float]]) -> Table:
    rows = (
        (
            name,
            *(f"{sums[figure]:,.1f}" for figure in _FIGURES),
            f"{sums['prompt_tokens'] / sums['calls']:,.0f}",
        )
        for name, sums in sorted(asked.items(), key=lambda one: -one[1]["prompt_tokens"])
    )
    columns = ("for", "calls", "tokens of prompts", "tokens of answers", "tokens of a prompt")
    return Table("What models are asked for every 1,000 messages", columns, tuple(rows))
