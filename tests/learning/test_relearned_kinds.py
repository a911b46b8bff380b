"""Learning episodes and facts again, by a short prompt or a thorough one: as a diff, adopted or dropped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast import InvalidInput, Memory, Message, ToolCall
from holdfast.llm.prompt_files import load
from learning_scripts import BACKUP, SESSION, Model, finds, hold, says

SHORT, THOROUGH = "The sessions were moved.", "The sessions were moved to PostgreSQL, and all 42 tests pass."
PORT, OTHER = "The user has a shop on port 8080.", "The user works on Mondays."


def telling(summary: str) -> Model:
    """Make a model that tells a session in some words."""
    told = {"summary": summary, "files": [], "decisions": [], "outcome": ""}
    return Model({"episode": lambda _: told})


def with_facts(*texts: str) -> Model:
    """Make a model that finds some facts, and one finding."""

    def answer(prompt: str) -> object:
        facts = finds(*texts)(prompt)
        found = finds(BACKUP)(prompt)
        assert isinstance(facts, dict)
        assert isinstance(found, dict)
        return found | {"facts": facts["findings"]}

    return Model({"observe": answer})


def episode(memory: Memory) -> str:
    (one,) = memory.records(kind="episode")
    return one.text


def test_an_episode_is_told_again_shown_as_a_diff_adopted_and_dropped(memory: Memory) -> None:
    hold(memory).end()
    memory.learning.work(llm=telling(SHORT))
    before, version = episode(memory), memory.version()
    assert SHORT in before
    shown = memory.learning.relearn("episodes", llm=telling(THOROUGH), prompt="v2", dry_run=True)
    assert (shown.prompt, shown.applied, memory.version()) == ("session v2", False, version)
    old, new = shown.diff.splitlines()[1:]
    assert shown.diff.splitlines()[0] == "shop"
    assert old == f"- episode: {before}"
    assert new == f"+ episode: {before.replace(SHORT, THOROUGH)}"
    assert memory.learning.relearn("episodes", llm=telling(THOROUGH), prompt="v2").added == shown.added
    assert THOROUGH in episode(memory)
    again = memory.learning.relearn("episodes", llm=telling(THOROUGH), prompt="v2")
    assert (again.added, again.removed, again.kept, again.diff) == ((), (), 1, "")
    memory.undo(by="user")
    assert episode(memory) == before
    assert memory.verify().ok


def test_an_episode_by_rules_is_told_by_a_model(quick: Memory) -> None:
    hold(quick).end()
    quick.learning.work()
    assert len(quick.learning.relearn("episodes", llm=telling(THOROUGH)).added) == 1
    assert THOROUGH in episode(quick)


def test_what_the_user_wrote_or_retracted_stays(quick: Memory) -> None:
    for chat in ("one", "two"):
        hold(quick, chat, [f"{chat}: {text}" for text in SESSION]).end()
    quick.learning.work(llm=Model())
    one, two = quick.records(kind="episode")
    quick.replace(one.id, "The user told it otherwise.", by="user")
    quick.retract(two.id, by="user")
    result = quick.learning.relearn("episodes", llm=telling(THOROUGH))
    assert (result.added, result.removed) == ((), ())
    assert episode(quick) == "The user told it otherwise."


def test_an_episode_with_words_from_outside_waits_as_before(quick: Memory) -> None:
    chat = hold(quick)
    call = ToolCall("1", "web_fetch", {"url": "https://x.example"})
    page = "The tills of the other shops are made of oak."
    chat.append([Message("assistant", "", calls=(call,)), Message("tool", page, call_id="1")])
    chat.end()
    quick.learning.work(llm=telling(SHORT))
    quick.learning.relearn("episodes", llm=telling(page))
    assert "oak" not in episode(quick)
    assert [one.kind for one in quick.quarantine if "oak" in one.text] == ["episode"]


ERASURES: dict[str, Callable[[Memory], object]] = {
    "the chat": lambda memory: memory.erase(chat="shop"),
    "all": lambda memory: memory.erase(user="ada"),
}


@pytest.mark.parametrize("erase", ERASURES.values(), ids=ERASURES.keys())
def test_what_is_erased_while_a_model_reads_is_not_told(
    memory: Memory, erase: Callable[[Memory], object]
) -> None:
    hold(memory).end()
    memory.learning.work(llm=telling(SHORT))

    def meanwhile(prompt: str) -> object:
        erase(memory)
        return telling(THOROUGH).answers["episode"](prompt)

    result = memory.learning.relearn("episodes", llm=Model({"episode": meanwhile}))
    assert "erased" in result.failed["shop"]
    assert memory.records(kind="episode") == []
    assert memory.verify().ok


def test_a_model_that_fails_changes_nothing(quick: Memory) -> None:
    hold(quick).end()
    quick.learning.work(llm=telling(SHORT))
    result = quick.learning.relearn("episodes", llm=Model({"episode": says("I would rather not.")}))
    assert list(result.failed) == ["shop"]
    assert SHORT in episode(quick)


def test_facts_are_learned_again_alone(memory: Memory) -> None:
    hold(memory).end()
    memory.learning.work(llm=with_facts(PORT))
    shown = memory.learning.relearn("facts", llm=with_facts(OTHER), prompt="v2", dry_run=True)
    assert shown.diff == f"shop\n- fact: {PORT}\n+ fact: {OTHER}"
    assert shown.prompt == "session v2"
    memory.learning.relearn("facts", llm=with_facts(OTHER), prompt="v2")
    assert [one.text for one in memory.records(kind="fact")] == [OTHER]
    assert [one.text for one in memory.records(kind="finding")] == [BACKUP]


def test_facts_are_found_in_chats_that_gave_none(quick: Memory) -> None:
    hold(quick).extract(llm=Model({"observe": finds(BACKUP)}))
    quick.learning.relearn("facts", llm=with_facts(OTHER))
    assert [one.text for one in quick.records(kind="fact")] == [OTHER]


def test_without_a_model_nothing_is_learned_again(quick: Memory) -> None:
    for kind in ("facts", "episodes"):
        with pytest.raises(InvalidInput, match="no model"):
            quick.learning.relearn(kind)


def test_a_short_and_a_thorough_prompt_come_along() -> None:
    assert load("session").version == "v1"
    assert len(load("session", "v2").text) > 1.3 * len(load("session", "v1").text)
