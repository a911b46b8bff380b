from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp.client.subscriptions import SubscriptionLost

import mcp_peers
from mcp_peers import PATIENCE, Served, command, http_client, wait
from tables import each

db = mcp_peers.db
pytestmark = pytest.mark.slow  # processes of their own

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


@pytest.fixture(scope="module")
def served(db: str) -> Iterator[Served]:
    with Served(db) as server:
        yield server
    assert server.output == ""
    assert not any("Traceback" in line or "ERROR" in line for line in server.errors), server.errors


def answered(url: str, headers: dict[str, str], body: bytes = json.dumps(PING).encode()) -> httpx2.Response:
    return httpx2.post(url, content=body, headers={**HEADERS, **headers}, timeout=PATIENCE)


@each(
    ("authorization", "error"),
    [
        (None, "missing_token"),
        ("Basic YTpi", "missing_token"),
        ("Bearer wrong", "invalid_token"),
        ("Bearer \u00e9\u00e8", "invalid_token"),
        ("Bearer " + "x" * 10_000, "invalid_token"),
    ],
)
def test_who_has_not_the_token_is_told_so(served: Served, authorization: str | None, error: str) -> None:
    raw = {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
    response = httpx2.post(served.url, json=PING, headers=[*HEADERS.items(), *raw.items()], timeout=PATIENCE)  # type: ignore[arg-type]  # bytes, as no str has them
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert response.json()["error"] == error
    assert "Authorization: Bearer TOKEN" in response.json()["error_description"]
    assert served.token not in response.text


def test_the_token_counts_in_its_header_and_alone(served: Served) -> None:
    assert answered(served.url, {"Authorization": f"bearer {served.token}"}).status_code == 200
    both = [
        ("Authorization", f"Bearer {served.token}"),
        ("Authorization", "Bearer another-one-of-this-length"),
    ]
    for headers in (both, both[::-1]):
        response = httpx2.post(served.url, json=PING, headers=[*HEADERS.items(), *headers], timeout=PATIENCE)
        assert response.status_code == 401


def test_the_token_counts_nowhere_but_in_its_header(served: Served) -> None:
    for method in ("GET", "HEAD", "OPTIONS", "DELETE", "PUT"):
        for path in ("/mcp", "/", "/mcp/", "/.well-known/oauth-protected-resource"):
            url = f"{served.url.removesuffix('/mcp')}{path}?access_token={served.token}"
            assert httpx2.request(method, url, timeout=PATIENCE).status_code == 401


def test_a_page_of_another_name_is_refused(served: Served) -> None:
    token = {"Authorization": f"Bearer {served.token}"}
    assert answered(served.url, {**token, "Host": "evil.example"}).status_code == 421
    assert answered(served.url, {**token, "Origin": "http://evil.example"}).status_code == 403


def test_what_is_no_request_is_refused(served: Served) -> None:
    token = {"Authorization": f"Bearer {served.token}"}
    for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 10_000, b'{"jsonrpc": "2.0"}'):
        assert 400 <= answered(served.url, token, body).status_code < 500
    assert answered(served.url, token, b" " * (5 << 20)).status_code == 413
    assert httpx2.get(served.url.removesuffix("/mcp"), headers=token, timeout=PATIENCE).status_code == 404


def test_it_ends_though_a_client_listens(tmp_path: Path) -> None:
    async def listening(server: Served) -> None:
        async with (
            http_client(server.url, server.token, "auto") as one,
            one.listen(resource_subscriptions=["memory://facts"]) as heard,
        ):
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(SubscriptionLost):
                await anext(aiter(heard))

    with Served(str(tmp_path / "memory.db")) as server:
        wait(listening(server))
        server.process.wait(PATIENCE)
    assert server.process.returncode == -signal.SIGTERM
    assert server.output == ""
    assert not any("Traceback" in line for line in server.errors), server.errors


def test_the_token_may_be_given(db: str) -> None:
    with Served(db, environment={"HOLDFAST_MCP_TOKEN": "a-token-of-my-own"}) as server:
        assert answered(server.url, {"Authorization": "Bearer a-token-of-my-own"}).status_code == 200
    assert "a-token-of-my-own" not in "".join(server.errors)


@pytest.mark.parametrize(
    ("options", "token", "said"),
    [
        (["--host", "0.0.0.0"], None, "Other machines"),
        ([], "short", "token"),
        (["--port", "TAKEN"], None, "Nothing can listen at 127.0.0.1:TAKEN."),
    ],
)
def test_what_would_let_others_in_or_cannot_listen_is_refused(
    served: Served, db: str, options: list[str], token: str | None, said: str
) -> None:
    port = str(urlsplit(served.url).port)
    done = subprocess.run(
        command(db, "--http", "--port", "0", *(one.replace("TAKEN", port) for one in options)),
        env={**os.environ, **({} if token is None else {"HOLDFAST_MCP_TOKEN": token})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert said.replace("TAKEN", port) in done.stderr
    assert "Traceback" not in done.stderr


def test_it_listens_to_others_when_it_is_said(db: str) -> None:
    with Served(db, "--host", "0.0.0.0", "--remote") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert answered(url, {}).status_code == 401
        assert answered(url, {"Authorization": f"Bearer {server.token}"}).status_code == 200


@pytest.fixture(scope="module")
def hurried(db: str) -> Iterator[Served]:
    with Served(db, "--request-seconds", "0.5", "--idle-seconds", "0.5", "--max-sessions", "2") as server:
        yield server
    assert not any("Traceback" in line for line in server.errors), server.errors


BEARER = "Authorization: Bearer TOKEN"


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n{BEARER}\r\n\r\n{{",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}POST /mcp HTTP/1.1\r\nHost: ",
    ],
    ids=["nothing", "half the headers", "half the body", "half the body, without the token", "a second one"],
)
def test_connections_whose_request_does_not_arrive_are_closed(hurried: Served, sent: str) -> None:
    address = ("127.0.0.1", urlsplit(hurried.url).port or 0)
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(address, PATIENCE)) for _ in range(200)]
        for one in slow:
            one.sendall(sent.replace("TOKEN", hurried.token).encode())
        for one in slow:
            while one.recv(65_536):  # an empty answer is the end; none at all raises after `PATIENCE`
                pass


def test_a_byte_now_and_then_keeps_no_connection_open(hurried: Served) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(hurried.url).port or 0), PATIENCE) as slow:
        slow.settimeout(0.05)
        slow.sendall(b"POST /mcp HTTP/1.1\r\nX-Slow: ")
        assert any(is_closed(slow) for _ in range(int(PATIENCE / 0.05)))


def is_closed(connection: socket.socket) -> bool:
    """Send one byte more, and see whether the other side has hung up."""
    try:
        connection.sendall(b"a")
        return not connection.recv(1)
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_idle_sessions_make_room(hurried: Served) -> None:
    token = {"Authorization": f"Bearer {hurried.token}"}
    opened = [answered(hurried.url, token) for _ in range(2)]
    assert {response.status_code for response in opened} == {200}
    end = time.monotonic() + PATIENCE
    while (status := answered(hurried.url, token).status_code) == 503:
        assert time.monotonic() < end
    assert status == 200
    old = {**token, "Mcp-Session-Id": opened[0].headers["Mcp-Session-Id"]}
    assert answered(hurried.url, old).status_code == 404
