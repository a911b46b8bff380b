"""Credentials in messages: stored as said, masked wherever others see them, shown to those who ask."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from holdfast import Denied, InvalidInput, Memory, Message, ToolCall, acting_as
from record_lists import act, fresh
from stored_texts import whole
from tables import each

KEY = "AKIAQ3EGRGB2M4XPIX5T"
SAID = f"The deploy user of the staging cluster has the key {KEY}, please use it."
MASKED = "The deploy user of the staging cluster has the key [redacted: AWS access key], please use it."
QUERY = "deploy user of the staging cluster"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq9Zk3vQ1\nx8T0aYd4Wm2LrC5nEoP6sUjHf\n"
    "-----END RSA PRIVATE KEY-----"
)


def written(*shown: object) -> str:
    return json.dumps([whole(one) for one in shown])


def told(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content=SAID)


def test_what_was_said_is_stored_and_given_back_as_it_was(memory: Memory) -> None:
    chat = memory.chat("monday")
    payload = {"role": "user", "content": SAID, "extra": KEY}
    chat.append(payload)
    (message,) = chat.history()
    assert (message.content, message.raw, message.flags) == (SAID, payload, ("secret",))
    assert chat.window().messages == (message,)
    assert chat.prompt().messages[-1]["content"] == SAID, "the chat itself said it"
    chat.append([{"role": "assistant", "content": f"Line {n} of the log. " * 40} for n in range(30)])
    chat.compact(full=True, budget=1_000)
    leaf = next(one for one in chat.tree() if one.first == 1 and not one.depth)
    assert chat.expand(leaf.id).messages[0] == message


SHOWN: dict[str, Callable[[Memory], object]] = {
    "recall": lambda memory: memory.recall(QUERY),
    "search": lambda memory: memory.chat("monday").search(QUERY),
    "at": lambda memory: memory.at(memory.remember("The shop opens at nine.").version).recall(QUERY),
    "another chat": lambda memory: memory.chat("tuesday").prompt(query=QUERY),
    "the tool": lambda memory: [
        tool({"query": QUERY}).text for tool in memory.tools() if tool.name == "recall"
    ],
    "expand": lambda memory: act(memory, "expand", id="monday#1"),
    "a session": lambda memory: act(memory, "search_sessions", session="monday"),
    "sessions about": lambda memory: act(memory, "search_sessions", query=QUERY),
    "titles": lambda memory: memory.chats(),
    "review": lambda memory: memory.chat("monday").review(),
}


@each("shown", SHOWN)
def test_others_are_shown_what_it_is_in_its_place(shown: str) -> None:
    memory = fresh()
    memory.chat("monday").append(Message("user", f"{SAID}\n{PEM}\nThat is all.", name=f"key {KEY}"))
    seen = written(SHOWN[shown](memory))
    for part in (KEY, KEY[:12], "MIIEpAIB", "sUjHf"):
        assert part not in seen
    assert "staging" in seen or shown == "review"
    assert memory.chat("monday").history()[0].name == f"key {KEY}"


def test_the_program_may_ask_to_see_it(memory: Memory) -> None:
    told(memory)
    assert [hit.text for hit in memory.recall(QUERY)] == [MASKED]
    assert [hit.text for hit in memory.recall(QUERY, secrets="show")] == [SAID]
    assert [hit.text for hit in memory.chat("monday").search(QUERY, secrets="show")] == [SAID]
    for prompt in (memory.chat("tuesday").prompt, memory.chat("tuesday").run().prompt):
        assert SAID in str(prompt(query=QUERY, secrets="show").messages)
        assert SAID not in str(prompt(query=QUERY).messages)
        with pytest.raises(InvalidInput, match="show"):
            prompt(secrets="hide")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidInput, match="show"):
        memory.recall(QUERY, secrets="hide")  # type: ignore[arg-type]  # as above


def test_no_tool_has_an_argument_to_see_it(memory: Memory) -> None:
    for style in ("many", "single"):
        for tool in memory.tools("monday", style=style):
            assert "secrets" not in json.dumps(dict(tool.parameters))
            assert not tool({"action": "recall", "query": QUERY, "secrets": "show"}).ok


def test_a_snippet_does_not_cut_one_in_half(memory: Memory) -> None:
    """Wherever the part that is shown begins and ends, no half of a key is in it."""
    for shift in range(380, 520, 7):
        chat = memory.chat(f"chat {shift}")
        chat.append(role="user", content=f"quokka{shift} {'x ' * (shift // 2)} key {KEY} {'y ' * 400}")
        (hit,) = chat.search(f"quokka{shift}")
        (item,) = (
            one for one in act(memory, "recall", query=f"quokka{shift}")["hits"] if one["session"] == chat.id
        )
        prompt = memory.chat("elsewhere").prompt(2_000, query=f"quokka{shift}")
        for seen in (hit.text, item["text"], str(prompt.messages)):
            assert KEY[:6] not in seen
            assert KEY[-6:] not in seen


CALLS: dict[str, dict[str, object] | str] = {
    "a key": {"command": f"export AWS_ACCESS_KEY_ID={KEY}"},
    "a password by its name": {"host": "db", "password": "kX9!vbq2Lm"},
    "one within another": {"env": [{"name": "x", "token": "q8Zr4tYw2LpX9cVb"}]},
    "text": f'{{"command": "{KEY}',
}


@each("call", CALLS)
def test_one_in_the_arguments_of_a_call_is_flagged_and_masked(call: str) -> None:
    memory = fresh()
    chat, arguments = memory.chat("monday"), CALLS[call]
    stored = chat.append(Message("assistant", "", calls=(ToolCall("c1", "run", arguments),)))
    assert stored.flags == ("secret",)
    harmless = ToolCall("c2", "run", {"command": "ls", "tokens": 12, "key": "name"})
    assert chat.append(Message("assistant", "", calls=(harmless,))).flags == ()
    assert chat.history()[0].calls[0].arguments == arguments
    secret = next(one for one in (KEY, "kX9!vbq2Lm", "q8Zr4tYw2LpX9cVb") if one in str(arguments))
    for seen in (
        act(memory, "expand", id="monday#1"),
        act(memory, "search_sessions", session="monday"),
        chat.review(),
    ):
        assert secret not in written(seen)
        assert "run" in written(seen)


def test_a_title_and_a_reason_are_kept_without_it(memory: Memory) -> None:
    told(memory)
    chat = memory.chat("monday")
    assert KEY not in written(memory.chats())
    chat.rename(f"Key {KEY}")
    assert [info.title for info in memory.chats()] == ["Key [redacted: AWS access key]"]
    record = memory.remember("The shop opens at nine")
    memory.retract(record.id, why=f"it was said beside {KEY}")
    assert memory.changes(limit=1)[0].why == "it was said beside [redacted: AWS access key]"


IDS: dict[str, Callable[[Memory], object]] = {
    "a chat": lambda memory: memory.chat(KEY),
    "a chat that something was learned in": lambda memory: memory.remember(
        "The shop opens at nine", chat=KEY
    ),
    "a run": lambda memory: memory.chat("monday").run(KEY),
    "an agent": lambda memory: memory.scoped(agent=KEY),
    "who acts": lambda _: acting_as(agent=KEY).__enter__(),
}


@each("what", IDS)
def test_one_that_is_to_be_an_id_is_refused_and_not_repeated(what: str) -> None:
    memory = fresh()
    with pytest.raises(InvalidInput, match="credential") as refused:
        IDS[what](memory)
    assert KEY not in repr(refused.value) + str(refused.value)


ERRORS: dict[str, Callable[[Memory], object]] = {
    "no such record, cut": lambda memory: memory.retract(f"{'x' * 45} {KEY}"),
    "control characters": lambda memory: memory.scratchpad.__setitem__(f"{'x' * 30} {KEY}\n", "x"),
    "no such job": lambda memory: memory.learning.retry_job(KEY),
    "no such summary": lambda memory: memory.chat("monday").expand(KEY),
    "no cursor": lambda memory: memory.remember("x", messages=KEY),  # type: ignore[call-overload]
    "a pad": lambda memory: memory.scratchpad.__setitem__("week", SAID),
}


@each("what", ERRORS)
def test_no_error_repeats_one(what: str) -> None:
    memory = fresh()
    with pytest.raises((InvalidInput, Denied)) as refused:
        ERRORS[what](memory)
    assert KEY[:10] not in repr(refused.value) + str(refused.value)


def test_no_tool_repeats_one_in_its_error(memory: Memory) -> None:
    for tool in memory.tools("monday"):
        for arguments in ({"id": f"{KEY}#1"}, {"query": "x", "kind": KEY}, {KEY: 1}, {"session": KEY}):
            assert KEY[:10] not in tool(arguments).text
