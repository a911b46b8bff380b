"""What Holdfast takes besides time: its import, its memory, and the size of its index."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import CHECKOUT
from benchmarks.clock import Cost, middle
from benchmarks.measurement import Measurement, SpeedLab, at_most, measured
from holdfast.memory import Memory

_RESIDENT = "import sys; from benchmarks.footprint import show_resident; show_resident(*sys.argv[1:])"


def importing(lab: SpeedLab) -> Iterator[Measurement]:
    """Start Python with and without the library, in turns, both with compiled modules as once installed."""
    lab.progress("importing")
    environment = compiling(lab)
    programs = [["-c", code] for code in ("pass", "import holdfast")]
    bare, ours = list[Cost](), list[Cost]()
    for _ in range(lab.plan.starts + 1):
        for program, costs in zip(programs, (bare, ours), strict=True):
            costs.append(start(program, environment))
    # The first of each compiles.
    bare, ours = bare[1:], ours[1:]
    cost = middle(ours) - middle(bare)
    yield measured(
        "import holdfast, over bare Python",
        cost,
        against="bare Python, whole start",
        theirs=middle(bare),
        bar=at_most(max(cost.cpu, cost.wall), 60, "ms"),
    )


def compiling(lab: SpeedLab) -> dict[str, str]:
    """Return an environment in which modules are compiled once, as after an installation."""
    unset = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**unset, "PYTHONPYCACHEPREFIX": str(lab.folder / "compiled")}


def start(words: Sequence[str], environment: Mapping[str, str], given: str = "") -> Cost:
    """Run Python in a process of its own with these words, and return what the whole of it took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, *words],
        input=given.encode(),
        env=environment,
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu * 1e3, wall * 1e3)


def resident(lab: SpeedLab) -> Iterator[Measurement]:
    """Measure the memory that a new process holds after a recall in the largest store, and the index."""
    size = max(lab.plan.sizes)
    path = lab.store(size)
    lab.progress(f"memory of a process with {size:,} messages")
    taken = _taken(lab, path, ["all"])
    bar = at_most(taken["now"], 400, "MB") if size == 1_000_000 else None
    yield Measurement(f"resident memory, {size:,} messages", taken["now"], "MB", bar=bar)
    yield Measurement(f"resident memory, {size:,} messages, at its peak", taken["peak"], "MB")
    stored = index_bytes(path) / size
    bar = at_most(stored, 220, "bytes")
    yield Measurement(f"index per message, {size:,} messages", stored, "bytes", bar=bar)


def of_users(lab: SpeedLab) -> Iterator[Measurement]:
    """Measure by how much a process grows for each user with few messages that asks."""
    size = min(lab.plan.per_space)
    path, users = lab.users(size)
    lab.progress(f"memory of users with {size:,} messages")
    taken = _taken(lab, path, users)
    each = 1e3 * (taken["now"] - taken["first"]) / max(1, len(users) - 1)
    yield Measurement(f"memory of a user of {size:,} messages", each, "KB", bar=at_most(each, 50, "KB"))


def _taken(lab: SpeedLab, path: Path, users: Sequence[str]) -> dict[str, float]:
    asked = json.dumps(lab.words.questions(lab.plan.queries))
    command = [sys.executable, "-c", _RESIDENT, str(path.resolve()), asked, *users]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=CHECKOUT)  # noqa: S603 - as above
    found: dict[str, float] = json.loads(done.stdout)
    return found


def index_bytes(path: Path) -> int:
    """Sum up the stored segments of all spaces."""
    connection = sqlite3.connect(path)
    total: int = connection.execute("SELECT coalesce(sum(length(body)), 0) FROM segments").fetchone()[0]
    connection.close()
    return total


def show_resident(path: str, questions: str, *users: str) -> None:
    """Recall for users and print how many megabytes this process holds; runs in a process of its own."""
    held = []
    with Memory(path) as memory:
        for user in users:
            for question in json.loads(questions):
                memory.scoped(user=user).recall(question)
            held.append(_now())
        sys.stdout.write(json.dumps({"first": held[0], "now": held[-1], "peak": _peak()}))


def _now() -> float:
    try:
        # An optional dependency.
        import psutil
    except ImportError:
        return _peak()  # no less than what is held now
    return float(psutil.Process().memory_info().rss / 1e6)


def _peak() -> float:
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6
