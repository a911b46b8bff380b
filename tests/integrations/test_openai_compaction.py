"""Sessions of the OpenAI Agents SDK that several use at once, that the SDK compacts, and within a budget."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import openai_sessions
import pytest
from agents import Agent, Runner
from agents.testing import ScriptedModel
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai_sessions import QUIET, Item, add, answer, items, pop, said

from holdfast import Memory
from holdfast.integrations.openai_agents import HoldfastSession
from holdfast.port.texts import estimate_tokens
from soak import cases

session = openai_sessions.session

# Together


def test_no_item_is_given_to_two(shared_location: str) -> None:
    given_ = [said(f"item {n}") for n in range(24)]

    def work(number: int) -> list[Any]:
        with Memory(shared_location, user="ada") as memory:
            session = HoldfastSession(memory, "trip")
            return [pop(session) for _ in range(8)]

    with Memory(shared_location, user="ada") as memory:
        session = HoldfastSession(memory, "trip")
        add(session, *given_)
        with ThreadPoolExecutor(4) as threads:
            popped = [item for items_ in threads.map(work, range(4)) for item in items_]
        assert items(session) == []
    assert popped.count(None) == 8
    assert sorted(item["content"] for item in popped if item) == sorted(item["content"] for item in given_)


def test_who_is_cancelled_while_it_writes_ends_when_that_is_done(
    session: HoldfastSession, memory: Memory
) -> None:
    async def cancel_twice() -> None:
        with memory._runtime.database.writing() as another:
            another.lock(memory.scope.space)
            adding = asyncio.ensure_future(session.add_items(cast("Any", [said("a")])))
            for _ in range(2):
                await asyncio.sleep(0)
                adding.cancel()
            await asyncio.sleep(0)
            assert not adding.done()
        with pytest.raises(asyncio.CancelledError):
            await adding

    asyncio.run(cancel_twice())
    assert items(session) == [said("a")]


# Compacted by the SDK, whose own tests of that run in test_suites.py


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "pop", "compact", "clear"]), st.integers(1, 4)), max_size=14
)


@settings(max_examples=cases(10, 120))
@given(STEPS)
@example([("add", 3), ("compact", 2), ("pop", 1), ("pop", 1), ("add", 1), ("compact", 1), ("pop", 1)])
def test_a_compacted_session_behaves_as_a_list(steps: list[tuple[str, int]]) -> None:
    async def check() -> None:
        with Memory(":memory:") as memory:
            kept, wanted = HoldfastSession(memory, "trip"), list[Item]()
            for number, (step, count) in enumerate(steps):
                new = [said(f"{number}.{n}") for n in range(count)]
                if step == "add":
                    await kept.add_items(cast("Any", new))
                    wanted += new
                elif step == "clear":
                    await kept.clear_session()
                    wanted.clear()
                elif step == "pop":
                    popped = [await kept.pop_item() for _ in range(count)]
                    assert popped == [wanted.pop() if wanted else None for _ in range(count)]
                else:
                    snapshot = await kept._get_compaction_snapshot(count)
                    assert snapshot.items == wanted[-count:]
                    assert snapshot.complete == (len(wanted) <= count)
                    summary = [{"type": "compaction", "encrypted_content": str(number)}]
                    assert await snapshot.replace_suffix(0, cast("Any", summary)) == bool(wanted)
                    wanted[-count:] = summary if wanted else []
                assert await kept.get_items() == wanted
                assert await kept.get_items(2) == wanted[-2:]

    asyncio.run(check())


def test_of_two_who_replace_the_same_items_one_does(session: HoldfastSession) -> None:
    async def replacing() -> list[bool]:
        await session.add_items(cast("Any", [said("a"), said("b"), said("c")]))
        snapshots = [await session._get_compaction_snapshot(2) for _ in range(2)]
        return list(
            await asyncio.gather(*(one.replace_suffix(0, cast("Any", [said("bc")])) for one in snapshots))
        )

    assert sorted(asyncio.run(replacing())) == [False, True]
    assert items(session) == [said("a"), said("bc")]


# Within a budget


def test_within_a_budget_a_run_is_given_what_a_prompt_gives(memory: Memory) -> None:
    session = HoldfastSession(memory, "trip", budget=600)
    memory.remember("Ada is vegetarian.", kind="fact")
    add(session, said("The boat is called Kittiwake."), said("A good name.", "assistant"))
    for n in range(60):
        add(session, said(f"How is stage {n} of the way?"), said(f"Stage {n} is stony. " * 4, "assistant"))
    memory.chat("trip").compact(budget=600)
    add(session, said("What is the boat called?"))

    given_ = items(session)
    shown = [str(one["content"]) for one in given_]
    assert given_[0]["role"] == "system"
    assert "Ada is vegetarian." in shown[0]
    assert given_[-1] == said("What is the boat called?")
    assert "Kittiwake" in shown[-2]  # recalled, before the newest message of the user
    assert sum(map(estimate_tokens, shown)) <= 600
    window = [one for one in given_ if one in items(session, -1)]
    assert window[0]["role"] == "user"
    assert items(session, 3) == items(session, -1)[-3:]  # a limit counts items
    add(session, said("\N{THUMBS UP SIGN}"))  # nothing to recall
    assert "<summary " in str(items(session)[1]["content"])


def test_a_run_that_leaves_more_than_the_budget_compacts_the_chat(memory: Memory) -> None:
    long = [
        said(f"Stage {n} is stony, and its huts are shut until May. " * 4, "assistant") for n in range(40)
    ]
    for budget, compacted in ((None, False), (100_000, False), (1_500, True)):
        session = HoldfastSession(memory, f"trip {budget}", budget=budget)
        add(session, said("How is the way?"), *long)
        model = ScriptedModel(steps=[[answer("Stony.")]])
        asyncio.run(
            Runner.run(Agent(name="guide", model=model), "And now?", session=session, run_config=QUIET)
        )
        assert bool(memory.chat(f"trip {budget}").tree()) is compacted
        assert len(items(session, -1)) == 43
    assert "summary" in str(items(session)[:2])
