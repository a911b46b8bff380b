"""Messages of chats, as tests append and compare them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from holdfast import Chat, Message

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NO_COUNTS = [-1, True, False, 1.5, "3", -(10**30), float("nan")]


def contents(messages: Iterable[Message]) -> list[str]:
    return [message.content for message in messages]


def seqs(messages: Iterable[Message]) -> list[int]:
    return [message.seq for message in messages]


def say(chat: Chat, *words: str) -> list[Message]:
    return chat.append([Message("user", word) for word in words])
