"""The tests that come with frameworks, run on our adapters.

How many pass and fail is pinned with their version; those that only the framework's own can pass are listed
by name, with the reason, in the plugin that puts ours in its place.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from suites import run_suite, sdist

pytestmark = pytest.mark.slow  # processes of their own


class Suite(NamedTuple):
    """Files of tests in a pinned release, or here, the plugin that they run with, and how they end."""

    release: tuple[str, str, str] | None  # name, version, SHA-256
    plugin: str
    files: list[str]
    ends: dict[str, int]
    options: tuple[str, ...] = ()

    def ended(self, **environment: str) -> dict[str, int]:
        folder = sdist(*self.release) if self.release else Path(__file__).parent
        return run_suite(folder, self.plugin, self.files, *self.options, **environment)


ANTHROPIC = "anthropic", "2.12.0", "571e6d250bcd6bbaf5fd5f3c764b8e11af9901ad2e44b025f8e773c6cc7a7173"
CREWAI = "crewai", "1.15.30", "17de4b7cc3f2c207033e9f82be4f7d749e540b0e415a3885a8d97bb43a90a318"
LANGCHAIN = "langchain-core", "1.8.3", "ce448f055dd2cf1db7def27d2b6c2902519369642e8b89d08255c7ca7abd6b36"
SQLITE = (
    "langgraph-checkpoint-sqlite", "3.1.2",
    "4e3f376fa6f192d6ad2a1a4643b039986f1593552ef870e9e45281575de6fbf2",
)  # fmt: skip
MEMORY = "langgraph-checkpoint", "4.3.2", "fcab8468c7e965d7055e2a35c253d73a145624ef4728b150ca7c361f4afca286"
OPENAI = "openai-agents", "0.24.0", "4b4b285f4fed81fdf1b4ac426a9101658d9cd29b4fb1aaeee18f639b77e704e3"
STRANDS = "strands_agents", "1.62.0", "8732c87f9c1ceb6ef4c5c4bd6d96b4cdf1bbfde095f1537ec2ac6fddb8d5a066"
# Their conftest needs plugins that these files do not.
ALONE = ("--noconftest",)


def named(names: str, folder: str = "tests") -> list[str]:
    return [f"{folder}/test_{name}.py" for name in names.split()]


OF_CREWAI = """dimension_mismatch lancedb_filter_escaping lancedb_update memory_root_scope storage_factory
    unified_memory"""
OF_OPENAI = """session session_limit session_context_wrapper openai_responses_compaction_session
    compaction_model_visibility"""
SUITES = {
    "anthropic": Suite(
        ANTHROPIC,
        "anthropic_rebind",
        named("filesystem", folder="tests/lib/tools/memory_tools"),
        {"passed": 72, "xfailed": 27},
        ALONE,
    ),
    "crewai": Suite(
        CREWAI,
        "crewai_rebind",
        named(OF_CREWAI, folder="tests/memory"),
        {"passed": 167, "xfailed": 1},
    ),
    "langchain": Suite(
        LANGCHAIN,
        "lc_rebind",
        ["tests/unit_tests/chat_history/test_chat_history.py", "tests/unit_tests/runnables/test_history.py"],
        {"passed": 28, "xfailed": 1},
        ALONE,
    ),
    "langchain-standard": Suite(None, "coroutine_tests", ["langchain_standard.py"], {"passed": 5}, ALONE),
    "langgraph-sqlite": Suite(
        SQLITE,
        "lgstore_rebind",
        named("store async_store"),
        {"passed": 133, "xfailed": 6, "deselected": 3},
    ),
    "langgraph-memory": Suite(MEMORY, "lgstore_rebind", named("store"), {"passed": 86, "deselected": 31}),
    "langgraph-ttl": Suite(SQLITE, "lgstore_rebind", named("ttl"), {"passed": 10, "xfailed": 1}),
    "openai": Suite(
        OPENAI,
        "oai_rebind",
        named(OF_OPENAI, folder="tests/memory"),
        {"passed": 239, "xfailed": 22},
    ),
    "strands": Suite(
        STRANDS,
        "strands_rebind",
        named("file_session_manager repository_session_manager", folder="tests/strands/session"),
        {"passed": 72, "xfailed": 19},
    ),
}


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


APART = {
    "crewai": not find_spec("crewai"),
    "langchain-standard": not find_spec("langchain_tests"),
    "strands": version_of("strands-agents") != STRANDS[1],
}
"""Those that need what cannot be installed beside the rest: `scripts/frameworks.py` runs them."""


def marks(name: str) -> list[pytest.MarkDecorator]:
    # One waits for the clock.
    soak = [pytest.mark.soak] if name == "langgraph-ttl" else []
    apart = "needs what is apart from the rest: scripts/frameworks.py"
    return [pytest.mark.skipif(APART.get(name, False), reason=apart), *soak]


every_suite = pytest.mark.parametrize(
    "suite", [pytest.param(suite, id=name, marks=marks(name)) for name, suite in SUITES.items()]
)


@every_suite
def test_all_passes_that_another_can_pass(suite: Suite) -> None:
    assert suite.ended() == suite.ends


@pytest.mark.soak
@every_suite
def test_and_on_a_server(suite: Suite, postgres_url: str) -> None:
    assert suite.ended(REBOUND_ON=postgres_url) == suite.ends
