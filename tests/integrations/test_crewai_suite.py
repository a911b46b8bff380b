"""The tests of memories and storages that come with CrewAI, run on our storage."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from suites import run_suite, sdist

pytestmark = [
    pytest.mark.slow,  # processes of their own
    pytest.mark.skipif(not find_spec("crewai"), reason="needs: pip install '.[crewai]', apart from the rest"),
]

VERSION = "1.15.30"
SHA256 = "17de4b7cc3f2c207033e9f82be4f7d749e540b0e415a3885a8d97bb43a90a318"
NAMES = (
    "dimension_mismatch",
    "lancedb_filter_escaping",
    "lancedb_update",
    "memory_root_scope",
    "storage_factory",
)
FILES = [f"tests/memory/test_{name}.py" for name in (*NAMES, "unified_memory")]


def counted(**environment: str) -> dict[str, int]:
    return run_suite(sdist("crewai", VERSION, SHA256), "crewai_rebind", FILES, **environment)


def test_everything_passes_but_where_a_scope_is_the_beginning_of_a_text() -> None:
    assert counted() == {"passed": 167, "xfailed": 1}


@pytest.mark.soak
def test_and_on_a_server(postgres_url: str) -> None:
    assert counted(REBOUND_ON=postgres_url) == {"passed": 167, "xfailed": 1}
