"""A plugin of pytest that runs LangChain's tests of chat message histories on ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from uuid import uuid4

import pytest
from langchain_core import chat_history
from langchain_core.messages import BaseMessage

from holdfast import Memory
from holdfast.integrations.langchain import HoldfastChatMessageHistory

DOCUMENTED = ("reads what LangChain's own class says of its deprecation", AssertionError)
NOT_PORTABLE: dict[str, tuple[str, type[Exception]]] = {
    "test_chat_history_deprecated[InMemoryChatMessageHistory]": DOCUMENTED,
}
"""The tests that only LangChain's own history can pass: why, and with which error they end.

It is an error if one passes, ends otherwise, or is no longer there.
"""


class InMemoryChatMessageHistory(HoldfastChatMessageHistory):
    """Our history with the constructor and the equality of LangChain's: it opens a memory of its own."""

    def __init__(self, messages: Sequence[BaseMessage] = ()) -> None:
        memory = Memory(os.environ.get("REBOUND_ON", ":memory:"), user=uuid4().hex, durability="normal")
        super().__init__(memory, "session")
        self.add_messages(messages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InMemoryChatMessageHistory) and self.messages == other.messages

    __hash__ = None  # type: ignore[assignment]  # as of LangChain's, which is a model of pydantic


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "asyncio: a test that is a coroutine")
    # mypy lets no class take the place of another.
    setattr(chat_history, "InMemoryChatMessageHistory", InMemoryChatMessageHistory)  # noqa: B010


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    left = dict(NOT_PORTABLE)
    for item in items:
        if ending := left.pop(item.name, None):
            item.add_marker(pytest.mark.xfail(reason=ending[0], raises=ending[1], strict=True))
    if left:
        raise pytest.UsageError(f"listed, but not among the tests: {', '.join(left)}")
