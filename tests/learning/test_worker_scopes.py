"""The cost of learning, dry runs, for whom a worker works, and erasure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from holdfast import InvalidInput, Learning, Limit, Memory, WorkResult
from learning_scripts import (
    SESSION,
    START,
    TEXT,
    Clock,
    Model,
    everything,
    failing,
    finding,
    hold,
    learned,
    offers,
)
from learning_worker import EXTRACTED, HOUR, MINUTE, kinds, opened
from tables import each

pytestmark = pytest.mark.usefixtures("clock")


def costs(result: WorkResult) -> tuple[int, int]:
    return result.calls, result.prompt_tokens


# The meter


def test_tokens_are_counted_as_the_application_counts_them(clock: Clock) -> None:
    with Memory(":memory:", user="ada", clock=clock, count_tokens=len) as memory:
        model = finding(EXTRACTED)
        memory.learning.extract(TEXT, llm=model)
        assert memory.learning.usage().prompt_tokens == len(model.prompts[0][1])


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


def test_a_compaction_and_the_ranking_of_episodes_are_on_the_meter_too(quick: Memory) -> None:
    chat = hold(quick, texts=SESSION * 30)
    chat.compact(full=True, budget=500, llm=lambda _: "The sessions of the shop moved to PostgreSQL.")
    chat.end()
    quick.learning.work()
    quick.learning.episodes("sessions", strategy="llm", llm=Model())
    assert {line.purpose for line in quick.learning.usage().lines} == {"compact", "rank"}


def test_no_call_goes_beyond_the_limit_of_an_hour(location: str, clock: Clock) -> None:
    with Memory(
        location, user="ada", clock=clock, learning=Learning(limits={"": Limit(calls=2)}, kinds=("observe",))
    ) as memory:
        for number in range(5):
            hold(memory, f"shop {number}").end()
        done = []
        for hour in range(3):
            model = finding(EXTRACTED)
            result = memory.learning.work(llm=model)
            done.append(len(model.prompts))
            if hour < 2:
                assert "Your limit of 2 calls an hour" in result.why
                (postponed,) = result.postponed
                assert (postponed.reason, postponed.attempts) == ("limit", 0)
                clock.move(minutes=59)
                assert memory.learning.work(llm=finding(EXTRACTED)).calls == 0
                clock.move(minutes=1)
        assert done == [2, 2, 1]
        assert (memory.learning.usage().calls, memory.learning.jobs()) == (5, [])


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
        (Limit, {"calls": True}),
        (Learning, {"kinds": ("dream",)}),
        (Learning, {"kinds": "observe"}),
        (Learning, {"idle": 30}),
        (Learning, {"every": timedelta(-1)}),
        (Learning, {"tokens": 0}),
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


def test_a_dry_run_without_a_model_asks_for_nothing(quick: Memory) -> None:
    hold(quick).end()
    estimate = quick.learning.work(dry_run=True)
    assert (sorted(kinds(estimate.done)), costs(estimate)) == (["episode", "observe"], (0, 0))


def test_a_dry_run_keeps_to_the_schedule(quick: Memory, clock: Clock) -> None:
    chat = hold(quick)
    quick.learning.work(llm=finding())
    clock.move(minutes=10)
    chat.append(role="user", content="And one thing more about the sessions of the shop: they are large.")
    assert quick.learning.work(llm=finding(), dry_run=True).noop, "before the job is left"
    assert quick.learning.work(llm=finding()).noop, "the next reflection is in 50 minutes"
    for _ in range(2):
        assert quick.learning.work(llm=finding(), dry_run=True).noop
        clock.move(minutes=15)


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


def test_a_limit_is_for_everyone_together(memory: Memory) -> None:
    for user in ("ada", "bob", "cem"):
        hold(memory.scoped(user=user)).end()
    assert [len(memory.learning.work(everyone=True, limit=4).done) for _ in range(3)] == [4, 2, 0]


def test_a_round_of_one_tenant_does_not_depend_on_that_of_another() -> None:
    with Memory(":memory:") as app:
        tenants = {name: app.scoped(tenant=name) for name in "abc"}
        for tenant in tenants.values():
            chat = tenant.scoped(user="ada").chat("c")
            chat.append(role="user", content="I like tea.")
            chat.end()
        for name in ("a", "c", "b"):
            assert tenants[name].learning.work(everyone=True).done


def test_everyone_has_those_who_only_gave_a_text(memory: Memory) -> None:
    """The extraction of a text that failed is tried again, also for a user without a session."""
    bob = memory.scoped(user="bob")
    assert bob.learning.extract(TEXT, llm=Model({"observe": failing})).job
    bob.learning.retry_job(bob.learning.jobs()[0].id)
    memory.learning.work(llm=finding(TEXT), everyone=True)
    assert bob.learning.jobs() == []
    assert [record.text for record in bob.records()] == [TEXT]


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


def test_what_is_learned_belongs_to_the_agent_of_the_chat(memory: Memory) -> None:
    coach, clerk = memory.scoped(agent="coach"), memory.scoped(agent="clerk")
    hold(coach, "a").end()
    hold(clerk, "b", ("We decided to open a second shop in Porto, in the old harbour.",)).end()
    memory.learning.work(llm=Model({"observe": everything, "reflect": offers("Ada owns the shop.")}))
    assert {(record.chat, record.agent) for record in memory.records()} == {("a", "coach"), ("b", "clerk")}
    assert {record.agent for record in coach.records()} == {"coach"}
    assert coach.get("profile") != clerk.get("profile")
    assert [record.chat for record in coach.learning.episodes()] == ["a"]


def test_two_agents_may_extract_from_the_same_text(memory: Memory) -> None:
    for agent in ("coach", "clerk"):
        result = memory.scoped(agent=agent).learning.extract(TEXT, llm=finding(TEXT))
        assert (result.why, [record.agent for record in result.records]) == ("", [agent])
    assert memory.learning.jobs() == []


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


def test_a_chat_that_is_told_again_is_learned_from_again(quick: Memory) -> None:
    for erased in (False, True):
        if erased:
            quick.erase(chat="shop")
        hold(quick).end()
        quick.learning.work(llm=finding(EXTRACTED))
        assert [record.text for record in learned(quick)] == [EXTRACTED]
        assert len(quick.records(kind="episode")) == 1


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
