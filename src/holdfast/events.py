"""Events: what happens to what is known, told to those who asked to hear of it."""

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

# What a new version of a record means to somebody who watches.
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
class Event:
    """Tell of something that happened: after it was stored, and with what it happened to.

    `name` is "learned", "merged", "superseded", "quarantined", "released", "retracted", "undone", "rolled_back" or "evicted"
    (with the `record`; one is evicted that gives its place to newer ones), "erased" (with the receipt in `erasure`),
    "compacted" (with the account of the `compaction` and its `chat`), "failed" (with the `job`, or the `chat`, and why in `error`), or "spent" (with the
    `call` of a model).
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
        """The agent that it belongs to; "" for that of all agents of the user."""
        about = self.record or self.job
        return about.agent if about else self.scope.agent


Observer = Callable[[Event], object]


class _Listener(NamedTuple):
    """An observer, and which events it hears: those of a scope, or of all users of its tenant."""

    token: object
    observer: Observer
    scope: Scope
    everyone: bool

    def hears(self, event: Event) -> bool:
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
        """Call an observer at each event of a name in a scope from now on, and return what ends that.

        Of another space it hears nothing, but with `everyone` the events of all users of the tenant. An agent hears what
        it may read: its own, and records of no agent.

        Raises:
            InvalidInput: there is no such event, or what was passed cannot be called.

        """
        known = next((one for one in NAMES if one == name), None)
        if known is None:
            raise InvalidInput(f"There is no event {shown(name)}.", f"Use one of {', '.join(NAMES)}.")
        if iscoroutinefunction(observer) or not callable(observer):
            raise InvalidInput(
                f"{shown(observer)} cannot be called by who works.",
                "Pass a synchronous function of one event.",
            )
        entry = _Listener(object(), observer, scope, everyone)
        with self._lock:
            self._observers[known] = (*self._observers.get(known, ()), entry)

        def off() -> None:
            with self._lock:
                self._observers[known] = tuple(
                    one for one in self._observers.get(known, ()) if one is not entry
                )

        return off

    def tell(self, event: Event) -> None:
        """Call the observers of an event, one after the other. One that raises is reported and disturbs nothing."""
        for listener in self._observers.get(event.name, ()):
            if not listener.hears(event):
                continue
            try:
                listener.observer(event)
            except Exception:
                # Only those whose observer raises need it.
                import logging

                logging.getLogger("holdfast").exception("An observer of %r events raised.", event.name)

    def tell_of(self, scope: Scope, records: Iterable[Record], name: Name | None = None) -> None:
        """Tell of records that were written, by what was done, or of all of them by one name."""
        if not self._observers:
            return
        for record in records:
            name_of_it = name or _OF_ACTION.get(record.action)
            if name_of_it is not None:
                self.tell(Event(name_of_it, scope, record=record))
