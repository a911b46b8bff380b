"""Part of `python -m benchmarks context`: what compaction takes without a model, and whether the rest fits.

Each session is stored in a file and compacted for each budget; the window before and after is timed in turns,
the plain one being that of `FreshTail`, which knows no summaries. Then the turns of all sessions follow each
other in one long chat that is compacted after each. CPU times; on a machine that others use, wall times say
little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.clock import Cost, cost_of, each, high, middle, timed
from benchmarks.measurement import Measurement, at_most, compared, measured, table
from benchmarks.report import Table
from holdfast.errors import InvalidInput, UnknownFormat
from holdfast.memory import Memory
from holdfast.prompt.window import FreshTail
from holdfast.types import Message
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.sources import SourceFile, sources

BUDGETS = (4_000, 8_000, 32_000, 128_000)
TURNS = 1_000
_REPEATS = 20
_WINDOWS = 10  # that are timed together, since one takes a fraction of a millisecond
_LEAST = 20_000  # tokens that a session must have to say something about compaction

Sessions = dict[str, list[Message]]


class Compacted(NamedTuple):
    """A session that was compacted for a budget, and what that and its windows took."""

    session: str
    messages: int
    tokens: int
    budget: int
    window_tokens: int
    summaries: int
    covered: int
    compaction_ms: float
    window_ms: float
    plain_window_ms: float


def run_compacting(
    paths: Sequence[Path], progress: Callable[[str], None] = lambda _: None, *, turns: int = TURNS
) -> tuple[dict[str, object], list[Table]]:
    """Measure on session logs, or folders of them; files with questions and answers are passed over.

    Raises:
        InvalidInput: there is no such file, or none of them is a session that is long enough.

    """
    found = sessions_in(paths)
    if not found:
        raise InvalidInput(
            f"None of these files is a session of {_LEAST:,} tokens or more.", "Give logs of agent sessions."
        )
    with TemporaryDirectory(prefix="holdfast-bench-") as folder:
        sessions: list[Compacted] = []
        done: list[Measurement] = []
        for budget in BUDGETS:
            progress(f"compacting {len(found)} sessions for {budget:,} tokens")
            some = [
                _compacted(Path(folder) / f"{budget}-{number}.db", name, messages, budget)
                for number, (name, messages) in enumerate(found.items())
            ]
            sessions += some
            done += _in_all(budget, some)
        progress(f"compacting after each of {turns:,} turns")
        done += _turns(Path(folder) / "turns.db", found, turns)
    numbers: dict[str, object] = {
        "compaction": [one.to_json() for one in done],
        "sessions": [one._asdict() for one in sessions],
    }
    return numbers, [table("Compaction without a model", done)]


def sessions_in(paths: Sequence[Path], least: int = _LEAST) -> Sessions:
    """Read the session logs of `least` tokens among some files, each as one list of messages."""
    found: Sessions = {}
    for source in (source for path in paths for source in _sources(path)):
        said = [item.message for item in source.read() if isinstance(item, ImportedMessage)]
        if sum(len(message.content) for message in said) > 4 * least:
            found[Path(source.file.path).name] = said
    return found


def _sources(path: Path) -> Iterator[SourceFile]:
    try:
        yield from (source for source in sources(path) if isinstance(source, SourceFile))
    except UnknownFormat:
        # A data set, for another part.
        return


def _compacted(path: Path, name: str, messages: Sequence[Message], budget: int) -> Compacted:
    """Compact a session for a budget, and time its window before and after."""
    with Memory(path, durability="normal") as memory:
        chat = memory.chat(name)
        chat.append(messages)
        stats = chat.stats()
        with timed() as cost:
            result = chat.compact(full=True, budget=budget)
        window = chat.window(budget)
        plain = FreshTail(budget)
        contenders = [
            lambda _: [chat.window(budget) for _ in range(_WINDOWS)],
            lambda _: [chat.window(policy=plain) for _ in range(_WINDOWS)],
        ]
        ours, theirs = (middle(taken) / _WINDOWS for taken in each(contenders, [""], _REPEATS))
        return Compacted(
            session=name,
            messages=stats.messages,
            tokens=stats.stored_tokens,
            budget=budget,
            window_tokens=window.tokens,
            summaries=len(window.summaries),
            covered=result.messages,
            compaction_ms=cost.cpu,
            window_ms=ours.cpu,
            plain_window_ms=theirs.cpu,
        )


def _in_all(budget: int, some: Sequence[Compacted]) -> Iterator[Measurement]:
    """Sum up all sessions at a budget; of windows the fullest, of times that of all messages together."""
    fullest = max(one.window_tokens for one in some)
    bar = at_most(fullest, budget, "tokens")
    yield Measurement(f"fullest window of {budget:,} tokens", fullest, "tokens", bar=bar)
    covered = sum(one.covered for one in some)
    if not covered:
        return
    took = sum(one.compaction_ms for one in some) / covered
    bar = at_most(took, 1.5, "s")
    yield Measurement(f"1,000 messages compacted for {budget:,} tokens", took, "s", bar=bar)
    made = [one for one in some if one.summaries]
    ours, theirs = fmean(one.window_ms for one in made), fmean(one.plain_window_ms for one in made)
    title = f"windows of {budget:,} tokens after it"
    yield compared(title, Cost(ours, ours), "plain windows", Cost(theirs, theirs), limit=1.5)


def _turns(path: Path, found: Sessions, turns: int) -> Iterator[Measurement]:
    """Compact a chat after each of many turns, and time that."""
    said = cycle(chain.from_iterable(found.values()))
    costs: list[Cost] = []
    with Memory(path, durability="normal") as memory:
        chat = memory.chat("long")
        for _ in range(turns):
            chat.append([_unlinked(message) for message in islice(said, 2)])
            costs.append(cost_of(chat.compact))
    slow = high(costs, 0.99)
    yield measured(f"compact after each of {turns:,} turns, p99", slow, bar=at_most(slow.cpu, 150, "ms"))


def _unlinked(message: Message) -> Message:
    """Make a message that can come again: ids are those of one chat."""
    return (
        Message(message.role, message.content or "…", name=message.name)
        if message.role != "tool"
        else Message("user", message.content or "…")
    )
