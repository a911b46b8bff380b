"""The tests of the memory tool that come with the Anthropic SDK, run on ours."""

from __future__ import annotations

import pytest

from suites import run_suite, sdist

pytestmark = pytest.mark.slow  # processes of their own

VERSION = "2.12.0"
SHA256 = "571e6d250bcd6bbaf5fd5f3c764b8e11af9901ad2e44b025f8e773c6cc7a7173"
FILES = ["tests/lib/tools/memory_tools/test_filesystem.py"]
PORTABLE, NOT_PORTABLE = 72, 27  # cases; the second are listed by name, with the reason, in the plugin


def counted(**environment: str) -> dict[str, int]:
    folder = sdist("anthropic", VERSION, SHA256)
    return run_suite(folder, "anthropic_rebind", FILES, "--noconftest", **environment)


def test_everything_that_a_tool_without_a_disk_can_pass_passes() -> None:
    assert counted() == {"passed": PORTABLE, "xfailed": NOT_PORTABLE}


@pytest.mark.soak
def test_and_on_a_server(postgres_url: str) -> None:
    assert counted(REBOUND_ON=postgres_url) == {"passed": PORTABLE, "xfailed": NOT_PORTABLE}
