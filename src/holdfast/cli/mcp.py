"""The command that serves agents: mcp."""

import gc
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from holdfast.cli.install import install
from holdfast.cli.options import Options
from holdfast.cli.render.screen import Screen
from holdfast.errors import InvalidInput, Unavailable
from holdfast.integrations.mcp.install import CLIENTS

TOKEN = "HOLDFAST_MCP_TOKEN"  # noqa: S105 - the name of a variable
HOST, PORT = "127.0.0.1", 8765
REQUEST_SECONDS, IDLE_SECONDS, MAX_SESSIONS = (
    30.0,
    1_800.0,
    1_000,
)  # as in `mcp_http`, which takes long to import
_CLIENTS = ", ".join(CLIENTS)
_HTTP = "Over HTTP"
_INSTALL = "Into a client"


def _client(name: str) -> str:
    if name not in CLIENTS:
        raise typer.BadParameter(f"{name!r} is none of {_CLIENTS}.")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(Options):
    """Which memory is served: whose it is must not depend on who else has one when the server starts."""

    guesses = False


_ReadOnly = Annotated[bool, typer.Option("--read-only", help="Only what reads; nothing can be changed.")]
_Http = Annotated[
    bool, typer.Option("--http", help="Serve over HTTP, not to who started it.", rich_help_panel=_HTTP)
]
_Port = Annotated[
    int,
    typer.Option(
        min=0, max=65535, help="The port to listen at; 0 for any that is free.", rich_help_panel=_HTTP
    ),
]
_Token = Annotated[
    str | None,
    typer.Option(
        envvar=TOKEN,
        show_envvar=False,
        help=f"The bearer token that clients must send. Otherwise ${TOKEN}, which others cannot see, "
        "otherwise one is made and printed.",
        rich_help_panel=_HTTP,
    ),
]
_Remote = Annotated[
    bool,
    typer.Option(
        "--remote",
        help="Allow a --host that other machines reach. Unencrypted: put a proxy with TLS before it.",
        rich_help_panel=_HTTP,
    ),
]
_RequestSeconds = Annotated[
    float,
    typer.Option(
        help="Close a connection whose request takes longer to arrive, headers and body.",
        rich_help_panel=_HTTP,
    ),
]
_IdleSeconds = Annotated[
    float,
    typer.Option(help="Close a session that nobody uses for so long.", rich_help_panel=_HTTP),
]
_MaxSessions = Annotated[
    int,
    typer.Option(min=1, help="Open no more sessions than this at once.", rich_help_panel=_HTTP),
]
_InstallIn = Annotated[
    str | None,
    typer.Option(
        "--install",
        parser=_client,
        metavar="CLIENT",
        help=f"Add this server to the configuration of a client, and end: {_CLIENTS}.",
        rich_help_panel=_INSTALL,
    ),
]
_OnlyPrint = Annotated[
    bool,
    typer.Option(
        "--print", help="With --install: print what to add, and write nothing.", rich_help_panel=_INSTALL
    ),
]
_Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="With --install: do not ask.", rich_help_panel=_INSTALL)
]


_DEFAULTS = (HOST, PORT, REQUEST_SECONDS, IDLE_SECONDS, MAX_SESSIONS)


def mcp(
    options: Serving,
    *,
    read_only: _ReadOnly = False,
    http: _Http = False,
    host: Annotated[str, typer.Option(help="The address to listen at.", rich_help_panel=_HTTP)] = HOST,
    port: _Port = PORT,
    token: _Token = None,
    remote: _Remote = False,
    request_seconds: _RequestSeconds = REQUEST_SECONDS,
    idle_seconds: _IdleSeconds = IDLE_SECONDS,
    max_sessions: _MaxSessions = MAX_SESSIONS,
    install_in: _InstallIn = None,
    only_print: _OnlyPrint = False,
    yes: _Yes = False,
) -> None:
    """Serve the memory to agents over the Model Context Protocol, or add this server to a client.

    Without --http it uses standard input and output, as clients expect.

    For example: holdfast mcp --install claude-code --user ada
    """
    if install_in is not None and http:
        raise InvalidInput(
            "A client starts the server itself, and does not need HTTP.", "Leave out --http or --install."
        )
    limits = (request_seconds, idle_seconds, max_sessions)
    if not http and (remote or (host, port, *limits) != _DEFAULTS):
        raise InvalidInput(
            "--host, --port, --remote and the limits of requests and sessions are for HTTP.",
            "Pass --http as well, or leave them out.",
        )
    if install_in is None and (only_print or yes):
        raise InvalidInput("It is not said where to install it.", f"Pass --install with one of {_CLIENTS}.")
    if install_in is not None:
        install(options, install_in, read_only=read_only, only_print=only_print, yes=yes)
    elif http:
        _serve_http(options, host, port, token, limits, read_only=read_only, remote=remote)
    else:
        _serve_stdio(options, read_only=read_only)


def _serve_stdio(options: Options, *, read_only: bool) -> None:
    if sys.stdin is None:
        raise InvalidInput(
            "There is no standard input to read from.", "Let a client start it, or pass --http."
        )
    if sys.stdin.isatty():
        screen = Screen(sys.stderr)
        screen.say("Waiting for a client on standard input. Ctrl-C ends it.")
        screen.say(f"→ Clients start it themselves: {options.line('mcp', '--install', 'CLIENT')}")
    with _prepared():
        # The SDK takes half a second to import.
        from holdfast.integrations.mcp.server import make_server

    # The SDK waits for a thread that reads standard input, so an interrupt would change nothing before the
    # next line. To end at once harms nothing: what is written is written in transactions.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with options.open(create=True, admin=False) as memory:
        try:
            make_server(memory, read_only=read_only).run("stdio")
        except ExceptionGroup as failed:
            if failed.split(OSError)[1] is not None:
                raise
            raise Unavailable(
                "The client takes no more answers: it is gone, or what it reads from is full.",
                "Start the client anew.",
            ) from failed


def _serve_http(
    options: Options,
    host: str,
    port: int,
    token: str | None,
    limits: tuple[float, float, int],
    *,
    read_only: bool,
    remote: bool,
) -> None:
    with _prepared():
        from holdfast.integrations.mcp import http as mcp_http
        from holdfast.integrations.mcp.server import make_server

    secret = mcp_http.new_token() if token is None else token

    def ready(url: str) -> None:
        screen = Screen(sys.stderr)
        screen.say(("Serving ", "bold"), url)
        if token is None:
            screen.say(("Token   ", "bold"), secret)

    with options.open(create=True, admin=False) as memory:
        server = make_server(memory, read_only=read_only)
        request_seconds, idle_seconds, max_sessions = limits
        app = mcp_http.application(server, host, idle_seconds=idle_seconds, max_sessions=max_sessions)
        guarded = mcp_http.Guarded(app, secret)
        mcp_http.serve(guarded, host, port, ready=ready, remote=remote, request_seconds=request_seconds)


@contextmanager
def _prepared() -> Iterator[None]:
    """Log to stderr, since stdout is the protocol's, and do not look for garbage while much is imported."""
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    gc.disable()  # it would take a fifth of the time
    try:
        yield
        gc.freeze()  # all of it stays, so it is not looked through later either
    finally:
        gc.enable()
