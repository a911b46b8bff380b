"""Tables that are files of a package: lines of words or patterns, and arrays."""

from __future__ import annotations

from io import BytesIO
from pkgutil import get_data
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def packaged_text(package: str, name: str) -> str:
    """Return the text of a file in a package.

    `importlib.resources` would do as well, but takes longer to import than all tables to read.
    """
    return (get_data(package, name) or b"").decode()


def table_lines(package: str, name: str) -> list[str]:
    """Return the lines of a table in a package, without its comments, which begin with "# "."""
    return [line for line in packaged_text(package, name).splitlines() if not line.startswith("# ")]


def headed_lists(package: str, name: str) -> list[tuple[list[str], list[str]]]:
    """Return the lines of a table with a colon: the words before it, and the list after it, by commas."""
    lists = []
    for line in table_lines(package, name):
        head, colon, listed = line.partition(":")
        if colon:
            lists.append((head.split(), [part.strip() for part in listed.split(",") if part.strip()]))
    return lists


def load_arrays(package: str, name: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file in a package, by name."""
    # Most texts need no arrays.
    import numpy as np

    with np.load(BytesIO(get_data(package, name) or b""), allow_pickle=False) as packed:
        return dict(packed)
