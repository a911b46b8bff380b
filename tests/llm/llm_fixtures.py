"""The server that models of pydantic-ai call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llm_server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as served:
        yield served
