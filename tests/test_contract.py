"""The provider contract: who satisfies it, what each capability requires, and what `Memory` has for it."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from typing import get_args

import pytest

from holdfast import Chat, InvalidInput, Memory, View, contract
from holdfast.contract import CAPABILITIES, METHODS, Capability, capabilities
from holdfast.integrations.claude_agent import HoldfastSessionStore
from holdfast.integrations.mcp.server import make_server
from holdfast.integrations.openai_agents import HoldfastSession
from holdfast.integrations.pydantic_ai import Remembering
from holdfast.providers.null import NullChat, NullMemory
from holdfast.providers.tracing import traced
from holdfast.testing import MinimalProvider, check
from holdfast.tools.files import Files
from tables import each

# Memory and Chat satisfy all of it: mypy checks what is returned


# fmt: off
def as_provider(m: Memory) -> tuple[
    contract.Provider, contract.Scopes, contract.Recall, contract.Records, contract.Profile,
    contract.Versions, contract.Changes, contract.Sessions, contract.Learns, contract.Scratchpads,
]:
    return m, m, m, m, m, m, m, m, m, m


def as_session(c: Chat) -> tuple[
    contract.Session, contract.PromptedChat, contract.CompactedChat, contract.SearchedChat,
    contract.ExploredChat, contract.SnapshotChat, contract.KeptChat, contract.ReviewedChat,
    contract.EndedChat,
]:
    return c, c, c, c, c, c, c, c, c
# fmt: on


def as_view(view: View) -> contract.Reading:
    return view


def test_memory_has_every_capability(memory: Memory) -> None:
    assert capabilities(memory) == set(CAPABILITIES)
    assert (memory.chats(archived=None), memory.changes()) == ([], []), "looking for them stores nothing"


def test_every_capability_has_methods() -> None:
    assert set(get_args(Capability)) == METHODS.keys()
    assert all(methods.provider or methods.chat for methods in METHODS.values())


# A capability is there if all of its methods are


OF_PROVIDER = [(name, method) for name, methods in METHODS.items() for method in methods.provider]
OF_CHAT = [(name, method) for name, methods in METHODS.items() for method in methods.chat]


@each(("capability", "method"), OF_PROVIDER)
def test_a_capability_is_gone_without_a_method_of_the_provider(capability: Capability, method: str) -> None:
    without = type("Without", (NullMemory,), {method: None})()
    assert set(CAPABILITIES) - capabilities(without) == {capability}


@each(("capability", "method"), OF_CHAT)
def test_a_capability_is_gone_without_a_method_of_the_chats(capability: Capability, method: str) -> None:
    opened = type("WithoutChat", (NullChat,), {method: None})(NullMemory(), "a")
    without = type("Without", (NullMemory,), {"chat": lambda *_: opened})()
    assert set(CAPABILITIES) - capabilities(without) == {capability}


def test_the_example_is_true() -> None:
    assert doctest.testmod(contract) == (0, 2)


# What is no memory


@each(
    "wrong",
    [
        lambda: capabilities("agent.db"),  # type: ignore[arg-type]  # the mistake
        lambda: capabilities(MinimalProvider),  # type: ignore[arg-type]  # as above
        lambda: traced("agent.db", on_event=print),  # type: ignore[type-var]  # as above
        lambda: check(MinimalProvider()),  # type: ignore[arg-type]  # as above
        lambda: check(lambda: "agent.db"),  # type: ignore[arg-type,return-value]  # as above
        lambda: make_server("agent.db"),  # type: ignore[arg-type]  # as above
        lambda: Files("agent.db"),  # type: ignore[arg-type]  # as above
        lambda: HoldfastSession("agent.db", "monday"),  # type: ignore[arg-type]  # as above
        lambda: HoldfastSessionStore("agent.db"),  # type: ignore[arg-type]  # as above
        lambda: Remembering(Memory(":memory:")),  # type: ignore[arg-type]  # as above
    ],
)
def test_what_is_no_memory_is_refused_at_once(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        wrong()
