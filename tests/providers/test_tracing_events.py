"""Events of tracing, tracing without OpenTelemetry, and all else that is opened."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any

import pytest
import tracing_watch
from tracing_watch import Watched

from holdfast import InvalidInput, Memory, Message, MissingExtra
from holdfast.providers.tracing import Operation, traced
from programs import run

real, watched = tracing_watch.real, tracing_watch.watched

# Events


def test_an_event_tells_of_an_operation(watched: Watched, real: Memory) -> None:
    wrapped = traced(real, on_event=watched.events.append)
    chat = wrapped.chat("a")
    chat.append([Message("user", "Berlin"), Message("assistant", "Yes.")])
    wrapped.remember("Runs", chat="a")
    appended, remembered = watched.events
    assert (appended.name, appended.provider, appended.store, appended.agent) == (
        "append",
        "holdfast",
        "/ada",
        "coach",
    )
    assert (appended.chat, remembered.chat) == ("a", "a")
    assert appended.counts == {"results": 2, "tokens": chat.stats().stored_tokens}
    assert appended.seconds > 0
    assert remembered.record == real.records()[0].id
    assert (appended.error, appended.query, appended.texts) == ("", "", ())
    assert hash(appended) == hash(appended)


def test_events_count_what_came_of_an_operation(watched: Watched, real: Memory) -> None:
    wrapped = watched.watch(real)
    chat = wrapped.chat("a")
    chat.append([Message("user", f"Word {number}. " * 20) for number in range(60)])
    done = chat.compact(full=True, budget=1_000)
    chat.prompt(1_000, "word")
    wrapped.learning.work()
    counts = {event.name: dict(event.counts) for event in watched.events}
    assert counts["compact"] == {
        "messages": done.messages,
        "summaries": len(done.summaries),
        "tokens_before": done.tokens_before,
        "tokens_after": done.tokens_after,
        "calls": 0,
    }
    assert {"hits", "tokens", "messages"} <= counts["prompt"].keys()
    assert counts["work"] == {"results": 0, "jobs": 0, "calls": 0}


def test_a_callback_that_raises_disturbs_nothing(
    watched: Watched, real: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Operation) -> None:
        raise RuntimeError("no")

    wrapped = traced(real, on_event=broken, tracer=watched.tracer)
    with caplog.at_level(logging.ERROR, "holdfast"):
        assert wrapped.recall("Berlin") == []
        with pytest.raises(InvalidInput):
            wrapped.recall("?")
        with pytest.raises(InvalidInput, match="control character"):
            wrapped.get("zebra\0")
    assert [record.name for record in caplog.records] == ["holdfast"] * 3
    assert "zebra" not in caplog.text
    assert len(watched.spans) == 3


def test_what_cannot_be_called_is_an_error(real: Memory) -> None:
    async def hear(_: Operation) -> None: ...

    wrong: list[Any] = ["print", 3, hear]
    for callback in wrong:
        with pytest.raises(InvalidInput, match="cannot be called"):
            traced(real, on_event=callback)


# Without OpenTelemetry


def test_without_opentelemetry_there_are_events_and_no_spans(
    real: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)  # so that importing it fails
    with pytest.raises(MissingExtra, match=r"\[otel\]"):
        traced(real)
    events: list[Operation] = []
    wrapped = traced(real, on_event=events.append)
    wrapped.recall("Berlin")
    with pytest.raises(InvalidInput):
        wrapped.recall("?")
    assert [(event.name, event.error != "") for event in events] == [("recall", False), ("recall", True)]


def test_opentelemetry_is_imported_by_those_who_want_spans() -> None:
    loaded = "import json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    use = (
        "from holdfast.providers.null import NullMemory; from holdfast.providers.tracing import traced;"
        "traced(NullMemory(), on_event=print, tracer=None)"
    )
    heavy = {"opentelemetry", "numpy", "asyncio"}
    assert heavy.isdisjoint(json.loads(run(f"import holdfast.providers.tracing; {loaded}")))
    assert "opentelemetry" in json.loads(run(f"{use}; {loaded}"))


def test_without_a_tracer_of_ones_own_that_of_the_process_is_used(real: Memory) -> None:
    assert traced(real).recall("Berlin") == []  # none is set up, so nothing is recorded


# What else is opened


def test_all_that_is_opened_is_traced(watched: Watched, real: Memory) -> None:
    wrapped = watched.watch(real)
    other = wrapped.scoped(user="bob", agent="")
    other.chat("b").append(role="user", content="Vienna")
    wrapped.at(0).recall("Berlin")
    with wrapped.chat("a").run() as begun:
        begun.remember("Step one")
        begun.chat.stats()
        assert "Step one" in wrapped.chat("a").prompt().system
    told = [(event.name, event.store, event.agent, event.chat) for event in watched.events]
    assert told == [
        ("append", "/bob", "", "b"),
        ("at", "/ada", "coach", ""),
        ("recall", "/ada", "coach", ""),
        ("run", "/ada", "coach", "a"),
        ("remember", "/ada", "coach", "a"),
        ("stats", "/ada", "coach", "a"),
        ("prompt", "/ada", "coach", "a"),
    ]


def test_what_an_agent_does_with_its_tools_is_told(watched: Watched, real: Memory) -> None:
    wrapped = watched.watch(watched.watch(real))
    (recall,) = wrapped.tools(wrapped.chat("a"), allow=["recall"])
    assert recall({"query": "Berlin"}).ok

    async def use() -> None:
        (remember,) = wrapped.aio.tools(wrapped.aio.chat("a"), allow=["remember"])
        assert (await remember({"text": "Runs in Berlin"})).ok

    asyncio.run(use())
    assert [record.chat for record in real.records()] == ["a"]
    assert (watched.told().count("recall"), watched.told().count("remember")) == (2, 2)
    assert {event.provider for event in watched.events} == {"holdfast"}


def test_what_is_awaited_is_traced(watched: Watched, real: Memory) -> None:
    async def use() -> None:
        memory = watched.watch(real).aio
        chat = memory.chat("a")
        await chat.append(role="user", content="Berlin")
        assert await memory.recall("Berlin") == real.recall("Berlin")
        assert await (await memory.at(0)).records() == []
        with pytest.raises(InvalidInput):
            await memory.recall("?")
        async with chat.run() as begun:
            await begun.remember("Step one")

    asyncio.run(use())
    assert watched.told() == ["append", "recall", "at", "records", "recall", "run", "remember"]
    assert [event.chat for event in watched.events if event.chat] == ["a", "a", "a"]
    assert len(watched.spans) == len(watched.events)
    assert watched.events[4].error
    assert all(span.parent is None for span in watched.spans)
