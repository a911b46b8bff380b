"""The session tests that come with the OpenAI Agents SDK, run on our session."""

from __future__ import annotations

import pytest
from oai_rebind import NOT_PORTABLE

from suites import run_suite, sdist

pytestmark = pytest.mark.slow  # processes of their own

VERSION = "0.24.0"
SHA256 = "4b4b285f4fed81fdf1b4ac426a9101658d9cd29b4fb1aaeee18f639b77e704e3"
NAMES = (
    "session",
    "session_limit",
    "session_context_wrapper",
    "openai_responses_compaction_session",
    "compaction_model_visibility",
)
FILES = [f"tests/memory/test_{name}.py" for name in NAMES]
CASES = 261


def counted(**environment: str) -> dict[str, int]:
    return run_suite(sdist("openai-agents", VERSION, SHA256), "oai_rebind", FILES, **environment)


def test_everything_passes_that_another_session_can_pass() -> None:
    assert counted() == {"passed": CASES - len(NOT_PORTABLE), "xfailed": len(NOT_PORTABLE)}


@pytest.mark.soak
def test_and_on_a_server(postgres_url: str) -> None:
    on_a_server = counted(REBOUND_ON=postgres_url)
    assert on_a_server == {"passed": CASES - len(NOT_PORTABLE), "xfailed": len(NOT_PORTABLE)}
