"""Facts without end: storing never stops, prompts show what fits, recall finds the rest."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast import Kind, Memory, Prompt

TOWNS = ["Bremen", "Genoa", "Leeds", "Malmo", "Nantes", "Porto", "Turku", "Vigo", "Ghent", "Izmir"]


def fact(number: int) -> str:
    """Make a fact of eighty characters, of which every one says something else."""
    return (
        f"User met {chr(65 + number % 26)}{number} in {TOWNS[number % 10]} and wrote of it at length".ljust(
            80, "."
        )
    )


def know(memory: Memory, numbers: Iterable[int], **more: object) -> None:
    for number in numbers:
        memory.remember(fact(number), merge=False, **more)  # type: ignore[call-overload]  # fields of a record


def shown(prompt: Prompt, heading: str = "## Facts about the user") -> list[int]:
    """Give the numbers of the facts that a prompt shows, in its order."""
    part = prompt.system.split(heading)[1].split("\n\n")[0] if heading in prompt.system else ""
    return [int(line.split()[3][1:]) for line in part.splitlines()[1:]]


def prompted(memory: Memory, query: str | None = None) -> Prompt:
    return memory.chat(f"at {memory.version()}").prompt(32_000, query)


def test_a_prompt_shows_what_fits_and_says_what_does_not(memory: Memory) -> None:
    know(memory, range(50))
    whole = prompted(memory)
    assert (shown(whole), whole.omitted) == ([*range(50)], {})
    assert "[100%: 4,000 of 4,000 characters]\n" in whole.system
    know(memory, range(50, 60))
    know(memory, range(100, 201), target="env")
    prompt = prompted(memory)
    assert (shown(prompt), prompt.omitted) == ([*range(10, 60)], {"fact/user": 10, "fact/env": 1})
    assert "[100%: 4,000 of 4,000 characters; 10 more can be recalled]\n" in prompt.system
    assert shown(prompt, "## Facts about the environment") == [*range(101, 201)]


def test_what_the_user_said_comes_first_then_what_is_important_new_and_often_said(quick: Memory) -> None:
    know(quick, range(10), by="user")
    know(quick, range(10, 20), priority=7)
    know(quick, range(20, 80))
    for _ in range(3):
        quick.remember(fact(25))
    assert shown(prompted(quick)) == [*range(10, 20), *range(10), 25, *range(51, 80)]
    know(quick, range(100, 160), by="user")
    assert shown(prompted(quick)) == [*range(110, 160)], "their words are bounded as well"


def test_one_that_does_not_fit_leaves_the_room_to_others(quick: Memory) -> None:
    know(quick, range(3))
    quick.remember("y" * 4_000, merge=False)
    prompt = prompted(quick)
    assert prompt.omitted == {"fact/user": 3}
    quick.remember("z" * 3_000, merge=False, by="user")
    prompt = prompted(quick)
    assert prompt.omitted == {"fact/user": 1}
    assert "y" * 4_000 not in prompt.system


def test_what_a_prompt_leaves_out_is_recalled_for_it(memory: Memory) -> None:
    know(memory, range(60))
    prompt = prompted(memory, "who is D3?")
    assert [hit.text for hit in prompt.hits] == [fact(3)]
    assert [hit.text for hit in prompted(memory, "who is H59?").hits] == []


def test_a_tenant_and_an_agent_have_room_of_their_own(quick: Memory) -> None:
    know(quick.scoped(user=""), range(100, 160))
    know(quick, range(60))
    know(quick.scoped(agent="coach"), range(200, 203))
    prompt = prompted(quick.scoped(agent="coach"))
    assert shown(prompt) == [*range(13, 60), *range(200, 203), *range(110, 160)]
    assert prompt.omitted == {"fact/user": 23}


def test_a_kind_of_ones_own_has_a_budget() -> None:
    rows = [Kind("decision", "Decisions", prompt_budget={"": 30})]
    with Memory(":memory:", user="ada", kinds=rows) as memory:
        for text in ("we use PostgreSQL 16", "we meet at nine o'clock"):
            memory.remember(text, "decision")
        prompt = prompted(memory, "PostgreSQL")
        assert "## Decisions [77%: 23 of 30 characters; 1 more can be recalled]\n- we meet" in prompt.system
        assert ([hit.text for hit in prompt.hits], prompt.omitted) == (
            ["we use PostgreSQL 16"],
            {"decision": 1},
        )


# The comparison


def test_it_is_compared_with_those_about_the_same(quick: Memory) -> None:
    know(quick, range(40), target="env")
    quick.remember(fact(7), target="user")
    assert quick.remember(fact(7), target="user").action == "duplicate"
    assert quick.scoped(agent="coach").remember(fact(7), target="env").action == "duplicate"
    quick.scoped(agent="cook").remember("The cook has a knife")
    assert quick.scoped(agent="coach").remember("The cook has a knife").action == "add"
