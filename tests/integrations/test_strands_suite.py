"""The tests of session managers that come with Strands Agents, run on ours."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

from suites import run_suite, sdist

VERSION = "1.62.0"
SHA256 = "8732c87f9c1ceb6ef4c5c4bd6d96b4cdf1bbfde095f1537ec2ac6fddb8d5a066"


def installed() -> str:
    try:
        return version("strands-agents")
    except PackageNotFoundError:
        return ""


pytestmark = [
    pytest.mark.slow,  # processes of their own
    pytest.mark.skipif(installed() != VERSION, reason=f"needs strands-agents {VERSION}, apart from the rest"),
]
FILES = [f"tests/strands/session/test_{name}_session_manager.py" for name in ("file", "repository")]
ENDED = {"passed": 72, "xfailed": 19}


def counted(**environment: str) -> dict[str, int]:
    return run_suite(sdist("strands_agents", VERSION, SHA256), "strands_rebind", FILES, **environment)


def test_all_passes_but_what_asks_for_files() -> None:
    assert counted() == ENDED


@pytest.mark.soak
def test_and_on_a_server(postgres_url: str) -> None:
    assert counted(REBOUND_ON=postgres_url) == ENDED
