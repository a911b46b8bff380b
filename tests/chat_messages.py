"""Messages of chats, as tests append and compare them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from holdfast import Chat, Message
from holdfast.messages.openai import paired
from holdfast.prompt.build import DEFAULTS, _messages

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NO_COUNTS = [-1, True, False, 1.5, "3", -(10**30), float("nan")]


def contents(messages: Iterable[Message]) -> list[str]:
    return [message.content for message in messages]


def seqs(messages: Iterable[Message]) -> list[int]:
    return [message.seq for message in messages]


def say(chat: Chat, *words: str) -> list[Message]:
    return chat.append([Message("user", word) for word in words])


def to_chat(messages: Iterable[Message]) -> tuple[dict[str, object], ...]:
    """Return messages as a prompt has them, in the form of OpenAI."""
    return paired(part.item for part in _messages(tuple(messages), DEFAULTS))
