"""A memory that does nothing, for programs that run without one.

`NullMemory` has the methods of `Memory`; it opens nothing, stores nothing and calls no model. Its methods
return what those of an empty memory would: empty lists, windows without messages, and results of no work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial, wraps
from inspect import getmembers, isfunction, signature
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import holdfast
from holdfast import Chat, Memory, Run, Scratchpad, View, types
from holdfast.errors import InvalidInput
from holdfast.kinds import FEEDBACK
from holdfast.port import prompts
from holdfast.port.formats import message_tokens, ready
from holdfast.port.handles import Grants, Learner, Quarantine, build
from holdfast.types import (
    AnyMessage,
    Grant,
    Hits,
    Message,
    Prompt,
    Record,
    Scope,
    Timeline,
    Window,
    check_name,
    to_time,
)
from holdfast.types.acting import chat_id, current
from holdfast.types.handles import check_arguments
from holdfast.types.messages import UNSEEN

if TYPE_CHECKING:
    from holdfast.port.handles import AsyncMemory

_THREADS = 8  # as many as those of a memory
_NO_DOCUMENT = "There is no such document: this memory stores none."
C = TypeVar("C", bound=Callable[..., object])
T = TypeVar("T")
_VALUES: Mapping[str, Callable[[], object]] = {
    "None": lambda: None,
    "Callable": lambda: lambda: None,
    "Mapping": dict,
    **{kind.__name__: kind for kind in (bool, int, float, str, list, tuple, dict, Hits, Timeline)},
}
"""The empty values of types, by the names of the types."""


def _empty_value(annotation: str, given: Mapping[str, object]) -> object:
    """Return the empty value of a type; a result has the fields in `given`, their defaults, or empty ones."""
    name = "None" if annotation.endswith(" None") else annotation.partition("[")[0]
    if name in _VALUES:
        return _VALUES[name]()
    result = getattr(types, name, None) or getattr(holdfast, name)
    own = {it.name: _as_field(it.name, given[it.name]) for it in fields(result) if it.name in given}
    needed = (it for it in fields(result) if it.default is MISSING and it.default_factory is MISSING)
    return result(**own, **{it.name: _empty_value(str(it.type), {}) for it in needed if it.name not in own})


def _as_field(name: str, value: Any) -> object:
    """Return an argument as the field of the same name holds it."""
    if name in ("since", "until"):
        return datetime.now(UTC) - value if isinstance(value, timedelta) else to_time(value, name)
    if name in ("messages", "tags"):
        only = (value, value) if name == "messages" else (value,)
        return only if isinstance(value, int | str) else tuple(value)
    return value


def _empty(method: Callable[..., object]) -> Callable[..., object]:
    """Return a method with the same parameters that does nothing but return an empty result."""
    name, takes = method.__name__, signature(method)
    returns = str(method.__annotations__["return"]).removesuffix(" | list[Record]")
    by = "user" if name in ("release", "discard", "erase") else "agent"

    @_like(method)
    def call(*args: object, **kwargs: object) -> object:
        bound, now = takes.bind(*args, **kwargs), datetime.now(UTC)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if value is not None}
        usual = {"kind": "fact", "by": current().source or by, "at": now, "created": now}
        usual["why"] = "This memory stores nothing."
        if returns == "Record":
            usual |= _record_fields(name, given)
        return _empty_value(returns, usual | given)

    return call


def _record_fields(method: str, given: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a record that a method would have written."""
    handle: Any = given["self"]
    retracted = "text" not in given and method not in ("release", "move", "copy", "pin", "unpin")
    action = method if method in ("replace", "release", "pin", "unpin") else "add"
    where: dict[str, object] = {"chat": handle.id} if isinstance(handle, Chat) else {}
    if isinstance(handle, Run):
        where = {"kind": "note", "target": "run", "run": handle.id, "chat": handle.chat.id}
    return {
        "id": given.get("what", ""),
        "agent": (getattr(handle, "_scope", None) or handle.scope).agent,
        "action": "retract" if retracted else action,
        "retracted": retracted,
        "trust": "released" if method == "release" else "trusted",
        **where,
    }


