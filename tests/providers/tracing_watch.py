"""Providers to trace, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from holdfast import ChatStats, Memory, Message, Window
from holdfast.contract import Provider, Session
from holdfast.providers.tracing import Operation, traced

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
