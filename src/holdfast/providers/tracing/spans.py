"""An operation as it is reported: its name, the counts of its result and, with content, its texts."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from inspect import signature
from time import perf_counter
from typing import TYPE_CHECKING, Any

from holdfast import Extraction, Ranking, WorkResult
from holdfast.errors import MissingExtra
from holdfast.port.texts import clean
from holdfast.types import ChatStats, CompactionResult, Expansion, Hit, Hits, Message, Prompt, Record, Window

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

# Characters of a text that are reported with content.
PREVIEW = 300


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its name, its object, its duration and its result.

    `name` is that of the method, such as "recall" or "append"; `provider` the name of the provider, `store`
    tenant and user, `agent` who acts, and `chat` the id of the chat, each "" where there is none. `error` is
    the type of the error that it raised, "" if none. `counts` are numbers of what it returned, such as
    "results", "messages" or "tokens"; `record` is the id of a single record. With content, `query` is the
    query, and `texts` are the beginnings of the texts that it returned.
    """

    name: str
    provider: str
    store: str = field(default="", kw_only=True)
    agent: str = field(default="", kw_only=True)
    chat: str = field(default="", kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)
    error: str = field(default="", kw_only=True)
    counts: Mapping[str, int] = field(default_factory=dict, kw_only=True, hash=False)
    record: str = field(default="", kw_only=True)
    query: str = field(default="", kw_only=True)
    texts: tuple[str, ...] = field(default=(), kw_only=True)


Observer = Callable[[Operation], object]
"""A callback for operations."""


def _list_counts(results: Sequence[object]) -> dict[str, int]:
    messages = [result for result in results if isinstance(result, Message)]
    tokens = {"tokens": sum(message.tokens for message in messages)} if messages else {}
    return {"results": len(results), **tokens}


def _window_counts(window: Window) -> dict[str, int]:
    left_out = sum(omission.messages for omission in window.omitted)
    parts = {"messages": len(window.messages), "summaries": len(window.summaries), "omitted": left_out}
    return {**parts, "shortened": len(window.shortened), "tokens": window.tokens}


_COUNTED: Mapping[type, Callable[[Any], dict[str, int]]] = {
    list: _list_counts,
    Hits: _list_counts,
    dict: lambda groups: {"results": sum(map(len, groups.values()))},
    Ranking: _list_counts,
    Record: lambda _: {"results": 1},
    Message: lambda message: {"results": 1, "tokens": message.tokens},
    Window: _window_counts,
    Prompt: lambda prompt: {
        **_window_counts(prompt.window),
        "hits": len(prompt.hits),
        "tokens": prompt.tokens["total"],
    },
    Expansion: lambda page: {"messages": len(page.messages), "summaries": len(page.children)},
    ChatStats: lambda stats: {"messages": stats.messages, "tokens": stats.stored_tokens},
    CompactionResult: lambda result: {
        "messages": result.messages,
        "summaries": len(result.summaries),
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "calls": result.calls,
    },
    Extraction: lambda result: {"results": len(result.records), "calls": result.calls},
    WorkResult: lambda result: {"results": len(result.records), "jobs": result.count, "calls": result.calls},
}
"""How results are counted, by type."""


def counts(result: object) -> dict[str, int]:
    """Return the counts of a result; {} for other types."""
    # Messages that were stored are a kind of list.
    count = next(filter(None, map(_COUNTED.get, type(result).__mro__)), None)
    return {} if count is None else count(result)


def _parts(result: object) -> list[object]:
    """Return the items of a result: those of a list, of all values of a dict, or the result itself."""
    if isinstance(result, dict):
        return [part for value in result.values() for part in _parts(value)]
    if isinstance(result, Sequence) and not isinstance(result, str):
        return list(result)
    return [result]


def _text(part: object) -> str | None:
    if isinstance(part, Record | Hit):
        return part.text
    if isinstance(part, Message):
        return part.content
    return part if isinstance(part, str) else None


def texts(result: object) -> tuple[str, ...]:
    """Return the beginnings of the texts of a result."""
    return tuple(text[:PREVIEW] for text in map(_text, _parts(result)) if text)


def remembered(result: object) -> list[dict[str, str]]:
    """Return records and hits in the format of the conventions."""
    known = [part for part in _parts(result) if isinstance(part, Record | Hit)]
    return [{"id": part.id, "content": part.text[:PREVIEW]} for part in known]


