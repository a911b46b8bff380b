"""A plugin of pytest that runs LangChain's tests of chat message histories on ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from uuid import uuid4

from langchain_core import chat_history
from langchain_core.messages import BaseMessage

from holdfast import Memory
from holdfast.integrations.langchain import HoldfastChatMessageHistory

DOCUMENTED = ("reads what LangChain's own class says of its deprecation", AssertionError)
NOT_PORTABLE: dict[str, tuple[str, type[BaseException]]] = {
    "test_chat_history_deprecated[InMemoryChatMessageHistory]": DOCUMENTED,
}
"""The tests that only LangChain's own history can pass: why, and with which error they end."""


class InMemoryChatMessageHistory(HoldfastChatMessageHistory):
    """Our history with the constructor and the equality of LangChain's: it opens a memory of its own."""

    def __init__(self, messages: Sequence[BaseMessage] = ()) -> None:
        memory = Memory(os.environ.get("REBOUND_ON", ":memory:"), user=uuid4().hex, durability="normal")
        super().__init__(memory, "session")
        self.add_messages(messages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InMemoryChatMessageHistory) and self.messages == other.messages

    __hash__ = None  # type: ignore[assignment]  # as of LangChain's, which is a model of pydantic


def pytest_configure() -> None:
    # mypy lets no class take the place of another.
    setattr(chat_history, "InMemoryChatMessageHistory", InMemoryChatMessageHistory)  # noqa: B010
