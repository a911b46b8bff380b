"""A worker gives way to those who append in the same process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import pytest

from holdfast import Learning, Memory
from holdfast.learning import workers
from learning_scripts import Clock, Model, hold

WAIT = 60  # seconds until a test that hangs says so
FOR_EVER = 1e12
LEARNING = Learning(kinds=("observe", "episode"))


# Those who append


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", user="ada", clock=Clock(), learning=LEARNING) as opened:
        yield opened


def prepare(memory: Memory) -> None:
    """Leave four jobs: two sessions to learn from, each with an episode to write."""
    hold(memory).end()
    chat = hold(memory, "again")
    chat.append(
        role="assistant",
        content="As decided, we will use PostgreSQL for all sessions of the shop from now on.",
    )
    chat.end()


@pytest.mark.slow
@pytest.mark.parametrize("llm", [None, Model()])
def test_nobody_has_to_wait_for_a_worker_that_rests(
    location: str, monkeypatch: pytest.MonkeyPatch, llm: Model | None
) -> None:
    """Whatever a worker is at when it rests, it holds no lock that an append or a recall has to wait for."""
    rested = 0
    with (
        Memory(location, user="ada", clock=Clock(), learning=LEARNING) as memory,
        ThreadPoolExecutor(1) as pool,
    ):

        def use() -> None:
            memory.chat("of another").append(role="user", content="Hello.")
            assert memory.recall("Redis", limit=1)

        def sleep(_: float) -> None:
            nonlocal rested
            rested += 1
            pool.submit(use).result(WAIT)

        monkeypatch.setattr(workers, "SLICE", 0)
        monkeypatch.setattr(
            workers,
            "time",
            SimpleNamespace(thread_time=time.thread_time, sleep=sleep, monotonic=time.monotonic),
        )
        monkeypatch.setattr("holdfast.learning.workers.APPENDING", FOR_EVER)
        prepare(memory)
        memory._runtime.workers.appended = FOR_EVER  # so that the first unit rests as well
        assert len(memory.learning.work(llm=llm, limit=4).done) == 4
    assert rested > 20


def test_a_memory_that_is_closed_does_not_wait_for_the_rest(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "SLICE", 0)
    monkeypatch.setattr(workers, "SHARE", FOR_EVER)
    monkeypatch.setattr("holdfast.learning.workers.APPENDING", FOR_EVER)
    prepare(memory)
    appended = Event()

    def answer(prompt: str) -> str:
        memory.chat("of another").append(role="user", content="Hello.")
        appended.set()
        return Model()(prompt)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(lambda: memory.learning.work(llm=answer))
        assert appended.wait(WAIT)
        memory.close()
        assert working.result(WAIT).why == "The memory is being closed."