def query(method: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the query of a call; "" if it has none, or if its arguments are wrong."""
    try:
        text = signature(method).bind(*args, **kwargs).arguments.get("query")
    except (TypeError, ValueError):
        return ""
    return clean(text[:PREVIEW]) if isinstance(text, str) else ""


# Our operations, by their names in the conventions of OpenTelemetry for memories, which are in no package
# yet.
_CONVENTIONAL = {
    method: name
    for name, methods in {
        "search_memory": "recall search episodes",
        "upsert_memory": "remember",
        "update_memory": "replace rollback undo release",
        "delete_memory": "retract discard retract_all erase",
    }.items()
    for method in methods.split()
}


class Reporter:
    """Report operations as spans, to a callback, or both; their texts only with `content`."""

    def __init__(self, tracer: Tracer | None, on_event: Observer | None, *, content: bool) -> None:
        self._tracer = tracer
        self._on_event = on_event
        self.content = content

    @contextmanager
    def operation(self, operation: Operation) -> Iterator[Callable[[object], None]]:
        """Report what is done in a block, which passes its result to the callable, or raises."""
        results: list[object] = []
        raised: BaseException | None = None
        start = perf_counter()
        with self._span(operation) as span:
            try:
                yield results.append
            except BaseException as error:
                raised = error
                raise
            finally:
                done = replace(operation, seconds=perf_counter() - start)
                self._report(span, done, results[0] if results else None, raised)

    def _span(self, operation: Operation) -> AbstractContextManager[Span | None]:
        if self._tracer is None:
            return nullcontext()
        return self._tracer.start_as_current_span(
            _CONVENTIONAL.get(operation.name, f"holdfast.{operation.name}"),
            attributes=_attributes(operation),
            # Its words are content.
            record_exception=False,
            set_status_on_exception=False,
        )

    def _report(
        self, span: Span | None, operation: Operation, result: object, raised: BaseException | None
    ) -> None:
        """Report an operation that has ended. An error in doing so is logged only."""
        try:
            ended = replace(
                operation,
                error="" if raised is None else _error_type(raised),
                counts=counts(result),
                record=result.id if isinstance(result, Record) else "",
                texts=texts(result) if self.content else (),
            )
            if span is not None and span.is_recording():
                self._describe(span, ended, result, raised)
            if self._on_event is not None:
                self._on_event(ended)
        except Exception as error:
            _detach(error, raised)
            logging.getLogger("holdfast").exception("Reporting the operation %r failed.", operation.name)

    def _describe(
        self, span: Span, operation: Operation, result: object, raised: BaseException | None
    ) -> None:
        span.set_attributes(_result_attributes(operation))
        if self.content and operation.name in _CONVENTIONAL:
            span.set_attribute("gen_ai.memory.records", json.dumps(remembered(result), ensure_ascii=False))
        if raised is not None:
            # There is a span, so it is installed.
            from opentelemetry.trace import StatusCode

            span.set_status(StatusCode.ERROR)
            if self.content:
                span.record_exception(raised)


def _attributes(operation: Operation) -> dict[str, str]:
    """Return the attributes that a span begins with, by which a sampler may drop it."""
    attributes = {
        "gen_ai.operation.name": _CONVENTIONAL.get(operation.name, ""),
        "gen_ai.memory.store.id": operation.store,
        "gen_ai.memory.query.text": operation.query,
        "holdfast.operation": operation.name,
        "holdfast.provider": operation.provider,
        "holdfast.agent": operation.agent,
        "holdfast.chat": operation.chat,
    }
    return {name: value for name, value in attributes.items() if value}


def _result_attributes(operation: Operation) -> Mapping[str, str | int | Sequence[str]]:
    """Return the attributes that a span has at its end only."""
    numbers = {f"holdfast.count.{name}": number for name, number in operation.counts.items()}
    if operation.name in _CONVENTIONAL and "results" in operation.counts:
        numbers["gen_ai.memory.record.count"] = operation.counts["results"]
    named = {
        "gen_ai.memory.record.id": operation.record,
        "error.type": operation.error,
        "holdfast.texts": operation.texts,
    }
    return {**numbers, **{name: value for name, value in named.items() if value}}


def _detach(error: BaseException, raised: BaseException | None) -> None:
    """Remove the error of an operation from the context of a later one: a log would show its words."""
    while error.__context__ is not None and error.__context__ is not raised:
        error = error.__context__
    error.__context__ = None


def _error_type(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def tracer_of_the_process(*, needed: bool) -> Tracer | None:
    """Return the tracer of the process; None where OpenTelemetry is neither installed nor needed.

    Raises:
        MissingExtra: it is needed and not installed.

    """
    try:
        # The only place that needs it.
        from opentelemetry.trace import get_tracer
    except ImportError as error:
        if not needed:
            return None
        raise MissingExtra.of("otel", ", or pass on_event=") from error
    return get_tracer("holdfast")
