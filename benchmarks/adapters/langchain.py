"""Histories of LangChain, beside that of langchain-community which is stored in a file."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_to_dict

from benchmarks.adapters import Call
from holdfast.integrations.langchain import HoldfastChatMessageHistory
from holdfast.memory import Memory

if TYPE_CHECKING:
    from langchain_core.chat_history import BaseChatMessageHistory

_NEWEST = 20  # messages that ours reads with a limit, which the other does not have
_NAME = "FileChatMessageHistory"


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Open a history of each with so many messages, and return the calls of a turn."""
    messages = [_message(n) for n in range(size)]
    with Memory(folder / "holdfast.db") as memory:
        ours = HoldfastChatMessageHistory(memory, "trip")
        newest = HoldfastChatMessageHistory(memory, "trip", limit=_NEWEST)
        ours.add_messages(messages)
        theirs = _in_file(folder / "theirs.json", messages)

        def added(history: BaseChatMessageHistory, number: int) -> None:
            history.add_messages([_message(number), _message(number + 1)])

        yield [
            Call("add 2 messages", lambda n: added(ours, n), lambda n: added(theirs, n), _NAME),
            Call("read all messages", lambda _: ours.messages, lambda _: theirs.messages, _NAME),
            Call(f"read {_NEWEST}, theirs all", lambda _: newest.messages, lambda _: theirs.messages, _NAME),
        ]


def _in_file(path: Path, messages: list[BaseMessage]) -> BaseChatMessageHistory:
    # Its own method writes the whole file for each message.
    path.write_text(json.dumps(messages_to_dict(messages)), "utf-8")
    # It says that nobody maintains it.
    with warnings.catch_warnings(action="ignore"):
        module = import_module("langchain_community.chat_message_histories")
        history: BaseChatMessageHistory = module.FileChatMessageHistory(str(path))
    return history


def _message(number: int) -> BaseMessage:
    text = f"Message {number} about the marathon in Berlin, and how to train for it."
    return AIMessage(text) if number % 2 else HumanMessage(text)
