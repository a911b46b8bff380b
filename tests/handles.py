"""All kinds of handles with their awaited twins, and handles on what another handle has open."""

from __future__ import annotations

from holdfast import Chat, Memory, Run, Scratchpad, View, aio
from holdfast.handle import MemoryHandle
from holdfast.learning.service import Learner
from holdfast.records.grants import Grants
from holdfast.records.quarantine import Quarantine

FACETS: tuple[type, ...] = (Learner, Quarantine, Grants)
TWINS: dict[type, type] = {
    Memory: aio.AsyncMemory,
    Chat: aio.AsyncChat,
    Run: aio.AsyncRun,
    View: aio.AsyncView,
    Learner: aio.AsyncLearner,
    Quarantine: aio.AsyncQuarantine,
    Grants: aio.AsyncGrants,
    Scratchpad: aio.AsyncScratchpad,
}


def memory_of(chat: Chat) -> Memory:
    """Return a memory on the database of a chat, for its scope."""
    memory = object.__new__(Memory)
    MemoryHandle.__init__(memory, chat._runtime, chat._scope)
    return memory
