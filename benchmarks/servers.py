"""The MCP servers that are measured, each a process of its own, as clients start it.

They are asked in plain JSON, so that none of what is measured is a client's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import Self, cast

from benchmarks.words import Words
from holdfast.errors import MissingExtra, Unavailable

try:
    import httpx2
except ImportError as error:
    raise MissingExtra.of("mcp") from error

USER = "all"
LIMIT = 10  # hits
WITH_SESSION, WITHOUT = (
    "2025-11-25",
    "2026-07-28",
)  # the last version of the protocol with sessions, and the one after
_CLIENT = {"name": "holdfast-bench", "version": "1"}


@dataclass(frozen=True, slots=True)
class AgentsPlan:
    """How much is measured."""

    messages: int = 5_000
    starts: int = 7
    questions: int = 20
    repeats: int = 5
    popped: int = 2_000  # items that a session has taken back


@dataclass(frozen=True, slots=True)
class AgentsLab:
    """What a measurement works with: how much, a file with messages, and where what was compiled is kept."""

    plan: AgentsPlan
    store: Path
    words: Words
    progress: Callable[[str], None]
    tools: dict[str, list[Mapping[str, object]]] = field(default_factory=dict)  # as they are given to models

    def environment(self) -> dict[str, str]:
        """Have modules compiled, as after an installation; where the environment says, if it does."""
        unset = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {"PYTHONPYCACHEPREFIX": str(self.store.with_name("compiled")), **unset}


class Server:
    """A `holdfast mcp` of its own, and the client that asks it through standard input and output."""

    def __init__(self, lab: AgentsLab, *options: str, secret: str = "", stderr: int | None = None) -> None:
        command = [sys.executable, "-m", "holdfast", "mcp", "--db", str(lab.store), "--user", USER, *options]
        given = {**lab.environment(), "HOLDFAST_MCP_TOKEN": secret} if secret else lab.environment()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            command, stdin=pipe, stdout=pipe, stderr=stderr, env=given, encoding="utf-8"
        )
        self._asked = 0

    def begin(self) -> list[Mapping[str, object]]:
        """Initialize as clients do, and return the tools.

        Raises:
            Unavailable: it has ended.

        """
        self.ask("initialize", {"protocolVersion": WITH_SESSION, "capabilities": {}, "clientInfo": _CLIENT})
        self._sent({"method": "notifications/initialized"})
        return self.tools()

    def tools(self) -> list[Mapping[str, object]]:
        """Return the tools.

        Raises:
            Unavailable: it has ended.

        """
        return cast("list[Mapping[str, object]]", self.ask("tools/list", {})["tools"])

    def recall(self, question: str) -> object:
        """Recall through the server.

        Raises:
            Unavailable: it has ended, or has failed to.

        """
        given = {"name": "recall", "arguments": {"query": question, "limit": LIMIT}}
        result = self.ask("tools/call", given)
        if result.get("isError"):
            raise Unavailable("The server failed to recall.", "Try `holdfast recall` on the same database.")
        return result

    def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, object]:
        """Send a request, and give its result.

        Raises:
            Unavailable: it has ended, or refused.

        """
        self._asked += 1
        said = self._sent({"id": self._asked, "method": method, "params": params})
        answer = next((one for one in said if one.get("id") == self._asked), None)
        if answer is None:
            raise _ended()
        if "result" not in answer:
            raise Unavailable(f"The server refused {method}.", "Use the version that belongs to this one.")
        return cast("Mapping[str, object]", answer["result"])

    def _sent(self, message: Mapping[str, object]) -> Iterable[Mapping[str, object]]:
        """Send a message, and give what the server says from then on."""
        try:
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                self._process.stdin.flush()
        except BrokenPipeError as error:
            raise _ended() from error
        return map(json.loads, self._process.stdout or ())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()  # what it does to end is no part of any measurement
        self._process.communicate()


class HttpServer(Server):
    """A `holdfast mcp --http` of its own, asked over one connection: in a session, or each time anew."""

    def __init__(self, lab: AgentsLab, version: str) -> None:
        secret = token_urlsafe()
        super().__init__(lab, "--http", "--port", "0", secret=secret, stderr=subprocess.PIPE)
        said, _, url = next(iter(self._process.stderr or ()), "").strip().partition(" ")
        if said != "Serving":
            super().close()
            raise _ended()
        self._url = url
        self._client = httpx2.Client()
        self._version = version
        self._headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "Authorization": f"Bearer {secret}",
            "MCP-Protocol-Version": version,
        }

    def begin(self) -> list[Mapping[str, object]]:
        """Open a session where the protocol has them, and give the tools.

        Raises:
            Unavailable: it has ended.

        """
        return super().begin() if self._version == WITH_SESSION else self.tools()

    def close(self) -> None:
        """Hang up, and end it."""
        self._client.close()
        super().close()

    def _sent(self, message: Mapping[str, object]) -> Iterable[Mapping[str, object]]:
        headers = self._headers
        if self._version != WITH_SESSION:
            params = cast("Mapping[str, object]", message["params"])
            message = {**message, "params": {**params, "_meta": _meta(self._version)}}
            named = {"Mcp-Name": str(params["name"])} if "name" in params else {}
            headers = {**headers, "Mcp-Method": str(message["method"]), **named}
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            answer = self._client.post(self._url, content=body, headers=headers)
        except httpx2.HTTPError as error:
            raise _ended() from error
        if session := answer.headers.get("Mcp-Session-Id"):
            self._headers["Mcp-Session-Id"] = session
        lines = (line.removeprefix("data: ") for line in answer.text.splitlines())
        return [json.loads(line) for line in lines if line.startswith("{")]


def _meta(version: str) -> Mapping[str, object]:
    said = {"protocolVersion": version, "clientInfo": _CLIENT, "clientCapabilities": {}}
    return {f"io.modelcontextprotocol/{name}": value for name, value in said.items()}


def _ended() -> Unavailable:
    return Unavailable(
        "The server has ended.", "Read what it said, or try `holdfast mcp` on the same database."
    )
