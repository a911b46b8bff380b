"""Moves and copies of records: which version of another space belongs to a version here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.database import Connection, Reader

_ADD = """
    INSERT INTO moves (space, version, other, other_version)
    VALUES (:space, :version, :other, :other_version)"""
_READ = "SELECT other, other_version FROM moves WHERE space = :space AND version = :version"


def link(tx: Connection, one: tuple[str, int], other: tuple[str, int]) -> None:
    """Store that two versions, each with its space, were made by one move, in both spaces."""
    for (space, version), (there, other_version) in ((one, other), (other, one)):
        tx.all(_ADD, space=space, version=version, other=there, other_version=other_version)


def linked(reader: Reader, space: str, versions: Sequence[int]) -> list[tuple[str, int]]:
    """Return the versions of other spaces that belong to some versions, each with its space."""
    rows = (reader.all(_READ, space=space, version=version) for version in versions)
    return [(str(other), int(version)) for found in rows for other, version in found]
