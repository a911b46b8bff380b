"""A worker that is killed, loses its lease, or has its memory closed loses and doubles nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from threading import Event
from types import FrameType

import pytest

from holdfast import Closed, Learning, Memory
from holdfast.settings import KINDS
from holdfast.store import jobs as queue
from holdfast.types import JobStatus
from learning_faults import WAIT, Thinking
from learning_models import PART, do, good, only, policy, prepare, state, until_done
from learning_scripts import SESSION, Clock, Model, framed, hold
from programs import run, start

pytestmark = pytest.mark.slow

PAST_THE_LEASE = 6  # minutes
STATUSES: tuple[JobStatus, ...] = ("open", "running", "failed", "done")
HELPERS = Path(__file__).parent.parent
ALL = (*KINDS, "pairs", "text")
AT_STEPS = (*ALL, "session")

BEGIN = """
import os, sys
os.environ["OMP_NUM_THREADS"] = "1"
sys.path.append(sys.argv[1])
location, kind = sys.argv[2:4]
from holdfast import Memory
from learning_models import *
"""
DIE = f"""{BEGIN}
if location.startswith("postgres"):
    import holdfast.store.postgres
with Memory(":memory:", user="ada", learning=policy(kind)) as memory:  # loads what each process needs
    prepare(memory, kind)
    do(memory, kind, good())
print(die_at_each_step(location, kind, int(sys.argv[4]), int(sys.argv[5])))
"""
THINK = f"""{BEGIN}
asked = 0
def thinking(prompt):
    global asked
    asked += 1
    if asked == int(sys.argv[4]):
        print("thinking", flush=True)
        sys.stdin.readline()
    return good()(prompt)
with Memory(location, user="ada", clock=Clock(), learning=policy(kind)) as memory:
    do(memory, kind, thinking)
