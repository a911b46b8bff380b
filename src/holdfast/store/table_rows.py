"""Whole rows of any table of a space, as dicts of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from holdfast.store.schema import TableSchema, tables

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Reader, Value

# Rows read at once.
PAGE = 1000
_COUNT_UP = """
    INSERT INTO spaces (space, epoch, {0}) VALUES (:space, 0, 1)
    ON CONFLICT (space) DO UPDATE SET {0} = spaces.{0} + 1 RETURNING {0}"""
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


@cache
def insertion(table: str, columns: tuple[str, ...], source: str = "") -> str:
    """Return the statement that inserts a row with values for some columns, the space among them.

    With a `source`, such as "FROM others WHERE …", it does so if that has a row.
    """
    names = ["space", *(name for name in columns if name != "space")]
    values = f":{', :'.join(names)}"
    given = f"SELECT {values} {source}" if source else f"VALUES ({values})"
    return f"INSERT INTO {table} ({', '.join(names)}) {given}"


@cache
def replacement(table: str, columns: tuple[str, ...], source: str = "") -> str:
    """Return the statement that inserts such a row, or overwrites these columns of the one with its key."""
    key = ("space", *tables()[table].key)
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f"{insertion(table, columns, source)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"


def add(tx: Connection, table: str, row: Mapping[str, Any]) -> None:
    """Insert a row, whose key must be free."""
    tx.all(insertion(table, tuple(row)), **row)


def put(tx: Connection, table: str, row: Mapping[str, Any]) -> None:
    """Insert a row, or overwrite the one with its key."""
    tx.all(replacement(table, tuple(row)), **row)


def count_up(tx: Connection, space: str, counter: str) -> int:
    """Increment a counter of a space, and return its value."""
    return int(tx.all(_COUNT_UP.format(counter), space=space)[0][0])


def insert(tx: Connection, table: str, row: Mapping[str, Any]) -> bool:
    """Insert a row, and return whether its key was free."""
    return bool(tx.all(f"{insertion(table, tuple(row))} ON CONFLICT DO NOTHING RETURNING 1", **row))
