"""Rounds of workers for everyone: they look at what was touched, and miss nothing of what is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from embedders import letters
from holdfast import InvalidInput, Learning, Limit, Memory
from holdfast.store import postgres, sqlite
from learning_scripts import TEXT, Clock, Model, failing, finding, hold
from soak import cases


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the statements that are run."""
    counts = Counter[str]()

    def counting(run: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **values: Any) -> Any:
            counts["statements"] += 1
            return run(*args, **values)

        return count

    for connection in (sqlite._Connection, postgres._Connection):
        monkeypatch.setattr(connection, "all", counting(connection.all))
    return counts


def settle(app: Memory, **options: Any) -> None:
    """Run rounds until one does nothing."""
    while not app.learning.work(everyone=True, **options).noop:
        pass


def test_a_round_reads_what_was_touched(memory: Memory, ran: Counter[str], clock: Clock) -> None:
    costs = set()
    for users in (5, 45):
        for number in range(users):
            memory.scoped(user=f"user {number}").chat("c").append(role="user", content="I like tea.")
        settle(memory)
        clock.move(hours=2)
        settle(memory)
        ran.clear()
        assert memory.learning.work(everyone=True).why == "Nothing is due."
        idle = ran.total()
        assert memory.scoped(user="user 3").chat("c").append(role="user", content="And coffee.").seq
        ran.clear()
        assert memory.learning.work(everyone=True).noop
        costs.add((idle, ran.total()))
        clock.move(minutes=31)
        assert len(memory.learning.work(everyone=True).done) == 2, "the chat has ended"
        settle(memory)
    ((idle, touched),) = costs
    assert idle <= 5
    assert touched <= 45


def killed(_: str) -> object:
    raise KeyboardInterrupt


def round_of(answer: Callable[[str], object] | None, **options: Any) -> Callable[[Memory], object]:
    """Return an act of a worker that may die of an answer."""

    def work(user: Memory) -> None:
        llm = None if answer is None else Model({"observe": answer, "reflect": answer, "episode": answer})
        try:
            user.learning.work(everyone=True, llm=llm, **options)
        except KeyboardInterrupt:
            assert answer is killed

    return work


def retry(user: Memory) -> None:
    for job in user.learning.jobs()[:1]:
        user.learning.retry_job(job.id)


def undo(user: Memory) -> None:
    with suppress(InvalidInput):  # there may be nothing to undo
        user.undo(by="user")


def forget(user: Memory) -> None:
    for chat in user.chats(archived=None)[:1]:
        user.erase(chat=chat.id)


def turn(user: Memory) -> None:
    for chat in user.chats(archived=None)[:1]:
        user.chat(chat.id).archive(archived=not chat.archived)


ACTS: dict[str, Callable[[Memory], object]] = {
    "say": lambda user: user.chat("b").append(role="user", content=TEXT),
    "hold": lambda user: hold(user.scoped(agent="coach"), "a"),
    "end": lambda user: hold(user).end(),
    "know": lambda user: user.remember(f"The shop opens at {user.version()} in the morning.", merge=False),
    "undo": undo,
    "extract": lambda user: user.learning.extract(TEXT, llm=Model({"observe": failing})),
    "compact": lambda user: [user.chat(one.id).compact(full=True, budget=10) for one in user.chats()],
    "retry": retry,
    "turn": turn,
    "forget": forget,
    "works": round_of(lambda _: {}),
    "fails": round_of(failing),
    "dies": round_of(killed),
    "works alone": round_of(None),
    "works a little": round_of(None, limit=1),
}
STEPS = st.tuples(st.sampled_from(sorted(ACTS)), st.sampled_from("ab"), st.sampled_from([0, 1, 20, 61, 1500]))


def check(app: Memory, clock: Clock) -> None:
    """See to it that after rounds nothing is due that a walk over all spaces would find."""
    for minutes in (0, 31, 61, 1441):
        clock.move(minutes=minutes)
        for worker in (app, app.scoped(agent="coach")):
            for llm in (None, finding()):
                settle(worker, llm=llm)
                assert worker.learning.work(everyone=True, llm=llm, dry_run=True).noop


@pytest.mark.slow
@settings(max_examples=cases(8, 300))
@example([("end", "a", 0), ("works alone", "a", 0), ("forget", "a", 0), ("undo", "a", 0)])
@given(st.lists(STEPS, min_size=3, max_size=12))
def test_rounds_miss_nothing(steps: Sequence[tuple[str, str, int]]) -> None:
    clock, learning = Clock(), Learning(limits={"observe": Limit(calls=2)})
    with Memory(
        ":memory:", admin=True, clock=clock, learning=learning, embed=letters, guard=lambda _: False
    ) as app:
        for act, user, minutes in steps:
            ACTS[act](app.scoped(user=user))
            clock.move(minutes=minutes)
        check(app, clock)


def test_rounds_beside_appends_miss_nothing(memory: Memory, clock: Clock) -> None:
    def talk(number: int) -> None:
        for turn in range(12):
            memory.scoped(user=f"user {turn % 3}").chat(f"{number}").append(role="user", content=TEXT)

    with ThreadPoolExecutor(4) as pool:
        talks = [pool.submit(talk, number) for number in range(3)]
        while not all(each.done() for each in talks):
            memory.learning.work(everyone=True)
    check(memory, clock)
    for user in range(3):
        done = memory.scoped(user=f"user {user}").learning.jobs(status="done")
        assert {job.chat for job in done if job.kind == "episode"} == {"0", "1", "2"}


def test_an_erased_user_is_on_no_agenda(memory: Memory) -> None:
    hold(memory.scoped(user="bob")).end()
    memory.learning.work(everyone=True)
    memory.scoped(user="bob").chat("c").append(role="user", content=TEXT)
    memory.erase(user="bob")
    rows = memory._runtime.database.all("SELECT space, worker FROM agenda")
    assert rows
    assert "bob" not in repr(rows)
