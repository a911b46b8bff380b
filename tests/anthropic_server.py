"""A scripted model on this machine that speaks what Claude Code needs of Anthropic's Messages protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from llm_server import Body, Server

COMPACTS = "Respond with TEXT ONLY"
"""What stands in the prompt by which Claude Code asks for a summary of a session."""

Speak = Callable[[Body], str]


class Model(Server):
    """Answer requests with what `speak` makes of them, as text that is streamed."""

    paths = ("/v1/messages", "/v1/messages/count_tokens")

    def __init__(self, speak: Speak = lambda _: "Understood.") -> None:
        super().__init__(lambda body: (200, _reply(body, speak)))

    @property
    def url(self) -> str:
        """The base address, as a client of Anthropic takes it."""
        return super().url.removesuffix("/v1")

    def asked(self, prompt: str) -> str:
        """Return all text of the newest request of a prompt that is not one to summarise."""
        for body in reversed(self.requests):
            said = [text for _, text in texts(body)]
            if prompt in said[-1] or any(text.strip() == prompt for text in said):
                return "\n".join(said)
        raise AssertionError(f"No request has {prompt!r}.")


def texts(body: Body) -> Iterator[tuple[str, str]]:
    """Yield role and text of each part of the messages of a request."""
    messages = body["messages"]
    assert isinstance(messages, list)
    for message in messages:
        content = message["content"]
        for part in [content] if isinstance(content, str) else content:
            text = part if isinstance(part, str) else part.get("text")
            if isinstance(text, str):
                yield message["role"], text


def _reply(body: Body, speak: Speak) -> str:
    if "max_tokens" not in body:
        return json.dumps({"input_tokens": 100})
    text = speak(body)
    message = {
        "id": "msg_served",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    if not body.get("stream"):
        return json.dumps(message)
    return "".join(
        f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"
        for name, data in _events(message, text)
    )


def _events(message: Mapping[str, object], text: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    yield "message_start", {"message": {**message, "content": [], "stop_reason": None}}
    yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
    yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}}
    yield "content_block_stop", {"index": 0}
    yield (
        "message_delta",
        {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}},
    )
    yield "message_stop", {}
