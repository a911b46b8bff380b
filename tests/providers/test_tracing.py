"""Tracing: spans and events for each operation, with the same capabilities, results and errors as without."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

import pytest
import tracing_watch
from opentelemetry.trace import SpanKind, StatusCode
from tracing_watch import Core, Watched, attributes

from holdfast import Closed, InvalidInput, Memory, Message
from holdfast.contract import Provider, capabilities
from holdfast.providers.null import NullMemory
from holdfast.providers.tracing import unwrap

real, watched = tracing_watch.real, tracing_watch.watched

# Nothing is added, nothing hidden


@pytest.mark.parametrize("make", [Core, NullMemory, lambda: Memory(":memory:")])
def test_it_can_do_what_the_provider_can_do(make: Callable[[], Provider], watched: Watched) -> None:
    provider = make()
    assert capabilities(watched.watch(provider)) == capabilities(provider)
    provider.close()


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
    wrapped, core = watched.watch(real), Core()
    assert (wrapped.name, wrapped.scope) == (real.name, real.scope)
    assert wrapped.scratchpad == real.scratchpad
    assert repr(wrapped) == f"traced({real!r})"
    assert dir(wrapped) == dir(real)
    assert wrapped.recall.__doc__ == Memory.recall.__doc__
    assert unwrap(copy.copy(wrapped)) is real
    other = watched.watch(core)
    other.closed = True
    assert (core.closed, other.closed, other._secret) == (True, True, "mine")


def test_a_provider_is_entered_and_closed_by_its_block(watched: Watched) -> None:
    class Entered(Core):
        def __enter__(self) -> str:
            return "a connection"

        def __exit__(self, *_: object) -> None:
            self.close()

    provider = Entered()
    with watched.watch(provider) as entered:
        assert entered == "a connection"
    assert provider.closed
    with watched.watch(Memory(":memory:")) as wrapped:
        wrapped.chat("a").append(role="user", content="Berlin")
    with pytest.raises(Closed):
        wrapped.chats()
    assert watched.told() == ["append", "chats"]


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
    watched.watch(Core()).chat("a").append([Message("user", "Berlin")])
    event = watched.events[-1]
    assert (event.provider, event.store, event.agent, event.chat) == ("core", "", "", "a")
    assert "gen_ai.memory.store.id" not in attributes(watched.span())


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


def test_what_cannot_be_encoded_is_told_in_another_way_and_long_texts_are_cut(
    watched: Watched, real: Memory
) -> None:
    wrapped = watched.watch(real, content=True)
    wrapped.recall("zebra \ud800")
    with pytest.raises(InvalidInput):
        wrapped.remember("zebra", chat="\ud800" * 1_000)
    told = repr(watched.events) + "".join(span.to_json() for span in watched.spans)
    assert told.encode("utf-8")
    assert len(watched.events[-1].chat) <= 512
    wrapped.chat("a").append(role="user", content="word " * 1_000)
    assert [len(text) for text in watched.events[-1].texts] == [300]