"""


@cache
def undisturbed(kind: str) -> tuple[list[str], list[str]]:
    """Give what is known after a job of a kind that nothing disturbed."""
    with Memory(":memory:", user="ada", clock=Clock(), learning=policy(kind)) as memory:
        prepare(memory, kind)
        do(memory, kind, good())
        return state(memory)


class Opener:
    """Open one database several times, with one clock."""

    def __init__(self, location: str, opened: ExitStack) -> None:
        self.clock = Clock()
        self.location = location
        self._opened = opened

    def __call__(self, learning: Learning) -> Memory:
        memory = Memory(self.location, user="ada", admin=True, clock=self.clock, learning=learning)
        return self._opened.enter_context(memory)


@pytest.fixture
def opener(shared_location: str) -> Iterator[Opener]:
    with ExitStack() as opened:
        yield Opener(shared_location, opened)


@pytest.fixture
def on_file(tmp_path: Path) -> Iterator[Opener]:
    """Open a file: what is tested takes a process, and is no matter of the database."""
    with ExitStack() as opened:
        yield Opener(str(tmp_path / "memory.db"), opened)


def check_done(memory: Memory, kind: str) -> None:
    """Check that all is as if nothing had happened."""
    assert state(memory) == undisturbed(kind)
    assert not any(job.status == "running" for job in memory.learning.jobs())
    assert memory.learning.work(llm=good()).noop
    assert memory.verify().ok


# Killed


def check_killed_at_each_step(location: str, kind: str, first: int, stride: int) -> int:
    """Kill processes at their steps; each user ends as the one whose process was not killed."""
    last = int(run(DIE, HELPERS, location, kind, first, stride))
    clock = Clock()
    clock.move(minutes=PAST_THE_LEASE)
    with Memory(location, clock=clock, learning=policy(kind)) as memory:
        unharmed = memory.scoped(user=f"{kind} {last}")
        jobs = {status: len(unharmed.learning.jobs(status=status)) for status in STATUSES}
        assert state(unharmed) == undisturbed(kind)
        for step in range(first, last, stride):
            user = memory.scoped(user=f"{kind} {step}")
            if kind == "text" and not any(user.learning.jobs(status=status) for status in STATUSES):
                # It was killed before it had said that it would be done, or when all was.
                prepared = user.records(kind="constraint") + user.records(kind="soul")
                assert user.records() == prepared or state(user) == state(unharmed)
                continue
            until_done(user, good(), lambda _: None)
            assert state(user) == state(unharmed), f"killed after step {step} of {last}"
            assert {status: len(user.learning.jobs(status=status)) for status in STATUSES} == jobs
            spent = {line.outcome: line.calls for line in user.learning.usage().lines}
            assert spent.keys() <= {"answered", "asked"}
            assert spent.get("asked", 0) <= 1
            check_done(user, kind)
    return last


@pytest.mark.parametrize("kind", AT_STEPS)
def test_a_worker_may_be_killed_at_some_steps(tmp_path: Path, kind: str) -> None:
    assert check_killed_at_each_step(str(tmp_path / "memory.db"), kind, 5, 17) > 30


@pytest.mark.soak
@pytest.mark.parametrize("kind", AT_STEPS)
def test_a_worker_may_be_killed_at_every_step(shared_location: str, kind: str) -> None:
    """Each database takes every other step, beginning with another one."""
    check_killed_at_each_step(shared_location, kind, 1 + shared_location.startswith("postgres"), 2)


def die_while_asked(opener: Opener, kind: str, question: int) -> None:
    """Kill a worker that waits for its model."""
    with start(THINK, HELPERS, opener.location, kind, question) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "thinking\n"
        program.kill()


@pytest.mark.parametrize("kind", [*KINDS, "text"])
def test_a_job_whose_worker_was_killed_is_anybodys_after_its_lease(on_file: Opener, kind: str) -> None:
    memory = on_file(policy(kind))
    prepare(memory, kind)
    before = state(memory)
    die_while_asked(on_file, kind, 1)
    assert state(memory) == before
    assert {(job.status, job.attempts) for job in memory.learning.jobs()} == {("running", 1)}
    on_file.clock.move(minutes=PAST_THE_LEASE - 1.5)
    assert memory.learning.work(llm=good()).noop, "nobody knows yet that its worker is dead"
    on_file.clock.move(minutes=1.5)
    assert memory.learning.work(llm=good()).done
    check_done(memory, kind)


def test_a_job_whose_workers_die_each_time_has_failed(on_file: Opener) -> None:
    memory = on_file(only("observe", tokens=PART, attempts=1))
    prepare(memory, "observe")
    die_while_asked(on_file, "observe", 1)
    on_file.clock.move(minutes=PAST_THE_LEASE)
    told: list[str] = []
    memory.on("failed", lambda event: told.append(event.job.id if event.job else ""))
    result, model = memory.learning.work(llm=good()), good()
    (job,) = memory.learning.jobs(status="failed")
    assert (job.id, job.reason, job.ended) == ("observe:shop", "crash", on_file.clock.now)
    assert job.error
    assert memory.learning.work(llm=model).noop
    assert model.prompts == []
    memory.learning.retry_job(job.id)
    assert memory.learning.work(llm=good()).done
    check_done(memory, "observe")
    assert (result.failed, told) == ((job,), [job.id]), "who works is told that it has failed"


# Several workers


def test_each_job_is_done_by_one_of_several_workers(opener: Opener) -> None:
    memory, *workers = (opener(Learning(kinds=("observe", "episode"))) for _ in range(4))
    for number in range(15):
        hold(memory, f"chat {number}", [f"Room {number}: {text}" for text in SESSION]).end()
    model = Model()
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda one: one.learning.work(llm=model).done, workers))
    asked = [framed(prompt, "conversation").partition("Room ")[2][:3] for _, prompt in model.prompts]
    assert set(Counter(asked).values()) == {1}, "no job was done twice"
    assert (len(asked), sum(map(len, done))) == (15, 30), "a session is asked about once"
    jobs = memory.learning.jobs(status="done")
    assert {(job.kind, job.calls, job.attempts) for job in jobs} == {("observe", 1, 0), ("episode", 0, 0)}
    assert len(jobs) == 30
    assert [job for job in memory.learning.jobs() if not job.records] == []
    assert len(memory.records(kind="episode")) == 15
    assert memory.verify().ok


SLOW = "Answered after the lease."


@pytest.mark.parametrize("kind", AT_STEPS)
@pytest.mark.parametrize("fails", [False, True])
def test_what_a_worker_brings_after_its_lease_is_not_stored(opener: Opener, kind: str, fails: bool) -> None:
    slow, quick = opener(policy(kind)), opener(policy(kind))
    prepare(slow, kind)
    told: list[object] = []
    slow.on("failed", told.append)

    def thinking(prompt: str) -> str:
        opener.clock.move(minutes=PAST_THE_LEASE)
        assert quick.learning.work(llm=good()).done
        if fails:
            raise RuntimeError(SLOW)
        return good()(prompt).replace("Redis", "SQLite")

    if kind == "text":
        do(slow, kind, thinking)
    else:
        result = slow.learning.work(llm=thinking)
        assert (result.done, result.postponed, result.failed, result.records) == ((), (), (), ())
        assert any("another worker" in note for note in result.notes)
    assert told == []
    assert {job.status for job in slow.learning.jobs(status="done")} == (
        {"done"} if kind != "text" else set()
    )
    check_done(quick, kind)
    assert not any("SQLite" in record.text for record in quick.records())


@pytest.mark.parametrize("kind", ["observe", "episode"])
def test_a_session_that_ends_again_while_it_is_read_is_read_on(opener: Opener, kind: str) -> None:
    news = "We also moved the baskets of the shop to PostgreSQL, in src/shop/baskets.py."
    memory = opener(only(kind))
    prepare(memory, kind)

    def meanwhile(prompt: str) -> str:
        if news not in prompt and len(memory.chat("shop").history()) == len(SESSION):
            memory.chat("shop").append(role="user", content=news)
            memory.chat("shop").end()
        return good()(prompt)

    memory.learning.work(llm=meanwhile)
    memory.learning.work(llm=good())
    assert any(news in record.text for record in memory.records())


# Closed


def wait_for_closing(memory: Memory) -> None:
    """Wait until somebody has begun to close a memory."""
    glance = Event()
    while not memory._runtime.workers.closing:
        glance.wait(0.001)


class Closing(Model):
    """Answer once a memory is being closed."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(answers=good().answers)
        self.thinks = Event()
        self._memory = memory

    def __call__(self, prompt: str) -> str:
        self.thinks.set()
        wait_for_closing(self._memory)
        return super().__call__(prompt)


