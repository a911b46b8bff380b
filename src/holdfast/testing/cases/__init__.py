"""The cases of the suite, one file per group of capabilities."""

from __future__ import annotations

from holdfast.testing.case import Case
from holdfast.testing.cases import (
    core,
    learning,
    prompts,
    records,
    scopes,
    search,
    sessions,
    summaries,
    tools,
)

_FILES = (core, scopes, prompts, summaries, search, records, sessions, learning, tools)
CASES = tuple(value for file in _FILES for value in vars(file).values() if isinstance(value, Case))
"""All cases, the core first."""
