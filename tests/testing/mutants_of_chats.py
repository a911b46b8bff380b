"""Defects in the core: what is said, and what a window shows of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256

from mutant import Method, ignoring, of_chats, of_provider, returning

from holdfast import Message, Window
from holdfast.testing.case import FullChat, full_window


def backwards(window: Window) -> Window:
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


def changing(change: Callable[[Message], Message]) -> Method:
    """Change each message before it is stored."""
    return lambda chat, messages: chat.append([change(message) for message in messages])


def trimmed(message: Message) -> Message:
    return replace(message, content=" ".join(message.content.split()))


def given_up(chat: FullChat, messages: Sequence[Message]) -> list[Message]:
    """Read, think, write: what is to be written is lost if another wrote meanwhile."""
    before = chat.stats().messages
    time.sleep(0)  # let other threads go on
    return chat.append(messages) if chat.stats().messages == before else []


# What authors get wrong


def named_by_its_words(message: Message) -> Message:
    return replace(message, id=message.id or sha256(message.content.encode()).hexdigest())


CORE = (
    of_chats("messages out of order", "core", window=returning("window", backwards)),
    of_chats("a call and its result are parted", "core", window=single_messages),
    of_chats("the budget is ignored", "core", window=ignoring("window", budget=10**9)),
    of_chats("words are trimmed", "core", append=changing(trimmed)),
    of_chats("messages are known by their words", "core", append=changing(named_by_its_words)),
    of_provider("a timeline has no end", "timeline", timeline=ignoring("timeline", until=None)),
    of_provider("a timeline has one page", "timeline", timeline=ignoring("timeline", cursor=None)),
    of_provider("everybody is the same user", "scopes", scoped=lambda memory, **_: memory.scoped()),
    of_chats("an append is lost when two come at once", "core", append=given_up),
    of_provider("a name is a method", "core", name=lambda _: "called"),
)