@pytest.mark.parametrize("kind", KINDS)
def test_closing_waits_for_the_unit_and_gives_the_rest_back(opener: Opener, kind: str) -> None:
    memory = opener(policy(kind))
    prepare(memory, kind)
    model = Closing(memory)
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(lambda: memory.learning.work(llm=model))
        assert model.thinks.wait(WAIT)
        memory.close()
        result = working.result(WAIT)
    assert {job.kind for job in (*result.done, *result.postponed)} == {kind}
    assert result.failed == ()
    assert len(model.prompts) == 1
    again = opener(policy(kind))
    assert not any(job.status == "running" for job in again.learning.jobs())
    assert {job.attempts for job in again.learning.jobs()} <= {0}
    again.learning.work(llm=good())
    check_done(again, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_closing_does_not_wait_for_ever_and_gives_the_job_back(
    opener: Opener, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.learning.workers.PATIENCE", 0.01)
    memory = opener(policy(kind))
    prepare(memory, kind)
    model = Thinking()
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(lambda: memory.learning.work(llm=model))
        assert model.thinks.wait(WAIT)
        memory.close()
        memory.close()  # while the job is still held
        again = opener(policy(kind))
        assert {(job.status, job.attempts) for job in again.learning.jobs()} == {("open", 0)}
        model.may_go_on.set()
        with pytest.raises(Closed):
            working.result(WAIT)
    assert again.learning.work(llm=good()).done
    check_done(again, kind)


def test_a_job_that_is_claimed_while_the_memory_is_closed_is_given_back(opener: Opener) -> None:
    memory = opener(policy("observe"))
    prepare(memory, "observe")

    def work() -> None:
        sys.setprofile(watch)
        with suppress(Closed):
            memory.learning.work(llm=good())

    with ThreadPoolExecutor(2) as pool:

        def watch(frame: FrameType, event: str, _: object) -> None:
            if event == "return" and frame.f_code is queue.claim.__code__:
                sys.setprofile(None)
                pool.submit(memory.close)
                wait_for_closing(memory)

        pool.submit(work).result(WAIT)
    again = opener(policy("observe"))
    assert not any(job.status == "running" for job in again.learning.jobs()), (
        "it would wait for the end of its lease"
    )
    again.learning.work(llm=good())
    check_done(again, "observe")


def test_an_interrupt_gives_the_job_back(opener: Opener) -> None:
    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    memory = opener(policy("observe"))
    prepare(memory, "observe")
    with pytest.raises(KeyboardInterrupt):
        memory.learning.work(llm=interrupted)
    assert {(job.status, job.attempts) for job in memory.learning.jobs()} == {("open", 0)}
    assert {line.outcome for line in memory.learning.usage().lines} == {"interrupted"}
    assert memory.learning.work(llm=good()).done
    check_done(memory, "observe")
