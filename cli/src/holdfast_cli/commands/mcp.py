"""The command that serves agents: mcp."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.errors import InvalidInput, Unavailable
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Screen

TOKEN = "HOLDFAST_MCP_TOKEN"  # noqa: S105 - the name of a variable
# As in `mcp_http`, which takes long to import.
REQUEST_SECONDS, IDLE_SECONDS, MAX_SESSIONS = 30.0, 1_800.0, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(Options):
    """The memory to serve, and the options of HTTP.

    Its user is not guessed: that would depend on who else has one when the server starts.
    """

    guesses = False

    host: str = "127.0.0.1"
    port: int = 8765
    remote: bool = False
    request_seconds: float = REQUEST_SECONDS
    idle_seconds: float = IDLE_SECONDS
    max_sessions: int = MAX_SESSIONS


def mcp(options: ServeOptions, *, read_only: bool = False, http: bool = False) -> None:
    """Serve the memory to agents over the Model Context Protocol.

    Without --http it uses standard input and output, as clients expect, which start it themselves: see
    `holdfast install`.

    For example: holdfast mcp --http --user ada
    """
    of_http, defaults = ServeOptions.__annotations__, ServeOptions()
    if http:
        _serve_http(options, read_only=read_only)
    elif any(getattr(options, name) != getattr(defaults, name) for name in of_http):
        what = "--host, --port, --remote and the limits of requests and sessions are for HTTP."
        raise InvalidInput(what, "Pass --http as well, or leave them out.")
    else:
        _serve_stdio(options, read_only=read_only)


def _serve_stdio(options: Options, *, read_only: bool) -> None:
    if sys.stdin is None:
        todo = "Let a client start it, or pass --http."
        raise InvalidInput("There is no standard input to read from.", todo)
    if sys.stdin.isatty():
        screen = Screen(sys.stderr)
        screen.say("Waiting for a client on standard input. Ctrl-C ends it.")
        screen.say(f"→ Clients start it themselves: {options.line('install', 'CLIENT')}")
    with _startup():
        # The SDK takes half a second to import.
        from holdfast.integrations.mcp.server import make_server

    # The SDK waits for a thread that reads standard input, so an interrupt would change nothing before the
    # next line. To end at once harms nothing: what is written is written in transactions.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with options.open(create=True, admin=False, embed=True) as memory:
        try:
            make_server(memory, read_only=read_only).run("stdio")
        except ExceptionGroup as error:
            if error.split(OSError)[1] is not None:
                raise
            what = "The client takes no more answers: it is gone, or what it reads from is full."
            raise Unavailable(what, "Start the client anew.") from error


def _serve_http(options: ServeOptions, *, read_only: bool) -> None:
    with _startup():
        from holdfast.integrations.mcp import http as mcp_http
        from holdfast.integrations.mcp.server import make_server

    secret = os.environ.get(TOKEN)
    token = mcp_http.new_token() if secret is None else secret

    def ready(url: str) -> None:
        screen = Screen(sys.stderr)
        screen.say(("Serving ", "bold"), url)
        if secret is None:
            screen.say(("Token   ", "bold"), token)

    with options.open(create=True, admin=False, embed=True) as memory:
        app = mcp_http.application(
            make_server(memory, read_only=read_only),
            options.host,
            idle_seconds=options.idle_seconds,
            max_sessions=options.max_sessions,
        )
        mcp_http.serve(
            mcp_http.Guarded(app, token),
            options.host,
            options.port,
            ready=ready,
            remote=options.remote,
            request_seconds=options.request_seconds,
        )


@contextmanager
def _startup() -> Iterator[None]:
    """Log to stderr, since stdout is the protocol's, and collect no garbage during large imports."""
    line = "%(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=line)
    gc.disable()  # it would take a fifth of the time
    try:
        yield
        gc.freeze()  # imports stay: later collections skip them
    finally:
        gc.enable()
