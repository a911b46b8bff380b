"""Google's ADK: its sessions and its memory, in a memory.

>>> sessions, remembered = HoldfastSessionService(memory), HoldfastMemoryService(memory)   # doctest: +SKIP
>>> Runner(app_name="coach", agent=agent, session_service=sessions,                        # doctest: +SKIP
...        memory_service=remembered)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.types.late import importer

if TYPE_CHECKING:
    from holdfast.integrations.google_adk.memory_service import HoldfastMemoryService
    from holdfast.integrations.google_adk.session_service import HoldfastSessionService

__all__ = ["HoldfastMemoryService", "HoldfastSessionService"]

__getattr__ = importer(
    "holdfast.integrations.google_adk",
    {"memory_service": "HoldfastMemoryService", "session_service": "HoldfastSessionService"},
)
