"""How a provider gets a defect: a wrapper that alters some methods, or another class in the fake."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, cast

from fake_chat import FakeChat
from fake_ledger import Ledger
from fake_provider import FakeProvider
from holdfast.contract import Provider
from holdfast.testing.case import Group

Method = Callable[..., object]


class Altered:
    """A provider or a chat with other methods, whose first argument is what they replace."""

    def __init__(self, inner: object, own: dict[str, Method], of_chats: dict[str, Method]) -> None:
        self._inner = inner
        self._own = own
        self._of_chats = of_chats

    def __getattr__(self, name: str) -> Any:
        if name in self._own:
            return partial(self._own[name], self._inner)
        found = getattr(self._inner, name)
        if name == "chat":
            return lambda id_: Altered(found(id_), self._of_chats, {})
        if name == "scoped":
            return lambda **scope: Altered(found(**scope), self._own, self._of_chats)
        return found


def altered(inner: object, own: dict[str, Method], of_chats: dict[str, Method]) -> Provider:
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
    make: Callable[[Provider], Provider]


def of_chats(defect: str, group: Group, **methods: Method) -> Mutant:
    return Mutant(defect, group, lambda inner: altered(inner, {}, methods))


def of_provider(defect: str, group: Group, **methods: Method) -> Mutant:
    return Mutant(defect, group, lambda inner: altered(inner, methods, {}))


def fake_with(chat: type[FakeChat]) -> Callable[[Provider], Provider]:
    """Make a fake whose chats are others."""

    class Mutated(FakeProvider):
        def chat(self, name: str, /) -> FakeChat:
            return chat(name, self._scope, self._space)

    return lambda _: Mutated()


def fake_that_knows(ledger: type[Ledger]) -> Callable[[Provider], Provider]:
    """Make a fake that keeps records otherwise."""

    def make(_: Provider) -> Provider:
        fake = FakeProvider()
        fake._space.ledger = fake._ledger = ledger(fake._lock)
        return fake

    return make
