"""Part of `python -m benchmarks learn`: what an append takes while a worker learns beside it.

Appends go one by one to a session in a file at full durability, in blocks: alone, beside each worker, and
again. Each time a worker has the sessions of another user to learn from. One kind asks a model that takes its
time, as models do, and so mostly waits; the other has no model and computes without a pause, which no worker
does for long. It is the wall time that says what a worker does to an append; the CPU time is that of the
thread that appends.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event

from benchmarks import CHECKOUT
from benchmarks.clock import Cost, high, middle
from benchmarks.measurement import Measurement, at_most, measured
from benchmarks.scripted import Scripted
from benchmarks.words import Words
from holdfast.chat import Chat
from holdfast.memory import Memory

_LIMIT = 1.1  # × the time of an append alone
_ALONE = "alone"
_PROGRAM = "import sys; from benchmarks.beside import learn_until_told; learn_until_told(*sys.argv[1:])"

Worker = Callable[[Memory, str], AbstractContextManager[None]]
"""Learn from the sessions of a user within a `with` block; the memory is the one that is appended to."""


@dataclass(frozen=True, slots=True)
class LearningPlan:
    """How much is measured."""

    rounds: int = 3  # of blocks
    block: int = 200  # appends back to back
    calm: int = 40  # appends with a pause before each, as in a conversation
    pause: float = 0.05  # seconds; in a real one there are more
    wait: float = 0.2  # seconds that the model takes to answer; a real one takes longer
    # Appends before those: until its write-ahead log is full once, a new file costs more to write.
    settling: int = 1_500


@dataclass(frozen=True, slots=True)
class Taken:
    """Hold what the appends took beside one worker, back to back and with pauses."""

    busy: list[Cost] = field(default_factory=list)
    calm: list[Cost] = field(default_factory=list)


def workers(path: Path, plan: LearningPlan) -> dict[str, Worker]:
    """Name the workers that a file at `path` is appended to beside, the first of which is none."""
    return {
        _ALONE: lambda _, __: nullcontext(),
        "a model, same process": partial(_here, wait=plan.wait),
        "a model, other process": partial(_elsewhere, path, wait=plan.wait),
        "no model, same process": _here,
        "no model, other process": partial(_elsewhere, path),
    }


def users(plan: LearningPlan) -> list[str]:
    """Name the users whose sessions `measure` needs, one for each block."""
    return [f"learner-{number}" for number in range(plan.rounds * len(workers(Path(), plan)))]


def measure(path: Path, plan: LearningPlan) -> Iterator[Measurement]:
    """Measure in the file at `path`, where each of `users` has sessions to learn from."""
    taken = _race(path, plan)
    for pace, name in (("busy", "back to back"), ("calm", f"every {plan.pause:g} s")):
        alone: list[Cost] = getattr(taken[_ALONE], pace)
        for worker, costs in islice(taken.items(), 1, None):
            yield from _beside(f"append {name}, worker with {worker}", getattr(costs, pace), alone)


def _race(path: Path, plan: LearningPlan) -> dict[str, Taken]:
    contenders = workers(path, plan)
    taken = {name: Taken() for name in contenders}
    texts = Words().messages(plan.settling + plan.rounds * len(contenders) * (plan.block + plan.calm))
    names = iter(users(plan))
    with Memory(path, user="ada", admin=True) as memory:
        chat = memory.chat("monday")
        _append(chat, islice(texts, plan.settling))
        for _ in range(plan.rounds):
            for name, worker in contenders.items():
                with worker(memory, next(names)):
                    taken[name].busy.extend(_append(chat, islice(texts, plan.block)))
                    taken[name].calm.extend(_append(chat, islice(texts, plan.calm), plan.pause))
    return taken


def _append(chat: Chat, texts: Iterable[str], pause: float = 0.0) -> list[Cost]:
    """Append each text after a pause, and give what each took; the CPU time is that of this thread."""
    costs = []
    for text in texts:
        if pause:  # even a sleep of no time lets other threads go on
            time.sleep(pause)
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        chat.append(role="user", content=text)
        costs.append(Cost((time.thread_time_ns() - cpu) / 1e6, (time.perf_counter_ns() - wall) / 1e6))
    return costs


def _beside(title: str, ours: Sequence[Cost], alone: Sequence[Cost]) -> Iterator[Measurement]:
    """Hold appends beside a worker against those alone; what was asked for is asked of the median."""
    for name, figure in (("median", middle), ("p95", high)):
        cost, theirs = figure(ours), figure(alone)
        ratio = cost.wall / theirs.wall
        yield measured(
            f"{title}, {name}",
            cost,
            "µs",
            against=f"append {_ALONE}",
            theirs=theirs,
            ratio=ratio,
            ratio_of="× the wall time",
            bar=at_most(ratio, _LIMIT, "× the time") if figure is middle else None,
        )


# The workers ------------------------------------------------------------------------------------------------


@contextmanager
def _here(memory: Memory, user: str, wait: float = 0.0) -> Iterator[None]:
    """Learn on a thread of this process, from the second job on; what the first one loads is no work."""
    stop = Event()
    theirs = memory.scoped(user=user)
    model = Scripted(wait, hurry=stop) if wait else None
    end_all(theirs)
    theirs.learning.work(llm=model, limit=1)
    with ThreadPoolExecutor(1) as threads:
        worker = threads.submit(_learn, theirs, model, stop)
        try:
            yield
        finally:
            stop.set()
    worker.result()


def _learn(memory: Memory, model: Scripted | None, stop: Event) -> None:
    """Do one job after the other; when all are done, as though all sessions had ended once more."""
    while not stop.is_set():
        if memory.learning.work(llm=model, limit=1).noop:
            end_all(memory)


def end_all(memory: Memory) -> None:
    """End all sessions of a user."""
    for info in memory.chats():
        memory.chat(info.id).end()


@contextmanager
def _elsewhere(path: Path, _: Memory, user: str, wait: float = 0.0) -> Iterator[None]:
    """Learn in a process of its own, which ends when its input does: when it is left."""
    command = [sys.executable, "-c", _PROGRAM, str(path.resolve()), user, str(wait)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=CHECKOUT) as worker:  # noqa: S603 - our own interpreter and code
        assert worker.stdout is not None  # noqa: S101 - for the type checker
        worker.stdout.readline()
        yield
    if worker.returncode:
        raise subprocess.CalledProcessError(worker.returncode, command)


def learn_until_told(path: str, user: str, wait: str) -> None:
    """Learn until the input ends; print a line when it has begun. Runs in a process of its own."""
    with Memory(path) as memory, _here(memory, user, float(wait)):
        sys.stdout.write("learning\n")
        sys.stdout.flush()
        sys.stdin.read()
