"""The tree of memory files: the records of an agent by their paths. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.tools.file_paths import ROOT, is_below
from holdfast.types import Record

Tree = Mapping[str, Record]


def lay_out(found: Iterable[Record], agent: str) -> dict[str, Record]:
    """Return the files of an agent by their paths.

    The name of a file without a path is its id. A rollback can leave two files with the same path: the one
    written last has it, and the id of the other follows its path.
    """
    tree: dict[str, Record] = {}
    for record in sorted((one for one in found if one.agent == agent), key=lambda one: -one.version):
        path = record.target or f"{ROOT}/{record.id}"
        tree[path if path not in tree else f"{path}~{record.id}"] = record
    return tree


def versions(tree: Tree) -> set[int]:
    """Return the versions of the files; trees of one user with the same versions are equal."""
    return {record.version for record in tree.values()}


def is_folder(tree: Tree, place: str) -> bool:
    """Return whether a path is that of a folder: the root, or one in which files lie."""
    return place == ROOT or any(is_below(path, place) for path in tree)


def at_or_below(tree: Tree, place: str) -> dict[str, Record]:
    """Return the file of a path, or the files that lie below it, in the order of their paths."""
    return {path: tree[path] for path in sorted(tree) if path == place or is_below(path, place)}
