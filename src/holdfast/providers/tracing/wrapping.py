"""Wrappers of providers, chats, views and runs, which report each operation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, wraps
from inspect import iscoroutinefunction, isfunction, isroutine
from typing import Any, TypeVar, cast

from holdfast.contract import METHODS
from holdfast.port.texts import clean
from holdfast.providers.tracing.spans import Operation, Reporter, query
from holdfast.types import MAX_NAME, Scope

T = TypeVar("T")
# The names of a handle that return another handle, which is wrapped as well: those of the contract for every
# provider, the others where they return one of ours. `_fixed` is used by our own memory to make tools.
_CONTRACT = ("chat", "scoped", "at", "learning")
_PROVIDERS = ("scoped", "aio", "_fixed")
_HANDLES = {*_CONTRACT, *_PROVIDERS, "quarantine", "grants", "run"}
# Operations that are not reported, as they read and write nothing.
_SILENT = ("chat", "scoped", "_fixed", "on")
_CORE = ("append", "window", "stats", "close")
_METHODS = {*_CORE, *_HANDLES, *(name for methods in METHODS.values() for names in methods for name in names)}


def unwrap(provider: T) -> T:
    """Return the provider, chat, view or run behind all wrappers of `traced`."""
    inner: object = provider
    while isinstance(inner, _Traced):
        inner = inner.__wrapped__
    return cast("T", inner)


@dataclass(frozen=True, slots=True)
class HandleContext:
    """What the operations of a handle report: provider, and scope and chat where fixed."""

    reporter: Reporter
    provider: str
    scope: Scope | None = None
    chat: str = ""
    is_provider: bool = True

    def scope_of(self, handle: object) -> Scope | None:
        """Return the current scope of a handle, or the one that was fixed."""
        scope = getattr(handle, "scope", None)
        return scope if isinstance(scope, Scope) else self.scope

    def opened(self, opener: object, name: str, result: object) -> object:
        """Wrap a handle that another one returned, which has the same scope; return anything else as it is.

        A chat keeps its id. A name that our own handles have may mean something else to other providers.
        """
        is_ours = type(result).__module__.startswith("holdfast.")
        is_handle = name in _HANDLES and (is_ours or (self.is_provider and name in _CONTRACT))
        if result is None or not is_handle:
            return result
        chat = str(getattr(result, "id", "")) if name == "chat" else self.chat
        scope = self.scope_of(opener)
        return wrap(result, replace(self, scope=scope, chat=chat, is_provider=name in _PROVIDERS))


class _Traced:
    """A wrapper with the attributes of a handle, whose methods report their calls."""

    __slots__ = ("__traced__", "__wrapped__")
    __wrapped__: Any

    def __init__(self, inner: object, context: HandleContext) -> None:
        self.__wrapped__ = inner
        self.__traced__ = context

    def __getattr__(self, name: str) -> object:
        # Also of an empty copy, which has no `__wrapped__`.
        if name.startswith("__"):
            raise AttributeError(name)
        inner, context = self.__wrapped__, self.__traced__
        value = getattr(inner, name)
        if name.startswith("_") and name not in _HANDLES:
            return value
        # Tools are made for the wrapper, so that their calls are reported.
        if name == "tools" and isfunction(method := getattr(type(unwrap(self)), name, None)):
            return _for_wrapper(self, method)
        if isroutine(value) or (callable(value) and name in _METHODS):
            return _with_report(inner, name, value, context)
        return context.opened(inner, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _Traced.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self.__wrapped__, name, value)

    def __eq__(self, other: object) -> bool:
        return bool(unwrap(self) == unwrap(other))

    def __hash__(self) -> int:
        return hash(unwrap(self))

    def __dir__(self) -> Iterable[str]:
        return dir(self.__wrapped__)

    def __repr__(self) -> str:
        return f"traced({self.__wrapped__!r})"


class _Special(_Traced):
    """The methods for `with` and `for`; a wrapper has those that its handle has."""

    def __enter__(self) -> object:
        entered = self.__wrapped__.__enter__()
        return self if entered is self.__wrapped__ else entered

    def __exit__(self, *error: object) -> object:
        return self.__wrapped__.__exit__(*error)

    async def __aenter__(self) -> object:
        entered = await self.__wrapped__.__aenter__()
        return self if entered is self.__wrapped__ else entered

    async def __aexit__(self, *error: object) -> object:
        return await self.__wrapped__.__aexit__(*error)

    def __iter__(self) -> Iterator[object]:
        return iter(_listing(self, lambda: list(self.__wrapped__)))

    async def __aiter__(self) -> AsyncIterator[object]:
        async def read() -> list[object]:
            return [entry async for entry in self.__wrapped__]

        for entry in await _listing(self, read):
            yield entry


_SPECIAL = ("__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__aiter__")


def wrap(inner: object, context: HandleContext) -> _Traced:
    """Return a wrapper of a handle, which can be entered or iterated over if the handle can."""
    return _wrapper_of(tuple(name for name in _SPECIAL if hasattr(type(inner), name)))(inner, context)


@cache
def _wrapper_of(special: tuple[str, ...]) -> type[_Traced]:
    """Return the class of wrappers that have some of the methods of `_Special`."""
    methods = {name: vars(_Special)[name] for name in special}
    return type("_Traced", (_Traced,), {"__slots__": (), **methods})


def _listing(handle: _Traced, read: Callable[[], object]) -> Any:
    """Read and report the records in quarantine, or the grants, of a loop over a handle."""
    name = "grants" if hasattr(handle.__wrapped__, "revoke") else "quarantine"
    return _with_report(handle.__wrapped__, name, read, handle.__traced__)()


def _for_wrapper(handle: _Traced, method: Callable[..., object]) -> Callable[..., object]:
    """Return a method of a handle that runs with its wrapper in its place."""

    @wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        given = {name: _as_argument(value) for name, value in kwargs.items()}
        return method(_as_argument(handle), *map(_as_argument, args), **given)

    return call


def _as_argument(value: object) -> object:
    """Return an argument; a wrapper of an awaited handle becomes an awaited handle of a wrapper."""
    if not isinstance(value, _Traced):
        return value
    inner: Any = _as_argument(value.__wrapped__)
    # Only handles of `holdfast.aio` have it.
    if not hasattr(inner, "__wrapped__"):
        return value
    awaited = copy(inner)
    awaited.__wrapped__ = wrap(inner.__wrapped__, value.__traced__)
    return awaited


def _with_report(
    inner: object, name: str, method: Callable[..., object], context: HandleContext
) -> Callable[..., object]:
    """Return a method that does the same and reports it."""
    reporter = context.reporter

    def operation(args: Sequence[object], kwargs: Mapping[str, object]) -> Operation:
        scope, chat = context.scope_of(inner), context.chat or kwargs.get("chat")
        return Operation(
            name,
            context.provider,
            store=scope.space if scope else "",
            agent=scope.agent if scope else "",
            chat=clean(chat[:MAX_NAME]) if isinstance(chat, str) else "",
            query=query(method, args, kwargs) if reporter.content else "",
        )

    @wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        if name in _SILENT:
            return context.opened(inner, name, method(*args, **kwargs))
        with reporter.operation(operation(args, kwargs)) as done:
            result = method(*args, **kwargs)
            done(result)
        return context.opened(inner, name, result)

    @wraps(method)
    async def call_and_await(*args: object, **kwargs: object) -> object:
        with reporter.operation(operation(args, kwargs)) as done:
            result = await cast("Awaitable[object]", method(*args, **kwargs))
            done(result)
        return context.opened(inner, name, result)

    return call_and_await if iscoroutinefunction(method) else call
