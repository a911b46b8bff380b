"""Adapters without their frameworks: none is loaded before it is used, and each names its extra."""

from __future__ import annotations

import pytest

from programs import run

# Of each adapter its module, what it offers, the package that it needs, and the extra that installs it.
ADAPTERS = [
    ("agent_framework", "HoldfastHistoryProvider", "agent_framework", "agent-framework"),
    ("anthropic", "MemoryTool", "anthropic", "anthropic"),
    ("crewai", "HoldfastStorage", "crewai", "crewai"),
    ("google_adk", "HoldfastMemoryService", "google.adk", "google-adk"),
    ("google_adk", "HoldfastSessionService", "google.adk", "google-adk"),
    ("langchain", "HoldfastRetriever", "langchain_core", "langchain"),
    ("langgraph", "HoldfastSaver", "langgraph", "langgraph"),
    ("langgraph", "HoldfastStore", "langgraph", "langgraph"),
    ("llama_index", "HoldfastChatStore", "llama_index.core", "llama-index"),
    ("openai_agents", "HoldfastSession", "agents", "openai-agents"),
    ("pydantic_ai", "Remembering", "pydantic_ai", "pydantic-ai"),
    ("pydantic_conversations", "HoldfastConversationStore", "pydantic_ai", "pydantic-ai"),
    ("strands", "HoldfastSessionManager", "strands", "strands"),
]
WITHOUT = """
import importlib, sys
import holdfast, holdfast.integrations.google_adk, holdfast.integrations.langgraph, holdfast.tools.files
adapters = [one.split() for one in sys.argv[1:]]
packages = {package for _, _, package in adapters} | {"asyncio", "anyio", "numpy"}
assert packages.isdisjoint(sys.modules), packages & sys.modules.keys()
for module, name, package in adapters:
    sys.modules[package] = None
    try:
        getattr(importlib.import_module(f"holdfast.integrations.{module}"), name)
    except holdfast.MissingExtra as error:
        print(error)
"""


@pytest.mark.slow
def test_without_its_framework_each_adapter_names_the_extra() -> None:
    told = run(WITHOUT, *(" ".join(one) for *one, _ in ADAPTERS)).splitlines()
    assert [line.partition("Run in a checkout of Holdfast: ")[2] for line in told] == [
        f"pip install '.[{extra}]'." for *_, extra in ADAPTERS
    ]
