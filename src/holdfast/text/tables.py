"""Tables that are files of a package: lines of words or patterns."""

from __future__ import annotations

from importlib import resources


def table_lines(package: str, name: str) -> list[str]:
    """Return the lines of a table in a package, without its comments, which begin with "# "."""
    text = (resources.files(package) / name).read_text("utf-8")
    return [line for line in text.splitlines() if not line.startswith("# ")]
