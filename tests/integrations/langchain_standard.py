"""The standard tests of `langchain-tests` for retrievers, of ours; run by `test_suites.py`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from holdfast import Memory
from holdfast.integrations.langchain import HoldfastRetriever


# It is not installed where types are checked.
class TestHoldfastRetriever(RetrieversIntegrationTests):  # type: ignore[misc]
    memory: Memory

    @pytest.fixture(autouse=True)
    def remembered(self) -> Iterator[None]:
        with Memory(os.environ.get("REBOUND_ON", ":memory:"), user=uuid4().hex) as self.memory:
            for topic in ("marathon", "office", "bakery", "airport"):
                self.memory.chat(topic).append(role="user", content=f"I know the {topic} in Berlin.")
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return HoldfastRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory}

    @property
    def retriever_query_example(self) -> str:
        return "What do I know in Berlin?"
