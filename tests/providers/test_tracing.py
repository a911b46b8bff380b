"""Tracing: spans and events for each operation, with the same capabilities, results and errors as without."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, Tracer, get_current_span

from fake_provider import FakeProvider
from holdfast import ChatStats, InvalidInput, Memory, Message, MissingExtra, Window
from holdfast.contract import METHODS, Provider, Session, capabilities
from holdfast.providers.null import NullMemory
from holdfast.providers.tracing import Operation, traced, unwrap
from holdfast.testing import MinimalProvider, check
from programs import run

P = TypeVar("P", bound=Provider)


class Plain:
    """A chat with the core only."""

    def __init__(self, id: str) -> None:
        self.id = id
        self._messages: list[Message] = []

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        self._messages += messages
        return list(messages)

    def window(self, budget: int = 8_000, *, tail: int | None = None) -> Window:
        return Window(tuple(self._messages), (), 0, budget, ())

    def stats(self) -> ChatStats:
        return ChatStats(len(self._messages))


class Core:
    """A provider with the core only; it remembers a secret, and is closed at most once."""

    name = "core"

    def __init__(self) -> None:
        self.closed = False
        self._secret = "mine"

    def chat(self, id: str, /) -> Session:
        return Plain(id)

    def close(self) -> None:
        self.closed = True


class Watched:
    """Collect what is told: the finished spans, and the events."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer: Tracer = provider.get_tracer("test")
        self.events: list[Operation] = []

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def span(self) -> ReadableSpan:
        return self.spans[-1]

    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def told(self) -> list[str]:
        return [event.name for event in self.events]

    def watch(self, provider: P, *, content: bool = False) -> P:
        return traced(provider, on_event=self.events.append, content=content, tracer=self.tracer)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def real() -> Iterator[Memory]:
    with Memory(":memory:", user="ada", admin=True, agent="coach") as memory:
        yield memory


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


# Nothing is added, nothing hidden


@pytest.mark.parametrize("make", [Core, NullMemory, lambda: Memory(":memory:")])
def test_it_can_do_what_the_provider_can_do(make: Callable[[], Provider], watched: Watched) -> None:
    provider = make()
    assert capabilities(watched.watch(provider)) == capabilities(provider)
    provider.close()


@pytest.mark.parametrize("name", sorted({name for methods in METHODS.values() for name in methods.provider}))
def test_a_method_that_was_taken_back_stays_away(name: str, watched: Watched) -> None:
    provider = type("Without", (NullMemory,), {name: None})()
    wrapped = watched.watch(provider)
    assert capabilities(wrapped) == capabilities(provider) != capabilities(NullMemory())
    assert getattr(wrapped, name) is None


@pytest.mark.parametrize("make", [MinimalProvider, FakeProvider])
def test_it_conforms_as_the_provider_does(make: Callable[[], Provider], watched: Watched) -> None:
    with_spans = check(lambda: watched.watch(make()))
    assert str(with_spans) == str(check(make))
    assert watched.spans


def test_what_the_provider_has_not_the_wrapper_has_not(watched: Watched) -> None:
    wrapped = watched.watch(Core())
    with pytest.raises(AttributeError, match="recall"):
        wrapped.recall("Berlin")  # type: ignore[attr-defined]  # the test
    with pytest.raises(AttributeError):
        wrapped.chat("a").search("Berlin")  # type: ignore[attr-defined]  # the test
    with pytest.raises(TypeError), wrapped:  # type: ignore[attr-defined]  # the test
        pass
    assert watched.names() == []


def test_attributes_are_those_of_the_provider(watched: Watched, real: Memory) -> None:
    wrapped = watched.watch(real)
    assert (wrapped.name, wrapped.scope) == (real.name, real.scope)
    assert wrapped.scratchpad == real.scratchpad
    assert repr(wrapped) == f"traced({real!r})"
    assert dir(wrapped) == dir(real)
    assert wrapped.recall.__doc__ == Memory.recall.__doc__
    assert watched.watch(Core())._secret == "mine"
    assert unwrap(copy.copy(wrapped)) is real


def test_results_are_the_same(watched: Watched, real: Memory) -> None:
    wrapped = watched.watch(real)
    chat = wrapped.chat("a")
    stored = chat.append([{"role": "user", "content": "The marathon is in Berlin."}])
    record = wrapped.remember("Runs the Berlin marathon", chat="a")
    assert stored == real.chat("a").history()
    assert wrapped.get(record.id) == real.get(record.id) == record
    assert wrapped.recall("Berlin") == real.recall("Berlin") != []
    assert chat.window() == real.chat("a").window()
    assert chat == real.chat("a")
    assert real.chat("a") == chat


