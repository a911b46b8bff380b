"""What a program hands over as it has it: answers of clients, times, names, prompts; and what is logged."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from openai import OpenAI
from pydantic import BaseModel

from holdfast import BudgetExceeded, InvalidInput, Memory
from holdfast.port.formats import export, parse
from holdfast.port.safety import mask
from holdfast.providers.null import NullMemory
from llm_server import Server, completion
from tables import each


def test_a_prompt_is_sent_by_openais_client_and_its_answer_appended(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(role="user", content="Where does Ada live?")
    prompt = chat.prompt(system="Answer briefly.")
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"who": "Ada"}'}}
    with Server(lambda _: (200, completion("I look it up.", tool_calls=[call]))) as server:
        client = OpenAI(base_url=server.url, api_key="none")
        messages = [{"role": "system", "content": prompt.system}, *prompt.messages]
        response = client.chat.completions.create(model="served", messages=messages)
        client.close()
    assert server.requests[0]["messages"] == [
        *messages[:1],
        {"role": "user", "content": "Where does Ada live?"},
    ]
    stored = chat.append(response.choices[0].message)
    assert (stored.role, stored.content, stored.calls[0].id) == ("assistant", "I look it up.", "c1")
    assert chat.history() == [chat.history(1, before=2)[0], stored]
    assert stored.raw == response.choices[0].message.model_dump(mode="json")


def test_an_answer_of_anthropics_client_is_appended(memory: Memory) -> None:
    usage = {"input_tokens": 1, "output_tokens": 1}
    content = [{"type": "text", "text": "In Porto."}]
    answer = AnthropicMessage.model_validate(
        {"id": "m1", "type": "message", "role": "assistant", "model": "served", "content": content,
            "usage": usage}
        | {"stop_reason": "end_turn", "stop_sequence": None}
    )  # fmt: skip
    [stored] = memory.chat("monday").append([answer])
    assert (stored.role, stored.content, stored.id) == ("assistant", "In Porto.", "m1")


class Unwritable(BaseModel):
    """A model whose dict cannot be JSON."""

    role: str = "user"
    content: object = object()


@each("content", [None, "", "\n", []])
def test_an_answer_that_says_nothing_is_appended_as_what_it_is(quick: Memory, content: object) -> None:
    """A model can end its turn without a word; the program that appends each answer must not fail."""
    payload = {"role": "assistant", "content": content, "refusal": None}
    chat = quick.chat(f"of {content!r}")
    chat.append({"role": "user", "content": "Thanks, that is all."})
    stored = chat.append(payload)
    assert (stored.role, stored.content.strip(), stored.calls, stored.raw) == ("assistant", "", (), payload)
    assert chat.history()[1] == stored
    chat.append({"role": "user", "content": "And now?"})
    prompts = chat.prompt().messages, chat.prompt(format="anthropic").messages
    assert "assistant" not in [one["role"] for messages in prompts for one in messages]
    assert mask(stored).content == stored.content
    assert parse(export(stored)) == replace(stored, seq=0, tokens=0)
    assert quick.recall("thanks", chat=chat.id)[0].seq == 1
    assert quick.verify().ok


@each(
    ("payload", "what"),
    [
        ({"role": "assistant"}, "The message is empty"),
        ({"role": "user", "content": ""}, "The message is empty"),
        (Unwritable(), r"model_dump.*Unwritable"),
    ],
)
def test_what_nobody_said_or_can_write_is_refused(quick: Memory, payload: Any, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        quick.chat("monday").append(payload)
    assert quick.chats() == []


@each("field", ["at", "timestamp", "created_at"])
def test_the_time_of_a_dict_may_be_a_datetime(quick: Memory, field: str) -> None:
    time = datetime(2024, 3, 1, 9, tzinfo=UTC)
    chat = quick.chat(field)
    stored = chat.append({"role": "user", "content": "hello", field: time})
    assert stored.at == time
    assert chat.history()[0].raw == {
        "role": "user", "content": "hello", field: "2024-03-01T09:00:00+00:00",
    }  # fmt: skip


def test_a_chat_without_an_id_is_a_new_one(memory: Memory) -> None:
    first, second = memory.chat(), memory.chat()
    first.append(role="user", content="hello")
    assert first.id != second.id
    assert [chat.id for chat in memory.chats()] == [first.id]
    assert NullMemory().chat().id


def test_a_prompt_that_does_not_fit_says_so(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(role="user", content="word " * 200)
    fits = chat.prompt(1_000, strict=True)
    assert fits.tokens["over"] == 0
    small = chat.prompt(50, system="Be brief.")
    assert small.tokens["over"] == small.tokens["total"] - 50 > 0
    with pytest.raises(BudgetExceeded, match=rf"{small.tokens['total']:,} tokens.* 50\."):
        chat.prompt(50, system="Be brief.", strict=True)
    with chat.run() as run, pytest.raises(BudgetExceeded):
        run.prompt(50, strict=True)


def test_debug_logs_what_was_done_and_no_word_of_it(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="holdfast")
    chat = memory.chat("monday")
    chat.append(role="user", content="My sister lives in Porto.")
    memory.remember("Ada has a sister", kind="fact")
    memory.recall("Who lives in Porto?")
    chat.prompt(query="Porto?")
    chat.compact(llm=lambda _: "Summary.")
    with pytest.raises(InvalidInput):
        memory.recall(" ")
    told = [record.getMessage() for record in caplog.records]
    begins = [line.split(":")[0] for line in told]
    assert begins[:4] == [
        "append of Chat('monday')", f"remember of {memory!r}", f"recall of {memory!r}",
        "prompt of Chat('monday')",
    ]  # fmt: skip
    assert all(" ms" in line for line in told)
    assert "1 hits" in told[3] or "0 hits" in told[3]
    assert "InvalidInput" in told[-1]
    assert "Porto" not in "".join(told)
    assert {record.levelname for record in caplog.records} == {"DEBUG"}, "nothing is logged unasked"
