"""The standard tests of `langchain-tests` for retrievers, run on ours where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from suites import run_suite

pytestmark = pytest.mark.slow  # processes of their own

CASES = 5


def counted(**environment: str) -> dict[str, int]:
    if find_spec("langchain_tests") is None:
        pytest.skip("langchain-tests brings plugins of pytest: run scripts/frameworks.py langchain")
    folder, own = Path(__file__).parent, ["langchain_standard.py"]
    return run_suite(folder, "coroutine_tests", own, "--noconftest", **environment)


def test_the_retriever_passes_the_standard_tests() -> None:
    assert counted() == {"passed": CASES}


@pytest.mark.soak
def test_and_does_on_a_server(postgres_url: str) -> None:
    assert counted(REBOUND_ON=postgres_url) == {"passed": CASES}