def test_attributes_are_set_on_the_provider(watched: Watched) -> None:
    provider = Core()
    wrapped = watched.watch(provider)
    wrapped.closed = True
    assert provider.closed
    assert wrapped.closed


def test_what_can_be_called_beside_other_things_stays_what_it_is(watched: Watched) -> None:
    class Client:
        def __call__(self, text: str) -> str:
            return text

        def url(self) -> str:
            return "https://example.org"

    class Remote(Core):
        client = Client()

    assert watched.watch(Remote()).client.url() == "https://example.org"


def test_odd_providers_can_do_what_they_can(watched: Watched) -> None:
    class Passing:
        def __init__(self) -> None:
            self.inner = FakeProvider()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    class Fixed(MinimalProvider):
        __slots__ = ()

        @classmethod
        def recall(cls, query: str, *, limit: int = 10) -> list[str]:
            return [query][:limit]

        @property
        def work(self) -> Callable[[], int]:
            return lambda: 1

    passing, fixed = watched.watch(Passing()), watched.watch(Fixed())
    assert capabilities(passing) == capabilities(FakeProvider())
    assert capabilities(fixed) == capabilities(Fixed()) == {"recall"}
    assert (passing.recall("Berlin"), fixed.recall("Berlin"), fixed.work()) == ([], ["Berlin"], 1)
    assert watched.told() == ["recall", "recall", "work"]


def test_leaving_the_block_closes_the_provider(watched: Watched) -> None:
    with watched.watch(Memory(":memory:")) as wrapped:
        wrapped.chat("a").append(role="user", content="Berlin")
    with pytest.raises(Exception, match="closed"):
        wrapped.chats()
    assert watched.names() == ["holdfast.append", "holdfast.chats"]


def test_a_provider_may_be_entered_in_both_ways(watched: Watched) -> None:
    class Entered(Core):
        def __enter__(self) -> str:
            return "a connection"

        def __exit__(self, *_: object) -> None:
            self.close()

        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *_: object) -> None:
            self.close()

    provider = Entered()
    wrapped = watched.watch(provider)
    with wrapped as entered:
        assert entered == "a connection"
    assert provider.closed

    async def use() -> None:
        async with wrapped as awaited:
            assert awaited is wrapped

    asyncio.run(use())


# Unwrapping


def test_unwrapping_gives_the_innermost(watched: Watched, real: Memory) -> None:
    twice = watched.watch(watched.watch(real))
    assert unwrap(twice) is real
    assert unwrap(real) is real
    chat = real.chat("a")
    assert unwrap(chat) is chat
    twice.recall("Berlin")
    assert watched.told() == ["recall", "recall"]


# Spans


def test_a_search_is_a_span_of_the_conventions(watched: Watched, real: Memory) -> None:
    real.remember("Runs the Berlin marathon")
    watched.watch(real).recall("Berlin")
    span = watched.span()
    assert (span.name, span.kind) == ("search_memory", SpanKind.INTERNAL)
    assert attributes(span) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.store.id": "/ada",
        "gen_ai.memory.record.count": 1,
        "holdfast.operation": "recall",
        "holdfast.provider": "holdfast",
        "holdfast.agent": "coach",
        "holdfast.count.results": 1,
    }
    assert span.status.status_code is StatusCode.UNSET


def test_writes_are_spans_of_the_conventions(watched: Watched, real: Memory) -> None:
    wrapped = watched.watch(real)
    record = wrapped.remember("Runs the Berlin marathon")
    wrapped.replace(record.id, "Runs the Vienna marathon")
    wrapped.retract(record.id)
    wrapped.remember("No runs on Mondays", "constraint", by="user")
    wrapped.retract_all(kind="fact")
    assert watched.names() == [
        "upsert_memory",
        "update_memory",
        "delete_memory",
        "upsert_memory",
        "delete_memory",
    ]
    assert [attributes(span).get("gen_ai.memory.record.id") for span in watched.spans][:3] == [record.id] * 3
    assert [attributes(span)["gen_ai.memory.record.count"] for span in watched.spans] == [1, 1, 1, 1, 0]


def test_what_has_no_name_there_has_one_of_ours(watched: Watched, real: Memory) -> None:
    chat = watched.watch(real).chat("a")
    chat.append(role="user", content="Berlin")
    chat.window(100)
    assert watched.names() == ["holdfast.append", "holdfast.window"]
    found = attributes(watched.span())
    assert "gen_ai.operation.name" not in found
    assert (found["holdfast.chat"], found["holdfast.count.messages"]) == ("a", 1)


