"""Wrappers of providers, chats, views and runs, which report each operation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from inspect import iscoroutinefunction, isfunction, isroutine
from typing import Any, Literal, TypeVar, cast

from holdfast.contract import METHODS
from holdfast.providers.tracing.operation import Operation, query
from holdfast.providers.tracing.spans import Reporter
from holdfast.text.clean import clean
from holdfast.types import MAX_NAME, Scope

T = TypeVar("T")
HandleKind = Literal["provider", "chat", "view", "run", "facet"]
# The names of a handle that return another handle, which is wrapped as well. Those of the contract return one
# for every provider; `_fixed` is used by our own memory to make tools.
_CONTRACT: Mapping[str, HandleKind] = {
    "chat": "chat",
    "scoped": "provider",
    "at": "view",
    "learning": "facet",
}
_RETURNS: Mapping[HandleKind, Mapping[str, HandleKind]] = {
    "provider": {
        **_CONTRACT,
        "aio": "provider",
        "quarantine": "facet",
        "grants": "facet",
        "_fixed": "provider",
    },
    "chat": {"run": "run"},
    "run": {"chat": "chat"},
    "view": {},
    "facet": {},
}
# Operations that are not reported, as they read and write nothing.
_SILENT = ("chat", "scoped", "_fixed", "on")
_CORE = ("append", "window", "stats", "close")
_METHODS = {*_CORE, *(name for methods in METHODS.values() for names in methods for name in names)}


def unwrap(provider: T) -> T:
    """Return the provider, chat, view or run behind all wrappers of `traced`."""
    inner: object = provider
    while isinstance(inner, _Traced):
        inner = inner.__wrapped__
    return cast("T", inner)


@dataclass(frozen=True, slots=True)
class HandleContext:
    """What a handle is, and what its operations report: provider, and scope and chat where fixed."""

    reporter: Reporter
    provider: str
    kind: HandleKind = "provider"
    scope: Scope | None = None
    chat: str = ""

    def scope_of(self, handle: object) -> Scope | None:
        """Return the current scope of a handle, or the one that was fixed."""
        scope = getattr(handle, "scope", None)
        return scope if isinstance(scope, Scope) else self.scope


class _Traced:
    """A wrapper: it has the attributes of what it wraps, whose methods report their calls."""

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
        value, kind = getattr(inner, name), _RETURNS[context.kind].get(name)
        if name.startswith("_") and kind is None:
            return value
        # Tools are made for the wrapper, so that their calls are reported.
        method = getattr(type(unwrap(self)), name, None) if name == "tools" else None
        if isfunction(method):
            return _for_wrapper(self, method)

        def wrapped(result: object) -> object:
            return _opened(inner, result, kind, context) if kind and _is_handle(name, result) else result

        if isroutine(value) or (callable(value) and (name in _METHODS or kind)):
            return _reported(inner, name, value, wrapped, context)
        return wrapped(value)

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


class _Entered(_Traced):
    """The wrapper of a context manager."""

    __slots__ = ()

    def __enter__(self) -> object:
        entered = self.__wrapped__.__enter__()
        return self if entered is self.__wrapped__ else entered

    def __exit__(self, *error: object) -> object:
        return self.__wrapped__.__exit__(*error)


class _AsyncEntered(_Traced):
    """The wrapper of an asynchronous context manager."""

    __slots__ = ()

    async def __aenter__(self) -> object:
        entered = await self.__wrapped__.__aenter__()
        return self if entered is self.__wrapped__ else entered

    async def __aexit__(self, *error: object) -> object:
        return await self.__wrapped__.__aexit__(*error)


class _BothEntered(_Entered, _AsyncEntered):
    """The wrapper of both."""

    __slots__ = ()


class _Iterated(_Traced):
    """The wrapper of what is iterated over: the records in quarantine, grants."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        return iter(self._read(lambda: list(self.__wrapped__)))

    async def __aiter__(self) -> AsyncIterator[object]:
        async def read() -> list[object]:
            return [one async for one in self.__wrapped__]

        for one in await self._read(read):
            yield one

    def _read(self, read: Callable[[], object]) -> Any:
        name = "grants" if hasattr(self.__wrapped__, "revoke") else "quarantine"
        return _reported(self.__wrapped__, name, read, lambda result: result, self.__traced__)()


def wrap(inner: object, context: HandleContext) -> _Traced:
    """Return a wrapper of a handle, which can be entered or iterated over if the handle can."""
    kind = type(inner)
    if hasattr(kind, "__iter__") or hasattr(kind, "__aiter__"):
        return _Iterated(inner, context)
    if hasattr(kind, "__enter__"):
        return (_BothEntered if hasattr(kind, "__aenter__") else _Entered)(inner, context)
    return (_AsyncEntered if hasattr(kind, "__aenter__") else _Traced)(inner, context)


def _is_handle(name: str, result: object) -> bool:
    """Return whether a name that our own handles have means the same to a provider of another package."""
    return result is not None and (name in _CONTRACT or type(result).__module__.startswith("holdfast."))


def _opened(opener: object, inner: object, kind: HandleKind, context: HandleContext) -> _Traced:
    """Wrap the handle that another one returned, which belongs to the same scope; a chat keeps its id."""
    chat = str(getattr(inner, "id", "")) if kind == "chat" else context.chat
    return wrap(inner, replace(context, kind=kind, scope=context.scope_of(opener), chat=chat))


def _for_wrapper(handle: _Traced, method: Callable[..., object]) -> Callable[..., object]:
    """Return a method of a handle that runs with its wrapper in its place."""

    @wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        given = {name: _as_argument(value) for name, value in kwargs.items()}
        return method(_as_argument(handle), *map(_as_argument, args), **given)

    return call


def _as_argument(value: object) -> object:
    """Return a wrapper as it is passed on: that of an awaited handle as an awaited handle of a wrapper."""
    if not isinstance(value, _Traced):
        return value
    inner: Any = _as_argument(value.__wrapped__)
    # Only handles of `holdfast.aio` have it.
    if not hasattr(inner, "__wrapped__"):
        return value
    awaited = copy(inner)
    awaited.__wrapped__ = wrap(inner.__wrapped__, value.__traced__)
    return awaited


def _reported(
    inner: object,
    name: str,
    method: Callable[..., object],
    wrapped: Callable[[object], object],
    context: HandleContext,
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
            return wrapped(method(*args, **kwargs))
        with reporter.operation(operation(args, kwargs)) as done:
            result = method(*args, **kwargs)
            done(result)
        return wrapped(result)

    @wraps(method)
    async def call_and_await(*args: object, **kwargs: object) -> object:
        with reporter.operation(operation(args, kwargs)) as done:
            result = await cast("Awaitable[object]", method(*args, **kwargs))
            done(result)
        return wrapped(result)

    return call_and_await if iscoroutinefunction(method) else call
