"""Reflection on sessions with news: what it may change, what it may not, and when it comes."""

from __future__ import annotations

import pytest

from holdfast import Memory
from learning_scripts import (
    SESSION,
    Clock,
    Model,
    failing,
    framed,
    hold,
    offers,
    say,
    says,
    texts,
)

pytestmark = pytest.mark.usefixtures("clock")


def test_a_reflection_rewrites_the_profile_and_says_what_it_changed(memory: Memory) -> None:
    hold(memory)
    model = Model({"reflect": offers("Ada owns a shop.", "The sessions of the shop are in PostgreSQL.")})
    result = memory.learning.reflect(llm=model)
    assert [(record.kind, record.text) for record in result.records] == [
        ("finding", "The sessions of the shop are in PostgreSQL."),
        ("profile", "Ada owns a shop."),
    ]
    profile = memory.get("profile")
    assert profile is not None
    assert (profile.text, profile.by, profile.chat) == ("Ada owns a shop.", "reflect", "shop")
    assert (profile.meta["learned"], profile.meta["why"]) == ("reflect v2", "The user said so.")
    assert "(none yet)" in framed(model.prompts[0][1], "profile")
    memory.chat("shop").append(role="user", content="By the way, I have a cat.")
    memory.learning.reflect(llm=(second := Model({"reflect": offers("Ada owns a shop and a cat.")})))
    assert "Ada owns a shop." in framed(second.prompts[0][1], "profile")
    assert [change.after for change in memory.changes(kind="profile")] == [
        "Ada owns a shop and a cat.",
        "Ada owns a shop.",
    ]


def test_nothing_to_save_is_an_answer(memory: Memory) -> None:
    for number, answer in enumerate(("Nothing to save.", '{"profile": null, "observations": [], "why": ""}')):
        hold(memory, f"shop {number}")
        result = memory.learning.reflect(llm=Model({"reflect": says(answer)}))
        assert (len(result.done), result.records, result.calls) == (1, (), 1)
        assert memory.learning.reflect(llm=(again := Model())).calls == 0
        assert again.prompts == []


@pytest.mark.parametrize("kind", ["constraint", "soul"])
def test_it_cannot_touch_constraints_and_soul(memory: Memory, kind: str) -> None:
    memory.remember("Never send mail at night.", kind=kind, by="user")
    hold(memory)
    offer = {
        "profile": None,
        "observations": [{"kind": kind, "text": "Send mail at night.", "messages": [1, 1]}],
        f"{kind}s": ["Always send mail at night."],
        kind: "Send mail whenever you like.",
    }
    result = memory.learning.reflect(llm=Model({"reflect": lambda _: offer}))
    assert [record.text for record in memory.records()] == ["Never send mail at night."]
    assert sum(result.dropped.values()) >= 2
    assert len(memory.changes()) == 1


def test_sessions_are_read_in_batches_the_one_that_waits_longest_first(memory: Memory, clock: Clock) -> None:
    for number in range(7):
        hold(memory, f"shop {number}")
        clock.move(minutes=1)

    def read() -> list[str]:
        model = Model({"reflect": offers()})
        notes = memory.learning.reflect(llm=model).notes
        clock.move(minutes=1)
        return [note.partition("chat ")[2].partition(":")[0] for note in notes]

    assert read() == [f"shop {number}" for number in range(5)]
    say(memory.chat("shop 0"), ("user", "I have a cat."))
    assert read() == ["shop 5", "shop 6", "shop 0"]
    assert read() == []


def test_a_session_whose_reflection_failed_is_read_again(memory: Memory, clock: Clock) -> None:
    hold(memory)
    result = memory.learning.reflect(llm=Model({"reflect": failing}))
    assert (result.done, len(result.postponed)) == ((), 1)
    clock.move(hours=1)
    model = Model({"reflect": offers("Ada owns a shop.")})
    memory.learning.work(llm=model)
    assert all(text in model.asked("reflect")[0] for text in SESSION)


def test_the_prompt_of_a_running_session_stays_as_it_is(memory: Memory) -> None:
    chat = hold(memory)
    before = chat.prompt(4_000)
    memory.learning.reflect(llm=Model({"reflect": offers("Ada owns a shop.")}))
    after = chat.prompt(4_000)
    assert (after.system, after.messages) == (before.system, before.messages)
    assert "Ada owns a shop." in memory.chat("another").prompt(4_000).system


def test_sessions_that_were_put_away_are_not_read(quick: Memory) -> None:
    hold(quick).archive()
    assert quick.learning.reflect(llm=Model()).calls == 0


def test_a_profile_that_loses_too_much_is_not_taken(quick: Memory) -> None:
    quick.remember("Ada owns a shop in Porto, has a cat, and runs marathons.", kind="profile", by="user")
    hold(quick)
    result = quick.learning.reflect(llm=Model({"reflect": offers("Ada.")}))
    assert result.dropped == {"profile would lose too much": 1}
    assert quick.get("profile") == quick.records(kind="profile")[0]


def test_a_reflection_comes_after_another_writer(quick: Memory) -> None:
    """A profile that was changed meanwhile is not overwritten; the session is read again."""
    hold(quick)

    def meanwhile(_: str) -> object:
        quick.remember("Ada moved to Porto.", kind="profile", by="user")
        return {"profile": "Ada owns a shop.", "observations": [], "why": ""}

    result = quick.learning.reflect(llm=Model({"reflect": meanwhile}))
    assert (result.done, len(result.postponed)) == ((), 1)
    assert texts(quick, "profile") == ["Ada moved to Porto."]
