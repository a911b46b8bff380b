"""Episodes of chats, written as a user has them written: the chat ends, and a worker comes by."""

from __future__ import annotations

from holdfast import Learning, Memory, WorkResult


def episodic(location: str = ":memory:", **learning: object) -> Memory:
    """Open a memory that learns nothing but episodes."""
    how = Learning(kinds=("episode",), **learning)  # type: ignore[arg-type]  # as the caller names them
    return Memory(location, user="ada", admin=True, learning=how)


def learn(memory: Memory, chat: str, answer: str | None = None) -> WorkResult:
    """End a chat and have its episode written, by rules or as a model answers."""
    memory.chat(chat).end()
    return memory.learning.work(llm=None if answer is None else lambda _: answer)
