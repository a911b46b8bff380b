"""The MCP server over HTTP: by default on this machine only, and for requests with the token."""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import secrets
from asyncio import CancelledError
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput, MissingExtra, Unavailable, shown

try:
    import uvicorn
    from starlette.datastructures import Headers
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise MissingExtra.of("mcp") from error

if TYPE_CHECKING:
    from socket import socket

    from mcp.server import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PATH = "/mcp"
SHORTEST_TOKEN = 16  # characters; a shorter one could be guessed
REQUEST_SECONDS = 30.0  # for the largest request, of 4 MiB, that is 1.1 Mbit/s
IDLE_SECONDS = 1_800.0  # the default of the SDK; clients open a new session afterwards
MAX_SESSIONS = 1_000
_TCP = 6  # the protocol's number on every system
_LEAVE_SECONDS = 1  # clients that listen never close their connections


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(32)


def application(
    server: MCPServer[object],
    host: str = "127.0.0.1",
    *,
    idle_seconds: float = IDLE_SECONDS,
    max_sessions: int = MAX_SESSIONS,
) -> ASGIApp:
    """Return the ASGI application that serves at `PATH`, without authentication; see `Guarded`.

    On a loopback host, requests for another host name are refused, since a web page could send them.

    Args:
        server: the server with tools, resources and prompts.
        host: the address to serve at.
        idle_seconds: time after which a session without requests and streams is closed; later requests of it
            are answered with 404.
        max_sessions: number of open sessions at most; a request for another is answered with 503.

    Raises:
        InvalidInput: a limit is not a number above 0.

    """
    app = server.streamable_http_app(
        host=host,
        streamable_http_path=PATH,
        session_idle_timeout=_above_zero(idle_seconds, "idle_seconds"),
        max_sessions=int(_above_zero(max_sessions, "max_sessions")),
    )

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        # A client that disconnects during its request needs no answer.
        with suppress(ClientDisconnect):
            await app(scope, receive, send)

    return answer


def _above_zero(value: float, what: str) -> float:
    number: object = value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < math.inf:
        raise InvalidInput(f"`{what}` is {shown(number)}.", "Pass a number above 0.")
    return value


class Guarded:
    """An ASGI application for requests with the token; others are answered with 401.

    Raises:
        InvalidInput: the token is shorter than 16 characters, or has some that a header cannot have.

    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        if len(token) < SHORTEST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
            raise InvalidInput(
                f"The token is not {SHORTEST_TOKEN} or more letters, digits and signs of ASCII.",
                "Choose another one, or none to have one made.",
            )
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it for its token."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        sent = Headers(scope=scope).getlist("authorization") or [""]
        scheme, _, given = sent[0].partition(" ")
        if scheme.lower() != "bearer":
            await _refusal("missing_token", "The request has no token.")(scope, receive, send)
        elif len(sent) > 1 or not hmac.compare_digest(given.strip().encode(), self._token):
            refusal = _refusal("invalid_token", "The token of the request is not the one of this server.")
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _refusal(error: str, what: str) -> JSONResponse:
    todo = "Send the header `Authorization: Bearer TOKEN` with the token that the server was started with."
    challenge = "Bearer" if error == "missing_token" else f'Bearer error="{error}"'
    return JSONResponse(
        {"error": error, "error_description": f"{what} {todo}"}, 401, {"WWW-Authenticate": challenge}
    )


def _is_trouble(record: logging.LogRecord) -> bool:
    """Return whether to log a record: not if a client disconnected, or listened until the server ended."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect | CancelledError))


class _AnnouncingServer(uvicorn.Server):
    """A server that calls a function once it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


class _TimedConnection(H11Protocol):
    """A connection that is closed if a request takes too long to arrive, from its first byte to its last.

    Uvicorn waits without limit for the rest of a request, so that a few slow clients could occupy all
    connections. While an answer is computed, and between requests, Uvicorn's limits apply.
    """

    seconds = REQUEST_SECONDS
    _timer: asyncio.TimerHandle | None = None
    # The last request that arrived completely.
    _arrived: object = None

    # The base class declares the narrower type too.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        if self._timer is None:
            self._wait()
        super().data_received(data)
        if self.cycle is not self._arrived and not self.cycle.more_body:
            self._arrived = self.cycle
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self._give_up)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self._arrived is not None and self.cycle is self._arrived and not self.cycle.response_complete:
            # The answer takes long, and what arrives meanwhile is the next request.
            self._wait()
        else:
            self.transport.close()


def serve(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    ready: Callable[[str], None],
    remote: bool = False,
    request_seconds: float = REQUEST_SECONDS,
) -> None:
    """Serve an application until an interrupt.

    Args:
        app: the application; `Guarded`, unless everybody on the machine may read the memory.
        host: the address to listen at.
        port: the port, 0 for any that is free.
        ready: a function that is called with the URL once the server listens.
        remote: allow a host other than the loopback. The connection is not encrypted: put a proxy with TLS
            before it.
        request_seconds: time in which a request must arrive, headers and body; a connection that takes longer
            is closed.

    Raises:
        InvalidInput: other machines can reach the host and `remote` is False, or the seconds are not above 0.
        Unavailable: the address or the port cannot be used.

    """
    if host not in LOOPBACK and not remote:
        raise InvalidInput(
            f"Other machines could reach the memory at {host}.",
            f"Use {LOOPBACK[0]}, or say that they may: --remote.",
        )
    config = _config(app, host, port, _above_zero(request_seconds, "request_seconds"))
    listening = _bind(config)
    for name in ("mcp.server.streamable_http", "uvicorn.error"):
        logging.getLogger(name).addFilter(_is_trouble)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}{PATH}"
    _AnnouncingServer(config, lambda: ready(url)).run([listening])


def _config(app: ASGIApp, host: str, port: int, request_seconds: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=type("Hurried", (_TimedConnection,), {"seconds": request_seconds}),
        # Uvicorn's own configuration of logs writes to stdout.
        log_config=None,
        access_log=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_LEAVE_SECONDS,
    )


def _bind(config: uvicorn.Config) -> socket:
    """Return the socket of a configuration."""
    try:
        bound = config.bind_socket()
    except SystemExit as error:
        # Uvicorn has logged the reason.
        what = f"Nothing can listen at {config.host}:{config.port}."
        raise Unavailable(what, "Choose another port or host.") from error
    # Named as TCP, asyncio sets TCP_NODELAY. Without it, the kernel holds the later parts of an answer back
    # until the client has acknowledged the first, 40 ms later.
    return type(bound)(bound.family, bound.type, _TCP, bound.detach())
