"""Models of pydantic-ai, called over the wire."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread
from typing import ClassVar

import pytest
from llm_models import KEY, failure, model_object, served_by
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

import llm_server
from holdfast import ModelFailed
from holdfast.llm.adapters import resolve
from holdfast.llm.event_loop import run
from holdfast.llm.model import Model, acomplete, complete
from llm_server import Server, completion, prompt_of, refusal

server = llm_server.server

# Over the wire


def test_a_prompt_is_sent_as_it_is_and_the_text_of_the_answer_comes_back(server: Server) -> None:
    server.reply = lambda body: (200, completion(f" you said: {prompt_of(body)}\n"))
    assert complete(served_by(server), " hello\n") == " you said:  hello\n\n"
    assert server.requests == [
        {"model": "served", "messages": [{"role": "user", "content": " hello\n"}], "stream": False}
    ]


def test_a_model_is_asked_again_and_again_from_every_loop(server: Server) -> None:
    model = served_by(server)

    async def main() -> list[str]:
        there = await asyncio.gather(*(acomplete(model, "x") for _ in range(3)))
        return [*there, await asyncio.to_thread(complete, model, "x")]

    async def within() -> list[str]:
        return [complete(model, "x"), await acomplete(model, "x")]

    answers = [complete(model, "x"), *run(main), *asyncio.run(main()), *asyncio.run(within())]
    assert set(answers) == {"served"}
    assert len(server.requests) == 1 + 4 + 4 + 2


@pytest.mark.parametrize(
    ("tokens", "counted"), [((12, 5), (12, 5)), ((12, 0), (12, None)), (None, (None, None))]
)
def test_an_answer_says_what_its_provider_counted(
    server: Server, tokens: tuple[int, int] | None, counted: tuple[int | None, int | None]
) -> None:
    server.reply = lambda _: (200, completion("yes", tokens=tokens))
    model = served_by(server)
    for answer in (complete(model, "x"), asyncio.run(acomplete(model, "x"))):
        assert answer == "yes"
        assert (answer.prompt_tokens, answer.answer_tokens) == counted


@pytest.mark.parametrize(
    "body", [completion("yes", reasoning_content="hm"), completion("<think>hm</think>yes")]
)
def test_reasoning_is_left_out(server: Server, body: str) -> None:
    server.reply = lambda _: (200, body)
    assert complete(served_by(server), "x") == "yes"


ERRORS: dict[str, tuple[int, str, str]] = {
    "wrong key": (401, refusal("invalid_api_key", f"wrong key: {KEY}"), "authentication"),
    "no money": (429, refusal("insufficient_quota"), "quota"),
    "broken": (500, "it broke", "error"),
    "no JSON": (200, "{not json", "answer"),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_failures_over_the_wire_are_told_apart(server: Server, kind: str) -> None:
    status, body, reason = ERRORS[kind]
    server.reply = lambda _: (status, body)
    error = failure(served_by(server), "about Ada")
    assert error.reason == reason
    assert ", status" not in error.what or f", status {status})" in error.what
    assert all(secret not in str(error) for secret in (KEY, "Ada", server.url))
    assert len(server.requests) == 1


# Held to a schema

FACTS = {"type": "object", "properties": {"facts": {"type": "array", "items": {"type": "string"}}}}
ALL_FACTS = {**FACTS, "required": ["facts"], "additionalProperties": False}


def able_to(server: Server, *, json: bool = False) -> Model:
    provider = OpenAIProvider(base_url=server.url, api_key=KEY)
    able = ModelProfile(supports_json_schema_output=False, supports_json_object_output=json)
    return resolve(OpenAIChatModel("served", provider=provider, profile=able))


@pytest.mark.parametrize(("schema", "strict"), [(ALL_FACTS, True), (FACTS, False)])
def test_a_provider_is_told_the_schema_and_is_strict_where_it_can_be(
    server: Server, schema: dict[str, object], strict: bool
) -> None:
    before = deepcopy(schema)
    model = served_by(server)
    assert (
        complete(model, "x", schema=schema) == asyncio.run(acomplete(model, "x", schema=schema)) == "served"
    )
    assert schema == before
    for request in server.requests:
        told = request["response_format"]
        assert isinstance(told, dict)
        assert told["type"] == "json_schema"
        assert told["json_schema"]["schema"]["properties"] == schema["properties"]
        assert told["json_schema"]["strict"] is strict
        assert prompt_of(request) == "x"


def test_a_provider_is_held_to_what_it_can_and_for_one_call_only(server: Server) -> None:
    several = resolve(FallbackModel(model_object(server, "a"), model_object(server, "b")))
    by_json = (able_to(server, json=True), {"type": "json_object"})
    for model, held in (by_json, (able_to(server), None), (several, None)):
        assert complete(model, "x", schema=FACTS) == complete(model, "x") == "served"
        asked, after = server.requests[-2:]
        assert (asked.get("response_format"), after.get("response_format")) == (held, None)


def test_a_schema_that_a_provider_refuses_is_a_failure_and_not_tried_without(server: Server) -> None:
    server.reply = lambda _: (400, refusal("invalid_request_error", f"response_format: {KEY}"))
    with pytest.raises(ModelFailed):
        complete(served_by(server), "x", schema=FACTS)
    assert len(server.requests) == 1


# With its connections


def test_a_model_object_with_connections_of_another_loop_is_refused() -> None:
    # What a transport says. A real one would be torn between two threads, and end whenever it likes.
    error = RuntimeError("<asyncio.locks.Event object> is bound to a different event loop")

    def fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise error

    found = failure(resolve(FunctionModel(fail)))
    assert "connections of another event loop" in found.what
    assert "a model object that nothing else uses" in found.todo
    assert found.__cause__ is error


def test_a_server_that_is_not_there_is_said_to_be_unavailable() -> None:
    with Server() as gone:
        pass
    client = OpenAIProvider(base_url=gone.url, api_key=KEY).client.with_options(max_retries=0)
    model = resolve(OpenAIChatModel("served", provider=OpenAIProvider(openai_client=client)))
    assert failure(model).reason == "unavailable"


class Overloaded(BaseHTTPRequestHandler):
    """Refuse every request, and leave it to the client whether it tries again."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.send_error(503)

    def log_message(self, *_: object) -> None:
        """Write no log."""


def test_a_model_that_is_given_by_its_name_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Overloaded.asked.clear()
    with HTTPServer(("127.0.0.1", 0), Overloaded) as http:
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{http.server_port}/v1")
        try:
            for name in ("openai-chat:gpt-5-mini", "openai:gpt-5-mini"):
                assert failure(resolve(name)).reason == "unavailable"
            assert Overloaded.asked == ["/v1/chat/completions", "/v1/responses"]
        finally:
            http.shutdown()
            thread.join()


def test_a_function_that_hangs_is_left_to_its_thread_which_the_error_names() -> None:
    go_on, gone_on = Event(), Event()

    def hang(_: str) -> str:
        go_on.wait()
        gone_on.set()
        return "unheard"

    with pytest.raises(ModelFailed, match=r"within 0\.05 s .* thread 'holdfast-model-\d+'") as raised:
        complete(resolve(hang), "x", 0.05)
    assert raised.value.reason == "timeout"
    go_on.set()
    assert gone_on.wait(10)
