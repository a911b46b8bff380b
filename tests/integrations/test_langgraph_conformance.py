"""LangGraph's conformance suite for checkpointers, whole, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

pytest.importorskip("langgraph.checkpoint.conformance")

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES

from holdfast import Memory
from holdfast.integrations.langgraph import HoldfastSaver

# How many tests version 0.0.2 has.
_TESTS = 81


def test_every_capability_conforms(location: str) -> None:
    @checkpointer_test(name="HoldfastSaver")
    async def saver() -> AsyncIterator[HoldfastSaver]:
        with Memory(location, user=f"ada-{uuid4()}") as memory:
            yield HoldfastSaver(memory)
            assert memory.verify(repair=True).ok

    report = asyncio.run(validate(saver))
    failures = {name: one.failures for name, one in report.results.items() if one.tests_failed}
    assert not failures
    passed = {name for name, one in report.results.items() if one.passed}
    assert passed == {one.value for one in ALL_CAPABILITIES}
    assert sum(one.tests_passed for one in report.results.values()) == _TESTS
