"""How a memory gets a defect: a wrapper that alters some of its methods, or of those of its chats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, cast

from holdfast import Memory
from holdfast.contract import Provider
from holdfast.testing.case import Group

Method = Callable[..., object] | property
Methods = Mapping[str, Method]


class Altered:
    """A provider or a chat with other methods and properties, which get what they replace."""

    def __init__(self, inner: object, own: Methods, of_chats: Methods) -> None:
        self._inner = inner
        self._own = own
        self._of_chats = of_chats

    def __getattr__(self, name: str) -> Any:
        if name in self._own:
            own = self._own[name]
            return own.__get__(self._inner) if isinstance(own, property) else partial(own, self._inner)
        found = getattr(self._inner, name)
        if name == "chat":
            return lambda id_: Altered(found(id_), self._of_chats, {})
        if name == "scoped":
            return lambda **scope: Altered(found(**scope), self._own, self._of_chats)
        return found


def memory() -> Memory:
    """Make a memory that may be scoped to any user."""
    return Memory(":memory:", user="ada", admin=True)


def altered(inner: object, own: Methods, of_chats: Methods) -> Provider:
    return cast("Provider", Altered(inner, own, of_chats))


def ignoring(name: str, **fixed: object) -> Method:
    """Call a method with fixed values for some arguments, whatever is passed."""

    def call(inner: object, *args: object, **options: object) -> object:
        method = getattr(inner, name)
        given = signature(method).bind(*args, **options)
        given.arguments.update(fixed)
        return method(*given.args, **given.kwargs)

    return call


def returning(name: str, change: Callable[[Any], object]) -> Method:
    """Change what a method returns."""
    return lambda inner, *args, **options: change(getattr(inner, name)(*args, **options))


def reverse(found: Sequence[object]) -> Sequence[object]:
    return found[::-1]


@dataclass(frozen=True)
class Mutant:
    """A defect, the group of cases that is to find it, and how it comes about."""

    defect: str
    group: Group
    make: Callable[[Memory], Provider]


def of_chats(defect: str, group: Group, **methods: Method) -> Mutant:
    return Mutant(defect, group, lambda inner: altered(inner, {}, methods))


def of_provider(defect: str, group: Group, **methods: Method) -> Mutant:
    return Mutant(defect, group, lambda inner: altered(inner, methods, {}))
