"""Wrapping: what stands for a provider, a chat, a view or a run, and tells of all that is asked of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from inspect import iscoroutinefunction, isfunction, isroutine
from typing import Any, Literal, TypeVar, cast

from holdfast.contract import METHODS
from holdfast.providers.tracing.operation import Operation, query
from holdfast.providers.tracing.telling import Telling
from holdfast.text.clean import clean
from holdfast.types import MAX_NAME, Scope

T = TypeVar("T")
Noun = Literal["provider", "chat", "view", "run", "part"]
# What gives another handle, which is traced in its turn.
_GIVES: Mapping[Noun, Mapping[str, Noun]] = {
    "provider": {
        "chat": "chat",
        "scoped": "provider",
        "at": "view",
        "aio": "provider",
        "learning": "part",
        "quarantine": "part",
        # With which our own memory makes tools.
        "_fixed": "provider",
    },
    "chat": {"run": "run"},
    "run": {"chat": "chat"},
    "view": {},
    "part": {},
}
_OF_THE_CONTRACT = (
    "chat",
    "scoped",
    "at",
    "learning",
)  # the other names may mean something else to another provider
_SILENT = ("chat", "scoped", "_fixed", "on")  # what asks no store for anything
_METHODS = frozenset(
    (
        "append",
        "window",
        "stats",
        "close",
        *(name for parts in METHODS.values() for names in parts for name in names),
    )
)
_OVER = ("tools",)  # what makes something over the memory that it is called on, which is then the traced one


def unwrap(provider: T) -> T:
    """Return what is behind all wrappers of `traced`: the provider, chat, view or run itself."""
    inner: object = provider
    while isinstance(inner, _Traced):
        inner = inner.__wrapped__
    return cast("T", inner)


@dataclass(frozen=True, slots=True)
class Place:
    """Where operations take place: with which provider, and for whom and in which chat, as far as that is fixed."""

    telling: Telling
    provider: str
    scope: Scope | None = None
    chat: str = ""

    def of(self, handle: object) -> Place:
        """Return the place of a handle as of now."""
        scope = getattr(handle, "scope", None)
        return replace(self, scope=scope) if isinstance(scope, Scope) else self


class _Traced:
    """Stand for a provider, a chat, a view or a run: all that is asked of it is asked of that, and told."""

    __slots__ = ("__wrapped__", "_traced")

    def __init__(self, inner: object, noun: Noun, place: Place) -> None:
        self.__wrapped__ = inner
        self._traced = (noun, place)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)  # also of an empty copy, which has no `__wrapped__`
        value = getattr(self.__wrapped__, name)
        noun, _ = self._traced
        return value if name.startswith("_") and name not in _GIVES[noun] else _attribute(self, name, value)

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


class _With(_Traced):
    """The same, of what is a context manager."""

    __slots__ = ()

    def __enter__(self) -> object:
        inner: Any = self.__wrapped__
        entered = inner.__enter__()
        return self if entered is inner else entered

    def __exit__(self, *error: object) -> object:
        inner: Any = self.__wrapped__
        return inner.__exit__(*error)


class _AsyncWith(_Traced):
    """The same, of what is an asynchronous one."""

    __slots__ = ()

    async def __aenter__(self) -> object:
        inner: Any = self.__wrapped__
        entered = await inner.__aenter__()
        return self if entered is inner else entered

    async def __aexit__(self, *error: object) -> object:
        inner: Any = self.__wrapped__
        return await inner.__aexit__(*error)


class _BothWith(_With, _AsyncWith):
    """The same, of what is both."""

    __slots__ = ()


class _Iterated(_Traced):
    """The same, of what is iterated over: the records in quarantine."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        inner: Any = self.__wrapped__
        return iter(self._read(lambda: list(inner)))

    async def __aiter__(self) -> AsyncIterator[object]:
        inner: Any = self.__wrapped__

        async def read() -> list[object]:
            return [one async for one in inner]

        for one in await self._read(read):
            yield one

    def _read(self, read: Callable[[], object]) -> Any:
        _, place = self._traced
        return _method(self.__wrapped__, "quarantine", read, lambda given: given, place)()