def test_an_error_goes_through_and_is_marked(watched: Watched, real: Memory) -> None:
    wrapped = watched.watch(real)
    with pytest.raises(InvalidInput) as raised:
        wrapped.recall("?")
    with pytest.raises(InvalidInput) as expected:
        real.recall("?")
    assert str(raised.value) == str(expected.value)
    span = watched.span()
    assert attributes(span)["error.type"] == "holdfast.errors.InvalidInput"
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert watched.events[-1].error == "holdfast.errors.InvalidInput"


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, ValueError])
def test_any_error_is_marked(error: type[BaseException], watched: Watched) -> None:
    class Broken(Core):
        def close(self) -> None:
            raise error

    with pytest.raises(error):
        watched.watch(Broken()).close()
    assert str(attributes(watched.span())["error.type"]).endswith(error.__name__)


def test_what_happens_within_is_a_child(watched: Watched) -> None:
    class Asking(Core):
        def close(self) -> None:
            watched.tracer.start_span("model").end()

    watched.watch(Asking()).close()
    model, closed = watched.spans
    assert (model.name, closed.name) == ("model", "holdfast.close")
    assert (model.parent, closed.parent) == (closed.get_span_context(), None)


def test_content_is_in_no_span_unless_it_is_asked_for(watched: Watched, real: Memory) -> None:
    use_words(watched.watch(real))
    assert "zebra" not in "".join(span.to_json() for span in watched.spans)
    assert not any("zebra" in repr(event) for event in watched.events)


def test_content_is_there_when_it_is_asked_for(watched: Watched, real: Memory) -> None:
    use_words(watched.watch(real, content=True))
    by_method = {str(attributes(span)["holdfast.operation"]): span for span in watched.spans}
    recalled = attributes(by_method["recall"])
    assert recalled["gen_ai.memory.query.text"] == "the zebra?"
    records = json.loads(str(recalled["gen_ai.memory.records"]))
    assert {one["content"] for one in records} == {"A zebra spoke.", "She likes the zebra"}
    assert attributes(by_method["append"])["holdfast.texts"] == ("A zebra spoke.",)
    assert attributes(by_method["prompt"])["gen_ai.memory.query.text"] == "zebra"
    assert [event.name for event in by_method["replace"].events] == ["exception"]
    said = {event.name: event for event in watched.events}
    assert said["remember"].texts == ("She likes the zebra",)
    assert said["recall"].query == "the zebra?"


def use_words(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(role="user", content="A zebra spoke.")
    memory.remember("She likes the zebra", chat="a")
    memory.recall("the zebra?")
    chat.search("zebra")
    chat.prompt(1_000, "zebra")
    with pytest.raises(InvalidInput):
        memory.replace("zebra zebra", "x")
    with pytest.raises(InvalidInput):
        memory.get("zebra\0")


def test_what_cannot_be_encoded_is_told_in_another_way(watched: Watched, real: Memory) -> None:
    wrapped = watched.watch(real, content=True)
    wrapped.recall("zebra \ud800")
    with pytest.raises(InvalidInput):
        wrapped.remember("zebra", chat="\ud800" * 1_000)
    told = repr(watched.events) + "".join(span.to_json() for span in watched.spans)
    assert told.encode("utf-8")
    assert len(watched.events[-1].chat) <= 512


def test_long_texts_are_cut(watched: Watched, real: Memory) -> None:
    watched.watch(real, content=True).chat("a").append(role="user", content="word " * 1_000)
    assert [len(text) for text in watched.events[-1].texts] == [300]


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
    for number in range(60):
        chat.append(role="user" if number % 2 == 0 else "assistant", content=f"Word {number}. " * 20)
    done = chat.compact(full=True, budget=1_000)
    window = chat.window(1_000)
    chat.expand(window.summaries[0].id)
    chat.stats()
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
    assert counts["window"]["tokens"] == window.tokens
    assert counts["window"]["summaries"] == len(window.summaries)
    assert counts["stats"]["messages"] == 60
    assert sum(counts["expand"].values()) > 0
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


def test_a_callback_is_called_within_the_span(watched: Watched, real: Memory) -> None:
    seen: list[bool] = []
    wrapped = traced(
        real, on_event=lambda _: seen.append(get_current_span().is_recording()), tracer=watched.tracer
    )
    wrapped.version()
    assert seen == [True]


@pytest.mark.parametrize("callback", ["print", 3])
def test_what_cannot_be_called_is_an_error(callback: Any, real: Memory) -> None:
    with pytest.raises(InvalidInput, match="cannot be called"):
        traced(real, on_event=callback)


def test_an_asynchronous_callback_is_an_error(real: Memory) -> None:
    async def hear(_: Operation) -> None: ...

    with pytest.raises(InvalidInput, match="cannot be called"):
        traced(real, on_event=hear)


# Without OpenTelemetry


@pytest.fixture
def without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)  # so that importing it fails


