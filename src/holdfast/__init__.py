"""Memory for LLM agents: nothing is lost, everything is found, every change is explained."""

from typing import TYPE_CHECKING

from holdfast.acting_as import acting_as
from holdfast.errors import (
    BudgetExceeded,
    Closed,
    Conflict,
    Damaged,
    Denied,
    HoldfastError,
    InvalidInput,
    MissingExtra,
    ModelFailed,
    NewerSchema,
    Unavailable,
    UnknownFormat,
    mask_errors_with,
)
from holdfast.kinds import Kind, Thresholds
from holdfast.memory import Memory
from holdfast.records.view import View
from holdfast.safety.guard import find_flags, mask, undisguise
from holdfast.scratchpad import Scratchpad
from holdfast.types import (
    Change,
    ChatInfo,
    ChatStats,
    CompactionResult,
    Description,
    Erasure,
    Expansion,
    ExplainedWord,
    Explanation,
    Finding,
    Hit,
    Hits,
    Job,
    Message,
    Omission,
    Prompt,
    Receipt,
    Record,
    Role,
    Scope,
    Shortened,
    Summary,
    ToolCall,
    Verification,
    Why,
    Window,
    Wording,
    Writer,
)
from holdfast.types.messages import find_flags_with, undo_disguises_with

if TYPE_CHECKING:
    from holdfast.chat import Chat
    from holdfast.events import Event
    from holdfast.learning.ranking import Ranking
    from holdfast.learning.results import Extraction, Relearning, Usage, WorkResult
    from holdfast.run import Run
    from holdfast.settings import Learning, Limit
    from holdfast.tools.tool import Tool

__all__ = [
    "BudgetExceeded",
    "Change",
    "Chat",
    "ChatInfo",
    "ChatStats",
    "Closed",
    "CompactionResult",
    "Conflict",
    "Damaged",
    "Denied",
    "Description",
    "Erasure",
    "Event",
    "Expansion",
    "ExplainedWord",
    "Explanation",
    "Extraction",
    "Finding",
    "Hit",
    "Hits",
    "HoldfastError",
    "InvalidInput",
    "Job",
    "Kind",
    "Learning",
    "Limit",
    "Memory",
    "Message",
    "MissingExtra",
    "ModelFailed",
    "NewerSchema",
    "Omission",
    "Prompt",
    "Ranking",
    "Receipt",
    "Record",
    "Relearning",
    "Role",
    "Run",
    "Scope",
    "Scratchpad",
    "Shortened",
    "Summary",
    "Thresholds",
    "Tool",
    "ToolCall",
    "Unavailable",
    "UnknownFormat",
    "Usage",
    "Verification",
    "View",
    "Why",
    "Window",
    "Wording",
    "WorkResult",
    "Writer",
    "acting_as",
]

# Errors and names are below the guard, which knows what they may display.
mask_errors_with(mask)
undo_disguises_with(undisguise)
find_flags_with(find_flags)

__version__ = "0.1.0"

# What a program that only asks does not need is imported when it is first named.
_LATE = {
    "Chat": "chat",
    "Event": "events",
    "Extraction": "learning.results",
    "Learning": "settings",
    "Limit": "settings",
    "Ranking": "learning.ranking",
    "Relearning": "learning.results",
    "Run": "run",
    "Tool": "tools.tool",
    "Usage": "learning.results",
    "WorkResult": "learning.results",
}


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"holdfast.{_LATE[name]}"), name)
    globals()[name] = value
    return value
