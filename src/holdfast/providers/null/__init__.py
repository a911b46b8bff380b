"""A memory that does nothing, for code that is to run without one.

`NullMemory` stands wherever a `Memory` does: it opens nothing, stores nothing and asks no model. It answers as an empty
memory would, with lists that have nothing in them, windows without messages, and accounts of no work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial, wraps
from inspect import Parameter, Signature, getmembers, isfunction, signature
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import holdfast
from holdfast.chat import Chat
from holdfast.errors import InvalidInput
from holdfast.handle import chat_id
from holdfast.learning.service import Learner
from holdfast.memory import Memory
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import ready
from holdfast.prompt.build import build
from holdfast.prompt.window import LastN, Lossless, at_budget
from holdfast.records.quarantine import Quarantine
from holdfast.records.view import View
from holdfast.run import Run
from holdfast.runtime import THREADS
from holdfast.scratchpad import Scratchpad
from holdfast.types import AnyMessage, Message, Prompt, Record, Scope, Window, check_name, to_time
from holdfast.types.acting import current

if TYPE_CHECKING:
    from holdfast.aio import AsyncMemory
    from holdfast.prompt.assembly import PromptOptions
    from holdfast.prompt.window import Policy

C = TypeVar("C", bound=Callable[..., object])
T = TypeVar("T")
WHY = "This memory keeps nothing."
_PLAIN: Mapping[str, Callable[[], object]] = {
    "None": lambda: None,
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "Mapping": dict,
    "Callable[[], None]": lambda: _PLAIN["None"],
}
_ACTIONS = {"replace": "replace", "release": "release"}
_NOTE = {"kind": "note", "target": "run"}


def _nothing(wanted: str, given: Mapping[str, object]) -> object:
    """Return the empty value of a type, by the name of the type.

    The fields of an account are those of `given` that have their names, their defaults, or empty.
    """
    name = "None" if wanted.endswith(" None") else wanted if wanted in _PLAIN else wanted.partition("[")[0]
    if name in _PLAIN:
        return _PLAIN[name]()
    account = getattr(holdfast, name)
    return account(
        **{
            one.name: _as_field(one.name, given[one.name])
            if one.name in given
            else _nothing(str(one.type), {})
            for one in fields(account)
            if one.name in given or (one.default is MISSING and one.default_factory is MISSING)
        }
    )


def _empty(method: Callable[..., object]) -> Callable[..., object]:
    """Make a method with the parameters of another one, that does nothing and returns what an empty memory would."""
    name, takes, wanted = method.__name__, signature(method), str(method.__annotations__["return"])
    wanted = wanted.partition(" | ")[0] if name == "remember" else wanted
    by = "user" if name in ("release", "discard", "erase") else "agent"

    @wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        bound = takes.bind(*args, **kwargs)
        bound.apply_defaults()
        given = _named(takes, bound.arguments)
        now = datetime.now(UTC)
        usual = {"kind": "fact", "by": current().source or by, "at": now, "created": now, "why": WHY}
        if wanted == "Record":
            usual |= _record(name, given)
        return _nothing(wanted, usual | given)

    return call


def _named(takes: Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not None, those of `**fields` by their own names."""
    every: dict[str, Any] = {}
    for name, value in arguments.items():
        every |= value if takes.parameters[name].kind is Parameter.VAR_KEYWORD else {name: value}
    return {name: value for name, value in every.items() if value is not None}


def _as_field(name: str, value: Any) -> object:
    """Return an argument as the field of the same name holds it."""
    if name in ("since", "until"):
        return datetime.now(UTC) - value if isinstance(value, timedelta) else to_time(value, name)
    if name == "messages":
        return (value, value) if isinstance(value, int) else tuple(value)
    return tuple(value) if name == "tags" else value


def _record(method: str, given: Mapping[str, object]) -> dict[str, object]:
    """Return what is particular to a record that a method would have written."""
    gone = "text" not in given and method != "release"
    handle = given["self"]
    where: dict[str, object] = {"chat": handle.id} if isinstance(handle, Chat) else {}
    if isinstance(handle, Run):
        where = {**_NOTE, "run": handle.id, "chat": handle.chat.id}
    return {
        "id": given.get("what", ""),
        "agent": (getattr(handle, "_scope", None) or cast("Memory", handle).scope).agent,
        "action": "retract" if gone else _ACTIONS.get(method, "add"),
        "retracted": gone,
        "trust": "released" if method == "release" else "trusted",
        **where,
    }


def _emptied(*also: str, but: Sequence[str] = ()) -> Callable[[type[T]], type[T]]:
    """Make a decorator that empties the public methods a class inherits, but those that are made of others, and some more."""

    def emptied(kind: type[T]) -> type[T]:
        for name, method in getmembers(kind, isfunction):
            if name in also or not (name.startswith("_") or name in but or name in vars(kind)):
                setattr(kind, name, _empty(method))
        return kind

    return emptied


def _like(method: C) -> Callable[[Callable[..., Any]], C]:
    """Make a decorator that gives a method the parameters and the documentation of another one."""
    return cast("Callable[[Callable[..., Any]], C]", wraps(method))


