"""Watch what a memory is asked to do: a span of OpenTelemetry, an event, or both, for each operation.

`traced` wraps any provider of the contract. Spans have the names and attributes of OpenTelemetry's
conventions for memories (`gen_ai.memory.…`) where they have one that fits, and names of our own
(`holdfast.…`) for the rest. What was said, remembered or asked for is in neither, unless `content=True`.
"""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, TypeVar, cast

from holdfast.contract import check_provider
from holdfast.errors import InvalidInput
from holdfast.providers.tracing.operation import Observer, Operation
from holdfast.providers.tracing.telling import Telling, tracer_of_the_process
from holdfast.providers.tracing.wrapping import Place, unwrap, wrap

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from holdfast.contract import Provider

__all__ = ["Observer", "Operation", "traced", "unwrap"]

P = TypeVar("P", bound="Provider")


def traced(
    provider: P, *, on_event: Observer | None = None, content: bool = False, tracer: Tracer | None = None
) -> P:
    """Wrap a provider so that each operation of it, of its chats and of what else it opens is a span, an event, or both.

    It can do what the provider can do, no more and no less, and what it gives and raises is the same. The
    awaited methods of `Memory.aio` are traced as well, and the tools made from it; reads and writes of pads
    are not. `unwrap` gives the provider back, for what wants a `Memory` itself. Names that you chose, of
    tenants, users, agents and chats, are told in any case: let them say nothing personal.

    Args:
        provider: any provider of the contract.
        on_event: is called after each operation, on the thread that did it and within its span. If it raises,
            that is logged, and nothing else is disturbed.
        content: whether spans and events tell what was asked for and what was given; not, by default, as it
            may be personal.
        tracer: that of your own tracer provider; the one of the process by default.

    Raises:
        InvalidInput: it is no provider, or `on_event` cannot be called by who works.
        MissingExtra: neither is OpenTelemetry installed, nor an `on_event` given.

    """
    check_provider(provider)
    if on_event is not None and (iscoroutinefunction(on_event) or not callable(on_event)):
        raise InvalidInput(
            f"{on_event!r} cannot be called by who works.", "Pass a synchronous function of one operation."
        )
    telling = Telling(tracer or tracer_of_the_process(needed=on_event is None), on_event, content=content)
    return cast("P", wrap(provider, "provider", Place(telling, provider.name)))
