"""Events: what happens to what is known, told to those who asked to hear of it, and to the logger "holdfast".

At DEBUG the logger tells what handles do, in numbers and names, never in the words of messages.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from functools import cache, wraps
from inspect import iscoroutinefunction
from time import perf_counter
from typing import TYPE_CHECKING, Literal, NamedTuple, ParamSpec, TypeVar, get_args

from holdfast.errors import InvalidInput, shown
from holdfast.types import Record, Scope

if TYPE_CHECKING:
    from logging import Logger

    from holdfast.types import CompactionResult, Erasure, Job, Source

P = ParamSpec("P")
T = TypeVar("T")

Name = Literal[
    "learned",
    "merged",
    "superseded",
    "quarantined",
    "released",
    "retracted",
    "undone",
    "rolled_back",
    "evicted",
    "erased",
    "compacted",
    "failed",
    "spent",
    "indexing",
]
NAMES: tuple[Name, ...] = get_args(Name)

# The names of events for the new versions of records.
_OF_ACTION: dict[str, Name] = {
    "add": "learned",
    "replace": "learned",
    "move": "learned",
    "copy": "learned",
    "duplicate": "merged",
    "merge": "merged",
    "update": "superseded",
    "quarantine": "quarantined",
    "release": "released",
    "retract": "retracted",
    "expire": "retracted",
    "discard": "retracted",
    "undo": "undone",
    "rollback": "rolled_back",
}


@dataclass(frozen=True, slots=True)
class Call:
    """Account for one call of a model: what for, what it took, and whether it "answered" or why not."""

    purpose: str
    model: str
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    outcome: str
    chat: str = ""
    job: str = ""


@dataclass(frozen=True, slots=True)
class Indexing:
    """Count how far the index of a space has come: `done` of the `total` new documents of a source."""

    source: Source
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Event:
    """Notify observers of an event, after it was stored.

    `name` is "learned", "merged", "superseded", "quarantined", "released", "retracted", "undone",
    "rolled_back" or "evicted" (with the `record`; one is evicted that gives its place to newer ones),
    "erased" (with the receipt in `erasure`), "compacted" (with the account of the `compaction` and its
    `chat`), "failed" (with the `job`, or the `chat`, and why in `error`), "spent" (with the `call` of a
    model), or "indexing" (with how far the index has come in `indexing`, before each part of one that takes
    long, and at its end).
    """

    name: Name
    scope: Scope
    record: Record | None = field(default=None, kw_only=True)
    erasure: Erasure | None = field(default=None, kw_only=True)
    compaction: CompactionResult | None = field(default=None, kw_only=True)
    job: Job | None = field(default=None, kw_only=True)
    call: Call | None = field(default=None, kw_only=True)
    indexing: Indexing | None = field(default=None, kw_only=True)
    chat: str = field(default="", kw_only=True)
    error: str = field(default="", kw_only=True)

    @property
    def agent(self) -> str:
        """The agent that it belongs to; "" for that of all agents of the user."""
        about = self.record or self.job
        return about.agent if about else self.scope.agent


Observer = Callable[[Event], object]


class _Listener(NamedTuple):
    """An observer with the scope of its events, which may be those of all users of the tenant."""

    observer: Observer
    scope: Scope
    everyone: bool
    may_hear: Callable[[], bool]

    def hears(self, event: Event) -> bool:
        own, scope = self.scope, event.scope
        if scope.tenant != own.tenant if self.everyone else scope.space != own.space:
            return False
        # A record, or the index, of all agents.
        common = (event.record or event.indexing) is not None and not event.agent
        is_meant = not own.agent or event.agent == own.agent or common
        return is_meant and self.may_hear()


class Events:
    """The observers of one open database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._observers: dict[Name, tuple[_Listener, ...]] = {}

    def on(
        self,
        name: str,
        observer: Observer,
        scope: Scope,
        *,
        everyone: bool = False,
        may_hear: Callable[[], bool] = lambda: True,
    ) -> Callable[[], None]:
        """Call an observer at each event of a name in a scope from now on; return a function that ends it.

        Of another space it hears nothing, but with `everyone` the events of all users of the tenant. An agent
        hears what it may read: its own, and records of no agent. `may_hear` is asked at each event: a right
        may have been taken back.

        Raises:
            InvalidInput: there is no such event, or what was passed cannot be called.

        """
        known = next((event for event in NAMES if event == name), None)
        if known is None:
            raise InvalidInput(f"There is no event {shown(name)}.", f"Use one of {', '.join(NAMES)}.")
        if iscoroutinefunction(observer) or not callable(observer):
            raise InvalidInput(
                f"{shown(observer)} cannot be called by who works.",
                "Pass a synchronous function of one event.",
            )
        entry = _Listener(observer, scope, everyone, may_hear)
        with self._lock:
            self._observers[known] = (*self._observers.get(known, ()), entry)

        def off() -> None:
            with self._lock:
                self._observers[known] = tuple(each for each in self._observers[known] if each is not entry)

        return off

    def tell(self, event: Event) -> None:
        """Call the observers of an event, one after the other; an exception of one is logged, not raised."""
        for listener in self._observers.get(event.name, ()):
            try:
                if listener.hears(event):
                    listener.observer(event)
            except Exception:
                # Only those whose observer raises need it.
                import logging

                logging.getLogger("holdfast").exception("An observer of %r events raised.", event.name)

    def tell_of(self, scope: Scope, records: Iterable[Record], name: Name | None = None) -> None:
        """Notify observers of written records, by the action on each, or all by one name."""
        if not self._observers:
            return
        for record in records:
            if named := name or _OF_ACTION.get(record.action):
                self.tell(Event(named, scope, record=record))


# Logging --------------------------------------------------------------------------------------------------

_COUNTED = ("messages", "summaries", "hits", "records", "count", "calls", "tokens")


def debug(message: str, *parts: object) -> None:
    """Log a message at DEBUG, in a program that has imported `logging`."""
    if "logging" in sys.modules:
        _logger().debug(message, *parts)


@cache
def _logger() -> Logger:
    # Only for programs that use it.
    from logging import NullHandler, getLogger

    logger = getLogger("holdfast")
    logger.addHandler(NullHandler())
    return logger


def logged(method: Callable[P, T]) -> Callable[P, T]:
    """Log each call of a method at DEBUG: the handle, the amounts in the result, and the time."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if "logging" not in sys.modules or not _logger().isEnabledFor(10):
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
    """Return the amounts in a result, by the names of its parts."""
    if isinstance(result, list):
        return f"{len(result)} results"
    amounts = {name: _amount(getattr(result, name, None)) for name in _COUNTED}
    return ", ".join(f"{number} {name}" for name, number in amounts.items() if number is not None) or "done"


def _amount(part: object) -> object:
    if isinstance(part, Mapping):
        return part.get("total")
    return len(part) if isinstance(part, Sized) else part
