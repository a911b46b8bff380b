"""The memory tool of the Anthropic SDK over memory files: `client.beta.messages.tool_runner(tools=[MemoryTool(memory)], …)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, MissingExtra
from holdfast.memory import Memory
from holdfast.records.view import View
from holdfast.tools.file_paths import FileCommandError
from holdfast.tools.files import Files
from holdfast.tools.tool import failure
from holdfast.types import Writer

try:
    from anthropic.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from anyio.to_thread import run_sync
except ImportError as error:
    raise MissingExtra.of("anthropic") from error

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCacheControlEphemeralParam
    from pydantic import BaseModel


def _told(work: Callable[[], str]) -> str:
    """Do some work; what goes wrong is a result that the model can read.

    Raises:
        ToolError: the command was refused, or the memory could not carry it out.

    """
    try:
        return work()
    except FileCommandError as error:
        raise ToolError(error.answer) from error
    except HoldfastError as error:
        said = failure(error).data
        raise ToolError(f"{said['error']} {said['todo']}") from error


class MemoryTool(BetaAbstractMemoryTool):
    """Let Claude keep files in a memory; see `holdfast.tools.files.Files` for what becomes of them.

    >>> runner = client.beta.messages.tool_runner(tools=[MemoryTool(memory)], model=…, messages=…, max_tokens=1_000)

    Args:
        memory: whose files these are.
        by: who writes them; the one named by `acting_as`, or else the agent.
        cache_control: as in the SDK.

    """

    def __init__(
        self,
        memory: Memory | View,
        *,
        by: Writer | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.files = Files(memory, by=by)

    def call(self, input: object) -> str:
        """Carry out a command as the model gave it."""
        return _told(partial(self.files.call, input))

    def _carried_out(self, command: BaseModel) -> str:
        return self.call(dict(command))

    view = create = str_replace = insert = delete = rename = _carried_out

    def clear_all_memory(self) -> str:
        """See `Files.clear`."""
        return _told(self.files.clear)


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """Do what `MemoryTool` does, awaited: each command runs on a thread, and one that has begun is finished.

    Args:
        memory, by, cache_control: as for `MemoryTool`.

    """

    def __init__(
        self,
        memory: Memory | View,
        *,
        by: Writer | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.files = Files(memory, by=by)

    async def call(self, input: object) -> str:
        """Carry out a command as the model gave it."""
        return await run_sync(_told, partial(self.files.call, input))

    async def _carried_out(self, command: BaseModel) -> str:
        return await self.call(dict(command))

    view = create = str_replace = insert = delete = rename = _carried_out

    async def clear_all_memory(self) -> str:
        """See `Files.clear`."""
        return await run_sync(_told, self.files.clear)
