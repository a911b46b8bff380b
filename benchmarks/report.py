"""What a benchmark returns: numbers for programs, tables for people. Printing is the command line's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """Hold a table of texts; every row has one for each column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Hold the result of one run. `numbers` is JSON-compatible, `tables` are what a person reads."""

    numbers: Mapping[str, Any]
    tables: tuple[Table, ...]
