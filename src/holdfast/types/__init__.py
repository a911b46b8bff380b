"""The nouns of Holdfast as frozen dataclasses: what goes in, what comes out, and nothing that does work."""

from holdfast.types.chats import ChatInfo, ChatStats
from holdfast.types.checks import (
    MAX_COUNT,
    MAX_NAME,
    Range,
    Time,
    as_time,
    check_count,
    check_flag,
    check_key,
    check_name,
    check_range,
    is_whole,
    to_time,
)
from holdfast.types.explanations import ExplainedWord, Explanation
from holdfast.types.hits import SOURCES, Finding, Hit, Hits, Prefer, Source, Untrusted, Why
from holdfast.types.integrity import WRITERS, Erasure, Verification, Writer
from holdfast.types.jobs import Job, JobStatus
from holdfast.types.messages import ROLES, AnyMessage, Dumpable, Message, Role, ToolCall
from holdfast.types.prompts import Omission, Prompt, Receipt, Shortened, Window
from holdfast.types.records import Change, Record, Trust, Wording
from holdfast.types.scope import Scope, scope_of
from holdfast.types.summaries import CompactionResult, Description, Expansion, Level, Summary

__all__ = [
    "MAX_COUNT",
    "MAX_NAME",
    "ROLES",
    "SOURCES",
    "WRITERS",
    "AnyMessage",
    "Change",
    "ChatInfo",
    "ChatStats",
    "CompactionResult",
    "Description",
    "Dumpable",
    "Erasure",
    "Expansion",
    "ExplainedWord",
    "Explanation",
    "Finding",
    "Hit",
    "Hits",
    "Job",
    "JobStatus",
    "Level",
    "Message",
    "Omission",
    "Prefer",
    "Prompt",
    "Range",
    "Receipt",
    "Record",
    "Role",
    "Scope",
    "Shortened",
    "Source",
    "Summary",
    "Time",
    "ToolCall",
    "Trust",
    "Untrusted",
    "Verification",
    "Why",
    "Window",
    "Wording",
    "Writer",
    "as_time",
    "check_count",
    "check_flag",
    "check_key",
    "check_name",
    "check_range",
    "is_whole",
    "scope_of",
    "to_time",
]
