"""What a benchmark returns: numbers for programs, tables for people. Printing is the command line's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Hold a table of texts; every row has one for each column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Hold the result of one run. `numbers` is JSON-compatible, `shown` is what a person reads."""

    numbers: Mapping[str, object]
    shown: tuple[Table, ...]

    def to_json(self) -> dict[str, object]:
        """Return everything that was measured as JSON-compatible data."""
        return dict(self.numbers)

    def tables(self) -> list[Table]:
        """Return the tables in the order in which they are read."""
        return list(self.shown)
