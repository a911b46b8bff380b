"""The tables as `schema.sql` has them: what handles all of them alike reads their columns here, and needs no list of its own."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

_TABLE = re.compile(r"^CREATE TABLE (\w+) \(\n(.*?)\n\);", re.DOTALL | re.MULTILINE)
_COLUMN = re.compile(r"^ +(\w+) (TEXT|BIGINT|BYTEA|DOUBLE PRECISION)( NOT NULL)?(?: DEFAULT ('[^']*'|\d+))?")
_KEY = re.compile(r"^ +PRIMARY KEY \(([\w, ]+)\)", re.MULTILINE)


class Column(NamedTuple):
    """A column of a table; `default` is what rows have that were written before it was added."""

    name: str
    type: str
    nullable: bool
    default: str | int | None


class Table(NamedTuple):
    """A table of a space: its columns in the order of the schema, and those of its key after the space."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(column.name for column in self.columns)


@cache
def tables() -> dict[str, Table]:
    """Return the tables that have a space, in the order of the schema."""
    # A fifth of what `import holdfast` would take.
    from importlib import resources

    script = (resources.files("holdfast.store") / "schema.sql").read_text("utf-8")
    found = {}
    for name, body in _TABLE.findall(script):
        columns = tuple(
            _column(*parts.groups()) for line in body.splitlines() if (parts := _COLUMN.match(line))
        )
        key = _KEY.search(body)
        if columns[0].name == "space":
            found[name] = Table(name, columns, tuple(key[1].split(", "))[1:] if key else ())
    return found


def _column(name: str, kind: str, required: str | None, default: str | None) -> Column:
    value = None if default is None else default[1:-1] if default.startswith("'") else int(default)
    return Column(name, kind, not required, value)
