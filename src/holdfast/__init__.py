"""Memory for LLM agents: nothing is lost, everything is found, every change is explained."""

from holdfast.chat import Chat
from holdfast.errors import (
    Closed,
    Conflict,
    Damaged,
    HoldfastError,
    InvalidInput,
    MissingExtra,
    NewerSchema,
    Unavailable,
    UnknownFormat,
)
from holdfast.memory import Memory
from holdfast.types import (
    ChatInfo,
    ChatStats,
    Hit,
    Message,
    Omission,
    Prompt,
    Role,
    Scope,
    ToolCall,
    Verification,
    Why,
    Window,
)

__all__ = [
    "Chat",
    "ChatInfo",
    "ChatStats",
    "Closed",
    "Conflict",
    "Damaged",
    "Hit",
    "HoldfastError",
    "InvalidInput",
    "Memory",
    "Message",
    "MissingExtra",
    "NewerSchema",
    "Omission",
    "Prompt",
    "Role",
    "Scope",
    "ToolCall",
    "Unavailable",
    "UnknownFormat",
    "Verification",
    "Why",
    "Window",
]

__version__ = "0.1.0"