def _empty_methods(*kept: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator that empties the public methods that a class inherits, without those in `kept`."""

    def empty(kind: type[T]) -> type[T]:
        for name, method in getmembers(kind, isfunction):
            if not (name.startswith("_") or name in kept or name in vars(kind)):
                setattr(kind, name, _empty(method))
        return kind

    return empty


def _like(method: C) -> Callable[[Callable[..., Any]], C]:
    """Return a decorator that gives a method the parameters and the documentation of another one.

    It is called as if by place, whatever its own parameters are called.
    """
    takes = signature(method)

    def like(body: Callable[..., Any]) -> C:
        @wraps(method)
        def call(*args: object, **kwargs: object) -> object:
            check_arguments(method, kwargs)
            bound = takes.bind(*args, **kwargs)
            return body(*bound.args, **bound.kwargs)

        return cast("C", call)

    return like


def _refusal(method: C, problem: str) -> C:
    @_like(method)
    def call(*_: object, **__: object) -> NoReturn:
        raise InvalidInput(problem, "Open a `Memory`, which does.")

    return call


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="holdfast-null")


class NullScratchpad(Scratchpad):
    """A scratchpad that stays empty. Made by `scratchpad` of a null memory, chat or run."""

    def __init__(self) -> None:
        pass

    def __getitem__(self, name: str) -> NoReturn:
        raise KeyError(name)

    __delitem__ = __getitem__

    def __setitem__(self, name: str, value: str) -> None:
        pass

    def clear(self) -> None:
        """Do nothing."""

    def stored(self) -> dict[str, str]:
        """Return nothing."""
        return {}

    _temporary = stored


class _WithScratchpad:
    @property
    def scratchpad(self) -> Scratchpad:
        """The scratchpad, which stays empty."""
        return NullScratchpad()


class _OfScope:
    """A part of a null memory: it has a scope only."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._scope})"


@_empty_methods()
class NullView(_OfScope, View):
    """A view without records. Made by `NullMemory.at`."""

    explain = _refusal(View.explain, _NO_DOCUMENT)


@_empty_methods()
class NullLearner(_OfScope, Learner):
    """Learning that does nothing. `NullMemory.learning`."""

    @_like(Learner.feedback)
    def feedback(self, _: Any, *, query: str = "", by: Any = None, **__: Any) -> Any:
        """As `Learner.feedback`: a record that is not stored."""
        return _empty(Memory.remember)(self, query, FEEDBACK, by=by or "user")


@_empty_methods()
class NullQuarantine(_OfScope, Quarantine):
    """An empty quarantine. `NullMemory.quarantine`."""

    def __iter__(self) -> Iterator[Record]:
        return iter(())


@_empty_methods()
class NullGrants(_OfScope, Grants):
    """Grants, of which there are none. `NullMemory.grants`."""

    def __iter__(self) -> Iterator[Grant]:
        return iter(())


@_empty_methods("prompt")
class NullRun(_WithScratchpad, Run[Chat]):
    """A run without notes. Made by `NullChat.run`."""

    def __init__(
        self, chat: NullChat, id: str | None, scope: Scope, prompt: Callable[..., Prompt], *, shared: bool
    ) -> None:
        self._chat = chat
        self._scope = scope
        self._make_prompt = prompt
        self._shared = shared
        self._id = os.urandom(8).hex() if id is None else id


@_empty_methods("append", "prompt")
class NullChat(_WithScratchpad, Chat):
    """A chat that stores nothing. Made by `NullMemory.chat`."""

    # Nothing is open; two chats are equal by scope and id.
    _runtime = None  # type: ignore[assignment]

    def __init__(self, scope: Scope, id: str) -> None:
        self._scope = scope
        self._id = check_name(id, "The id of a chat")

    def _store(self, messages: Sequence[AnyMessage]) -> list[Message]:
        """Check messages and number them, as the first of a chat, without storing them."""
        now = datetime.now(UTC)
        return [
            replace(
                message,
                seq=number,
                id=message.id or os.urandom(8).hex(),
                at=message.at or now,
                tokens=message_tokens(message),
                flags=UNSEEN,
            )
            for number, message in enumerate(map(ready, messages), 1)
        ]

    @_like(Chat.window)
    def window(self, budget: int | None = None, *, policy: Any = None, **_: object) -> Window:
        """As `Chat.window`: a window without messages."""
        chosen = policy or prompts.unshortened(self, budget)
        tokens = chosen.reach().budget if hasattr(chosen, "reach") else chosen.budget
        # Below 0 for a policy that counts messages.
        return Window((), (), 0, tokens if tokens >= 0 else None, ())

    def _prompt(self, _run: Run[Chat] | None, budget: int | None, _query: str | None, options: Any) -> Prompt:
        policy = options.policy
        budget = (policy or prompts.unshortened(self, None)).budget if budget is None else budget
        window = partial(self.window, policy=policy)
        return build(window, (), chat=self.id, budget=budget, options=options)

    @_like(Chat.run)
    def run(self, id: str | None = None, *, shared: bool = False) -> Run[Chat]:
        """As `Chat.run`: a run without notes."""
        return NullRun(self, id, self._scope, self._prompt, shared=shared)

    describe = _refusal(Chat.describe, "There is no such summary: this memory stores none.")
    expand = _refusal(Chat.expand, "There is no such summary: this memory stores none.")
    edit = _refusal(Chat.edit, "There is no such message: this memory stores none.")
    regenerate = _refusal(Chat.regenerate, "There is no request to answer again: this memory stores none.")


@_empty_methods("scoped", "tools")
class NullMemory(_WithScratchpad, Memory):
    """A memory that stores and finds nothing, for programs that run without one.

    It has the methods of `Memory` and of its handles, with their parameters. Of the arguments only messages
    are checked, and returned numbered as the first of a chat. A scratchpad stays empty.

    >>> memory = NullMemory(user="ada")
    >>> memory.remember("Training for the Berlin marathon").version
    0
    >>> memory.recall("Which race?")
    []

    Args:
        location: is not opened; other options of `Memory` are ignored.
        tenant, user, agent, project, team, reads: the scope of the handle.

    Raises:
        InvalidInput: a name is invalid.

    """

    # No scope needs protection where nothing is stored.
    _admin = True
    _pinned = False

    def __init__(
        self,
        location: str | os.PathLike[str] = "",  # noqa: ARG002 - as in Memory
        *,
        tenant: str = "",
        user: str = "",
        agent: str = "",
        project: str = "",
        team: str = "",
        reads: Iterable[str] = (),
        **_: object,
    ) -> None:
        self._bound = Scope(
            tenant, user, agent, project=project, team=team, reads=cast("tuple[str, ...]", reads)
        )

    @property
    def name(self) -> str:
        """The name of the provider."""
        return "null"

    @_like(Memory.chat)
    def chat(self, id: str | None = None, **_: object) -> Chat:
        """As `Memory.chat`: a chat without messages."""
        return NullChat(self.scope, chat_id(id))

    @_like(Memory.remember)
    def remember(self, text: Any, kind: str = "fact", **given: Any) -> Any:
        """As `Memory.remember`: a record, or a list of records, that is not stored."""
        if not isinstance(text, list | tuple):
            return _empty(Memory.remember)(self, text, kind, **given)
        items = [item if isinstance(item, Mapping) else {"text": item} for item in text]
        return [self.remember(**{"kind": kind, **given, **item}) for item in items]

    at = _like(Memory.at)(lambda memory, _: NullView(memory.scope))
    explain = _refusal(Memory.explain, _NO_DOCUMENT)
    resolve = _refusal(Memory.resolve, "There is no such conflict: this memory stores no records.")
    backup = _refusal(Memory.backup, "There is nothing to copy: this memory stores nothing.")

    @property
    def aio(self) -> AsyncMemory:
        """The same methods, awaited."""
        # asyncio is loaded only where it is used.
        from holdfast.port.handles import AsyncMemory

        return AsyncMemory(self, _threads)

    @property
    def learning(self) -> Learner:
        """Learning, which does nothing."""
        return NullLearner(self.scope)

    @property
    def quarantine(self) -> Quarantine:
        """The quarantine, which is empty."""
        return NullQuarantine(self.scope)

    @property
    def grants(self) -> Grants:
        """The grants, of which there are none."""
        return NullGrants(self.scope)
