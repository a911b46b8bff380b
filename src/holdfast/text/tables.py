"""Tables that are files of a package: lines of words or patterns."""

from __future__ import annotations

from importlib import resources


def table_lines(package: str, name: str) -> list[str]:
    """Return the lines of a table in a package, without its comments, which begin with "# "."""
    text = (resources.files(package) / name).read_text("utf-8")
    return [line for line in text.splitlines() if not line.startswith("# ")]


def headed_lists(package: str, name: str) -> list[tuple[list[str], list[str]]]:
    """Return the lines of a table with a colon: the words before it, and the list, by commas, after it."""
    found = []
    for line in table_lines(package, name):
        head, colon, listed = line.partition(":")
        if colon:
            found.append((head.split(), [part.strip() for part in listed.split(",") if part.strip()]))
    return found
