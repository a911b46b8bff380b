"""Limits of calls and tokens hold for whatever learning asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from holdfast import Learning, Limit, Memory
from holdfast.settings import KINDS
from learning_faults import WAIT, Opened, Thinking, served
from learning_models import good, prepare, state
from learning_scripts import Clock, hold
from llm_server import Server, completion

pytest_plugins = ["learning_fixtures"]

# CI runs it.
pytestmark = pytest.mark.slow


# Limits


def asked(memory: Memory) -> int:
    return memory.learning.usage().calls


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [Limit(calls=0), Limit(tokens=10)])
@pytest.mark.parametrize("purpose", ["", "own"])
def test_a_limit_that_allows_nothing_lets_nothing_be_asked(
    opened: Opened, clock: Clock, kind: str, limit: Limit, purpose: str
) -> None:
    memory = opened(kind, attempts=2, limits={purpose and kind: limit})
    prepare(memory, kind)
    before, model = state(memory), good()
    for _ in range(4):
        result = memory.learning.work(llm=model)
        assert {(job.reason, job.attempts) for job in result.postponed} == {("limit", 0)}
        clock.move(hours=1)
    assert (model.prompts, asked(memory), memory.learning.jobs(status="failed")) == ([], 0, [])
    assert state(memory) == before


def test_tokens_are_counted_as_the_provider_counted_them(opened: Opened, clock: Clock) -> None:
    memory = opened("observe", limits={"observe": Limit(tokens=100_000)})
    for number in range(3):
        hold(memory, f"chat {number}").end()
    model = good()
    with Server(lambda _: (200, completion('{"findings": []}', tokens=(90_000, 9_000)))) as server:
        memory.learning.work(llm=served(server))
        assert len(server.requests) == 1
    usage = memory.learning.usage()
    assert (usage.prompt_tokens, usage.answer_tokens, usage.counted) == (90_000, 9_000, 1)
    clock.move(hours=1)
    assert len(memory.learning.work(llm=model).done) == 2


def test_two_threads_do_not_pass_a_limit_together(location: str, clock: Clock) -> None:
    how = Learning(kinds=("observe",), limits={"": Limit(calls=5)})
    with Memory(location, user="ada", clock=clock, learning=how) as memory:
        for number in range(12):
            hold(memory, f"chat {number}").end()
        model, together = good(), Barrier(2)

        def work() -> int:
            together.wait(WAIT)
            return len(memory.learning.work(llm=model).done)

        with ThreadPoolExecutor(2) as pool:
            done = [pool.submit(work) for _ in range(2)]
            assert sum(one.result(WAIT) for one in done) == 5
        assert len(model.prompts) == asked(memory) == 5
        clock.move(hours=1)
        assert len(memory.learning.work(llm=model).done) == 5


def test_a_call_counts_while_its_answer_is_waited_for(location: str, clock: Clock) -> None:
    how = Learning(kinds=("observe",), limits={"": Limit(calls=1)})
    thinking = Thinking()
    with Memory(location, user="ada", clock=clock, learning=how) as memory:
        for number in range(2):
            hold(memory, f"chat {number}").end()
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(lambda: memory.learning.work(llm=thinking, limit=1))
            assert thinking.thinks.wait(WAIT)
            model = good()
            result = memory.learning.work(llm=model)
            thinking.may_go_on.set()
            assert len(first.result(WAIT).done) == 1
        assert model.prompts == []
        assert [job.reason for job in result.postponed] == ["limit"]
