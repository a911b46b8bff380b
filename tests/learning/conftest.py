"""Memories whose time stands still."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Memory
from learning_scripts import Clock


@pytest.fixture
def clock() -> Clock:
    """Set the time by hand."""
    return Clock()


@pytest.fixture
def memory(location: str, clock: Clock) -> Iterator[Memory]:
    """Open a fresh memory on each kind of database, whose time stands still."""
    with Memory(location, user="ada", clock=clock) as opened:
        yield opened


@pytest.fixture
def quick(clock: Clock) -> Iterator[Memory]:
    """Open a memory for what no database has a part in."""
    with Memory(":memory:", user="ada", clock=clock) as opened:
        yield opened
