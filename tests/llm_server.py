"""A model provider on this machine: a server that speaks what one question needs of OpenAI's protocol."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Self

import pytest

Body = Mapping[str, object]
Reply = Callable[[Body], tuple[int, str]]
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def completion(text: str | None, *, tokens: tuple[int, int] | None = (1, 1), **more: object) -> str:
    """Write the body of an answer; `more` goes into its message, as `reasoning_content` does.

    `tokens` are those of the prompt and of the answer, None of a provider that does not count.
    """
    message = {"role": "assistant", "content": text, **more}
    return json.dumps(
        {
            "id": "answer",
            "object": "chat.completion",
            "created": 1,
            "model": "served",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": tokens and dict(zip(COUNTS, (*tokens, sum(tokens)), strict=True)),
        }
    )


def refusal(code: str, message: str = "refused") -> str:
    """Write the body of an error."""
    return json.dumps({"error": {"code": code, "type": code, "message": message, "param": None}})


def prompt_of(body: Body) -> str:
    """Read the prompt out of a request."""
    messages = body["messages"]
    assert isinstance(messages, list)
    content = messages[-1]["content"]
    assert isinstance(content, str)
    return content


class Server:
    """Answer at `url` what `reply` makes of a request's body, a thread for each; `requests` keeps the bodies.

    A failure is marked as one not to try again, or a client would wait and do so. What a reply raises is
    raised again at the end, which waits for every reply.
    """

    paths: Collection[str] = ("/v1/chat/completions", "/v1/embeddings")

    def __init__(self, reply: Reply = lambda _: (200, completion("served"))) -> None:
        self.reply = reply
        self.requests: list[Body] = []
        self.connections = 0
        self._lock = Lock()
        self._failures: list[Exception] = []
        self._http = _Http(self)
        self._thread = Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """The base address, as a client of OpenAI takes it."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def answer(self, path: str, body: Body) -> tuple[int, str]:
        """Keep a request and answer it."""
        if path.partition("?")[0] not in self.paths:
            return 404, refusal("not_found")
        with self._lock:
            self.requests.append(body)
        try:
            return self.reply(body)
        except Exception as error:  # noqa: BLE001 - it is raised at the end
            self._failures.append(error)
            return 500, refusal("no_reply")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.hang_up()
        self._http.server_close()
        self._thread.join()
        if self._failures:
            raise self._failures[0]


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # so that closing it waits for them

    def __init__(self, server: Server) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.served = server
        self._open: list[socket.socket] = []

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        self._open.append(connection)
        self.served.connections += 1
        return connection, address

    def hang_up(self) -> None:
        for connection in self._open:
            with suppress(OSError):  # it is closed
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: object) -> None:
        """Print nothing: a client may hang up, and what a reply raised is kept."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"  # a connection is kept open, as those of real providers are
    wbufsize = -1  # an answer is sent as a whole: the second of two parts would wait for 40 ms

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, text = self.server.served.answer(self.path, body)
        content = text.encode()
        self.send_response(status)
        kind = "text/event-stream" if text.startswith("event: ") else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("x-should-retry", "false")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write no log."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Return a running server, for modules that assign it to a name of theirs."""
    with Server() as opened:
        yield opened
