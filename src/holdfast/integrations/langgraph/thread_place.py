"""What a config of LangGraph names: a thread, a namespace, a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.integrations.framework_keys import chat_id

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig


class ThreadPlace(NamedTuple):
    """What a config names: a thread and its chat, a namespace, and a checkpoint, or "" for the newest."""

    thread: str
    chat: str
    ns: str
    id: str

    @classmethod
    def of(cls, config: RunnableConfig) -> ThreadPlace:
        """Return the place of a config.

        Raises:
            InvalidInput: it names no thread.

        """
        given = configurable(config)
        if "thread_id" not in given:
            raise InvalidInput("The config names no thread.", 'Pass {"configurable": {"thread_id": …}}.')
        thread = str(given["thread_id"])
        return cls(
            thread,
            thread_chat(thread),
            str(given.get("checkpoint_ns", "")),
            str(given.get("checkpoint_id") or ""),
        )


def thread_chat(thread_id: str) -> str:
    """Return the id of the chat of a thread."""
    return chat_id("langgraph", str(thread_id))


def configurable(config: RunnableConfig) -> Mapping[str, object]:
    """Return what a config names."""
    return config.get("configurable", {})


def to_config(thread: str, ns: str, id: str) -> RunnableConfig:
    """Return the config of a checkpoint."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}}
