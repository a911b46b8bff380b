"""The worker, as its users see it: jobs, schedules, and what fails."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import InvalidInput, Memory
from learning_scripts import SESSION, START, Clock, Model, finding, framed, hold, offers
from learning_worker import EXTRACTED, HOUR, MINUTE, kinds, opened

pytestmark = pytest.mark.usefixtures("clock")


# What is written when something is said


def test_the_end_of_a_session_leaves_jobs_and_asks_nobody(memory: Memory) -> None:
    chat = hold(memory)
    left = chat.end()
    assert sorted(kinds(left)) == ["episode", "observe"]
    assert {(job.chat, job.status, job.due, job.attempts) for job in left} == {("shop", "open", START, 0)}
    assert (
        memory.learning.jobs() == memory.learning.jobs(status="open") == sorted(left, key=lambda job: job.id)
    )
    assert (memory.records(), memory.learning.usage().calls) == ([], 0)
    assert (chat.end(), len(memory.learning.jobs())) == (left, 2), "it may be ended twice"
    with pytest.raises(InvalidInput, match="There is no chat"):
        memory.chat("nothing").end()


# Doing it


def test_work_learns_from_what_has_ended_and_a_job_says_what_it_has_cost(memory: Memory) -> None:
    hold(memory).end()
    result = memory.learning.work(llm=finding(EXTRACTED))
    assert sorted(kinds(result.done)) == ["episode", "observe", "reflect"]
    assert (result.postponed, result.failed, result.waiting) == ((), (), 0)
    assert result.why == "Nothing more is due."
    assert {record.text for record in result.records} == {record.text for record in memory.records()}
    assert EXTRACTED in {record.text for record in memory.records(kind="finding")}
    assert len(memory.records(kind="episode")) == 1
    jobs, usage = memory.learning.jobs(status="done"), memory.learning.usage()
    assert {job.kind: job.calls for job in jobs} == {"observe": 1, "episode": 0, "reflect": 0}
    assert all((job.status, job.attempts, job.ended) == ("done", 0, START) for job in jobs)
    assert sum(job.prompt_tokens for job in jobs) == result.prompt_tokens == usage.prompt_tokens > 0
    assert sum(job.answer_tokens for job in jobs) == result.answer_tokens == usage.answer_tokens > 0
    version, model = memory.version(), finding(EXTRACTED)
    assert memory.learning.work(llm=model).noop, "what was done is not done again"
    assert (memory.version(), model.prompts, memory.learning.jobs()) == (version, [], [])


def test_without_a_model_what_needs_none_is_done_and_the_rest_waits(memory: Memory) -> None:
    memory.remember("The shop opens at nine in the morning.", merge=False)
    memory.remember("The shop opens at nine on weekdays.", merge=False)
    hold(memory).end()
    result = memory.learning.work()
    assert sorted(kinds(result.done)) == ["episode", "observe"]
    assert result.calls == memory.learning.usage().calls == 0
    assert [record.text for record in memory.records(kind="insight")] == [SESSION[2]]
    assert (result.waiting, memory.learning.jobs()) == (2, []), "a model would run two"
    model = Model({"reflect": offers()})
    done = memory.learning.work(llm=model)
    assert (sorted(kinds(done.done)), done.waiting) == (["reflect", "tidy"], 0)


def test_until_ends_the_work(quick: Memory, clock: Clock) -> None:
    def late(_: str) -> object:
        clock.move(minutes=10)
        return {"findings": [], "insights": [], "lessons": []}

    for chat in ("one", "two", "three"):
        hold(quick, chat).end()
    model = Model({"observe": late})
    result = quick.learning.work(llm=model, until=START + 15 * MINUTE)
    assert (len(model.asked("observe")), result.why) == (2, "Deadline reached.")
    assert {(job.status, job.attempts, job.reason) for job in quick.learning.jobs()} == {("open", 0, "")}
    assert quick.learning.work(llm=model, until=clock.now).noop
    last = quick.learning.work(llm=model, until=clock.now + HOUR)
    assert (len(model.asked("observe")), last.postponed) == (3, ()), "what was asked is not asked again"
    assert quick.learning.jobs() == []


# Sessions that nobody ended


@pytest.mark.parametrize("idle", [timedelta(minutes=30), timedelta(days=1)])
def test_a_session_has_ended_when_it_was_idle_for_long_enough(clock: Clock, idle: timedelta) -> None:
    with opened(clock, idle=idle) as memory:
        for text in SESSION[:3]:
            memory.chat("shop").append(role="user", content=text)
            clock.now += idle - MINUTE
            assert memory.learning.work().noop, "each message keeps it going"
        clock.move(minutes=1)
        assert sorted(kinds(memory.learning.work().done)) == ["episode", "observe"]
        clock.move(days=2)
        assert memory.learning.work().noop


@pytest.mark.parametrize("ended", [True, False])
def test_of_a_session_that_goes_on_only_what_is_new_is_learned_from(
    memory: Memory, clock: Clock, *, ended: bool
) -> None:
    def over() -> None:
        if ended:
            chat.end()
        clock.move(hours=1)

    chat = hold(memory)
    over()
    first, second = finding(EXTRACTED), finding("The TTL of a session of the shop is 45 minutes.")
    memory.learning.work(llm=first)
    told = ("The TTL of a session is 45 minutes now, we agreed with the lawyers.", "I set it to 45 minutes.")
    chat.append([{"role": "user", "content": told[0]}, {"role": "assistant", "content": told[1]}])
    over()
    memory.learning.work(llm=second)
    for purpose in ("observe", "reflect"):
        (before,), (after,) = first.asked(purpose), second.asked(purpose)
        assert all(text in before for text in SESSION)
        assert not any(text in framed(after, "conversation") for text in SESSION)
        assert all(text in framed(after, "conversation") for text in told)
    assert EXTRACTED in framed(second.asked("observe")[0], "known")
    assert "PostgreSQL" in framed(second.asked("episode")[0], "draft")
    (episode,) = memory.records(kind="episode")
    assert (episode.messages, episode.meta["turns"], episode.action) == ((1, 8), 4, "replace")


# What fails


def test_a_job_that_is_not_there_and_an_unknown_status_are_refused(quick: Memory) -> None:
    for name in ("observe:nothing", "", "x" * 10_000):
        with pytest.raises(InvalidInput):
            quick.learning.retry_job(name)
    with pytest.raises(InvalidInput, match="Unknown status"):
        quick.learning.jobs(status="lost")  # type: ignore[arg-type]  # the point


# Schedules


@pytest.mark.parametrize("kind", ["reflect", "tidy"])
def test_there_is_a_reflection_and_a_tidying_at_once_and_then_every_hour(
    quick: Memory, clock: Clock, kind: str
) -> None:
    chat = hold(quick)
    quick.remember("The shop opens at nine in the morning.", merge=False)
    asked = []
    for minutes in range(0, 150, 10):
        chat.append(role="user", content=f"It is minute {minutes}, and the copy of the sessions still runs.")
        quick.remember(f"The box number {minutes} of the shop holds green tea.", merge=False)
        model = Model({"reflect": offers()})
        quick.learning.work(llm=model)
        asked += [minutes] * len(model.asked(kind))
        clock.move(minutes=10)
    assert asked == [0, 60, 120]


# When a model fails


@pytest.mark.parametrize("kind", ["observe", "reflect"])
def test_after_three_failures_in_a_row_nothing_more_is_begun(clock: Clock, kind: str) -> None:
    asked = 0

    def broken(_: str) -> str:
        nonlocal asked
        asked += 1
        raise ValueError("out of order")

    with opened(clock, kinds=(kind,)) as memory:
        for n in range(6):
            hold(memory, f"chat{n}").end()
        result = memory.learning.work(llm=broken)
        assert (asked, len(result.postponed), len(result.failed)) == (3, 3 if kind == "observe" else 1, 0)
        assert "three times in a row" in result.why
        if kind == "observe":
            assert result.waiting == 6
            assert memory.learning.work(llm=finding(EXTRACTED)).count == 3, "the others are as they were"
