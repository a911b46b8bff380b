"""LangChain's own tests of histories, run on ours."""

from __future__ import annotations

import pytest
from lc_rebind import NOT_PORTABLE

from suites import run_suite, sdist

pytestmark = pytest.mark.slow  # processes of their own

VERSION = "1.8.3"
SHA256 = "ce448f055dd2cf1db7def27d2b6c2902519369642e8b89d08255c7ca7abd6b36"
FILES = ["tests/unit_tests/chat_history/test_chat_history.py", "tests/unit_tests/runnables/test_history.py"]
CASES = 29


def histories(**environment: str) -> dict[str, int]:
    # Its conftest needs plugins that these two files do not.
    folder = sdist("langchain-core", VERSION, SHA256)
    return run_suite(folder, "lc_rebind", FILES, "--noconftest", **environment)


def test_everything_passes_that_another_history_can_pass() -> None:
    assert histories() == {"passed": CASES - len(NOT_PORTABLE), "xfailed": len(NOT_PORTABLE)}


@pytest.mark.soak
def test_and_on_a_server(postgres_url: str) -> None:
    on_a_server = histories(REBOUND_ON=postgres_url)
    assert on_a_server == {"passed": CASES - len(NOT_PORTABLE), "xfailed": len(NOT_PORTABLE)}
