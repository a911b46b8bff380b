"""Trace the operations of a memory: a span of OpenTelemetry, an event, or both, for each.

`traced` wraps any provider of the contract. Spans have the names and attributes of OpenTelemetry's
conventions for memories (`gen_ai.memory.…`) where one fits, and names of our own (`holdfast.…`) for the rest.
Neither spans nor events contain texts of messages, records or queries, unless `content=True`.
"""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, TypeVar, cast

from holdfast.contract import check_provider
from holdfast.errors import InvalidInput
from holdfast.providers.tracing.spans import Observer, Operation, Reporter, tracer_of_the_process
from holdfast.providers.tracing.wrapping import HandleContext, unwrap, wrap

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from holdfast.contract import Provider

__all__ = ["Observer", "Operation", "traced", "unwrap"]

P = TypeVar("P", bound="Provider")


def traced(
    provider: P, *, on_event: Observer | None = None, content: bool = False, tracer: Tracer | None = None
) -> P:
    """Return a wrapper of a provider that reports each operation as a span, an event, or both.

    So do the chats, views and runs that it opens, the awaited methods of `Memory.aio`, and the tools made
    from it; reads and writes of scratchpads are not reported. The wrapper has the capabilities of the
    provider, and returns and raises the same. `unwrap` returns the provider, where a `Memory` itself is
    needed. The names of tenants, users, agents and chats are reported in any case: choose names without
    personal data.

    Args:
        provider: any provider of the contract.
        on_event: is called after each operation, in its thread and within its span. An error that it raises
            is logged, and nothing else changes.
        content: whether spans and events contain queries and the beginnings of results, which may be
            personal data.
        tracer: that of your own tracer provider; the one of the process by default.

    Raises:
        InvalidInput: `provider` is no provider, or `on_event` is no synchronous function.
        MissingExtra: there is no `on_event`, and OpenTelemetry is not installed.

    """
    check_provider(provider)
    if on_event is not None and (iscoroutinefunction(on_event) or not callable(on_event)):
        raise InvalidInput(
            f"`on_event` cannot be called: {on_event!r}.", "Pass a synchronous function of one operation."
        )
    reporter = Reporter(tracer or tracer_of_the_process(needed=on_event is None), on_event, content=content)
    return cast("P", wrap(provider, HandleContext(reporter, provider.name)))
