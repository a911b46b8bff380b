"""Whatever a model does, nothing is lost, nothing is doubled, and no watermark passes a failure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import pytest

import holdfast
from holdfast import Job, Memory, ModelFailed
from holdfast.settings import KINDS
from learning_faults import Opened, answering, served, undisturbed
from learning_models import good, prepare, state
from learning_scripts import SESSION, Clock, Model, finds, hold
from learning_worker import MINUTE
from llm_server import Server, refusal

pytest_plugins = ["learning_fixtures"]

# CI runs it.
pytestmark = pytest.mark.slow

SECRET_WORD = "xylophone"  # of an answer, or of an exception: nobody may read it again


def the_job(memory: Memory, kind: str) -> Job:
    """Give the job of a kind; of some that are done together, the first."""
    return next(job for job in memory.learning.jobs() if job.kind == kind)


def outcomes(memory: Memory) -> dict[str, int]:
    """Count the calls of models by how they ended."""
    counted: dict[str, int] = {}
    for line in memory.learning.usage().lines:
        counted[line.outcome] = counted.get(line.outcome, 0) + line.calls
    return counted


def raises(_: str) -> str:
    raise RuntimeError(SECRET_WORD)


def left(memory: Memory, kind: str) -> list[Job]:
    """List the unfinished jobs, but for the pairs that what was observed has left unsure."""
    return [job for job in memory.learning.jobs() if kind == "tidy" or not job.records]


# A model that fails


async def never(prompt: str) -> str:
    await asyncio.Event().wait()
    return prompt


def times_out(_: str) -> str:
    raise ModelFailed("The cable is cut.", "Mend it.", reason="timeout")


def gives_nothing(_: str) -> str:
    return None  # type: ignore[return-value]  # as a function may that nobody checked


def served_with(status: int) -> Callable[[], AbstractContextManager[Any]]:
    """Return what opens a model whose provider refuses with a status."""

    @contextmanager
    def opened() -> Iterator[Any]:
        with Server(lambda _: (status, refusal("refused", SECRET_WORD))) as server:
            yield served(server)

    return opened


def broken_off(length: int) -> Model:
    """Make a model whose answers break off."""
    return Model(answers=dict.fromkeys(KINDS, lambda prompt: good()(prompt)[:length]))


FAULTS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], str]] = {
    "waits for ever": (lambda: nullcontext(never), "timeout"),
    "raises": (lambda: nullcontext(raises), "error"),
    "times out": (lambda: nullcontext(times_out), "timeout"),
    "gives nothing": (lambda: nullcontext(gives_nothing), "answer"),
    "is refused": (served_with(401), "authentication"),
    "is asked too often": (served_with(429), "quota"),
    "has a broken server": (served_with(500), "error"),
    **{
        f"breaks off after {length}": (lambda length=length: nullcontext(broken_off(length)), "answer")  # type: ignore[misc]  # the length is bound now
        for length in (1, 20)
    },
}
RUBBISH = {
    "nothing": "",
    "a refusal": f"I cannot help with that, {SECRET_WORD}. 我无法帮助您。",
    "no object": f'"{SECRET_WORD}"',
    "another object": json.dumps({"answer": 42, SECRET_WORD: [SECRET_WORD]}),
    "XML": f"<findings><finding>{SECRET_WORD}</finding></findings>",
    "brackets": "[" * 200_000,
    "a string that never ends": '{"summary": "' + "\\" * 200_000,
    "controls": "\x00\x1b[2J\ud800" * 3,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_job_whose_model_fails_is_tried_again(opened: Opened, clock: Clock, kind: str, fault: str) -> None:
    opens, reason = FAULTS[fault]
    memory = opened(kind, **({"patience": 0.02} if fault == "waits for ever" else {}))
    prepare(memory, kind)
    with opens() as llm:
        check_postponed(memory, clock, kind, llm, reason)
    check_done_when_due(memory, clock, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rubbish", RUBBISH)
def test_a_job_whose_model_answers_rubbish_is_tried_again(
    opened: Opened, clock: Clock, kind: str, rubbish: str
) -> None:
    memory = opened(kind)
    prepare(memory, kind)
    model = answering(RUBBISH[rubbish])
    check_postponed(memory, clock, kind, model, "answer")
    asked = [prompt for _, prompt in model.prompts]
    assert asked[1].startswith(asked[0])
    assert len(asked) == 2 * len([prompt for prompt in asked if "Your last answer" not in prompt])
    again = check_done_when_due(memory, clock, kind)
    assert again.prompts[0] == model.prompts[0], "it is asked about the same messages"


def check_postponed(memory: Memory, clock: Clock, kind: str, llm: Any, reason: str) -> None:
    """Let a job fail, and check that all of it is told and nothing stored."""
    before = state(memory)
    failed: list[holdfast.Event] = []
    spent: list[holdfast.Event] = []
    offs = [memory.on("failed", failed.append), memory.on("spent", spent.append)]
    result = memory.learning.work(llm=llm)
    for off in offs:
        off()
    job = the_job(memory, kind)
    assert (result.done, result.failed, result.records) == ((), (), ())
    assert job in result.postponed
    assert (job.status, job.reason) == ("open", reason)
    assert job.due == clock.now + MINUTE
    assert job.error == "The cable is cut. Mend it." if llm is times_out else job.error
    assert SECRET_WORD not in f"{job.error}{result}"
    assert state(memory) == before
    assert [(event.job, event.error) for event in failed] == [(one, one.error) for one in result.postponed]
    assert sum(outcomes(memory).values()) == memory.learning.usage().calls == result.calls == len(spent) > 0
    assert set(outcomes(memory)) == {"answered" if isinstance(llm, Model) else reason}
    assert sum(one.calls for one in memory.learning.jobs()) == result.calls
    assert memory.learning.work(llm=good()).noop, "it is not due yet"


def check_done_when_due(memory: Memory, clock: Clock, kind: str) -> Model:
    """Do a job that failed, and check that all is as if it had not."""
    clock.move(minutes=1)
    model = good()
    assert {job.kind for job in memory.learning.work(llm=model).done} == {kind}
    assert left(memory, kind) == []
    assert {(job.reason, job.error, job.attempts) for job in memory.learning.jobs(status="done")} == {
        ("", "", 0)
    }
    assert state(memory) == undisturbed(kind)
    assert memory.verify().ok
    assert memory.learning.work(llm=model).noop
    return model


# Again and again


@pytest.mark.parametrize("kind", KINDS)
def test_each_wait_is_twice_as_long_up_to_an_hour_until_the_job_has_failed(
    opened: Opened, clock: Clock, kind: str
) -> None:
    memory = opened(kind, attempts=9)
    prepare(memory, kind)
    before = state(memory)
    for attempt, minutes in enumerate((1, 2, 4, 8, 16, 32, 60, 60), 1):
        memory.learning.work(llm=raises)
        job = the_job(memory, kind)
        assert (job.status, job.attempts) == ("open", attempt)
        assert job.due == clock.now + timedelta(minutes=minutes)
        clock.move(minutes=minutes, seconds=-1)
        assert memory.learning.work(llm=good()).noop
        clock.move(seconds=1)
    failed = memory.learning.work(llm=raises).failed
    assert {job.kind for job in failed} == {kind}
    assert list(failed) == memory.learning.jobs(status="failed") == memory.learning.jobs()
    assert {(job.attempts, job.reason, job.ended) for job in failed} == {(9, "error", clock.now)}
    assert all(job.error for job in failed)
    assert state(memory) == before
    memory.learning.retry_job(failed[0].id)
    assert the_job(memory, kind).status == "open"
    for job in failed[1:]:
        memory.learning.retry_job(job.id)
    assert {job.kind for job in memory.learning.work(llm=good()).done} == {kind}
    assert state(memory) == undisturbed(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [401, 429])
def test_a_provider_that_lets_nobody_in_makes_no_job_fail_for_good(
    opened: Opened, clock: Clock, kind: str, status: int
) -> None:
    memory = opened(kind, attempts=2)
    prepare(memory, kind)
    with Server(lambda _: (status, refusal("refused"))) as server:
        for _ in range(4):
            result = memory.learning.work(llm=served(server))
            assert result.why
            assert (result.failed, result.calls) == ((), 1)
            assert the_job(memory, kind).attempts == 0
            clock.move(minutes=1)
    assert {job.kind for job in memory.learning.work(llm=good()).done} == {kind}
    assert state(memory) == undisturbed(kind)


# A failure in the middle


def fails_at(words: str) -> Model:
    """Make a model that fails when it is shown some words."""
    return Model(answers=dict.fromkeys(KINDS, lambda prompt: "" if words in prompt else good()(prompt)))


def test_a_session_is_read_on_from_the_part_that_failed(opened: Opened, clock: Clock) -> None:
    memory = opened("observe", tokens=60)
    prepare(memory, "observe")
    model = fails_at(SESSION[3])
    stored = memory.learning.work(llm=model).records
    asked = [prompt for _, prompt in model.prompts]
    assert stored
    assert all(record.messages and record.messages[1] < 4 for record in stored)
    assert not any(SESSION[5] in prompt for prompt in asked), "what comes after a failure waits"
    clock.move(minutes=1)
    again = good()
    memory.learning.work(llm=again)
    assert SESSION[3] in again.prompts[0][1]
    assert not any(SESSION[0] in prompt.split("<conversation>")[1] for _, prompt in again.prompts)
    assert state(memory)[0] == undisturbed("observe", tokens=60)[0]


def test_a_text_that_is_read_again_brings_no_former_value_back(opened: Opened, clock: Clock) -> None:
    told = [
        "The API of the shop listens on port 8080, as the team decided in May.",
        "The API of the shop listens on port 9090, as the team decided in June.",
        "The baskets of the shop are kept in PostgreSQL, as the team decided in July.",
    ]

    def port(prompt: str) -> object:
        part = prompt.partition("<conversation>")[2]
        return finds(next(text.split(",")[0] for text in told if text in part))(prompt)

    memory, other = opened("observe", tokens=25), opened("observe", tokens=25)
    other.learning.extract("\n\n".join(told), llm=Model(answers={"observe": port}))
    assert "8080" not in str(other.records())
    failing = Model(answers={"observe": lambda prompt: "" if "baskets" in prompt else port(prompt)})
    extraction = memory.learning.extract("\n\n".join(told), llm=failing)
    assert (extraction.why != "", extraction.job) == (True, the_job(memory, "observe").id)
    clock.move(minutes=1)
    memory.learning.work(llm=Model(answers={"observe": port}))
    assert state(memory) == state(other)


def test_sessions_that_always_fail_do_not_keep_others_from_being_read(opened: Opened, clock: Clock) -> None:
    memory = opened("reflect")
    for name in (*(f"tulips {n}" for n in range(5)), "shop 1", "shop 2", "shop 3"):
        hold(
            memory, name, (f"In {name} they spoke of the sessions of the shop, which Redis loses.", "I see.")
        )
        clock.move(minutes=1)
    model = fails_at("tulips")
    for _ in range(40):
        memory.learning.work(llm=model)
        clock.move(minutes=30)
    assert {record.chat for record in memory.records(kind="finding")} == {"shop 1", "shop 2", "shop 3"}
    clock.move(days=1)
    memory.learning.work(llm=model)
    assert memory.learning.jobs(), "those that fail are tried again, after a day"
