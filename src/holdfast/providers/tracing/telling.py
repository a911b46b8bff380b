"""Telling of operations: as spans of OpenTelemetry, and to a callback."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from holdfast.errors import MissingExtra
from holdfast.providers.tracing.operation import Observer, Operation, counts, remembered, texts
from holdfast.types import Record

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

# The conventions of OpenTelemetry for memories, which are in no package yet.
OPERATION = "gen_ai.operation.name"
STORE_ID = "gen_ai.memory.store.id"
RECORD_ID = "gen_ai.memory.record.id"
RECORD_COUNT = "gen_ai.memory.record.count"
QUERY_TEXT = "gen_ai.memory.query.text"
RECORDS = "gen_ai.memory.records"
ERROR_TYPE = "error.type"
# Our own, for what those have no names for.
METHOD = "holdfast.operation"
PROVIDER = "holdfast.provider"
CHAT = "holdfast.chat"
AGENT = "holdfast.agent"
COUNT = "holdfast.count."
TEXTS = "holdfast.texts"

_CONVENTIONAL = {
    "recall": "search_memory",
    "search": "search_memory",
    "episodes": "search_memory",
    "remember": "upsert_memory",
    "replace": "update_memory",
    "rollback": "update_memory",
    "undo": "update_memory",
    "release": "update_memory",
    "retract": "delete_memory",
    "discard": "delete_memory",
    "retract_all": "delete_memory",
    "erase": "delete_memory",
}


class Telling:
    """Whom operations are told to, and how much."""

    def __init__(self, tracer: Tracer | None, on_event: Observer | None, *, content: bool) -> None:
        self._tracer = tracer
        self._on_event = on_event
        self.content = content

    @contextmanager
    def operation(self, began: Operation) -> Iterator[Callable[[object], None]]:
        """Report what is done in a block; what it returns or raises goes through."""
        given: list[object] = []
        raised: BaseException | None = None
        start = perf_counter()
        with self._span(began) as span:
            try:
                yield given.append
            except BaseException as error:
                raised = error
                raise
            finally:
                began = replace(began, seconds=perf_counter() - start)
                self._tell(span, began, given[0] if given else None, raised)

    def _tell(
        self, span: Span | None, operation: Operation, result: object, raised: BaseException | None
    ) -> None:
        """Report an operation that has ended. Errors in doing so are logged only."""
        try:
            ended = self._ended(operation, result, raised)
            if span is not None and span.is_recording():
                self._describe(span, ended, result, raised)
            if self._on_event is not None:
                self._on_event(ended)
        except Exception as error:
            _part(error, raised)
            logging.getLogger("holdfast").exception("Telling of the operation %r raised.", operation.name)

    def _span(self, operation: Operation) -> AbstractContextManager[Span | None]:
        if self._tracer is None:
            return nullcontext()
        return self._tracer.start_as_current_span(
            _CONVENTIONAL.get(operation.name, f"holdfast.{operation.name}"),
            attributes=_before(operation),
            record_exception=False,  # its words are content
            set_status_on_exception=False,
        )

    def _ended(self, operation: Operation, result: object, raised: BaseException | None) -> Operation:
        return replace(
            operation,
            error="" if raised is None else _error_type(raised),
            counts=counts(result),
            record=result.id if isinstance(result, Record) else "",
            texts=texts(result) if self.content else (),
        )

    def _describe(
        self, span: Span, operation: Operation, result: object, raised: BaseException | None
    ) -> None:
        span.set_attributes(_after(operation))
        if self.content and operation.name in _CONVENTIONAL:
            span.set_attribute(RECORDS, json.dumps(remembered(result), ensure_ascii=False))
        if raised is not None:
            # There is a span, so it is installed.
            from opentelemetry.trace import StatusCode

            span.set_status(StatusCode.ERROR)
            if self.content:
                span.record_exception(raised)


def _before(operation: Operation) -> dict[str, str]:
    """Return the attributes that a span begins with, by which it may be left out."""
    attributes = {
        OPERATION: _CONVENTIONAL.get(operation.name, ""),
        METHOD: operation.name,
        PROVIDER: operation.provider,
        STORE_ID: operation.store,
        AGENT: operation.agent,
        CHAT: operation.chat,
        QUERY_TEXT: operation.query,
    }
    return {name: value for name, value in attributes.items() if value}


def _after(operation: Operation) -> dict[str, str | int | Sequence[str]]:
    """Return the attributes that a span has at its end only."""
    attributes: dict[str, str | int | Sequence[str]] = {
        f"{COUNT}{name}": number for name, number in operation.counts.items()
    }
    if operation.name in _CONVENTIONAL and "results" in operation.counts:
        attributes[RECORD_COUNT] = operation.counts["results"]
    named = {RECORD_ID: operation.record, ERROR_TYPE: operation.error, TEXTS: operation.texts}
    return {**attributes, **{name: value for name, value in named.items() if value}}


def _part(error: BaseException, raised: BaseException | None) -> None:
    """Part an error from the one that an operation raised before it, whose words are content: a log would show both."""
    while error.__context__ is not None and error.__context__ is not raised:
        error = error.__context__
    error.__context__ = None


def _error_type(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def tracer_of_the_process(*, needed: bool) -> Tracer | None:
    """Return the tracer of the process; None where OpenTelemetry is not installed, if it is not needed.

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
