"""A plugin of pytest that runs CrewAI's tests of its memory and of its storages on ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import crewai.memory.storage.lancedb_storage as lancedb
import pytest

from holdfast import Memory
from holdfast.integrations.crewai import HoldfastStorage

TEXTS = "wants the records of '/share\\docs' in the scope '/share\\'", AssertionError
NOT_PORTABLE = {"test_percent_underscore_and_backslash_in_scope_names_match_literally": TEXTS}
"""The test that only a storage passes in which a scope has all whose text begins as its own does."""

OPENED: dict[Path, Memory] = {}


class Rebound(HoldfastStorage):
    """Our storage with the constructor of CrewAI's: the same folder is the same memory."""

    def __init__(
        self,
        path: str | Path | None = None,
        table_name: str = "memories",
        vector_dim: int | None = None,
        compact_every: int = 100,
    ) -> None:
        place = Path(path or uuid4().hex)
        if place not in OPENED:
            # On a server each folder is a user.
            server = os.environ.get("REBOUND_ON", ":memory:")
            OPENED[place] = Memory(server, user=uuid4().hex, durability="normal")
        super().__init__(OPENED[place])


def pytest_configure() -> None:
    os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
    vars(lancedb)["LanceDBStorage"] = Rebound


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the memories of a test, which has folders of its own."""
    yield
    while OPENED:
        OPENED.popitem()[1].close()
