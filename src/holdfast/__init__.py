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
    UnreleasedSchema,
    mask_errors_with,
)
from holdfast.safety.guard import find_flags, mask, scan, undisguise
from holdfast.types import (
    Hit,
    Hits,
    Message,
    Record,
    Role,
    Scope,
    ToolCall,
    Writer,
)
from holdfast.types.late import importer
from holdfast.types.messages import find_flags_with, undo_disguises_with

if TYPE_CHECKING:
    from holdfast.chat import Chat
    from holdfast.compaction.message_summary import summarize
    from holdfast.events import Event
    from holdfast.kinds import Kind
    from holdfast.learning.ranking import Ranking
    from holdfast.learning.results import Extraction, Relearning, Usage, WorkResult
    from holdfast.memory import Memory
    from holdfast.records.view import View
    from holdfast.run import Run
    from holdfast.scratchpad import Scratchpad
    from holdfast.settings import Learning, Limit
    from holdfast.tools.tool import Tool
    from holdfast.types import (
        Change,
        ChatInfo,
        ChatStats,
        CompactionResult,
        Erasure,
        Explanation,
        Grant,
        Job,
        Prompt,
        Summary,
        Window,
    )

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
    "Erasure",
    "Event",
    "Explanation",
    "Extraction",
    "Grant",
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
    "Prompt",
    "Ranking",
    "Record",
    "Relearning",
    "Role",
    "Run",
    "Scope",
    "Scratchpad",
    "Summary",
    "Tool",
    "ToolCall",
    "Unavailable",
    "UnknownFormat",
    "UnreleasedSchema",
    "Usage",
    "View",
    "Window",
    "WorkResult",
    "Writer",
    "acting_as",
    "scan",
    "summarize",
]

# Errors and names are below the guard, which knows what they may display.
mask_errors_with(mask)
undo_disguises_with(undisguise)
find_flags_with(find_flags)

__version__ = "0.1.0"

# What most programs, or those that only ask, do not need is imported when it is first named.
__getattr__ = importer(
    "holdfast",
    {
        "chat": "Chat",
        "compaction.message_summary": "summarize",
        "events": "Event",
        "kinds": "Kind",
        "learning.ranking": "Ranking",
        "learning.results": "Extraction Relearning Usage WorkResult",
        "memory": "Memory",
        "records.view": "View",
        "run": "Run",
        "scratchpad": "Scratchpad",
        "settings": "Learning Limit",
        "tools.tool": "Tool",
        "types": (
            "Change ChatInfo ChatStats CompactionResult Erasure Explanation Grant Job Prompt Summary Window"
        ),
    },
)
