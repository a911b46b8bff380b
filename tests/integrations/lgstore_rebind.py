"""A plugin of pytest that runs the tests of LangGraph's own stores on ours."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast
from unittest.mock import MagicMock, patch
from uuid import uuid4

import langgraph.store.memory
import langgraph.store.sqlite
import langgraph.store.sqlite.aio
import pytest

from holdfast import Memory
from holdfast.integrations.langgraph import HoldfastStore
from holdfast.integrations.langgraph.store import TTLSweeper

if TYPE_CHECKING:
    from langgraph.store.base import IndexConfig, TTLConfig

OWN_CODE = (
    "test_escape_glob_literal",
    "test_namespace_match_pattern",
    "test_list_namespaces_prefix_uses_indexable_condition",
    "test_dedupe_ops_maps_repeated_reads_and_puts_to_one_op",
    "test_get_text_at_path",
    "test_get_text_at_path_with_non_dict_mapping",
    "test_validate_op_namespace_rejects_invalid_labels",
    "test_validate_op_namespace_allows_empty_prefix_and_wildcards",
    "test_async_batch_store",
    "test_async_batch_store_handles_cancellation",
)
"""The tests that are deselected: they call functions of LangGraph's own stores, and no store at all."""

TABLES = ("looks for the tables of SqliteStore", AttributeError)
KEYS = (
    "wants ValueError for keys of a filter that are unsafe in SQL; ours come into none",
    pytest.fail.Exception,
)
LOOP = ("wants an error of calls that block the event loop, which ours may", pytest.fail.Exception)
REFRESHED = ("wants no refresh on reading, which is LangGraph's documented default", AssertionError)
ONLY_THEIRS: dict[str, tuple[str, type[BaseException]]] = {
    "test_store.py::test_vector_store_initialization": TABLES,
    "test_store.py::test_nonnull_migrations": TABLES,
    "test_store.py::test_sql_injection_vulnerability": KEYS,
    "test_async_store.py::test_no_running_loop": LOOP,
    "test_ttl.py::test_ttl_override_default": REFRESHED,
}
"""The tests that only LangGraph's own stores can pass, whatever their parameters: why, and how they end.

It is an error if one passes, ends otherwise, or is no longer there.
"""


class Rebound(HoldfastStore):
    """Our store with the constructors of LangGraph's: it opens a memory of its own.

    On a server, what would be a file is a user.
    """

    def __init__(
        self,
        memory: Memory | None = None,
        *,
        index: dict[str, object] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        config = None if index is None else {"fields": index.get("text_fields"), **index}
        self.embeddings = None if index is None else index["embed"]
        super().__init__(memory or opened(":memory:"), index=cast("IndexConfig | None", config), ttl=ttl)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn: str, *, index: dict[str, object] | None = None, ttl: TTLConfig | None = None
    ) -> Iterator[Rebound]:
        with opened(conn) as memory:
            yield cls(memory, index=index, ttl=ttl)

    def setup(self) -> None:
        pass


class AsyncRebound(Rebound):
    """The same with the constructor of AsyncSqliteStore, and its methods that are awaited."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(  # type: ignore[override]
        cls, conn: str, *, index: dict[str, object] | None = None, ttl: TTLConfig | None = None
    ) -> AsyncIterator[Rebound]:
        with opened(conn) as memory:
            yield cls(memory, index=index, ttl=ttl)

    def __init__(
        self,
        memory: Memory | None = None,
        *,
        index: dict[str, object] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__(memory, index=index, ttl=ttl)
        self._sweeper = TTLSweeper(super().sweep_ttl)

    async def setup(self) -> None:  # type: ignore[override]
        pass

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        return await asyncio.to_thread(super().sweep_ttl)

    async def start_ttl_sweeper(self) -> None:  # type: ignore[override]
        super().start_ttl_sweeper()

    async def stop_ttl_sweeper(self) -> bool:  # type: ignore[override]
        return await asyncio.to_thread(super().stop_ttl_sweeper)


def opened(conn: str) -> Memory:
    server = os.environ.get("REBOUND_ON")
    user = uuid4().hex if conn == ":memory:" else Path(conn).name
    return Memory(server or conn, user=user, durability="normal")


class Mocker:
    """The two methods of pytest-mock's fixture that the tests call."""

    def __init__(self) -> None:
        self._patches: list[object] = []

    def stub(self) -> MagicMock:
        return MagicMock()

    def spy(self, owner: type, name: str) -> MagicMock:
        one = patch.object(owner, name, autospec=True, side_effect=getattr(owner, name))
        self._patches.append(one)
        return cast("MagicMock", one.start())


@pytest.fixture
def mocker() -> Iterator[Mocker]:
    yield Mocker()
    patch.stopall()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "flaky: a test that waits for the clock")
    mock = ModuleType("pytest_mock")
    vars(mock)["MockerFixture"] = Mocker
    sys.modules["pytest_mock"] = mock
    for module, name, ours in (
        (langgraph.store.memory, "InMemoryStore", Rebound),
        (langgraph.store.sqlite, "SqliteStore", Rebound),
        (langgraph.store.sqlite, "AsyncSqliteStore", AsyncRebound),
        (langgraph.store.sqlite.aio, "AsyncSqliteStore", AsyncRebound),
    ):
        setattr(module, name, ours)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    own = [item for item in items if item.name.partition("[")[0] in OWN_CODE]
    config.hook.pytest_deselected(items=own)
    items[:] = [item for item in items if item not in own]
    for item in items:
        name = f"{item.path.name}::{item.name.partition('[')[0]}"
        if "sqlite" in str(item.config.rootpath) and name in ONLY_THEIRS:
            reason, raises = ONLY_THEIRS[name]
            item.add_marker(pytest.mark.xfail(reason=reason, raises=raises, strict=True))


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> None:
    """Run a fixture that is an asynchronous generator, as the plugin that the tests are written for."""
    if inspect.isasyncgenfunction(fixturedef.func):
        vars(fixturedef)["func"] = blocking(fixturedef.func)


def blocking(
    function: Callable[..., AsyncGenerator[object, None]],
) -> Callable[..., Iterator[object]]:
    def run(**options: object) -> Iterator[object]:
        generator = function(**options)
        with asyncio.Runner() as runner:
            yield runner.run(anext(generator))
            runner.run(anext(generator, None))

    return run
