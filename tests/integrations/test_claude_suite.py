"""The conformance suite of the Claude Agent SDK on our session store, if that large package is installed."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from holdfast import Memory
from holdfast.integrations.claude_agent import HoldfastSessionStore

suite = pytest.importorskip(
    "claude_agent_sdk.testing", reason="the suite for session stores needs: pip install claude-agent-sdk"
)


def test_it_passes_all_14_contracts(memory: Memory) -> None:
    def fresh() -> HoldfastSessionStore:
        return HoldfastSessionStore(memory.scoped(user=uuid4().hex))

    asyncio.run(suite.run_session_store_conformance(fresh))
