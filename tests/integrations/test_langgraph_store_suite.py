"""The tests that come with LangGraph's own stores, run on ours."""

from __future__ import annotations

import pytest

from suites import run_suite, sdist

pytestmark = pytest.mark.slow  # processes of their own, which wait for the clock

SQLITE = "3.1.2", "4e3f376fa6f192d6ad2a1a4643b039986f1593552ef870e9e45281575de6fbf2"
MEMORY = "4.3.2", "fcab8468c7e965d7055e2a35c253d73a145624ef4728b150ca7c361f4afca286"
OF_SQLITE = {"passed": 133, "xfailed": 6, "deselected": 3}
OF_TTL = {"passed": 10, "xfailed": 1}
OF_MEMORY = {"passed": 86, "deselected": 31}


def counted(package: str, release: tuple[str, str], files: list[str], **environment: str) -> dict[str, int]:
    tests = [f"tests/{file}" for file in files]
    return run_suite(sdist(package, *release), "lgstore_rebind", tests, **environment)


def of_sqlite(**environment: str) -> dict[str, int]:
    return counted(
        "langgraph-checkpoint-sqlite", SQLITE, ["test_store.py", "test_async_store.py"], **environment
    )


def of_ttl(**environment: str) -> dict[str, int]:
    return counted("langgraph-checkpoint-sqlite", SQLITE, ["test_ttl.py"], **environment)


def of_memory(**environment: str) -> dict[str, int]:
    return counted("langgraph-checkpoint", MEMORY, ["test_store.py"], **environment)


def test_all_of_the_sqlite_store_passes_that_another_store_can_pass() -> None:
    assert of_sqlite() == OF_SQLITE


def test_and_of_the_store_in_memory() -> None:
    assert of_memory() == OF_MEMORY


@pytest.mark.soak
def test_and_those_that_wait_for_the_clock() -> None:
    assert of_ttl() == OF_TTL


@pytest.mark.soak
def test_and_on_a_server(postgres_url: str) -> None:
    assert of_sqlite(REBOUND_ON=postgres_url) == OF_SQLITE
    assert of_ttl(REBOUND_ON=postgres_url) == OF_TTL
    assert of_memory(REBOUND_ON=postgres_url) == OF_MEMORY
