"""The cases of the suite, one file per group of capabilities."""

from __future__ import annotations

from holdfast.testing.case import Case
from holdfast.testing.cases import (
    compaction,
    core,
    exploration,
    learning,
    prompts,
    records,
    scopes,
    search,
    sessions,
    summaries,
    tools,
    versions,
    windows,
)

_FILES = (
    core,
    windows,
    scopes,
    prompts,
    compaction,
    summaries,
    exploration,
    search,
    records,
    versions,
    sessions,
    learning,
    tools,
)
CASES = tuple(value for file in _FILES for value in vars(file).values() if isinstance(value, Case))
"""All cases, the core first."""
