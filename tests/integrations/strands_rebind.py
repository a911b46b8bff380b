"""A plugin of pytest that runs Strands' tests of session managers and repositories on ours."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from uuid import uuid4

from strands.session import file_session_manager

from holdfast import Memory
from holdfast.integrations.strands import HoldfastSessionManager
from holdfast.integrations.strands_sessions import HoldfastSessionRepository

PATHS = ("asks for the path of a file", AttributeError)
# The conftest of Strands imports it, for tests of other modules.
sys.modules["moto"] = ModuleType("moto")
NOT_PORTABLE: dict[str, tuple[str, type[BaseException]]] = {
    "test_create_session": PATHS,
    "test_delete_session": PATHS,
    "test_create_agent": PATHS,
    "test_create_message": PATHS,
    "test_message_durable_id_persists": PATHS,
    "test_corrupted_json_file": ("reads a file by a private method", AttributeError),
    "test__get_session_path_invalid_session_id": PATHS,
    "test__get_agent_path_invalid_agent_id": PATHS,
    "test__get_message_path_invalid_message_id": PATHS,
    "test_create_multi_agent": PATHS,
    "test_create_session_multi_agent_directory_structure": PATHS,
}
"""The tests that only Strands' own can pass: why, and with which error they end."""


def opened(place: str) -> Memory:
    server = os.environ.get("REBOUND_ON")
    file = ":memory:" if place == ":memory:" else f"{place}/agent.db"
    user = uuid4().hex if place == ":memory:" else Path(place).name
    return Memory(server or file, user=user, durability="normal")


class FileSessionManager(HoldfastSessionManager):
    """Our session manager with the constructor and the repository of Strands' own."""

    def __init__(self, session_id: str, storage_dir: str | None = None) -> None:
        super().__init__(opened(storage_dir or ":memory:"), session_id)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_") or name == "session_repository":
            raise AttributeError(name)
        return getattr(self.session_repository, name)


class MockedSessionRepository(HoldfastSessionRepository):
    """Our repository with the constructor of that of the tests."""

    def __init__(self) -> None:
        super().__init__(opened(":memory:"))


def pytest_configure() -> None:
    # mypy lets no class take the place of another.
    setattr(file_session_manager, "FileSessionManager", FileSessionManager)  # noqa: B010
    mocked = import_module("tests.fixtures.mock_session_repository")
    setattr(mocked, "MockedSessionRepository", MockedSessionRepository)  # noqa: B010
