"""Events of a memory, and the observers that are called with them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Literal, NamedTuple, get_args

from holdfast.errors import InvalidInput, shown
from holdfast.types import CompactionResult, Erasure, Job, Record, Scope

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
]
NAMES: tuple[Name, ...] = get_args(Name)

# The event of a new version of a record, by its action.
_OF_ACTION: dict[str, Name] = {
    "add": "learned",
    "replace": "learned",
    "duplicate": "merged",
    "merge": "merged",
    "update": "superseded",
    "quarantine": "quarantined",
    "release": "released",
    "retract": "retracted",
    "discard": "retracted",
    "undo": "undone",
    "rollback": "rolled_back",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model: its purpose, its cost, and its outcome, "answered" or the reason why not."""

    purpose: str
    model: str
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    outcome: str
    chat: str = ""
    job: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the memory, after it was stored.

    `name` is "learned", "merged", "superseded", "quarantined", "released", "retracted", "undone",
    "rolled_back" or "evicted" (with the `record`; an evicted one gave its place to newer ones), "erased"
    (with the receipt in `erasure`), "compacted" (with the result in `compaction` and its `chat`), "failed"
    (with the `job`, or the `chat`, and the reason in `error`), or "spent" (with the `call` of a model).
    """

    name: Name
    scope: Scope
    record: Record | None = field(default=None, kw_only=True)
    erasure: Erasure | None = field(default=None, kw_only=True)
    compaction: CompactionResult | None = field(default=None, kw_only=True)
    job: Job | None = field(default=None, kw_only=True)
    call: Call | None = field(default=None, kw_only=True)
    chat: str = field(default="", kw_only=True)
    error: str = field(default="", kw_only=True)

    @property
    def agent(self) -> str:
        """The agent that it belongs to; "" for all agents of the user."""
        about = self.record or self.job
        return about.agent if about else self.scope.agent


Observer = Callable[[Event], object]


class _Listener(NamedTuple):
    """An observer, and its scope: the events of a space, or of all users of its tenant."""

    observer: Observer
    scope: Scope
    everyone: bool

    def matches(self, event: Event) -> bool:
        """Return whether the observer is called with an event."""
        own, scope = self.scope, event.scope
        if scope.tenant != own.tenant if self.everyone else scope.space != own.space:
            return False
        common = event.record is not None and not event.agent  # a record of all agents
        return not own.agent or event.agent == own.agent or common


class Events:
    """The observers of one open database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._observers: dict[Name, tuple[_Listener, ...]] = {}

    def on(
        self, name: str, observer: Observer, scope: Scope, *, everyone: bool = False
    ) -> Callable[[], None]:
        """Call an observer at each event of a name in a scope from now on; return a function that ends this.

        Events of other spaces are left out; with `everyone`, those of other tenants only. An agent receives
        what it may read: its own events, and those of records of no agent.

        Raises:
            InvalidInput: an unknown event, or the observer is not a synchronous function.

        """
        known = next((one for one in NAMES if one == name), None)
        if known is None:
            raise InvalidInput(f"Unknown event {shown(name)}.", f"Use one of {', '.join(NAMES)}.")
        if iscoroutinefunction(observer) or not callable(observer):
            raise InvalidInput(
                f"The observer {shown(observer)} is not a synchronous function.",
                "Pass a synchronous function of one event.",
            )
        entry = _Listener(observer, scope, everyone)
        with self._lock:
            self._observers[known] = (*self._observers.get(known, ()), entry)

        def off() -> None:
            with self._lock:
                self._observers[known] = tuple(
                    one for one in self._observers.get(known, ()) if one is not entry
                )

        return off

    def tell(self, event: Event) -> None:
        """Call the observers of an event in turn. The error of one that raises is logged."""
        for listener in self._observers.get(event.name, ()):
            if not listener.matches(event):
                continue
            try:
                listener.observer(event)
            except Exception:
                # Only those whose observer raises need it.
                import logging

                logging.getLogger("holdfast").exception("An observer of %r events raised.", event.name)

    def tell_of(self, scope: Scope, records: Iterable[Record], name: Name | None = None) -> None:
        """Call the observers of records that were written, by their action, or all by one name."""
        if not self._observers:
            return
        for record in records:
            name_of_it = name or _OF_ACTION.get(record.action)
            if name_of_it is not None:
                self.tell(Event(name_of_it, scope, record=record))
