"""A memory that does nothing, for code that is to run without one.

`NullMemory` stands wherever a `Memory` does: it opens nothing, stores nothing and asks no model. It answers
as an empty memory would, with lists that have nothing in them, windows without messages, and accounts of no
work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial, wraps
from inspect import getmembers, isfunction, signature
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import holdfast
from holdfast.chat import Chat
from holdfast.errors import InvalidInput
from holdfast.kinds import FIL
from holdfast.memory import Memory
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import ready
from holdfast.prompt.build import build
from holdfast.prompt.window import Lossless, at_budget, own_budget
from holdfast.records.view import At, View
from holdfast.run import Run
from holdfast.runtime import THREADS
from holdfast.scratchpad import Pad
from holdfast.types import AnyMessage, Message, Prompt, Record, Scope, Window, to_time
from holdfast.types.acting_as import current

if TYPE_CHECKING:
    from holdfast.aio import AsyncMemory
    from holdfast.compaction.driver import Steps
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
    "dict[str, list[Hit]]": lambda: {kind: [] for kind in FIL},
    "Callable[[], None]": lambda: _PLAIN["None"],
}
_ACTIONS = {"replace": "replace", "_change_note": "replace", "release": "release"}
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
    by = "user" if name in ("release", "discard", "erase") else "agent"

    @wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        bound = takes.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        if (draft := arguments.pop("draft", None)) is not None:
            arguments = {one.name: getattr(draft, one.name) for one in fields(draft)} | arguments
        given = {key: value for key, value in arguments.items() if value is not None}
        now = datetime.now(UTC)
        usual = {"kind": "fact", "by": current().source or by, "at": now, "created": now, "why": WHY}
        if wanted == "Record":
            usual |= _record(name, given)
        return _nothing(wanted, usual | given)

    return call


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
    return {
        "id": given.get("what", ""),
        "agent": cast("Memory", given["self"]).scope.agent,
        "action": "retract" if gone else _ACTIONS.get(method, "add"),
        "retracted": gone,
        "trust": "released" if method == "release" else "trusted",
        **(_NOTE if "note" in method else {}),
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


class NullPad(Pad):
    """Keep no texts. Made by `pad` of a null memory, chat or run."""

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


class _WithPad:
    @property
    def pad(self) -> Pad:
        """The scratchpad, which keeps nothing."""
        return NullPad()


@_emptied()
class NullView(View):
    """Know nothing, now or earlier. Made by `NullMemory.at`."""

    def __init__(self, scope: Scope) -> None:
        self._bound = scope

    def __repr__(self) -> str:
        return f"NullView({self.scope})"


@_emptied(but=("remember", "replace", "retract", "prompt"))
class NullRun(_WithPad, Run):
    """Note nothing for a run. Made by `NullChat.run`."""

    def __init__(self, chat: NullChat, id: str | None) -> None:
        self._chat = chat
        self._memory = chat._memory  # noqa: SLF001 - as in Run
        self._id = os.urandom(8).hex() if id is None else id


@_emptied("_tell", but=("append", "prompt", "remember", "same_as"))
class NullChat(_WithPad, Chat):
    """Keep nothing of a session. Made by `NullMemory.chat`."""

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

    def _policy(self, policy: Policy | None, budget: int | None) -> Policy:
        return at_budget(Lossless(), budget) if policy is None else policy

    def _windowed(self, budget: int | None = None, *, policy: Policy | None = None, **_: object) -> Window:
        return Window((), (), 0, getattr(self._policy(policy, budget), "budget", None), ())

    def _prompt(
        self,
        run: Run | None,  # noqa: ARG002 - as in Chat
        budget: int | None = None,
        query: str | None = None,  # noqa: ARG002 - as in Chat
        *,
        system: str = "",
        policy: Policy | None = None,
        **_: object,
    ) -> Prompt:
        budget = own_budget(self._policy(policy, None)) if budget is None else budget
        return build(partial(self.window, policy=policy), (), chat=self.id, budget=budget, system=system)

    def _steps(self, *_: object, **__: object) -> Steps:
        yield from ()
        return self.compact()

    def _begun(self, id: str | None = None) -> Run:
        return NullRun(self, id)

    window = _like(Chat.window)(_windowed)
    run = _like(Chat.run)(_begun)
    describe = _refused(Chat.describe, "There is no such summary: this memory keeps none.")
    expand = _refused(Chat.expand, "There is no such summary: this memory keeps none.")


_MADE_OF_OTHERS = (
    "add_constraint",
    "remove_constraint",
    "retract",
    "scoped",
    "set_profile",
    "set_soul",
    "tools",
)


@_emptied("_change_note", "_note", "_retract", but=_MADE_OF_OTHERS)
class NullMemory(_WithPad, Memory):
    """Remember nothing, find nothing, and cost nothing: what to pass where a memory is expected and none is wanted.

    It has the methods of `Memory` and of what that makes, with their parameters. What they are given is
    hardly looked at; only messages are checked, and given back numbered as the first of a chat. A pad forgets
    what is put on it.

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

    _admin = True  # there is nobody's memory to guard
    _at = At()
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
        return NullChat(self._handle(self.scope, pinned=True), self._chat_id(id))

    def _all_remembered(
        self,
        findings: Sequence[str] = (),
        insights: Sequence[str] = (),
        lessons: Sequence[str] = (),
        source: str = "",
        **given: Any,
    ) -> list[Record]:
        named = zip(FIL, (findings, insights, lessons), strict=True)
        return [self.remember(text, kind, source=source, **given) for kind, texts in named for text in texts]

    chat = _like(Memory.chat)(_opened)
    at = _like(Memory.at)(lambda memory, _: NullView(memory.scope))
    remember_fil = _like(Memory.remember_fil)(_all_remembered)
    backup = _refused(Memory.backup, "There is nothing to copy: this memory keeps nothing.")

    @property
    def aio(self) -> AsyncMemory:
        """The same methods, awaited."""
        # asyncio is loaded only where it is used.
        from holdfast.aio import AsyncMemory

        return AsyncMemory(self, _threads)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.scope})"
