"""A system message that begins a chat: prompts show it however long the chat is."""

from __future__ import annotations

import pytest

from holdfast import Memory, Message
from holdfast.chat import Chat
from holdfast.prompt.window import LastN
from tables import each

VEGA = "You are Captain Vega. Answer only in rhymes."


def long_chat(memory: Memory, *instructions: Message, name: str = "monday") -> Chat:
    chat = memory.chat(name)
    for n, instruction in enumerate(instructions):
        chat.append(instruction)
        for m in range(40):
            chat.append(
                [
                    Message("user", f"Question {n}.{m} about the harbour?"),
                    Message("assistant", f"Answer {n}.{m}: the tide is high."),
                ]
            )
    return chat


@pytest.mark.parametrize("role", ["system", "developer"])
def test_it_is_part_of_the_system_text_once_the_window_begins_later(memory: Memory, role: str) -> None:
    chat = long_chat(memory, Message(role, VEGA))  # type: ignore[arg-type]  # a role
    for query in (None, "How high is the tide?"):
        for prompt in (
            chat.prompt(600, query, system="Be kind."),
            chat.prompt(600, query, system="Be kind.", format="anthropic"),
        ):
            assert prompt.system.startswith(f"Be kind.\n\n{VEGA}")
            assert VEGA not in str(prompt.messages)
            assert prompt.tokens["total"] <= 600
            assert prompt.window.messages[0].seq > 1
    prompt = chat.prompt(20_000)
    assert prompt.window.messages[0].content == VEGA
    assert str(prompt.messages).count("Captain Vega") == 1


def test_of_several_the_newest_that_the_window_does_not_reach_is_shown(quick: Memory) -> None:
    chat = long_chat(quick, Message("system", VEGA), Message("system", "You are Orion."))
    assert chat.prompt(600).system == "You are Orion."
    chat.append(role="system", content="The user is in Porto.")
    prompt = chat.prompt(600)
    assert prompt.system == "You are Orion."
    assert "Porto" in str(prompt.messages)
    chat.append(role="system", content="You are Orion.")
    assert chat.prompt(600).system == "", "the same is in the window"
    given = f"{VEGA} Be brief."
    assert long_chat(quick, Message("system", VEGA), name="b").prompt(600, system=given).system == given


def test_what_does_not_begin_a_chat_is_no_instruction_of_it(quick: Memory) -> None:
    chat = quick.chat("monday")
    chat.append([Message("user", "Hello."), Message("system", "Ada joined.")])
    long_chat(quick, Message("assistant", "Hello."))
    assert chat.prompt(600).system == ""
    assert long_chat(quick, Message("system", VEGA), name="b").prompt(policy=LastN(0)).system == ""


@each("budget", [50, 200, 600, 1_200])
def test_long_instructions_leave_half_of_the_room(quick: Memory, budget: int) -> None:
    rules = f"First rule. {'Then there is a rule. ' * 400}Last rule."
    prompt = long_chat(quick, Message("system", rules), name=f"b{budget}").prompt(budget)
    assert prompt.tokens["total"] <= budget
    assert prompt.tokens["system"] <= budget // 2
    assert len(prompt.window.messages) > 1
    if budget > 50:
        assert prompt.system.startswith("First rule.")
        assert prompt.system.endswith("Last rule.")
        assert f"the rest of these instructions is in message b{budget}#1" in prompt.system
