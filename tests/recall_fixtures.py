"""Fixtures of the tests of recall: an empty memory for each test, without a new database for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from holdfast import Memory


@pytest.fixture(scope="session")
def recall_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Memory]:
    """Open one database of each kind for all tests of recall."""
    location = ":memory:"
    if request.param == "file":
        location = str(tmp_path_factory.mktemp("recall") / "memory.db")
    elif request.param == "postgres":
        server: str = request.getfixturevalue("postgres_server")
        name = f"t{uuid4().hex}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        location = urlsplit(server)._replace(path=f"/{name}").geturl()
    with Memory(location, admin=True) as opened:
        yield opened


@pytest.fixture
def space(
    request: pytest.FixtureRequest, recall_database: Memory, record_property: Callable[[str, object], None]
) -> Memory:
    """Give the memory of the user "ada" of a new tenant, on each kind of database."""
    if request.node.callspec.params["recall_database"] == "postgres":
        record_property("database", "postgres")
    return recall_database.scoped(tenant=uuid4().hex, user="ada")


@pytest.fixture(scope="session")
def spaces() -> Iterator[Iterator[Memory]]:
    """Give one empty memory after the other, for the examples of a property."""
    with Memory(":memory:") as memory:
        yield (memory.scoped(user=f"user{n}") for n in count())
