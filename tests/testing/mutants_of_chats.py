"""Defects in the core: what is said, and what a window shows of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from mutant import Method, Mutant, fake_with, ignoring, of_chats, of_provider, returning

from fake_chat import FakeChat, Space
from fake_log import Log
from fake_provider import FakeProvider
from holdfast import ChatStats, Message, Window
from holdfast.testing.case import FullChat, full_window
from holdfast.types import Scope


def backwards(window: Window) -> Window:
    return replace(window, messages=window.messages[::-1])


def without_omissions(window: Window) -> Window:
    return replace(window, omitted=())


def at_least_one(chat: FullChat, budget: int = 8_000, *, tail: int = 0) -> Window:
    return chat.window(budget, tail=tail or 1)


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


def from_zero(stored: list[Message]) -> list[Message]:
    return [replace(one, seq=one.seq - 1) for one in stored]


def in_seconds(message: Message) -> Message:
    return replace(message, at=message.at and message.at.replace(microsecond=0))


def shortened(message: Message) -> Message:
    return replace(message, content=message.content[:65_536])


def trimmed(message: Message) -> Message:
    return replace(message, content=" ".join(message.content.split()))


def of_the_user(message: Message) -> Message:
    return replace(message, role="user" if message.role == "developer" else message.role)


class RacyChat(FakeChat):
    """Read, think, write: whoever wrote meanwhile is lost."""

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        log = self._space.logs.setdefault(self.id, Log(self.id, ""))
        copy = replace(log, messages=list(log.messages))
        stored = copy.append(messages)
        time.sleep(0)  # let other threads go on
        log.messages = copy.messages
        return stored


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


def named_by_its_words(message: Message) -> Message:
    return replace(message, id=message.id or sha256(message.content.encode()).hexdigest())


def with_words_only(chat: FullChat, messages: Sequence[Message]) -> list[Message]:
    return chat.append([one for one in messages if one.content])


def flat(message: Message) -> Message:
    """Write the arguments of calls as texts, and lose those that are no object."""
    calls = []
    for one in message.calls:
        given = {} if isinstance(one.arguments, str) else one.arguments
        calls.append(replace(one, arguments={name: str(value) for name, value in given.items()}))
    return replace(message, calls=tuple(calls))


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
    of_chats("messages out of order", "core", window=returning("window", backwards)),
    of_chats("the tail is cut", "core", window=ignoring("window", tail=0)),
    of_chats("a tail of 0 keeps one", "core", window=at_least_one),
    of_chats("a tail longer than the chat is none", "core", window=collapsed_tail),
    of_chats("a call and its result are parted", "core", window=single_messages),
    of_chats("the budget is ignored", "core", window=ignoring("window", budget=10**9)),
    of_chats("what is left out is not stated", "core", window=returning("window", without_omissions)),
    of_chats("stats of an unknown chat raise", "core", stats=unknown_raises),
    of_chats("a batch is stored one by one", "core", append=one_by_one),
    of_chats("text and calls are two messages", "core", append=calls_apart),
    of_chats("numbers begin with 0", "core", append=returning("append", from_zero)),
    of_chats("times are lost", "core", append=changing(lambda one: replace(one, at=datetime.now(UTC)))),
    of_chats("times are cut to seconds", "core", append=changing(in_seconds)),
    of_chats("long messages are cut", "core", append=changing(shortened)),
    of_chats("words are trimmed", "core", append=changing(trimmed)),
    of_chats("speakers lose their names", "core", append=changing(lambda one: replace(one, name=None))),
    of_chats("messages are known by their words", "core", append=changing(named_by_its_words)),
    of_chats("messages without words are dropped", "core", append=with_words_only),
    of_chats("arguments of calls are made flat", "core", append=changing(flat)),
    of_chats("instructions are the user's", "core", append=changing(of_the_user)),
    of_chats(
        "payloads have floats only", "core", append=changing(lambda one: replace(one, raw=floats(one.raw)))
    ),
    of_chats("stats have to be awaited", "core", stats=returning("stats", Later)),
    of_chats("only the newest thousand are kept", "core", window=ring),
    of_provider("all chats are one", "core", chat=lambda memory, _: memory.chat("c")),
    of_provider("ids are stripped", "core", chat=lambda memory, id_: memory.chat(id_.strip())),
    of_provider(
        "ids are written down as words", "core", chat=lambda memory, id_: memory.chat(re.sub(r"\W", "_", id_))
    ),
    of_provider("a timeline has no end", "timeline", timeline=ignoring("timeline", until=None)),
    of_provider("a timeline has one page", "timeline", timeline=ignoring("timeline", cursor=None)),
    of_provider("everybody is the same user", "scopes", scoped=lambda memory, **_: memory.scoped()),
    Mutant("an append is lost when two come at once", "core", fake_with(RacyChat)),
    Mutant("a name is a method", "core", lambda _: Called()),
    Mutant("a handle reads once", "core", fake_with(StaleChat)),
    Mutant("a failed append takes numbers", "core", fake_with(GappyChat)),
)