def _refused(method: C, problem: str) -> C:
    def call(*_: object, **__: object) -> NoReturn:
        raise InvalidInput(problem, "Open a `Memory`, which does.")

    return _like(method)(call)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="holdfast-null")


class NullScratchpad(Scratchpad):
    """Keep no texts. Made by `scratchpad` of a null memory, chat or run."""

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
        """The scratchpad, which keeps nothing."""
        return NullScratchpad()


class _OfScope:
    """A part of a null memory, which holds nothing but its scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._scope})"


@_emptied()
class NullView(_OfScope, View):
    """Know nothing, now or earlier. Made by `NullMemory.at`."""


@_emptied()
class NullLearner(_OfScope, Learner):
    """Learn nothing. `NullMemory.learning`."""


@_emptied()
class NullQuarantine(_OfScope, Quarantine):
    """Hold nothing back. `NullMemory.quarantine`."""

    def __iter__(self) -> Iterator[Record]:
        return iter(())


@_emptied(but=("prompt",))
class NullRun(_WithScratchpad, Run):
    """Note nothing for a run. Made by `NullChat.run`."""

    def __init__(self, chat: NullChat, id: str | None, scope: Scope, prompt: Callable[..., Prompt]) -> None:
        self._chat = chat
        self._scope = scope
        self._make_prompt = prompt
        self._id = os.urandom(8).hex() if id is None else id


@_emptied(but=("append", "prompt"))
class NullChat(_WithScratchpad, Chat):
    """Keep nothing of a chat. Made by `NullMemory.chat`."""

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
            )
            for number, message in enumerate(map(ready, messages), 1)
        ]

    def _windowed(self, budget: int | None = None, *, policy: Policy | None = None, **_: object) -> Window:
        chosen = at_budget(Lossless(), budget) if policy is None else policy
        return Window((), (), 0, None if isinstance(chosen, LastN) else chosen.budget, ())

    def _prompt(
        self, run: Run | None, budget: int | None, query: str | None, options: PromptOptions
    ) -> Prompt:
        del run, query
        policy = options.get("policy")
        budget = (policy or Lossless()).budget if budget is None else budget
        window = partial(self.window, policy=policy)
        return build(window, (), chat=self.id, budget=budget, system=options.get("system", ""))

    def _begun(self, id: str | None = None) -> Run:
        return NullRun(self, id, self._scope, self._prompt)

    window = _like(Chat.window)(_windowed)
    run = _like(Chat.run)(_begun)
    describe = _refused(Chat.describe, "There is no such summary: this memory keeps none.")
    expand = _refused(Chat.expand, "There is no such summary: this memory keeps none.")


_EMPTY_REMEMBER = _empty(Memory.remember)


@_emptied(but=("scoped", "tools"))
class NullMemory(_WithScratchpad, Memory):
    """Remember nothing, find nothing, and cost nothing: what to pass where a memory is expected and none is wanted.

    It has the methods of `Memory` and of what that makes, with their parameters. What they are given is hardly looked
    at; only messages are checked, and returned numbered as the first of a chat. A scratchpad forgets what is put on it.

    >>> memory = NullMemory(user="ada")
    >>> memory.remember("Training for the Berlin marathon").version
    0
    >>> memory.recall("Which race?")
    []

    Args:
        location: is not opened; nor is anything else looked at that `Memory` takes.
        tenant, user, agent: whose memory it would be.

    Raises:
        InvalidInput: a name is not usable.

    """

    # There is nobody's memory to guard.
    _admin = True
    _pinned = False

    def __init__(
        self,
        location: str | os.PathLike[str] = "",  # noqa: ARG002 - as in Memory
        *,
        tenant: str = "",
        user: str = "",
        agent: str = "",
        **_: object,
    ) -> None:
        self._bound = Scope(tenant, user, agent)

    @property
    def name(self) -> str:
        """What this kind of memory is called among the providers of the contract."""
        return "null"

    def _opened(self, id: str | None = None, **_: object) -> Chat:
        return NullChat(self.scope, chat_id(id))

    def _remembered(self, text: Any, kind: str = "fact", **given: Any) -> Any:
        if not isinstance(text, list | tuple):
            return _EMPTY_REMEMBER(self, text, kind, **given)
        items = [item if isinstance(item, Mapping) else {"text": item} for item in text]
        return [self._remembered(**{"kind": kind, **given, **item}) for item in items]

    chat = _like(Memory.chat)(_opened)
    at = _like(Memory.at)(lambda memory, _: NullView(memory.scope))
    remember = _like(Memory.remember)(_remembered)
    backup = _refused(Memory.backup, "There is nothing to copy: this memory keeps nothing.")

    @property
    def aio(self) -> AsyncMemory:
        """The same methods, awaited."""
        # asyncio is loaded only where it is used.
        from holdfast.aio import AsyncMemory

        return AsyncMemory(self, _threads)

    @property
    def learning(self) -> Learner:
        """Learning, of nothing."""
        return NullLearner(self.scope)

    @property
    def quarantine(self) -> Quarantine:
        """What is in quarantine: nothing."""
        return NullQuarantine(self.scope)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.scope})"
