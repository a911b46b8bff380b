"""A plugin of pytest that runs the tests of the Anthropic SDK's memory tool on ours."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from uuid import uuid4

from anthropic.lib.tools import _beta_builtin_memory_tool as sdk
from anyio import Path as AsyncPath

from holdfast import Memory
from holdfast.integrations.anthropic import AsyncMemoryTool, MemoryTool
from holdfast.tools.files import Files

LINKS = "makes a symbolic link on the disk", BaseException
LINES = "makes a file of a million lines; ours have 100,000 characters", BaseException
MODES = "checks the modes of folders on the disk", BaseException
NOT_PORTABLE: dict[str, tuple[str, type[BaseException]]] = {
    "test_mkdir_parents_not_world_writable_under_permissive_umask": MODES,
    "test_view_error_for_files_with_too_many_lines": LINES,
    "test_read_rejects_symlink_created_after_validation": LINKS,
    "test_read_rejects_file_replaced_with_symlink_before_open": LINKS,
    "test_view_rejects_directory_symlink_created_after_validation": LINKS,
    "test_validate_path_returns_resolved_path_not_symlink_target": LINKS,
    "test_view_lists_symlinks_only_when_they_stay_inside_memories": LINKS,
    "test_symlink_validation_reject_symlink_pointing_outside_memories": LINKS,
    "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside": LINKS,
    "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside": LINKS,
}
"""The tests that no tool without a disk can pass, with the reason; that they fail is checked."""

_opened = Memory(os.environ.get("REBOUND_ON", ":memory:"), durability="normal")


def take(files: Files, folder: Path) -> None:
    """Take over what a test has put on the disk."""
    for file in folder.rglob("*"):
        path = f"/memories/{file.relative_to(folder)}"
        if file.is_file() and not file.is_symlink() and path not in files.paths():
            files.create(path, file.read_bytes().decode())


def lay_out(files: Files, folder: Path) -> None:
    """Write the tree to the disk, where the tests look for it."""
    shutil.rmtree(folder)
    folder.mkdir()
    for path in files.paths():
        file = folder / path.removeprefix("/memories/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(files.read(path).encode())


class Rebound(MemoryTool):
    """Our tool with the constructor of the SDK's. What is in its tree is in a folder as well."""

    def __init__(self, base_path: str = "./memory") -> None:
        super().__init__(_opened.scoped(user=uuid4().hex))
        self.base_path = Path(base_path)
        self.memory_root = self.base_path / "memories"
        self.memory_root.mkdir(parents=True)

    def call(self, input: object) -> str:
        take(self.files, self.memory_root)
        try:
            return super().call(input)
        finally:
            lay_out(self.files, self.memory_root)


class AsyncRebound(AsyncMemoryTool):
    """The same, awaited."""

    def __init__(self, base_path: str = "./memory") -> None:
        super().__init__(_opened.scoped(user=uuid4().hex))
        self.base_path = AsyncPath(base_path)
        self.memory_root = self.base_path / "memories"
        Path(self.memory_root).mkdir(parents=True)

    async def call(self, input: object) -> str:
        take(self.files, Path(self.memory_root))
        try:
            return await super().call(input)
        finally:
            lay_out(self.files, Path(self.memory_root))


def pytest_configure() -> None:
    setattr(sdk, "BetaLocalFilesystemMemoryTool", Rebound)  # noqa: B010 - mypy lets no class take the place of another
    setattr(sdk, "BetaAsyncLocalFilesystemMemoryTool", AsyncRebound)  # noqa: B010 - as above


def pytest_unconfigure() -> None:
    _opened.close()
