"""The awaited form of a memory that does nothing: there is nothing to wait for, so no thread is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Self, cast

from holdfast.view import View

if TYPE_CHECKING:
    from holdfast.agents.tools import Tool, ToolResult


class Awaited:
    """The awaited form of a handle: each of its methods gives at once what that of the handle gives.

    Not one of `holdfast.aio`: those run the methods of `Memory` itself, on threads.
    """

    def __init__(self, sync: object) -> None:
        self._sync = sync

    def __getattr__(self, name: str) -> object:
        value = getattr(self._sync, _NAMES.get(name, name))
        if name in _HANDLES:
            opens = callable(value)
            return (lambda *args, **kwargs: Awaited(value(*args, **kwargs))) if opens else Awaited(value)
        if name == "tools":
            return partial(_awaited_tools, value)
        if not callable(value) or name in _AT_ONCE:
            return value

        @wraps(value)
        async def call(*args: object, **kwargs: object) -> object:
            given = value(*args, **kwargs)
            return Awaited(given) if isinstance(given, View) else given

        return call

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"{self._sync!r}.aio"


class AwaitedTool(Awaited):
    """The awaited form of a tool. Of the handles none can be called, so that nobody takes one for a function."""

    async def __call__(self, arguments: Mapping[str, object] | str | None = None, /) -> ToolResult:
        """Call the tool."""
        tool = cast("Tool", self._sync)
        return tool(arguments)


def _awaited_tools(
    make: Callable[..., list[Tool]], chat: object = None, **options: object
) -> list[AwaitedTool]:
    made = make(chat._sync if isinstance(chat, Awaited) else chat, **options)  # noqa: SLF001 - our own
    return [AwaitedTool(tool) for tool in made]


_NAMES = {"set": "__setitem__", "delete": "__delitem__"}  # what awaited pads call them
_HANDLES = ("pad", "chat", "scoped", "run")
_AT_ONCE = ("on", "same_as")
