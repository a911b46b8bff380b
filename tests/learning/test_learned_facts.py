"""Facts that a model finds in a session that has ended: their grounds, their number, and what is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast import Learning, Memory
from learning_scripts import Clock, Model, hold, offers

pytestmark = pytest.mark.usefixtures("clock")

MOST = 5
SAID = (
    "My name is Ada, and I live in Lisbon with two cats.",
    "Nice to meet you, Ada.",
    "The shop listens on port 8080, and its logs are in /var/log/shop.",
    "I noted both.",
    "My bicycle is red, and the till of the shop is made of oak.",
    "Good to know.",
    "We deploy from GitLab, and the office closes at noon on Fridays.",
    "Understood.",
)
ADA, LISBON, PORT, LOGS, BICYCLE, TILL, DEPLOY, OFFICE = (
    ("Ada is the name of the user.", "user", 1, "My name is Ada"),
    ("The user lives in Lisbon with two cats.", "user", 1, "I live in Lisbon with two cats"),
    ("The shop listens on port 8080.", "env", 3, "The shop listens on port 8080"),
    ("The logs of the shop are in /var/log/shop.", "env", 3, "its logs are in /var/log/shop"),
    ("The bicycle of the user is red.", "user", 5, "My bicycle is red"),
    ("The till of the shop is made of oak.", "env", 5, "the till of the shop is made of oak"),
    ("Deployments run from GitLab.", "env", 7, "We deploy from GitLab"),
    ("The office closes at noon on Fridays.", "env", 7, "the office closes at noon on Fridays"),
)
EVERY = (ADA, LISBON, PORT, LOGS, BICYCLE, TILL, DEPLOY, OFFICE)

Found = tuple[str, str, int, str]


def answering(facts: Sequence[object], *findings: object) -> Model:
    """Make a model that finds some facts and findings in a session, and offers nothing on reflection."""
    answer = {"findings": list(findings), "insights": [], "lessons": [], "facts": list(facts)}
    return Model({"observe": lambda _: answer, "reflect": offers()})


def with_facts(*found: Found) -> Model:
    """Make a model that finds some facts, each with its target, its message and its quote."""
    return answering(
        [
            {"text": text, "target": about, "messages": [seq, seq], "quote": quote}
            for text, about, seq, quote in found
        ]
    )


def facts(memory: Memory) -> list[str]:
    """Give the facts that are known."""
    return [record.text for record in memory.records(kind="fact")]


def end(memory: Memory, *texts: str, chat: str = "shop") -> None:
    """Hold a session, or go on with it, and end it."""
    hold(memory, chat, texts or SAID).end()


def test_a_session_that_ends_gives_facts_with_what_they_rest_on(memory: Memory) -> None:
    end(memory)
    model = with_facts(LISBON, PORT)
    result = memory.learning.work(llm=model)
    assert len(model.asked("observe")) == 1, "it is the same call that asks for observations"
    about_user, about_env = memory.records(kind="fact")
    assert [about_user.target, about_env.target] == ["user", "env"]
    assert (about_env.text, about_env.messages, about_env.chat) == (PORT[0], (3, 3), "shop")
    assert (about_env.by, about_env.source, about_env.trust) == ("reflect", "session:shop", "trusted")
    assert about_env.meta == {"learned": "session v1", "model": "Model", "speaker": "user", "quote": PORT[3]}
    assert {about_user, about_env} <= set(result.records)
    assert PORT[0] in memory.chat("tomorrow").prompt(budget=2_000).system


def test_a_session_gives_five_facts_in_however_many_parts_it_is_read(clock: Clock) -> None:
    with Memory(":memory:", clock=clock, learning=Learning(tokens=60)) as memory:
        end(memory)
        by_place = {found[2]: [one for one in EVERY if one[2] == found[2]] for found in EVERY}

        def answer(prompt: str) -> object:
            shown = [one for seq, found in by_place.items() if f"[{seq}] user" in prompt for one in found]
            return {
                "facts": [
                    {"text": text, "target": about, "messages": [seq], "quote": quote}
                    for text, about, seq, quote in shown
                ]
            }

        model = Model({"observe": answer, "reflect": offers()})
        result = memory.learning.work(llm=model)
        assert len(model.asked("observe")) > 1
        assert facts(memory) == [found[0] for found in EVERY[:MOST]]
        assert result.dropped["fact beyond 5 of a session"] == len(EVERY) - MOST


def test_facts_that_are_known_join_and_take_no_room(memory: Memory) -> None:
    for text, about, _, _ in EVERY[:3]:
        memory.remember(text, target=about)
    end(memory)
    result = memory.learning.work(llm=with_facts(*EVERY))
    assert facts(memory) == [found[0] for found in EVERY]
    assert [record.evidence for record in memory.records(kind="fact")] == [2, 2, 2, 1, 1, 1, 1, 1]
    assert "fact beyond 5 of a session" not in result.dropped


def test_a_fact_that_quotes_nothing_waits_and_counts(memory: Memory) -> None:
    end(memory)
    model = with_facts(("Ada owns three yachts.", "user", 1, "three yachts"), *EVERY[:MOST])
    result = memory.learning.work(llm=model)
    (held,) = list(memory.quarantine)
    assert (held.kind, held.target, held.flags) == ("fact", "user", ("untrusted",))
    assert held.text == "Ada owns three yachts."
    assert facts(memory) == [found[0] for found in EVERY[: MOST - 1]]
    assert "observe:shop: 1 without words that they rest on" in result.notes


@pytest.mark.parametrize(
    ("item", "target"),
    [
        ({"text": PORT[0]}, "user"),
        ({"text": PORT[0], "target": " Env "}, "env"),
        ({"text": PORT[0], "target": ["env"]}, None),
    ],
)
def test_a_fact_that_is_nearly_right_is_read_and_one_about_anything_else_dropped(
    quick: Memory, item: Any, target: str | None
) -> None:
    end(quick)
    result = quick.learning.work(llm=answering([item]))
    assert [(one.text, one.target) for one in quick.quarantine] == ([(PORT[0], target)] if target else [])
    assert result.dropped.get("fact that cannot be kept", 0) == (target is None)


# Learned anew


def test_learning_anew_knows_facts(memory: Memory) -> None:
    end(memory)
    memory.learning.work(llm=with_facts(LISBON, PORT))
    memory.remember("The roof leaks when it rains.", target="env", by="user")
    model = with_facts(PORT, LOGS)
    shown = memory.learning.relearn(llm=model, dry_run=True)
    assert ([one.text for one in shown.added], [one.text for one in shown.removed]) == (
        [LOGS[0]],
        [LISBON[0]],
    )
    assert shown.kept == 1
    memory.learning.relearn(llm=model)
    assert facts(memory) == [PORT[0], "The roof leaks when it rains.", LOGS[0]]
    assert [record.target for record in memory.records(kind="fact")] == ["env", "env", "env"]
