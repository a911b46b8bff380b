"""`python -m benchmarks adapters`: what a call of each adapter takes, beside the framework's own store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.clock import Cost, cost_of, middle
from benchmarks.measurement import Measurement, at_most, figures, measured, table
from benchmarks.report import Report

SIZES = (1_000, 10_000)
CALLS = 50  # of each kind, in turns with the framework's own
_ROUNDS = 5  # so many turns
_TURN = 2_000  # milliseconds after which a turn has no other call


@dataclass(frozen=True, slots=True)
class Call:
    """One kind of call, of ours and of the framework's own store; both are given the number of the call."""

    name: str
    ours: Callable[[int], object]
    theirs: Callable[[int], object]
    against: str


# Opens both stores in a folder, each with so many items, and returns the calls to compare.
Calls = Callable[[Path, int], AbstractContextManager[Sequence[Call]]]

# The module of this package that has `calls`, and the package of the framework.
ADAPTERS: dict[str, tuple[str, str]] = {
    "openai-agents": ("openai_agents", "agents"),
    "langgraph-checkpoints": ("langgraph_threads", "langgraph.checkpoint.sqlite"),
    "langgraph-store": ("langgraph_store", "langgraph.store.sqlite"),
    "langchain": ("langchain", "langchain_community"),
    "llama-index": ("llama_index", "llama_index"),
    "crewai": ("crewai", "crewai"),
    "pydantic-ai": ("pydantic_conversations", "pydantic_ai"),
    "google-adk": ("adk", "google.adk"),
    "strands": ("strands", "strands"),
    "agent-framework": ("agent_framework", "agent_framework"),
}


def run(
    *,
    sizes: Sequence[int] | None = None,
    only: Sequence[str] = (),
    folder: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure each adapter whose framework is installed, with so many items in both stores."""
    measurements = [
        one
        for name, (module, package) in ADAPTERS.items()
        if (not only or name in only) and find_spec(package)
        for size in sizes or SIZES
        for one in _compared(name, module, size, folder, progress)
    ]
    title = "Adapters, beside the framework's own store"
    return Report(figures(measurements), (table(title, measurements),))


def _compared(
    name: str, module: str, size: int, folder: Path | None, progress: Callable[[str], None]
) -> Iterator[Measurement]:
    progress(f"{name}, {size:,} items")
    adapter = import_module(f"benchmarks.adapters.{module}")
    open_calls: Calls = adapter.calls
    with TemporaryDirectory(dir=folder) as place, open_calls(Path(place), size) as calls:
        for call in calls:
            ours, theirs = _in_turns(call)
            ratio = ours.cpu / theirs.cpu
            yield measured(
                f"{name}: {call.name}, {size:,} items",
                ours,
                against=call.against,
                theirs=theirs,
                ratio=ratio,
                ratio_of="× the time",
                bar=at_most(ratio, 1, "× the time"),
            )
    # What is no call of both, such as how something grows.
    if more := getattr(adapter, "more", None):
        with TemporaryDirectory(dir=folder) as place:
            yield from more(Path(place), size)


def _in_turns(call: Call) -> tuple[Cost, Cost]:
    """Return the median cost of a call of both stores, which take turns of several calls."""
    call.ours(0)
    call.theirs(0)
    taken: tuple[list[Cost], list[Cost]] = ([], [])
    for turn in range(_ROUNDS):
        numbers = range(1 + turn * CALLS // _ROUNDS, 1 + (turn + 1) * CALLS // _ROUNDS)
        for made, costs in zip((call.ours, call.theirs), taken, strict=True):
            spent = 0.0
            for number in numbers:
                costs.append(cost_of(partial(made, number)))
                spent += costs[-1].wall
                if spent > _TURN:
                    break
    return middle(taken[0]), middle(taken[1])
