"""`python -m benchmarks records`: what keeping records takes, and how well texts are merged and guarded.

As `python -m benchmarks speed` does, it holds CPU time beside wall time, gives medians, and lets what is
compared take turns. Memories are files at full durability.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from benchmarks import nearest
from benchmarks.clock import Cost, each, middle, timed
from benchmarks.judging import guard_costs, judge_examples
from benchmarks.measurement import (
    Measurement,
    compared,
    figures,
    fill,
    measured,
    run_parts,
    spread,
    table,
)
from benchmarks.report import Report
from benchmarks.sentences import Sentences
from benchmarks.words import Words
from holdfast.kinds import KINDS
from holdfast.memory import Memory
from holdfast.store import record_changes
from holdfast.store.connect import open_database
from holdfast.tools.presets.observations import remember_fil
from holdfast.types import Record, Scope

_USER = "ada"
_BATCH = 1_000  # records stored at once where storing is not measured
_BUDGET = 8_000  # tokens
_CAPS = next(kind.prompt_budget for kind in KINDS if kind.name == "fact")
_ROOM = 80  # characters left below a cap
_ENOUGH = 300  # sentences, to reach any cap
_TABLE = (
    "CREATE TABLE known (id TEXT PRIMARY KEY, kind TEXT NOT NULL, at BIGINT NOT NULL, text TEXT NOT NULL)"
)
_INSERT = "INSERT INTO known (id, kind, at, text) VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class RecordsPlan:
    """How much is measured."""

    records: int = 10_000
    rounds: int = 8  # of remembering without merge, with so many in each
    block: int = 150
    settling: int = 14  # rounds before those, until the write-ahead log of each file has its full size
    merges: int = 400  # more than are frozen into a segment, so that this is among them
    facts: int = 100
    chat: int = 200  # messages of the chat that prompts are made for
    queries: int = 40
    repeats: int = 5
    guarded: int = 40  # times that all texts are scanned


FULL = RecordsPlan()


@dataclass(frozen=True, slots=True)
class RecordsLab:
    """What a measurement works with."""

    plan: RecordsPlan
    sentences: Sentences
    folder: Path
    progress: Callable[[str], None]
    pairs: Sequence[Path] = ()

    def path(self, name: str) -> Path:
        """Return where a database is."""
        return self.folder / f"{name}.db"


# Remembering ------------------------------------------------------------------------------------------------


def remembering(lab: RecordsLab) -> Iterator[Measurement]:
    """Remember findings one by one, without and with merge, and then facts, in a space with many findings."""
    size = f"{lab.plan.records:,} records"
    with Memory(lab.path("remember"), user=_USER) as memory:
        lab.progress(f"remembering beside {size}")
        yield from _against_bare(lab, memory)
        memory.recall("everything loaded", limit=1)
        lab.progress(f"remembering with merge beside {size}")
        said, costs = _merge(memory, lab.sentences.findings(lab.plan.merges, stream=1), "finding")
        yield from _each_call(f"remember beside {size}, with merge", said, costs)
        lab.progress(f"remembering facts beside {size}")
        used = _fill_facts(memory, lab.sentences)
        said, costs = _merge(memory, lab.sentences.about_user(lab.plan.facts, stream=1), "fact")
        yield from _each_call(f"remember a fact, {used:,} characters of facts beside {size}", said, costs)


def _against_bare(lab: RecordsLab, memory: Memory) -> Iterator[Measurement]:
    """Remember without merge, in turns with a bare insert of the same text into a plain table of a file.

    What is measured are files in use, as `appending` explains; by then both have as many records as the plan
    says.
    """
    plan = lab.plan
    texts = lab.sentences.findings(plan.records + plan.rounds * plan.block)
    before = max(0, plan.records - plan.settling * plan.block)
    connection = _open(lab.path("bare"))
    _remember_all(memory, texts[:before])
    connection.execute("BEGIN")
    _insert(connection, texts[:before])
    connection.execute("COMMIT")
    ours, bare = [], []
    for start in range(before, len(texts), plan.block):
        block = texts[start : start + plan.block]
        with timed() as cost:
            for text in block:
                memory.remember(text, "finding")
        ours.append(cost / len(block))
        with timed() as cost:
            _insert(connection, block)
        bare.append(cost / len(block))
    connection.close()
    mine, theirs = middle(ours[-plan.rounds :]), middle(bare[-plan.rounds :])
    clocks: tuple[Literal["cpu", "wall"], ...] = ("cpu", "wall")
    for clock in clocks:
        title = f"remember beside {plan.records:,} records, no merge, {clock}"
        yield compared(title, mine, "bare INSERT", theirs, "µs", clock=clock, limit=5)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")  # as Holdfast has it
    connection.execute(_TABLE)
    return connection


def _insert(connection: sqlite3.Connection, texts: Iterable[str]) -> None:
    for text in texts:
        now = time.time_ns() // 1000
        connection.execute(_INSERT, (f"{now:014x}{random.getrandbits(32):08x}", "finding", now, text))


def _remember_all(memory: Memory, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), _BATCH):
        remember_fil(memory, findings=texts[start : start + _BATCH])


def _merge(memory: Memory, texts: Iterable[str], kind: str) -> tuple[Counter[str], list[Cost]]:
    """Remember with merge; count what became of each, and return the costs.

    Facts that are added are retracted again, as their room is used up.
    """
    said: Counter[str] = Counter()
    costs = []
    for text in texts:
        with timed() as cost:
            record = memory.remember(text, kind, merge=True)
        costs.append(cost)
        said[record.action] += 1
        if (kind, record.action) == ("fact", "add"):
            memory.retract(record.id, kind=kind)
    return said, costs


def _fill_facts(memory: Memory, sentences: Sentences) -> int:
    """Remember facts of the user and the environment up to one below their caps; count characters."""
    about = {"user": sentences.about_user(_ENOUGH), "env": sentences.about_environment(_ENOUGH)}
    total = 0
    for target, texts in about.items():
        used = 0
        for text in texts:
            if used + len(text) > _CAPS[target] - _ROOM:
                break
            memory.remember(text, target=target, merge=False)
            used += len(text)
        total += used
    return total


def _each_call(title: str, said: Counter[str], costs: list[Cost]) -> Iterator[Measurement]:
    became = ", ".join(f"{count} {action}" for action, count in sorted(said.items()))
    yield from spread(title, costs, limit=3, against=became)


# Reading ----------------------------------------------------------------------------------------------------


def reading(lab: RecordsLab) -> Iterator[Measurement]:
    """Assemble prompts, and recall as of earlier versions, where all that a prompt shows is full."""
    lab.progress(f"storing {lab.plan.records:,} records with a history")
    path = lab.path("read")
    with Memory(path, user=_USER) as memory:
        fill(memory, Words(), lab.plan.chat, per_chat=lab.plan.chat)
        versions = _store_history(lab, memory, path)
        _store_known(memory, lab.sentences)
        memory.recall("everything loaded", limit=1)
        yield from _prompts(lab, memory)
        yield from _recalls(lab, memory, versions)


def _store_history(lab: RecordsLab, memory: Memory, path: Path) -> dict[str, int]:
    """Store as many findings as the plan says; replace or retract a third as many on the way.

    Give a version near the start and one half-way.
    """
    wanted = lab.plan.records
    chance, current, marks = random.Random(7), list[Record](), dict[str, int]()
    new = iter(lab.sentences.findings(2 * wanted, stream=2))
    size = max(6, wanted // 20)
    while len(current) < wanted:
        current += remember_fil(memory, findings=[next(new) for _ in range(size)])
        chance.shuffle(current)
        some = [current.pop() for _ in range(size // 3)]
        current += _change(path, {one: next(new) for one in some[::2]}, some[1::2])
        marks.setdefault("near the start", memory.version())
        if len(current) >= wanted // 2:
            marks.setdefault("half-way", memory.version())
    return marks


def _change(path: Path, replaced: Mapping[Record, str], retracted: Iterable[Record]) -> list[Record]:
    """Replace and retract in one transaction: a call for each takes time in proportion to all records."""
    database = open_database(path, "normal")
    try:
        with record_changes.writing(database, Scope(user=_USER).space, time.time_ns() // 1000) as changes:
            for one in retracted:
                changes.put(replace(one, retracted=True), one, by="agent", action="retract")
            return [
                changes.put(replace(one, text=text), one, by="agent", action="replace")
                for one, text in replaced.items()
            ]
    finally:
        database.close()


def _store_known(memory: Memory, sentences: Sentences) -> None:
    texts = sentences.about_environment(_ENOUGH, stream=1)
    for text in texts[:5]:
        memory.remember(f"Ask before anything changes: {text}", "constraint", by="user")
    for kind in ("soul", "profile"):
        memory.remember(". ".join(texts[5:30]), kind, by="user")
    _fill_facts(memory, sentences)


def _prompts(lab: RecordsLab, memory: Memory) -> Iterator[Measurement]:
    """Make prompts of a chat after its first one, which takes the snapshot."""
    lab.progress("assembling prompts")
    chat = memory.chat("chat-0")
    shown = chat.prompt(_BUDGET)
    with_query, without = each(
        [lambda asked: chat.prompt(_BUDGET, query=asked), lambda _: chat.prompt(_BUDGET)],
        lab.sentences.questions(lab.plan.queries),
        lab.plan.repeats,
    )
    title = (
        f"prompt of {_BUDGET:,} tokens beside {lab.plan.records:,} records, {shown.tokens['known']:,} "
        f"of it known"
    )
    for name, costs in (("with a query", with_query), ("without", without)):
        yield from spread(f"{title}, {name}", costs, limit=5)


def _recalls(lab: RecordsLab, memory: Memory, versions: Mapping[str, int]) -> Iterator[Measurement]:
    """Recall now and as of versions, in turns: with a view that is there, and with one for each question."""
    lab.progress("recalling as of earlier versions")
    newest = memory.version()
    views = {place: memory.at(version) for place, version in versions.items()}
    contenders: dict[str, Callable[[str], object]] = {"now": memory.recall}
    for place, version in versions.items():
        name = f"version {version:,} of {newest:,}, {place}"
        contenders[name] = views[place].recall
        contenders[f"{name}, its view made as well"] = _viewing(memory, version)
    taken = each(list(contenders.values()), lab.sentences.questions(lab.plan.queries), lab.plan.repeats)
    now, *others = (middle(costs) for costs in taken)
    yield measured(f"recall among {lab.plan.records:,} records, p50", now)
    for name, cost in zip(list(contenders)[1:], others, strict=True):
        yield compared(f"recall at {name}, p50", cost, "recall now", now, limit=3)


def _viewing(memory: Memory, version: int) -> Callable[[str], object]:
    return lambda asked: memory.at(version).recall(asked)


# The whole --------------------------------------------------------------------------------------------------


def comparing(lab: RecordsLab) -> Iterator[Measurement]:
    """Judge pairs among many texts."""
    lab.progress("judging pairs among many texts")
    yield from nearest.agreeing(lab.pairs)


def guarding(lab: RecordsLab) -> Iterator[Measurement]:
    """Scan clean messages."""
    lab.progress("scanning messages")
    yield from guard_costs(lab.plan.guarded)


MEASUREMENTS: dict[str, Callable[[RecordsLab], Iterator[Measurement]]] = {
    "remember": remembering,
    "read": reading,
    "compare": comparing,
    "guard": guarding,
}
PARTS = (*MEASUREMENTS, "examples")
"""All that can be measured, by the names that `only` takes; the last are the files of labelled examples."""


def run(
    *,
    pairs: Sequence[Path] = (),
    texts: Sequence[Path] = (),
    folder: Path | None = None,
    only: Sequence[str] = (),
    plan: RecordsPlan = FULL,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure, in about a minute.

    Args:
        pairs: files of labelled pairs for the merge; the held-out ones of a checkout when empty.
        texts: files of labelled texts for the guard; as above.
        folder: where the measured databases are made and removed again; its disk is the one that counts.
        only: names of `PARTS`; all when empty.
        plan: how much is measured.
        progress: is told what is being done.

    Raises:
        InvalidInput: a file has something else than labelled examples.

    """
    given = {"merge": pairs, "guard": texts} if not only or "examples" in only else {}
    judged = {name: judge_examples(name, files, progress) for name, files in given.items()}
    with TemporaryDirectory(prefix="holdfast-bench-", dir=folder) as place:
        done = run_parts(MEASUREMENTS, RecordsLab(plan, Sentences(), Path(place), progress, pairs), only)
    done += [one for several in judged.values() for file in several for one in file.asked]
    tables = [table("Records", done)] if done else []
    tables += [file.table for several in judged.values() for file in several]
    examples = {name: [file.numbers for file in several] for name, several in judged.items()}
    return Report({**figures(done), **examples}, tuple(tables))
