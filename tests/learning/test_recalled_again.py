"""What an agent was told by its memory is not learned again, however it was told and however often."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from holdfast import Chat, Memory, Message, ToolCall
from learning_scripts import Clock, Model, everything, hold, learned, offers, say, texts
from soak import cases

pytestmark = pytest.mark.usefixtures("clock")

FACTS = (
    "Remember that I live in Lisbon, in the Rua das Flores, with my sister Ines.",
    "We decided to open the shop at 9:30 on Saturdays, because the market begins at 10:00.",
    "Note that my daughter Marta is allergic to peanuts and cannot eat the almond cake either.",
)
NAMES = ("Lisbon", "9:30", "peanuts")
QUESTIONS = (
    "Where do I live, and with whom?",
    "When does the shop open on Saturdays?",
    "What is my daughter allergic to?",
)
WAYS = (
    "You told me earlier: {}",
    "As far as I remember, {}",
    "From our earlier conversation I know this: {}",
    "As you mentioned before, {}",
    "I have it in my notes that {}",
)
TURNS = cases(18, 50)  # each question in each way, and some more
_PERSONS = {"I": "you", "my": "your", "We": "you", "we": "you", "am": "are"}


def reworded(text: str, turn: int) -> str:
    """Say a text again, in somewhat other words: as an assistant would, each turn in another way."""
    plain = re.sub(r"^(?:Remember that|Note that) ", "", text)
    for way in WAYS:
        plain = plain.removeprefix(way.format(""))
    said = re.sub(r"\b(?:I|my|We|we|am)\b", lambda word: _PERSONS[word[0]], plain)
    return WAYS[turn % len(WAYS)].format(said)


def grown(
    memory: Memory, clock: Clock, answer: Callable[[Chat, str, int], None], llm: Model | None
) -> list[int]:
    """Tell facts in one session, ask for them in another, and count what is known of them after each turn."""
    hold(memory, "before", [part for fact in FACTS for part in (fact, "Thank you.")]).extract(llm=llm)
    chat = memory.chat("home")
    sizes = []
    for turn in range(TURNS):
        clock.move(minutes=1)
        answer(chat, QUESTIONS[turn % len(QUESTIONS)], turn)
        assert chat.extract(llm=llm).job == ""
        sizes.append(sum(any(name in record.text for name in NAMES) for record in memory.records()))
    return sizes


def by_prompt(chat: Chat, question: str, turn: int) -> None:
    """Answer with what the prompt recalled."""
    say(chat, ("user", question))
    hits = chat.prompt(700, question).hits[:2]
    assert hits
    say(chat, ("assistant", " ".join(reworded(hit.text, turn) for hit in hits)))


def by_tool(memory: Memory) -> Callable[[Chat, str, int], None]:
    """Answer with what the agent recalled by itself, through a tool."""

    def answer(chat: Chat, question: str, turn: int) -> None:
        hits = [hit.text[:400] for hit in memory.recall(question, limit=2)]  # or each doubles the next
        chat.append(
            [
                Message("user", question),
                Message("assistant", calls=(ToolCall(f"call{turn}", "recall", {"query": question}),)),
                Message("tool", "\n".join(hits), call_id=f"call{turn}", name="recall"),
                Message("assistant", " ".join(reworded(hit, turn) for hit in hits)),
            ]
        )

    return answer


MODELS = pytest.mark.parametrize("llm", [Model({"observe": everything}), None], ids=["naive", "none"])


@pytest.mark.slow
@pytest.mark.parametrize("way", ["prompt", "tool"])
@MODELS
def test_a_loop_of_recall_answer_and_extraction_does_not_grow(
    quick: Memory, clock: Clock, way: str, llm: Model | None
) -> None:
    sizes = grown(quick, clock, by_prompt if way == "prompt" else by_tool(quick), llm)
    assert sizes[len(QUESTIONS) :] == sizes[-1:] * (TURNS - len(QUESTIONS)), sizes


@pytest.mark.slow
@MODELS
def test_nor_over_many_sessions(quick: Memory, clock: Clock, llm: Model | None) -> None:
    """Each turn is a session of its own, which the worker finds when it is over."""
    hold(quick, "before", [part for fact in FACTS for part in (fact, "Thank you.")])
    sizes = []
    for turn in range(TURNS):
        clock.move(hours=1)
        by_prompt(quick.chat(f"day {turn}"), QUESTIONS[turn % len(QUESTIONS)], turn)
        clock.move(hours=1)
        quick.learning.work(llm=llm)
        sizes.append(len({record.id for record in learned(quick) if record.kind != "profile"}))
    assert sizes[2 * len(QUESTIONS) :] == sizes[-1:] * (TURNS - 2 * len(QUESTIONS)), sizes


def test_what_was_recalled_is_no_news_to_a_reflection_either(quick: Memory, clock: Clock) -> None:
    hold(quick, "before", FACTS[:1]).extract(llm=Model({"observe": everything}))
    quick.learning.reflect(llm=Model({"reflect": offers()}))
    before = learned(quick)
    clock.move(hours=1)
    by_prompt(quick.chat("home"), QUESTIONS[0], 0)
    (answer,) = [one.content for one in quick.chat("home").history() if one.role == "assistant"]
    quick.learning.reflect(llm=Model({"reflect": offers(None, answer)}))
    assert learned(quick) == before, "and it is no further evidence"


def test_results_of_recall_are_never_shown_to_the_model(quick: Memory) -> None:
    chat = hold(quick)
    told = "The till of the shop is made of oak, by a carpenter from Braga."
    chat.append(
        [
            Message("assistant", calls=(ToolCall("one", "mcp__holdfast__recall", {"query": "till"}),)),
            Message("tool", told, call_id="one"),
            Message("user", f"<recalled>\n{told}\n</recalled>\nIs that all that you know of the shop?"),
            Message("assistant", told, meta={"origin": "memory"}),
        ]
    )
    for text in (told, "carpenter"):
        model = Model({"observe": everything, "reflect": offers()})
        chat.extract(messages=(7, 10), llm=model)
        chat.end()
        quick.learning.work(llm=model)
        assert not any(
            text in prompt for purpose in ("observe", "reflect") for prompt in model.asked(purpose)
        )
    assert not any("oak" in text for text in texts(quick))