_KINDS = {(False, False): _Traced, (True, False): _With, (False, True): _AsyncWith, (True, True): _BothWith}


def wrap(inner: object, noun: Noun, place: Place) -> _Traced:
    """Make what stands for a provider, a chat, a view or a run; it is a context manager if that is one."""
    if hasattr(type(inner), "__iter__") or hasattr(type(inner), "__aiter__"):
        return _Iterated(inner, noun, place)
    entered = hasattr(type(inner), "__enter__"), hasattr(type(inner), "__aenter__")
    return _KINDS[entered](inner, noun, place)


def _attribute(handle: _Traced, name: str, value: object) -> object:
    """Return what a name of a handle stands for, so that what is done with it is told."""
    noun, place = handle._traced  # noqa: SLF001 - our own
    inner, gives = handle.__wrapped__, _GIVES[noun].get(name)

    def wrapped(given: object) -> object:
        return _opened(inner, given, gives, place) if gives and _is_handle(name, given) else given

    made = getattr(type(unwrap(handle)), name, None) if name in _OVER else None
    if isfunction(made):
        return _made_over(handle, made)
    if isroutine(value) or (callable(value) and (name in _METHODS or gives)):
        return _method(inner, name, value, wrapped, place)
    return wrapped(value)


def _is_handle(name: str, given: object) -> bool:
    if given is None:
        return False
    return name in _OF_THE_CONTRACT or type(given).__module__.startswith("holdfast.")


def _made_over(handle: _Traced, method: Callable[..., object]) -> Callable[..., object]:
    """Make the method that makes over a traced handle what another one makes over the handle itself."""

    @wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        given = {name: _spoken_to(value) for name, value in kwargs.items()}
        return method(_spoken_to(handle), *map(_spoken_to, args), **given)

    return call


def _spoken_to(thing: object) -> object:
    """Return what stands for a traced handle where it is made over: an awaited one over the traced one that it awaits."""
    if not isinstance(thing, _Traced):
        return thing
    noun, place = thing._traced  # noqa: SLF001 - our own
    inner: Any = _spoken_to(thing.__wrapped__)
    # A handle of `holdfast.aio` has one, that of the handle which it awaits.
    if not hasattr(inner, "__wrapped__"):
        return thing
    awaited = copy(inner)
    awaited.__wrapped__ = wrap(inner.__wrapped__, noun, place)
    return awaited


def _opened(opener: object, inner: object, noun: Noun, place: Place) -> _Traced:
    """Wrap what a handle gave: it belongs to the same, and a chat stays with whom it was opened for."""
    place = place.of(opener)
    if noun == "chat":
        place = replace(place, chat=str(getattr(inner, "id", "")))
    return wrap(inner, noun, place)


def _method(
    inner: object,
    name: str,
    method: Callable[..., object],
    wrapped: Callable[[object], object],
    place: Place,
) -> Callable[..., object]:
    """Make the method that does what another one does, and tells of it."""

    def began(args: Sequence[object], kwargs: Mapping[str, object]) -> Operation:
        scope, chat = place.of(inner).scope, place.chat or kwargs.get("chat")
        return Operation(
            name,
            place.provider,
            store=scope.space if scope else "",
            agent=scope.agent if scope else "",
            chat=clean(chat[:MAX_NAME]) if isinstance(chat, str) else "",
            query=query(method, args, kwargs) if place.telling.content else "",
        )

    @wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        if name in _SILENT:
            return wrapped(method(*args, **kwargs))
        with place.telling.operation(began(args, kwargs)) as give:
            result = method(*args, **kwargs)
            give(result)
        return wrapped(result)

    @wraps(method)
    async def call_and_await(*args: object, **kwargs: object) -> object:
        with place.telling.operation(began(args, kwargs)) as give:
            result = await cast("Awaitable[object]", method(*args, **kwargs))
            give(result)
        return wrapped(result)

    return call_and_await if iscoroutinefunction(method) else call
