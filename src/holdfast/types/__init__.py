"""The nouns of Holdfast as frozen dataclasses: what goes in, what comes out, and nothing that does work.

A class takes half a millisecond to make: those that a recall does not need are made when they are first used.
"""

from typing import TYPE_CHECKING

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
    check_several,
    is_whole,
    to_time,
)
from holdfast.types.hits import SOURCES, Finding, Hit, Hits, Prefer, Source, Untrusted, Why
from holdfast.types.late import importer
from holdfast.types.messages import ROLES, AnyMessage, Dumpable, Message, Role, ToolCall
from holdfast.types.records import CONFLICT, ConflictingRecords, Record, Trust, Wording
from holdfast.types.scope import Scope, scope_of
from holdfast.types.writers import WRITERS, Writer

if TYPE_CHECKING:
    from holdfast.types.changes import Change
    from holdfast.types.chats import Branch, ChatInfo, ChatStats
    from holdfast.types.explanations import ExplainedWord, Explanation
    from holdfast.types.grants import Grant
    from holdfast.types.integrity import Erasure, Verification
    from holdfast.types.jobs import Job, JobStatus
    from holdfast.types.prompts import Omission, Prompt, Receipt, Shortened, Window
    from holdfast.types.summaries import CompactionResult, Description, Expansion, Level, Summary
    from holdfast.types.timeline import ChatDay, Timeline, TimelineDay

__all__ = [
    "CONFLICT",
    "MAX_COUNT",
    "MAX_NAME",
    "ROLES",
    "SOURCES",
    "WRITERS",
    "AnyMessage",
    "Branch",
    "Change",
    "ChatDay",
    "ChatInfo",
    "ChatStats",
    "CompactionResult",
    "ConflictingRecords",
    "Description",
    "Dumpable",
    "Erasure",
    "Expansion",
    "ExplainedWord",
    "Explanation",
    "Finding",
    "Grant",
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
    "Timeline",
    "TimelineDay",
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
    "check_several",
    "is_whole",
    "scope_of",
    "to_time",
]

__getattr__ = importer(
    "holdfast.types",
    {
        "changes": "Change",
        "chats": "Branch ChatInfo ChatStats",
        "explanations": "ExplainedWord Explanation",
        "grants": "Grant",
        "integrity": "Erasure Verification",
        "jobs": "Job JobStatus",
        "prompts": "Omission Prompt Receipt Shortened Window",
        "summaries": "CompactionResult Description Expansion Level Summary",
        "timeline": "ChatDay Timeline TimelineDay",
    },
)
