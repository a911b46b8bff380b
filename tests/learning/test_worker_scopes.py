"""The cost of learning, dry runs, for whom a worker works, and erasure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from holdfast import InvalidInput, Learning, Limit, Memory, WorkResult
from learning_scripts import (
    START,
    TEXT,
    Clock,
    Model,
    failing,
    finding,
    hold,
)
from learning_worker import EXTRACTED, HOUR, MINUTE, kinds, opened
from tables import each

pytestmark = pytest.mark.usefixtures("clock")


def costs(result: WorkResult) -> tuple[int, int]:
    return result.calls, result.prompt_tokens


# The meter


def test_spend_has_a_beginning(memory: Memory, clock: Clock) -> None:
    for minutes in (0, 30, 30):
        clock.move(minutes=minutes)
        memory.learning.extract(f"{TEXT} It is {clock.now:%H:%M} o'clock by now.", llm=finding())
    calls = {
        since: memory.learning.usage(since).calls
        for since in (None, HOUR, 45 * MINUTE, timedelta(0), START, START + MINUTE, clock.now + MINUTE)
    }
    assert list(calls.values()) == [3, 3, 2, 1, 3, 2, 0]
    assert memory.learning.usage(HOUR).since == START
    with pytest.raises(InvalidInput):
        memory.learning.usage("yesterday")


def test_the_limit_of_a_kind_stops_no_other_kind(clock: Clock) -> None:
    """What one kind of job may spend says nothing about the others: they are done by the same worker."""
    with opened(clock, limits={"episode": Limit(calls=1)}) as memory:
        for number in range(3):
            hold(memory, f"shop {number}").end()
        model = finding(EXTRACTED)
        result = memory.learning.work(llm=model)
        assert len(model.asked("episode")) == kinds(result.done).count("episode") == 1
        assert kinds(result.done).count("observe") == 3
        assert "reflect" in kinds(result.done)


@each(
    ("settings", "wrong"),
    [
        (Limit, {"calls": -1}),
        (Limit, {"tokens": "many"}),
        (Learning, {"kinds": ("dream",)}),
        (Learning, {"idle": 30}),
        (Learning, {"patience": float("nan")}),
        (Learning, {"limits": {"": 5}}),
    ],
)
def test_settings_of_learning_are_checked(settings: Callable[..., object], wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        settings(**wrong)


# Dry runs


def test_a_dry_run_says_what_the_work_will_ask_and_writes_nothing(memory: Memory, clock: Clock) -> None:
    hold(memory).end()
    hold(memory, "idle", ("We decided to open a second shop in Porto, in the old harbour.",))
    memory.remember("The shop opens at nine in the morning.", merge=False)
    memory.remember("The till of the shop is made of oak.", merge=False)
    clock.move(hours=1)
    before, jobs = memory.version(), memory.learning.jobs()
    model = finding(EXTRACTED)
    estimate = memory.learning.work(llm=model, dry_run=True)
    assert estimate.dry_run
    assert (model.prompts, memory.learning.usage().calls) == ([], 0)
    assert (memory.version(), memory.learning.jobs()) == (before, jobs)
    result = memory.learning.work(llm=model)
    assert costs(estimate) == costs(result)
    assert sorted(job.id for job in estimate.done) == sorted(job.id for job in result.done)
    assert estimate.answer_tokens >= result.answer_tokens
    assert not result.dry_run


@pytest.mark.parametrize("everyone", [True, False])
def test_a_dry_run_is_for_the_agent_that_asks_or_for_everyone(quick: Memory, *, everyone: bool) -> None:
    for user, agent in (("ada", "coach"), ("ada", "clerk"), ("bob", "")):
        hold(quick.scoped(user=user, agent=agent), agent or "c").end()
    worker = quick if everyone else quick.scoped(agent="clerk")
    estimate = worker.learning.work(llm=finding(EXTRACTED), everyone=everyone, dry_run=True)
    assert {job.agent for job in estimate.done} == ({"coach", "clerk", ""} if everyone else {"clerk"})
    assert quick.learning.usage().calls == 0
    assert costs(estimate) == costs(worker.learning.work(llm=finding(EXTRACTED), everyone=everyone))


# Whom it works for


def test_the_work_of_one_user_is_no_other_user_s(memory: Memory) -> None:
    hold(memory).end()
    others = [memory.scoped(user="bob"), memory.scoped(tenant="acme"), memory.scoped(user="")]
    for other in others:
        assert other.learning.jobs() == []
        assert other.learning.work(llm=finding(EXTRACTED)).noop
        with pytest.raises(InvalidInput):
            other.learning.retry_job("observe:shop")
    memory.learning.work(llm=finding(EXTRACTED))
    for other in others:
        assert (other.learning.jobs(status="done"), other.records()) == ([], [])
        assert other.learning.usage().calls == 0
        assert len(other.learning.episodes()) == len(other.learning.episodes("sessions PostgreSQL")) == 0


def test_everyone_is_all_users_of_the_tenant_and_of_no_other(memory: Memory) -> None:
    users = {
        user: memory.scoped(tenant=tenant, user=user)
        for tenant, user in (("acme", "ada"), ("acme", "bob"), ("acme", ""), ("acme/x", "eve"), ("", "dan"))
    }
    for one in users.values():
        hold(one).end()
    result = users["ada"].learning.work(llm=finding(EXTRACTED), everyone=True)
    assert {name for name, one in users.items() if not one.learning.jobs()} == {"ada", "bob", ""}
    assert all(len(users[name].records(kind="episode")) == 1 for name in ("ada", "bob"))
    assert all(users[name].records() == [] for name in ("eve", "dan"))
    assert len(result.done) == 9
    assert result.calls == sum(users[name].learning.usage().calls for name in ("ada", "bob", "")) == 3
    assert users["ada"].learning.work(everyone=True).noop


def test_a_round_of_one_tenant_does_not_depend_on_that_of_another() -> None:
    with Memory(":memory:") as app:
        tenants = {name: app.scoped(tenant=name) for name in "abc"}
        for tenant in tenants.values():
            chat = tenant.scoped(user="ada").chat("c")
            chat.append(role="user", content="I like tea.")
            chat.end()
        for name in ("a", "c", "b"):
            assert tenants[name].learning.work(everyone=True).done


def test_a_handle_with_an_agent_works_for_its_sessions_alone(memory: Memory) -> None:
    coach, clerk = memory.scoped(agent="coach"), memory.scoped(agent="clerk")
    for agent, chat in ((coach, "a"), (clerk, "b"), (memory, "c")):
        hold(agent, chat).end()
    assert {job.agent for job in clerk.chat("a").end()} == {"coach"}, "whoever ends it"
    assert {job.chat for job in coach.learning.jobs()} == {"a"}
    result = coach.learning.work(llm=finding(EXTRACTED))
    assert {(job.agent, job.chat or "a") for job in result.done} == {("coach", "a")}
    assert sorted(kinds(result.done)) == ["episode", "observe", "reflect"]
    assert {record.agent for record in memory.records()} == {"coach"}
    assert {job.chat for job in memory.learning.jobs()} == {"b", "c"}
    assert {job.agent for job in memory.learning.work(llm=finding(EXTRACTED)).done} == {"clerk", ""}


# Erasure


def test_an_erased_chat_takes_its_jobs_and_all_that_was_learned_of_it(memory: Memory) -> None:
    hold(memory).end()
    hold(memory, "other").end()
    memory.learning.work(llm=finding("The TTL is 45 minutes.", EXTRACTED))
    memory.chat("shop").append(role="user", content="One thing more: the backups are kept for 30 days.")
    memory.chat("shop").end()
    memory.chat("shop").extract(messages=(1, 2), llm=Model({"observe": failing}))
    assert {job.chat for job in memory.learning.jobs()} == {"shop"}
    spent = memory.learning.usage().calls
    memory.erase(chat="shop")
    assert (memory.learning.jobs(), memory.chat("shop").history()) == ([], [])
    assert {job.chat for job in memory.learning.jobs(status="done")} <= {"other", ""}
    assert {record.chat for record in memory.records()} == {"other"}
    assert memory.learning.usage().calls == spent, "what was spent was spent"
    assert memory.verify().problems == ()
    assert "shop" not in {job.chat for job in memory.learning.work(llm=finding()).done}


def test_an_erased_user_leaves_nothing_to_do_and_no_spend(memory: Memory) -> None:
    bob = memory.scoped(user="bob")
    for one in (memory, bob):
        hold(one).end()
        one.learning.work(llm=finding(EXTRACTED))
        one.learning.extract(TEXT, llm=Model({"observe": failing}))
    memory.erase(user="bob")
    assert (bob.learning.jobs(), bob.learning.jobs(status="done"), bob.records()) == ([], [], [])
    assert bob.learning.usage().lines == ()
    assert bob.learning.work(llm=finding()).noop
    assert len(memory.learning.jobs()) == 1
    assert memory.learning.usage().calls > 0
    assert memory.records()
