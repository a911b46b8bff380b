"""Moves and copies of records: pairs of versions in two spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store import table_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.database import Connection, Reader

_READ = "SELECT other, other_version FROM moves WHERE space = :space AND version = :version"


def link(tx: Connection, here: tuple[str, int], there: tuple[str, int]) -> None:
    """Store that two versions, each with its space, were made by one move, in both spaces."""
    for (space, version), (other, other_version) in ((here, there), (there, here)):
        row = {"space": space, "version": version, "other": other, "other_version": other_version}
        table_rows.add(tx, "moves", row)


def counterparts(reader: Reader, space: str, versions: Sequence[int]) -> list[tuple[str, int]]:
    """Return the versions of other spaces that were made by the same moves, each with its space."""
    results = (reader.all(_READ, space=space, version=version) for version in versions)
    return [(str(other), int(version)) for rows in results for other, version in rows]
