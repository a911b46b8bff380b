"""The memory tool of the Anthropic SDK over memory files: pass `MemoryTool(memory)` to its `tool_runner`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast import Memory, View
from holdfast.errors import HoldfastError, MissingExtra
from holdfast.port.tools import Files, failure
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


def _run(command: Callable[[], str]) -> str:
    """Return the answer of a command.

    Raises:
        ToolError: it was refused, or the memory failed; the text is for the model.

    """
    try:
        return command()
    except HoldfastError as error:
        data = failure(error).data
        # A command that is refused has an answer of its own.
        raise ToolError(getattr(error, "answer", f"{data['error']} {data['todo']}")) from error


class _OverFiles:
    """The files of a memory, for a tool of the SDK, whose class comes after this one among the bases."""

    def __init__(
        self,
        memory: Memory | View,
        *,
        by: Writer | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        tool: Any = super()
        tool.__init__(cache_control=cache_control)
        self.files = Files(memory, by=by)


class MemoryTool(_OverFiles, BetaAbstractMemoryTool):
    """The memory tool of the SDK, which stores files as records; see `holdfast.tools.files.Files`.

    >>> tools = [MemoryTool(memory)]
    >>> runner = client.beta.messages.tool_runner(tools=tools, model=…, messages=…, max_tokens=1_000)

    Args:
        memory: the memory that stores the files, or a view of it.
        by: the writer; None for the one of `acting_as`, else the agent.
        cache_control: as in the SDK.

    """

    def call(self, input: object) -> str:
        """Run a command with the input of the model, and return its answer."""
        return _run(partial(self.files.call, input))

    def _command(self, command: BaseModel) -> str:
        return self.call(dict(command))

    view = create = str_replace = insert = delete = rename = _command

    def clear_all_memory(self) -> str:
        """See `Files.clear`."""
        return _run(self.files.clear)


class AsyncMemoryTool(_OverFiles, BetaAsyncAbstractMemoryTool):
    """`MemoryTool`, awaited: each command runs on a thread, and completes once it has started.

    Args:
        memory, by, cache_control: as for `MemoryTool`.

    """

    async def call(self, input: object) -> str:
        """Run a command with the input of the model, and return its answer."""
        return await run_sync(_run, partial(self.files.call, input))

    async def _command(self, command: BaseModel) -> str:
        return await self.call(dict(command))

    view = create = str_replace = insert = delete = rename = _command

    async def clear_all_memory(self) -> str:
        """See `Files.clear`."""
        return await run_sync(_run, self.files.clear)
