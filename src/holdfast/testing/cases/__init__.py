"""The cases of the suite, one file for each group of capabilities."""

from __future__ import annotations

from holdfast.testing.case import Case
from holdfast.testing.cases import (
    compacting,
    core,
    exploring,
    finding,
    knowing,
    learning,
    prompting,
    scopes,
    sessions,
    summarising,
    using,
    versions,
    windows,
)

_FILES = (
    core,
    windows,
    scopes,
    prompting,
    compacting,
    summarising,
    exploring,
    finding,
    knowing,
    versions,
    sessions,
    learning,
    using,
)
CASES = tuple(value for file in _FILES for value in vars(file).values() if isinstance(value, Case))
"""All cases, the core first."""
