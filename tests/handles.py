"""Handles on what another handle has open."""

from __future__ import annotations

from holdfast import Chat, Memory
from holdfast.handle import MemoryHandle


def memory_of(chat: Chat) -> Memory:
    """Return a memory on the database of a chat, for its scope."""
    memory = object.__new__(Memory)
    MemoryHandle.__init__(memory, chat._runtime, chat._scope)
    return memory
