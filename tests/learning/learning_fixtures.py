"""Fixtures of the tests of learning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Memory
from learning_faults import Opened
from learning_models import only
from learning_scripts import Clock


@pytest.fixture
def opened(clock: Clock) -> Iterator[Opened]:
    """Open memories whose clock is set by hand, for jobs of one kind."""
    some: list[Memory] = []

    def make(kind: str, location: str = ":memory:", **policy: object) -> Memory:
        some.append(Memory(location, user="ada", admin=True, clock=clock, learning=only(kind, **policy)))
        return some[-1]

    yield make
    for memory in some:
        memory.close()
