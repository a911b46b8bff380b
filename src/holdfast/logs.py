"""Logging: at DEBUG the logger "holdfast" tells what handles do, in numbers and names, never in the words of messages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sized
from functools import cache, wraps
from time import perf_counter
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from logging import Logger

P = ParamSpec("P")
T = TypeVar("T")

_COUNTED = ("messages", "summaries", "hits", "records", "count", "calls", "tokens")


def debug(message: str, *parts: object) -> None:
    """Log a message at DEBUG. A program that has not imported `logging` hears of nothing, and need not load it."""
    if "logging" in sys.modules:
        _logger().debug(message, *parts)


def _is_on() -> bool:
    return "logging" in sys.modules and _logger().isEnabledFor(10)


@cache
def _logger() -> Logger:
    # Only for programs that use it.
    from logging import NullHandler, getLogger

    logger = getLogger("holdfast")
    logger.addHandler(NullHandler())
    return logger


def logged(method: Callable[P, T]) -> Callable[P, T]:
    """Log each call of a method at DEBUG: of which handle, how much came of it, and how long it took."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if not _is_on():
            return method(*args, **kwargs)
        outcome = ""
        began = perf_counter()
        try:
            result = method(*args, **kwargs)
            outcome = _amounts(result)
        except BaseException as error:
            outcome = type(error).__name__
            raise
        else:
            return result
        finally:
            milliseconds = (perf_counter() - began) * 1_000
            debug("%s of %r: %s in %.1f ms", method.__name__, args[0], outcome, milliseconds)

    return call


def _amounts(result: object) -> str:
    """Return how much there is in a result, by the names of its parts."""
    if isinstance(result, list):
        return f"{len(result)} results"
    found = {name: _amount(getattr(result, name, None)) for name in _COUNTED}
    return ", ".join(f"{number} {name}" for name, number in found.items() if number is not None) or "done"


def _amount(part: object) -> object:
    if isinstance(part, Mapping):
        return part.get("total")
    return len(part) if isinstance(part, Sized) else part
