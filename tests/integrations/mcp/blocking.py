"""Clients of MCP whose methods block, for tests that have nothing to do meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from inspect import iscoroutinefunction
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client

from mcp_peers import PATIENCE


class _Blocking:
    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal, self._client = portal, client

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not iscoroutinefunction(found):
            return found

        async def awaited(given: tuple[object, ...], named: dict[str, object]) -> Any:
            return await asyncio.wait_for(found(*given, **named), PATIENCE)

        return lambda *given, **named: self._portal.call(awaited, given, named)


@contextmanager
def blocking(client: AbstractAsyncContextManager[Client]) -> Iterator[Any]:
    """Open a client; what it gives has the same methods, and each ends when it is called, or fails."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as opened:
        yield _Blocking(portal, opened)
