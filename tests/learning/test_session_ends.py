"""Episodes: what a session did, told at its end, found later, and kept within bounds."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast import Denied, InvalidInput, Memory, Message, Record, ToolCall
from learning_scripts import (
    SESSION,
    Clock,
    Model,
    failing,
    finds,
    framed,
    hold,
    offers,
    say,
    says,
)

pytestmark = pytest.mark.usefixtures("clock")


def ended(memory: Memory, chat: str, *said: str, llm: Model | None = None) -> Record | None:
    """Hold a session, end it, and give its episode."""
    hold(memory, chat, said or SESSION).end()
    memory.learning.work(llm=llm)
    return next(iter(memory.records(kind="episode", chat=chat)), None)


def test_an_episode_tells_what_a_session_did(memory: Memory) -> None:
    episode = ended(memory, "shop")
    assert episode is not None
    for part in ("Redis", "PostgreSQL", "src/shop/sessions.py", "docs/migration.md"):
        assert part in episode.text
    assert len(episode.text) <= 1_000
    assert (episode.messages, episode.by, episode.meta["turns"]) == ((1, 6), "reflect", 3)
    assert episode.meta["learned"] == "rules"
    assert list(memory.learning.episodes()) == [episode]
    assert list(memory.learning.episodes("migration of sessions")) == [episode]


def test_with_a_model_in_its_words(memory: Memory) -> None:
    told = "The sessions of the shop were moved to PostgreSQL."
    model = Model(
        {
            "observe": finds(),
            "reflect": offers(),
            "episode": lambda _: {
                "summary": told,
                "files": ["src/shop/sessions.py", "made/up.py"],
                "decisions": [],
                "outcome": "",
            },
        }
    )
    episode = ended(memory, "shop", llm=model)
    assert episode is not None
    assert (episode.meta["learned"], episode.meta["model"]) == ("session v1", "Model")
    assert episode.text == (
        f"Outcome: {SESSION[5]} Decided: {SESSION[2]} {told} Files: src/shop/sessions.py."
    )
    assert episode.meta["files"] == ["src/shop/sessions.py"]
    assert all(text in model.asked("episode")[0] for text in SESSION)


def test_what_was_decided_and_came_of_it_is_found_and_shown(memory: Memory) -> None:
    model = Model(
        {
            "observe": finds(),
            "reflect": offers(),
            "episode": lambda _: {
                "summary": "The sessions of the shop were moved.",
                "files": [],
                "decisions": ["Vouchers stay where they are until the audit of the harbour office."],
                "outcome": "The telescope of the lighthouse is still waiting for its lens.",
            },
        }
    )
    episode = ended(memory, "shop", llm=model)
    assert episode is not None
    for query in ("Which audit do the vouchers wait for?", "What does the telescope still lack?"):
        assert [hit.id for hit in memory.recall(query, kinds=["episode"])] == [episode.id]
        prompt = memory.chat("next").prompt(budget=4_000, query=query)
        shown = "\n".join((prompt.system, *(str(message["content"]) for message in prompt.messages)))
        assert "until the audit of the harbour office" in shown
        assert "still waiting for its lens" in shown


def test_the_same_messages_give_the_same_episode(clock: Clock) -> None:
    def told() -> str:
        with Memory(":memory:", clock=clock) as memory:
            episode = ended(memory, "shop")
            assert episode is not None
            return episode.text

    assert told() == told()


def test_a_session_that_went_on_has_its_one_episode_written_again(memory: Memory) -> None:
    episode = ended(memory, "shop")
    assert episode is not None
    chat = memory.chat("shop")
    say(
        chat,
        ("user", "Move the shopping carts in src/shop/carts.py as well."),
        (
            "assistant",
            "I moved the carts, and src/shop/carts.py reads them from PostgreSQL; all 51 tests pass.",
        ),
    )
    chat.end()
    memory.learning.work()
    (now,) = memory.records(kind="episode")
    assert now.id == episode.id
    assert "carts" in now.text
    assert (now.messages, now.meta["turns"]) == ((1, 8), 4)


def sessions(memory: Memory, clock: Clock, count: int) -> None:
    """Hold sessions about as many different things, one each day, and have their episodes written."""
    words = "tulips carpets violins lanterns kettles anchors saddles candles feathers ladders".split()
    for number in range(count):
        word = words[number]
        hold(
            memory,
            word,
            (
                f"Where do we buy {word}?",
                f"I asked around for {word}.",
                f"Which {word} are the best?",
                f"The {word} from Evora are.",
                f"Order {number + 3} {word}.",
                (
                    f"I ordered {number + 3} {word} from Evora for {number + 20} euros each, "
                    "and they come on Friday."
                ),
            ),
        ).end()
        clock.move(days=1)
        memory.learning.work()


@pytest.mark.parametrize("strategy", ["index", "projection", "llm"])
def test_episodes_are_found_by_what_they_tell(memory: Memory, clock: Clock, strategy: Any) -> None:
    sessions(memory, clock, 5)
    model = Model({"rank": lambda prompt: [number_of(prompt, "violins")]})
    found = memory.learning.episodes("Where did we get violins?", strategy=strategy, llm=model, limit=3)
    assert found.strategy == strategy
    assert found[0].chat == "violins"
    assert len(found) <= 3


def number_of(prompt: str, word: str) -> int:
    listed = re.findall(r"^(\d+)\. (.*)$", framed(prompt, "episodes"), re.MULTILINE)
    return next(int(number) for number, text in listed if word in text)


def test_without_a_question_the_newest_come_first(memory: Memory, clock: Clock) -> None:
    sessions(memory, clock, 4)
    newest = ["lanterns", "violins", "carpets", "tulips"]
    assert [one.chat for one in memory.learning.episodes()] == newest
    assert [one.chat for one in memory.learning.episodes("violins", strategy="recency", limit=2)] == newest[
        :2
    ]


@pytest.mark.parametrize("answer", ["I like them all.", '{"episodes": [99]}', "{", failing])
def test_a_ranking_that_cannot_be_read_gives_the_newest_and_says_so(
    quick: Memory, clock: Clock, answer: Any
) -> None:
    sessions(quick, clock, 3)
    model = Model({"rank": answer if callable(answer) else says(answer)})
    found = quick.learning.episodes("violins", strategy="llm", llm=model, limit=2)
    assert (found.strategy, [one.chat for one in found]) == ("recency", ["violins", "carpets"])
    assert found.why


def test_a_model_may_find_none(quick: Memory, clock: Clock) -> None:
    sessions(quick, clock, 3)
    for answer in ("none", '{"episodes": []}'):
        model = Model({"rank": says(answer)})
        assert list(quick.learning.episodes("submarines", strategy="llm", llm=model)) == []


def test_a_ranking_needs_a_model_and_a_strategy_that_there_is(quick: Memory) -> None:
    with pytest.raises(InvalidInput):
        quick.learning.episodes("violins", strategy="llm")
    with pytest.raises(InvalidInput):
        quick.learning.episodes("violins", strategy="magic")  # type: ignore[arg-type]  # the point
    with pytest.raises(InvalidInput):
        quick.learning.episodes(limit=-1)


def test_what_follows_outside_sources_waits_for_its_release(memory: Memory) -> None:
    chat = hold(memory)
    chat.append(
        [
            Message("assistant", calls=(ToolCall("one", "web_fetch", {"url": "https://example.org"}),)),
            Message("tool", "Redis loses nothing, says this page.", call_id="one"),
            Message("assistant", "We decided to keep a quokka as a mascot, because the page praises it."),
        ]
    )
    chat.end()
    memory.learning.work()
    (held,) = [record for record in list(memory.quarantine) if record.kind == "episode"]
    assert (held.chat, held.meta["untrusted"]) == ("shop", ["web_fetch"])
    (standing,) = memory.learning.episodes("PostgreSQL")
    assert "quokka" in held.text
    assert "quokka" not in standing.text
    with pytest.raises(Denied):
        memory.quarantine.release(held.id, by="agent")
    memory.quarantine.release(held.id, by="user")
    (released,) = memory.learning.episodes("PostgreSQL")
    assert "quokka" in released.text
    memory.chat("shop").end()
    memory.learning.work()
    (still,) = memory.learning.episodes("PostgreSQL")
    assert still.text == released.text, "it stays released"
