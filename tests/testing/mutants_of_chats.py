"""Defects in the core: what is said, and what a window shows of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from mutant import Method, Mutant, fake_with, of_chats, of_provider

from fake_chat import FakeChat, Space
from fake_log import Log
from fake_provider import FakeProvider
from holdfast import ChatStats, Message, Window
from holdfast.testing.case import FullChat, full_window
from holdfast.types import Scope


def reversed_window(chat: FullChat, budget: int = 8_000, *, tail: int | None = None) -> Window:
    window = chat.window(budget, tail=tail)
    return replace(window, messages=window.messages[::-1])


def single_messages(chat: FullChat, budget: int = 8_000, *, tail: int | None = None) -> Window:
    """Take one message after the other, whatever belongs together."""
    window, kept, tokens = full_window(chat), list[Message](), 0
    for message in reversed(window.messages):
        if tokens + message.tokens > budget and len(kept) >= (1 if tail is None else tail):
            break
        kept.insert(0, message)
        tokens += message.tokens
    return replace(window, messages=tuple(kept), tokens=tokens, budget=budget)


def collapsed_tail(chat: FullChat, budget: int = 8_000, *, tail: int | None = None) -> Window:
    short = tail is not None and tail > chat.stats().messages
    return chat.window(budget, tail=0 if short else tail)


def unknown_raises(chat: FullChat) -> ChatStats:
    stats = chat.stats()
    if not stats.messages:
        raise KeyError(chat.id)
    return stats


def one_by_one(chat: FullChat, messages: Sequence[Message]) -> list[Message]:
    stored = []
    for message in messages:
        stored += chat.append([message])
        time.sleep(0)  # let other threads go on
    return stored


def calls_apart(chat: FullChat, messages: Sequence[Message]) -> list[Message]:
    """Store the text of an assistant and its calls as two messages."""
    parts = []
    for message in messages:
        if message.calls and message.content:
            parts += [replace(message, calls=()), replace(message, content="")]
        else:
            parts.append(message)
    return chat.append(parts)


def changing(change: Callable[[Message], Message]) -> Method:
    """Change each message before it is stored."""
    return lambda chat, messages: chat.append([change(message) for message in messages])


def numbered_from_zero(chat: FullChat, messages: Sequence[Message]) -> list[Message]:
    return [replace(message, seq=message.seq - 1) for message in chat.append(messages)]


class RacyChat(FakeChat):
    """Read, think, write: whoever wrote meanwhile is lost."""

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        log = self._space.logs.setdefault(self.id, Log(self.id, ""))
        copy = replace(log, messages=list(log.messages))
        stored = copy.append(messages)
        time.sleep(0)  # let other threads go on
        log.messages = copy.messages
        return stored


class CachingChat(FakeChat):
    """Show through each handle what it has shown before, until something is appended through it."""

    def __init__(self, name: str, scope: Scope, space: Space) -> None:
        super().__init__(name, scope, space)
        self._shown: dict[object, Window] = {}

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        self._shown.clear()
        return super().append(messages)

    def window(self, budget: int = 8_000, *, tail: int | None = None) -> Window:
        if (budget, tail) not in self._shown:
            self._shown[budget, tail] = super().window(budget, tail=tail)
        return self._shown[budget, tail]


def ring(chat: FullChat, budget: int = 8_000, *, tail: int | None = None) -> Window:
    """Keep the newest 1,000."""
    window, oldest = chat.window(budget, tail=tail), chat.stats().messages - 1_000
    return replace(window, messages=tuple(one for one in window.messages if one.seq > oldest))


def floats(value: object) -> Any:
    """Make all numbers floats, as some stores of documents do."""
    if isinstance(value, Mapping):
        return {name: floats(one) for name, one in value.items()}
    if isinstance(value, list):
        return [floats(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


# What authors get wrong


class StaleChat(FakeChat):
    """Read a chat when it is opened, and never again."""

    def __init__(self, name: str, scope: Scope, space: Space) -> None:
        super().__init__(name, scope, space)
        self._read = super()._log().messages.copy()

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        stored = super().append(messages)
        self._read = super()._log().messages.copy()
        return stored

    def _log(self) -> Log:
        return replace(super()._log(), messages=self._read.copy())


class GappyChat(FakeChat):
    """Take the numbers before it is known whether there is something to number."""

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        try:
            return [replace(one, seq=one.seq + self._lost()) for one in super().append(messages)]
        except AttributeError:
            self._space.scratchpad[self.id] = str(self._lost() + len(messages))
            raise

    def _lost(self) -> int:
        return int(self._space.scratchpad.get(self.id, "0"))


def named_by_their_words(chat: FullChat, messages: Sequence[Message]) -> list[Message]:
    ids = [one.id or sha256(one.content.encode()).hexdigest() for one in messages]
    return chat.append([replace(one, id=id_) for one, id_ in zip(messages, ids, strict=True)])


def with_words_only(chat: FullChat, messages: Sequence[Message]) -> list[Message]:
    return chat.append([one for one in messages if one.content])


def flat(message: Message) -> Message:
    """Write the arguments of calls as texts, and lose those that are no object."""
    calls = [
        replace(
            one,
            arguments={}
            if isinstance(one.arguments, str)
            else {k: _plain(v) for k, v in one.arguments.items()},
        )
        for one in message.calls
    ]
    return replace(message, calls=tuple(calls))


def _plain(value: object) -> object:
    return value if isinstance(value, str | int) else str(value)


class Later:
    """Be what has to be awaited for a result."""

    def __init__(self, given: object) -> None:
        self._given = given

    def __await__(self) -> Generator[None, None, object]:
        yield
        return self._given

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"Nobody awaited this, so it has no {name}.")


class Called(FakeProvider):
    """Have a method where a name is expected."""

    name = property(lambda _: lambda: "called")


CORE = (
    of_chats("messages out of order", "core", window=reversed_window),
    of_chats(
        "the tail is cut", "core", window=lambda chat, budget=8_000, tail=None: chat.window(budget, tail=0)
    ),
    of_chats(
        "a tail of 0 keeps one",
        "core",
        window=lambda chat, budget=8_000, tail=0: chat.window(budget, tail=tail or 1),
    ),
    of_chats("a tail longer than the chat is none", "core", window=collapsed_tail),
    of_chats("a call and its result are parted", "core", window=single_messages),
    of_chats(
        "the budget is ignored",
        "core",
        window=lambda chat, budget=8_000, tail=None: chat.window(10**9, tail=tail),
    ),
    of_chats(
        "what is left out is not stated",
        "core",
        window=lambda chat, budget=8_000, tail=None: replace(chat.window(budget, tail=tail), omitted=()),
    ),
    of_chats("stats of an unknown chat raise", "core", stats=unknown_raises),
    of_chats("a batch is stored one by one", "core", append=one_by_one),
    of_chats("text and calls are two messages", "core", append=calls_apart),
    of_chats("numbers begin with 0", "core", append=numbered_from_zero),
    of_chats("times are lost", "core", append=changing(lambda one: replace(one, at=datetime.now(UTC)))),
    of_chats(
        "long messages are cut",
        "core",
        append=changing(lambda one: replace(one, content=one.content[:65_536])),
    ),
    of_chats(
        "words are trimmed",
        "core",
        append=changing(lambda one: replace(one, content=" ".join(one.content.split()))),
    ),
    of_chats("speakers lose their names", "core", append=changing(lambda one: replace(one, name=None))),
    of_provider("all chats are one", "core", chat=lambda memory, _: memory.chat("c")),
    Mutant("an append is lost when two come at once", "core", fake_with(RacyChat)),
    of_provider("everybody is the same user", "scopes", scoped=lambda memory, **_: memory.scoped()),
    of_chats("messages are known by their words", "core", append=named_by_their_words),
    of_chats("messages without words are dropped", "core", append=with_words_only),
    of_chats("arguments of calls are made flat", "core", append=changing(flat)),
    of_chats(
        "instructions are the user's",
        "core",
        append=changing(lambda one: replace(one, role="user" if one.role == "developer" else one.role)),
    ),
    of_chats("stats have to be awaited", "core", stats=lambda chat: Later(chat.stats())),
    of_provider(
        "ids are written down as words", "core", chat=lambda memory, id_: memory.chat(re.sub(r"\W", "_", id_))
    ),
    Mutant("a name is a method", "core", lambda _: Called()),
    Mutant("a handle reads once", "core", fake_with(StaleChat)),
    Mutant("a failed append takes numbers", "core", fake_with(GappyChat)),
    Mutant("a window is cached per handle", "core", fake_with(CachingChat)),
    of_chats("only the newest thousand are kept", "core", window=ring),
    of_provider("ids are stripped", "core", chat=lambda memory, id_: memory.chat(id_.strip())),
    of_chats(
        "times are cut to seconds",
        "core",
        append=changing(lambda one: replace(one, at=one.at and one.at.replace(microsecond=0))),
    ),
    of_chats(
        "payloads have floats only", "core", append=changing(lambda one: replace(one, raw=floats(one.raw)))
    ),
)
