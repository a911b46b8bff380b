"""Everything that a database stores, as bytes to look for words in."""

from __future__ import annotations

from pathlib import Path

import psycopg

from holdfast import Memory

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'"


def database_bytes(memory: Memory, location: str, folder: Path) -> bytes:
    """Return the files of a database, or the rows of all tables on a server, in small letters."""
    if location == ":memory:":
        copy = folder / "copy.db"
        copy.unlink(missing_ok=True)
        memory.backup(copy)
        return copy.read_bytes().lower()
    return stored_bytes(location)


def stored_bytes(location: str) -> bytes:
    """Return what `database_bytes` does of a database that is not in memory."""
    if "://" in location:
        return _rows(location)
    files = sorted(Path(location).parent.glob(f"{Path(location).name}*"))
    assert files
    return b"".join(file.read_bytes() for file in files).lower()


def _rows(url: str) -> bytes:
    parts: list[bytes] = []
    with psycopg.connect(url) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            for row in connection.execute(f"SELECT * FROM holdfast.{table}".encode()).fetchall():
                parts += [
                    bytes(one) if isinstance(one, bytes | memoryview) else str(one).encode() for one in row
                ]
    return b"\n".join(parts).lower()
