"""A plugin of pytest that runs the session tests of the OpenAI Agents SDK on our session."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from uuid import uuid4

import agents
import agents.memory
import pytest
from agents import SessionSettings

from holdfast import Memory
from holdfast.integrations.openai_agents import HoldfastSession

CONNECTIONS = ("looks into the SDK's own list of SQLite connections", AttributeError)
LOCKS = ("looks at the SDK's own locks of files", AttributeError)
INSERTS = ("writes rows that are no JSON into the SDK's own tables", AttributeError)
DROPS = ("drops the SDK's own tables", sqlite3.OperationalError)
LOOKS = ("writes into the SDK's own tables after the TypeError, which we raise too", sqlite3.OperationalError)
CLOSED = ("wants a RuntimeError that names SQLiteSession; ours, Closed, does not", AssertionError)
NOT_PORTABLE: dict[str, tuple[str, type[BaseException]]] = {
    "test_sqlite_session_close_closes_worker_thread_connections": CONNECTIONS,
    "test_sqlite_session_reaps_connections_from_exited_worker_threads": CONNECTIONS,
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation": CONNECTIONS,
    "test_sqlite_session_keeps_connections_of_live_worker_threads": CONNECTIONS,
    "test_sqlite_session_rollback_failure_evicts_connection": CONNECTIONS,
    "test_sqlite_session_close_retries_quarantined_connection": CONNECTIONS,
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[add]": CONNECTIONS,
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[pop]": CONNECTIONS,
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[clear]": CONNECTIONS,
    "test_sqlite_session_file_lock_is_shared_across_instances": LOCKS,
    "test_sqlite_session_pop_item_skips_corrupt_most_recent": INSERTS,
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": INSERTS,
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": INSERTS,
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": INSERTS,
    "test_sqlite_session_failed_clear_session_rolls_back": DROPS,
    "test_sqlite_session_failed_pop_item_releases_write_lock": DROPS,
    "test_sqlite_session_failed_add_items_releases_write_lock": LOOKS,
    "test_sqlite_session_closed_rejects_empty_add_items": CLOSED,
    "test_settled_pop_failure_invalidates_response_chain[cancelled]": CONNECTIONS,
    "test_settled_pop_failure_invalidates_response_chain[error]": CONNECTIONS,
    "test_settled_clear_failure_invalidates_response_chain[cancelled]": CONNECTIONS,
    "test_settled_clear_failure_invalidates_response_chain[error]": CONNECTIONS,
}
"""The tests that only the SDK's own session can pass: why, and with which error they end."""


class Rebound(HoldfastSession):
    """Our session with the constructor of `SQLiteSession`: it opens a memory of its own, and closes it.

    On a server, what would be a file is a user.
    """

    def __init__(
        self,
        session_id: str,
        db_path: str | Path = ":memory:",
        *,
        session_settings: SessionSettings | dict[str, object] | None = None,
    ) -> None:
        server = os.environ.get("REBOUND_ON")
        user = uuid4().hex if db_path == ":memory:" else Path(db_path).parent.name
        self.memory = Memory(server or db_path, user=user, durability="normal")
        super().__init__(self.memory, session_id, session_settings=session_settings)

    def close(self) -> None:
        self.memory.close()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "allow_call_model_methods: a test that calls a model")
    for module in (agents, agents.memory):
        setattr(module, "SQLiteSession", Rebound)  # noqa: B010 - mypy lets no class take the place of another