@pytest.mark.usefixtures("without_opentelemetry")
def test_without_opentelemetry_and_a_callback_there_is_nothing_to_tell(real: Memory) -> None:
    with pytest.raises(MissingExtra, match=r"\[otel\]"):
        traced(real)


def test_opentelemetry_is_imported_by_those_who_want_spans() -> None:
    loaded = "import json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    use = (
        "from holdfast.providers.null import NullMemory; from holdfast.providers.tracing import traced;"
        "traced(NullMemory(), on_event=print, tracer=None)"
    )
    heavy = {"opentelemetry", "numpy", "asyncio"}
    assert heavy.isdisjoint(json.loads(run(f"import holdfast.providers.tracing; {loaded}")))
    assert "opentelemetry" in json.loads(run(f"{use}; {loaded}"))


@pytest.mark.usefixtures("without_opentelemetry")
def test_events_need_no_opentelemetry(real: Memory) -> None:
    events: list[Operation] = []
    wrapped = traced(real, on_event=events.append)
    wrapped.recall("Berlin")
    with pytest.raises(InvalidInput):
        wrapped.recall("?")
    assert [(event.name, event.error != "") for event in events] == [("recall", False), ("recall", True)]


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
    assert watched.told().count("recall") == 2
    assert {event.provider for event in watched.events} == {"holdfast"}


def test_what_an_agent_does_with_awaited_tools_is_told(watched: Watched, real: Memory) -> None:
    async def use() -> None:
        memory = watched.watch(watched.watch(real)).aio
        (remember,) = memory.tools(memory.chat("a"), allow=["remember"])
        assert (await remember({"text": "Runs in Berlin"})).ok

    asyncio.run(use())
    assert [record.chat for record in real.records()] == ["a"]
    assert watched.told().count("remember") == 2


def test_opening_tells_nothing(watched: Watched, real: Memory) -> None:
    wrapped = watched.watch(real)
    assert wrapped.scoped(user="bob").chat("a") != wrapped.chat("b")
    off = wrapped.on("learned", print)
    off()
    assert watched.events == []


def test_a_provider_without_scopes_has_no_store(watched: Watched) -> None:
    chat = watched.watch(Core()).chat("a")
    chat.append([Message("user", "Berlin")])
    event = watched.events[-1]
    assert (event.provider, event.store, event.agent, event.chat) == ("core", "", "", "a")
    assert "gen_ai.memory.store.id" not in attributes(watched.span())


def test_what_has_the_name_of_ours_may_mean_something_else(watched: Watched) -> None:
    class Runner(Plain):
        def run(self, text: str) -> str:
            return text.upper()

    class Running(Core):
        aio = "awaited"
        tools = ("hammer",)

        def chat(self, id: str, /) -> Runner:
            return Runner(id)

    wrapped = watched.watch(Running())
    assert (wrapped.aio, wrapped.tools) == ("awaited", ("hammer",))
    chat: Any = wrapped.chat("a")
    assert type(chat.run("hello")) is str
    assert watched.told() == ["run"]


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


def test_an_awaited_memory_is_closed_by_its_block(watched: Watched) -> None:
    async def use() -> None:
        async with watched.watch(Memory(":memory:")).aio as memory:
            assert await memory.version() == 0
        with pytest.raises(Exception, match="closed"):
            await memory.version()

    asyncio.run(use())


def test_spans_of_tasks_do_not_mix(watched: Watched, real: Memory) -> None:
    async def one(name: str) -> None:
        with watched.tracer.start_as_current_span(name):
            await watched.watch(real).aio.chat(name).append(role="user", content="Berlin")

    async def both() -> None:
        await asyncio.gather(one("a"), one("b"))

    asyncio.run(both())
    spans = {span.name: span for span in watched.spans if span.name in ("a", "b")}
    for span in watched.spans:
        if span.name == "holdfast.append":
            assert span.parent == spans[str(attributes(span)["holdfast.chat"])].get_span_context()
