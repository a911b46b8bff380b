"""Whole rows of any table of a space, as dicts of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.store.schema import TableSchema, tables

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Reader, Value

# Rows read at once.
PAGE = 1000
TableRow = dict[str, Any]


def select(reader: Reader, table: TableSchema, space: str, rest: str, **values: Value) -> list[TableRow]:
    """Return rows of a table of a space with all their columns; `rest` is the condition after the space."""
    sql = f"SELECT {', '.join(table.names)} FROM {table.name} WHERE space = :space AND {rest}"
    return [dict(zip(table.names, row, strict=True)) for row in reader.all(sql, space=space, **values)]


def select_key(reader: Reader, table: TableSchema, space: str, row: Mapping[str, Any]) -> list[TableRow]:
    """Return the row of a table with the key of another row, or [] for none."""
    return select(reader, table, space, same_key(table), **{name: row[name] for name in table.key})


def same_key(table: TableSchema) -> str:
    """Return the condition that a row of a space has the given key."""
    return " AND ".join(f"{name} = :{name}" for name in table.key)


def iterate(
    reader: Reader, name: str, space: str, order: tuple[str, ...] | None = None
) -> Iterator[TableRow]:
    """Iterate over the rows of a table of a space in the order of its key, or of other unique columns."""
    table = tables()[name]
    order = order or table.key or ("space",)
    columns, after = ", ".join(order), "1 = 1"
    last: dict[str, Value] = {}
    while True:
        rows = select(reader, table, space, f"{after} ORDER BY {columns} LIMIT :page", page=PAGE, **last)
        yield from rows
        if len(rows) < PAGE:
            return
        last = {f"after_{column}": rows[-1][column] for column in order}
        after = f"({columns}) > ({', '.join(f':{column}' for column in last)})"


def insert(tx: Connection, table: str, row: Mapping[str, Any]) -> bool:
    """Insert a whole row, and return whether its key was free."""
    columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
    sql = f"INSERT INTO {table} ({columns}) VALUES ({values}) ON CONFLICT DO NOTHING RETURNING 1"
    return bool(tx.all(sql, **row))
