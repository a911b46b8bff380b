"""Memory for LLM agents: nothing is lost, everything is found, every change is explained."""

from holdfast.acting import acting
from holdfast.chat import Chat
from holdfast.errors import (
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
)
from holdfast.kinds import Kind
from holdfast.memory import Memory
from holdfast.pad import Pad
from holdfast.run import Run
from holdfast.types import (
    Change,
    ChatInfo,
    ChatStats,
    CompactionResult,
    Description,
    Erasure,
    Expansion,
    Finding,
    Hit,
    Job,
    Message,
    Omission,
    Prompt,
    Record,
    Role,
    Scope,
    Summary,
    ToolCall,
    Verification,
    Why,
    Window,
    Writer,
)
from holdfast.view import View

__all__ = [
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
    "Expansion",
    "Finding",
    "Hit",
    "HoldfastError",
    "InvalidInput",
    "Job",
    "Kind",
    "Memory",
    "Message",
    "MissingExtra",
    "ModelFailed",
    "NewerSchema",
    "Omission",
    "Pad",
    "Prompt",
    "Record",
    "Role",
    "Run",
    "Scope",
    "Summary",
    "ToolCall",
    "Unavailable",
    "UnknownFormat",
    "Verification",
    "View",
    "Why",
    "Window",
    "Writer",
    "acting",
]

__version__ = "0.1.0"
