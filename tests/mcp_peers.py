"""Clients of the MCP server in both eras of the protocol, and servers as processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from queue import Queue
from threading import Thread
from typing import Any, Self, TypeVar

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from holdfast import Memory

ERAS = ("legacy", "auto")  # with a handshake, and without: what `auto` comes to with this server
PATIENCE = 60  # seconds until a test that hangs says so
T = TypeVar("T")


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, which must come."""
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


class Person:
    """Sit before a client, and answer what the server asks: yes, no, or by closing the question."""

    def __init__(self, agrees: bool | None = True) -> None:
        self.agrees = agrees
        self.asked: list[str] = []

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        if self.agrees is None:
            return ElicitResult(action="cancel")
        return ElicitResult(action="accept", content={"agreed": self.agrees})


def client(
    server: MCPServer[object] | StdioServerParameters | str, era: str, person: Person | None = None
) -> Client:
    """Make a client that nobody sits before, or a person does."""
    return Client(server, mode=era, elicitation_callback=person.answer if person else None)


@asynccontextmanager
async def http_client(url: str, token: str, era: str, person: Person | None = None) -> AsyncIterator[Client]:
    """Connect over HTTP with a token."""
    answers = person.answer if person else None
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as carrier,
        Client(
            streamable_http_client(url, http_client=carrier), mode=era, elicitation_callback=answers
        ) as one,
    ):
        yield one


def text(result: CallToolResult) -> str:
    """Read what a call said."""
    assert len(result.content) == 1
    content = result.content[0]
    assert isinstance(content, TextContent)
    return content.text


def data(result: CallToolResult) -> dict[str, Any]:
    """Read what a call gave: the same as data and as text."""
    assert not result.is_error, text(result)
    assert result.structured_content is not None
    found: dict[str, Any] = result.structured_content
    assert json.loads(text(result)) == found
    return found


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a database with one message, for modules that assign it to a name of theirs."""
    path = str(tmp_path_factory.mktemp("served") / "memory.db")
    with Memory(path, user="ada") as memory:
        memory.chat("monday").append(role="user", content="I am training for the Berlin marathon.")
    return path


def command(location: str, *options: str) -> list[str]:
    """Write the command that serves a memory."""
    return [sys.executable, "-P", "-m", "holdfast", "mcp", "--db", location, "--user", "ada", *options]


def over_stdio(location: str, *options: str) -> StdioServerParameters:
    """Describe a server that a client starts."""
    program, *arguments = command(location, *options)
    return StdioServerParameters(command=program, args=arguments)


class Served:
    """Serve a memory over HTTP in a process that ends with the block; `errors` is what it wrote to stderr."""

    def __init__(self, location: str, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self._command = command(location, "--http", "--port", "0", *options)
        self._environment = {**os.environ, **(environment or {})}
        self.url = ""
        self.token = ""
        self.output = ""
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        said: Queue[str] = Queue()
        self._listener = Thread(target=self._listen, args=(said,))
        self._listener.start()
        names = ["Serving"] if "HOLDFAST_MCP_TOKEN" in self._environment else ["Serving", "Token"]
        for name in names:
            line = said.get(timeout=PATIENCE)
            assert line.startswith(name), line
            setattr(self, {"Serving": "url", "Token": "token"}[name], line.split()[1])
        return self

    def _listen(self, said: Queue[str]) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors.append(line)
            said.put(line)
        said.put("")

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.stdout is not None
        self.output = self.process.stdout.read()
        self.process.wait(PATIENCE)
        self._listener.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
