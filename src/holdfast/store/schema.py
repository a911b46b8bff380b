"""The schema: the statements that make it, the migrations of older ones, and the tables of `schema.sql`.

Code that handles all tables alike reads their columns here, and needs no list of its own.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import NewerSchema, UnreleasedSchema
from holdfast.text.tables import packaged_text

if TYPE_CHECKING:
    from holdfast.types import Source

# The schema of 0.1; unreleased ones have lower numbers.
FIRST = 22
# The scripts that migrate each schema to the next one, by the number of the latter; `schema.sql` is the last.
MIGRATIONS: Mapping[int, str] = {
    23: """
        ALTER TABLE sessions ADD COLUMN joined TEXT;
        CREATE INDEX sessions_joined ON sessions (space) WHERE joined IS NOT NULL;
        """,
    24: """CREATE TABLE agenda (
        space TEXT NOT NULL, worker TEXT NOT NULL, due BIGINT NOT NULL, PRIMARY KEY (space, worker));""",
    25: """
        ALTER TABLE spaces ADD COLUMN heads BIGINT NOT NULL DEFAULT 0;
        ALTER TABLE sessions ADD COLUMN aside BIGINT NOT NULL DEFAULT 0;
        ALTER TABLE messages ADD COLUMN aside BIGINT NOT NULL DEFAULT 0;
        CREATE INDEX messages_aside ON messages (space, doc) WHERE aside = 1;
        CREATE TABLE heads (
            space TEXT NOT NULL, number BIGINT NOT NULL, chat TEXT NOT NULL, length BIGINT NOT NULL,
            before BIGINT NOT NULL, head BIGINT NOT NULL, action TEXT NOT NULL, undone BIGINT NOT NULL,
            version BIGINT NOT NULL, agent TEXT NOT NULL, at BIGINT NOT NULL, checksum BIGINT NOT NULL,
            PRIMARY KEY (space, number));
        CREATE INDEX heads_chat ON heads (space, chat, number);
        CREATE INDEX records_flags ON records (space, kind) WHERE flags IS NOT NULL;
        """,
}
NEWEST = max(MIGRATIONS, default=FIRST)
_TABLE = re.compile(r"^CREATE TABLE (\w+) \(\n(.*?)\n\);", re.DOTALL | re.MULTILINE)
_COLUMN = re.compile(r"^ +(\w+) (TEXT|BIGINT|BYTEA)( NOT NULL)?(?: DEFAULT ('[^']*'|\d+))?")
_KEY = re.compile(r"^ +PRIMARY KEY \(([\w, ]+)\)", re.MULTILINE)


# The types of the schema, and the integers that one holds.
_TYPES: dict[str, type] = {"TEXT": str, "BIGINT": int, "BYTEA": bytes}
_LARGEST = 1 << 63
# The table of the documents of each source, and the column of their numbers.
DOCUMENTS: Mapping[Source, tuple[str, str]] = {
    "message": ("messages", "doc"),
    "record": ("records", "version"),
    "summary": ("summaries", "number"),
}


class Column(NamedTuple):
    """A column of a table; `default` is its value in rows that were written before it was added."""

    name: str
    python_type: type
    nullable: bool
    default: str | int | None

    def fits(self, value: object) -> bool:
        """Return whether the column can hold a value."""
        if value is None:
            return self.nullable
        is_in_range = not isinstance(value, int) or -_LARGEST <= value < _LARGEST
        return type(value) is self.python_type and is_in_range


class TableSchema(NamedTuple):
    """A table of a space: its columns in the order of the schema, and those of its key after the space."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


@cache
def tables() -> dict[str, TableSchema]:
    """Return the tables that have a space, in the order of the schema."""
    schemas = {}
    for name, body in _TABLE.findall(_script()):
        columns = tuple(
            _column(*parts.groups()) for line in body.splitlines() if (parts := _COLUMN.match(line))
        )
        key = _KEY.search(body)
        if columns[0].name == "space":
            schemas[name] = TableSchema(name, columns, tuple(key[1].split(", "))[1:] if key else ())
    return schemas


def _column(name: str, kind: str, required: str | None, default: str | None) -> Column:
    value = None if default is None else default[1:-1] if default.startswith("'") else int(default)
    return Column(name, _TYPES[kind], not required, value)


@cache
def schema() -> list[str]:
    """Return the statements that make a new database."""
    return split_statements(_script())


def check_number(what: str, number: int) -> None:
    """Check that data with the schema of a number can be read.

    Raises:
        NewerSchema: a newer Holdfast wrote it.
        UnreleasedSchema: it was written before 0.1.

    """
    if number > NEWEST:
        raise NewerSchema(
            f"{what} has schema version {number}; Holdfast supports those up to {NEWEST}.",
            "Upgrade the package: pip install . in a newer checkout.",
        )
    if number < FIRST:
        raise UnreleasedSchema(
            f"{what} has schema version {number}, of a Holdfast before 0.1, which was never released.",
            "Export its chats and its records with that Holdfast, and import them into a new database.",
        )


def split_statements(script: str) -> list[str]:
    """Split a script into its statements, each of which must end at the end of a line."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    return statements


def _script() -> str:
    return packaged_text("holdfast.store", "schema.sql")
