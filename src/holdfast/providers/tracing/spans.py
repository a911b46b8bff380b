"""Reports of operations: spans of OpenTelemetry, and events for a callback."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from holdfast.errors import MissingExtra
from holdfast.providers.tracing.operation import Observer, Operation, counts, remembered, texts
from holdfast.types import Record

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

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
