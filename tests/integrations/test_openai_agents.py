"""Sessions of the OpenAI Agents SDK: items are messages of a chat, counted, taken back and begun anew."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

import openai_sessions
import pytest
from agents import Agent, Runner
from agents.testing import ScriptedModel
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall
from openai_sessions import CALL, OUTPUT, QUIET, Item, add, answer, clear, items, pop, said

from holdfast import Conflict, Damaged, InvalidInput, Memory, Message
from holdfast.integrations import openai_agents, session_items
from holdfast.integrations.openai_agents import HoldfastSession
from holdfast.store.payloads import Payload
from index_damage import damage
from soak import cases
from tables import each

session = openai_sessions.session


# Items are messages of the chat


def test_items_come_back_as_they_were_and_read_as_messages(session: HoldfastSession, memory: Memory) -> None:
    answer = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It snows.", "annotations": []}],
    }
    given_ = [said("What is the weather in Oslo?"), CALL, OUTPUT, answer]
    add(session, *given_)

    assert items(session) == given_
    history = memory.chat("trip").history()
    assert [(one.role, one.content) for one in history] == [
        ("user", "What is the weather in Oslo?"),
        ("assistant", ""),
        ("tool", "Snow, minus four degrees."),
        ("assistant", "It snows."),
    ]
    assert [(call.id, call.name, call.arguments) for call in history[1].calls] == [
        ("c1", "weather", {"of": "Oslo"})
    ]
    assert history[2].answers == ("c1",)
    assert [one.raw for one in history] == given_
    assert memory.recall("How is the weather?", roles=["user"])[0].text == "What is the weather in Oslo?"


@each(
    ("item", "role", "content"),
    [
        (
            {"type": "web_search_call", "id": "ws_1", "action": {"query": "x"}},
            "assistant",
            "[web_search_call]",
        ),
        ({"type": "message", "role": "user", "content": []}, "user", "[message]"),
        ({"type": "a\nb" * 100}, "assistant", "[a]"),
        ({"type": []}, "assistant", "[item]"),
        ({**OUTPUT, "output": 7}, "assistant", "[function_call_output]"),
        ({**CALL, "arguments": '{"a":' + "[" * 300 + "]" * 300 + "}"}, "assistant", "[function_call]"),
    ],
)
def test_what_has_nothing_to_read_is_kept_all_the_same(item: Item, role: str, content: str) -> None:
    with Memory(":memory:") as memory:
        session = HoldfastSession(memory, "trip")
        add(session, item)
        assert items(session) == [item]
        (message,) = memory.chat("trip").history()
        assert (message.role, message.content) == (role, content)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
shaped = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "system", "tool", "x"]) | json_values,
        "type": st.sampled_from(["message", "function_call", "function_call_output", "reasoning"])
        | json_values,
        "content": json_values,
        "call_id": json_values,
        "name": json_values,
        "arguments": json_values,
        "output": json_values,
    },
)


@settings(max_examples=cases(15, 180))
@given(st.lists(shaped | st.dictionaries(st.text(), json_values, max_size=4), max_size=4))
@example([{"role": "user", "content": "\ud800"}])
def test_any_json_comes_back_equal(given_: list[Item]) -> None:
    with Memory(":memory:") as memory:
        session = HoldfastSession(memory, "trip")
        add(session, *given_)
        assert items(session) == given_


@each("wrong", ["a text", None, {"role": "user", "content": object()}, {"a": (1,)}, {"a": {1: 2}}])
def test_all_or_none_are_stored_and_the_errors_are_those_that_the_sdk_raises(wrong: object) -> None:
    with Memory(":memory:") as memory:
        session = HoldfastSession(memory, "trip")
        with pytest.raises(TypeError) as caught:
            add(session, said("fine"), cast("Item", wrong))
        assert isinstance(caught.value, InvalidInput)
        assert items(session) == []
        add(session, said("after"))
        assert items(session) == [said("after")]
    with pytest.raises(RuntimeError, match="closed"):
        add(session, said("a"))


def test_messages_that_others_append_are_no_items(session: HoldfastSession, memory: Memory) -> None:
    add(session, said("an item"))
    memory.chat("trip").append({"role": "user", "content": "a message"})
    memory.chat("trip").append(Message("user", "another", meta={"openai_agents": "what is that"}))
    memory.chat("trip").append(Message("user", "a third", meta={"openai_agents": "item"}))
    assert items(session, 1) == [said("an item")]
    assert pop(session) == said("an item")
    assert pop(session) is None


# Taking back and beginning anew


@pytest.mark.parametrize(("column", "value"), [("raw", "{"), ("meta", "[[[")])
def test_damage_of_an_item_is_named(memory: Memory, column: str, value: str) -> None:
    session = HoldfastSession(memory, "trip")
    add(session, *(said(f"item {n}") for n in range(3)))
    update = f"UPDATE messages SET {column} = :value WHERE space = :space AND chat = 'trip' AND seq = 2"
    damage(memory, lambda tx, space: tx.all(update, space=space, value=value))
    with pytest.raises(Damaged, match="trip#2"):
        items(session)


late_steps = st.lists(st.sampled_from(["add", "pop", "begin", "begin", "end", "clear", "erase"]), max_size=40)


@pytest.mark.slow
@settings(max_examples=cases(37, 450))
@given(late_steps)
@example(["add", "begin", "add", "end", "add", "pop", "pop"])
@example(["add", "add", "begin", "add", "end", "add", "pop", "pop", "pop"])
def test_those_who_are_slow_to_take_back_hide_nothing_else(steps: list[str]) -> None:
    """What one has read may not be the newest any more when it is taken back, or be taken back already."""
    expected: list[Item] = []
    begun: list[session_items._Newest[Payload]] = []
    added = 0
    with Memory(":memory:") as memory:
        session = HoldfastSession(memory, "trip")
        chat = memory.chat("trip")
        for step in steps:
            if step == "add":
                expected.append(said(f"item {added}"))
                add(session, expected[-1])
                added += 1
            elif step == "pop":
                assert pop(session) == (expected.pop() if expected else None)
            elif step == "begin" and expected:
                begun.append(session._items._newest_items(2))
            elif step == "end" and begun:
                found = begun.pop(0)
                with suppress(Conflict):
                    chat.append(session._items._tombstone(found))
                    expected = [one for one in expected if one != found.items[0].raw]
            elif step == "clear":
                clear(session)
                expected.clear()
            elif step == "erase" and expected:
                gone = next(one.seq for one in chat.history() if one.raw == expected[0])
                memory.erase(chat="trip", messages=gone)
                del expected[0]
            for limit in (1, 2, 3, None):
                assert items(session, limit) == (expected if limit is None else expected[-limit:])
        with Memory(":memory:") as other:
            other.chat("trip").append(chat.history())
            copy = HoldfastSession(other, "trip")
            assert items(copy, 2) == expected[-2:]
            assert pop(copy) == (expected[-1] if expected else None)
            assert items(copy) == expected[:-1]


# Tools


def test_the_tools_of_the_memory_are_function_tools(memory: Memory) -> None:
    memory.remember("Ada is vegetarian.", kind="fact")
    made = openai_agents.tools(memory, "trip", allow=["recall", "remember"])
    assert [tool.name for tool in made] == ["recall", "remember"]
    call = ResponseFunctionToolCall(
        type="function_call", call_id="c1", name="recall", arguments='{"query": "vegetarian"}'
    )
    model = ScriptedModel(steps=[[call], [answer("Ada eats no meat.")]])
    agent = Agent(name="cook", model=model, tools=[*made])
    result = asyncio.run(
        Runner.run(agent, "What does she eat?", session=HoldfastSession(memory, "trip"), run_config=QUIET)
    )
    outputs = [item for item in result.to_input_list() if item.get("type") == "function_call_output"]
    assert "Ada is vegetarian." in str(outputs)
    assert not openai_agents.tools(memory, memory.chat("trip"), allow=["remember"], read_only=True)
