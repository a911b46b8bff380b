"""A database in a file, for tests of the store."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlite_files import fill


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A closed database of 60 messages."""
    fill(tmp_path / "memory.db", 60)
    return tmp_path / "memory.db"
