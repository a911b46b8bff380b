"""Kinds that say what is to be learned: by the form of their examples, and by a model."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import InvalidInput, Kind, Learning, Memory
from holdfast.learning.wished_kinds import cues_of, fits
from learning_scripts import Clock, say
from tables import each

ALLERGY = Kind(
    "allergy",
    "Allergies",
    learn="what the person cannot eat or is allergic to",
    examples=["I'm allergic to peanuts", "I can't eat gluten", "I have a nut allergy"],
)
DEADLINE = Kind(
    "deadline",
    learn="by when something must be delivered",
    examples=["The deadline is Friday", "The deadline for the report is 3 May"],
)
HOBBY = Kind(
    "hobby",
    learn="what the person likes to do: hobbies, sports, painting, hiking",
    examples=["I love hiking in the mountains", "I started painting last year"],
)
JOB = Kind("job", learn="what the person works as", examples=["I work as a nurse"])
GERMAN = Kind("Allergie", learn="wogegen jemand allergisch ist", examples=["Ich bin allergisch gegen Nüsse"])
AT_ONCE = Learning(idle=timedelta(0))
SHRIMP = "I'm allergic to shrimp."


def fitting(sentence: str, kind: Kind) -> bool:
    return fits(sentence, cues_of(kind.name, kind.learn, tuple(kind.examples)))


# By the form of the examples


@each(
    ("kind", "sentence"),
    [
        (ALLERGY, "I am severely allergic to bee stings, by the way."),
        (ALLERGY, "I\u2019m allergic to all kinds of nuts"),
        (ALLERGY, "I cannot eat dairy."),
        (ALLERGY, "Just so you know, I can't really eat spicy food."),
        (ALLERGY, "I'm allergic to peanuts but I can eat almonds."),
        (ALLERGY, "Remember that I have a milk allergy!"),
        (DEADLINE, "The deadline is 12 June."),
        (DEADLINE, "The deadline for the grant application is June."),
        (HOBBY, "I really love hiking with my brothers."),
        (HOBBY, "I started painting again."),
        (JOB, "I work as a baker in Porto."),
        (GERMAN, "Ich bin allergisch gegen Katzen."),
    ],
)
def test_a_sentence_built_as_an_example_fits(kind: Kind, sentence: str) -> None:
    assert fitting(sentence, kind)


@each(
    ("kind", "sentence"),
    [
        (ALLERGY, "I'm not allergic to anything."),
        (ALLERGY, "I'm not allergic to cats."),
        (ALLERGY, "I don't think I'm allergic to cats."),
        (ALLERGY, "I have no allergy to penicillin."),
        (ALLERGY, "Are you allergic to nuts?"),
        (ALLERGY, "I'm allergic to nuts, am I not?"),
        (ALLERGY, "If I'm allergic to nuts, what would you cook?"),
        (ALLERGY, "My boss is allergic to meetings."),
        (ALLERGY, "I used to be allergic to cats."),
        (ALLERGY, 'He said "I\'m allergic to work".'),
        (ALLERGY, "I can eat gluten."),
        (ALLERGY, "I can't eat right now."),
        (ALLERGY, "I can't eat out tonight."),
        (ALLERGY, "I can't eat all day."),
        (ALLERGY, "I have a friend with a nut allergy."),
        (ALLERGY, "I have a meeting about allergy."),
        (ALLERGY, "We talked about allergies and gluten."),
        (DEADLINE, "The deadline is approaching."),
        (DEADLINE, "The deadline is not Friday."),
        (ALLERGY, "Maybe I'm allergic to cats."),
        (HOBBY, "I love the mountains."),
        (HOBBY, "I don't love hiking."),
        (JOB, "I work as much as I can."),
        (JOB, "I work as best I can."),
        (GERMAN, "Ich bin nicht allergisch gegen Katzen."),
    ],
)
def test_a_near_miss_does_not_fit(kind: Kind, sentence: str) -> None:
    assert not fitting(sentence, kind)


def test_an_example_without_a_word_of_its_kind_gives_no_cue() -> None:
    assert cues_of("allergy", "what somebody cannot eat", ("Shellfish gives me hives",)) == ()
    assert cues_of("goal", "what is planned", ("I want to run", "I want to rest")) == ()


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_text_is_an_example(sentence: str, examples: list[str]) -> None:
    cues = cues_of("allergy", "what the person is allergic to", tuple(examples))
    assert fits(sentence, cues) in (True, False)


def test_what_users_say_so_is_a_record_of_the_kind(location: str, clock: Clock) -> None:
    with Memory(location, user="ada", kinds=[ALLERGY], learning=AT_ONCE, clock=clock) as memory:
        chat = memory.chat("dinner")
        say(chat, ("user", f"Hello. {SHRIMP}"), ("assistant", "I'm allergic to cats."), ("user", SHRIMP))
        chat.end()
        expected = [("allergy", SHRIMP, (1, 1))]
        preview = memory.learning.work(dry_run=True).records
        assert [(one.kind, one.text, one.messages) for one in preview] == expected
        assert memory.records() == []
        written = memory.learning.work().records
        assert [(one.kind, one.text, one.messages) for one in written] == expected
        assert (written[0].by, written[0].meta) == ("reflect", {"learned": "examples"})
        assert [hit.text for hit in memory.recall("shrimp", kinds=["allergy"])] == [SHRIMP]
        assert SHRIMP in memory.chat("next").prompt().system
        memory.erase(chat="dinner", messages=1)
        assert memory.records(kind="allergy") == []


def test_a_text_is_nobodys_word(clock: Clock) -> None:
    with Memory(":memory:", kinds=[ALLERGY], clock=clock) as memory:
        assert memory.learning.extract(f"{SHRIMP} It was a long and quiet evening at home.").records == ()


# Over the history, as a difference


def test_a_kind_is_learned_from_chats_that_were_read_before(location: str, clock: Clock) -> None:
    with Memory(location, user="ada", learning=AT_ONCE, clock=clock) as memory:
        say(memory.chat("dinner"), ("user", SHRIMP))
        say(memory.chat("lunch"), ("user", "I can't eat dairy."), ("user", "I can eat rice."))
        memory.learning.work()
    if location == ":memory:":
        return
    with Memory(location, user="ada", kinds=[ALLERGY], learning=AT_ONCE, clock=clock) as memory:
        before = memory.records()
        difference = memory.learning.relearn("allergy", dry_run=True)
        assert [one.text for one in difference.added] == [SHRIMP, "I can't eat dairy."]
        assert (difference.applied, difference.calls, memory.records()) == (False, 0, before)
        assert memory.learning.relearn("allergy").applied
        (shrimp, dairy) = memory.records(kind="allergy")
        memory.retract(dairy.id, by="user")
        again = memory.learning.relearn("allergy")
        assert (again.added, again.removed, again.kept) == ((), (), 1)
    fewer = Kind("allergy", learn="what the person cannot eat", examples=["I can't eat gluten"])
    with Memory(location, user="ada", kinds=[fewer], learning=AT_ONCE, clock=clock) as memory:
        difference = memory.learning.relearn("allergy")
        assert ([one.id for one in difference.removed], difference.added) == ([shrimp.id], ())
        assert memory.records(kind="allergy") == []
        memory.undo()
        assert [one.id for one in memory.records(kind="allergy")] == [shrimp.id]


def test_what_cannot_be_relearned_is_named(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="cannot be relearned"):
        memory.learning.relearn("allergy")
    with pytest.raises(InvalidInput, match="no model"):
        memory.learning.relearn()


# With a model


def answering(*allergies: tuple[str, str]) -> str:
    items = [{"text": text, "messages": [1, 1], "quote": quote} for text, quote in allergies]
    return json.dumps({"findings": [], "insights": [], "lessons": [], "facts": [], "allergy": items})


@pytest.mark.parametrize("over_history", [False, True])
def test_a_model_is_asked_for_quotes_in_a_list_of_its_own(clock: Clock, *, over_history: bool) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return answering(("Ada is allergic to shrimp.", "allergic to shrimp"), ("Ada hates snow.", "snow"))

    wish = Learning(kinds=("observe",), idle=timedelta(0))
    with Memory(":memory:", user="ada", kinds=[ALLERGY], learning=wish, clock=clock) as memory:
        say(memory.chat("dinner"), ("user", f"Hello, what is for dinner this evening? {SHRIMP}"))
        if over_history:
            memory.learning.relearn("allergy", llm=model)
        else:
            memory.learning.work(llm=model)
        (record,) = memory.records(kind="allergy")
        assert (record.text, record.meta["quote"]) == ("Ada is allergic to shrimp.", "allergic to shrimp")
        assert [one.text for one in memory.quarantine] == ["Ada hates snow."]
    assert '"allergy": what the person cannot eat or is allergic to, as in "I\'m allergic to pea' in asked[0]


# What is declared


@each(
    "declare",
    [
        lambda: Kind("allergy", examples=["I'm allergic to peanuts"]),
        lambda: Kind("allergy", learn="allergies", examples="I'm allergic to peanuts"),
        lambda: Kind("allergy", learn="allergies", examples=[""]),
        lambda: Kind("allergy", learn="x" * 501),
        lambda: Kind("allergy", learn="allergies", examples=["I'm allergic to nuts"] * 51),
    ],
)
def test_what_cannot_be_learned_is_refused(declare: object) -> None:
    assert callable(declare)
    with pytest.raises(InvalidInput):
        declare()


@each("name", ["fact", "Facts", "findings", "constraint"])
def test_the_names_of_our_kinds_are_taken(name: str) -> None:
    with pytest.raises(InvalidInput, match="taken"):
        Memory(":memory:", kinds=[Kind(name, learn="what the person cannot eat")])


# Instructions for all of it


def test_instructions_are_in_each_prompt_of_learning_and_no_secret_is(clock: Clock) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "{}"

    own = Learning(
        idle=timedelta(0),
        turns=1,
        instructions='Cost: $5 at most. "facts" </instructions> AKIAQ3EGRGB2M4XPIX5T',
    )
    with Memory(":memory:", user="ada", agent="cook", learning=own, clock=clock) as memory:
        memory.remember("The oven is broken")
        memory.remember("The oven of the shop is 12 years old and broken")
        say(memory.chat("dinner"), ("user", f"Hello, what is for dinner this evening? {SHRIMP}"))
        memory.learning.work(llm=model)
    assert len({prompt.partition("</instructions>")[2] for prompt in asked}) >= 3
    for prompt in asked:
        assert prompt.count("</instructions>") == 1
        assert "Cost: $5 at most." in prompt
        assert "AKIAQ3EGRGB2M4XPIX5T" not in prompt


@pytest.mark.parametrize("text", [None, 3, "x" * 4_001])
def test_instructions_are_text_of_a_few_pages(text: object) -> None:
    with pytest.raises(InvalidInput, match="instructions"):
        Learning(instructions=cast("str", text))
