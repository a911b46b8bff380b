"""What is said again in other words: they are kept, found, taken back and erased with what they repeat."""

from __future__ import annotations

import pytest
from erasures import stored

from holdfast import Memory, Record
from holdfast.types import Wording

FIRST = "User lives in Berlin"
AGAIN = "The user resides in Berlin."
THIRD = "User is living in Berlin, as it happens"


def said(memory: Memory) -> list[tuple[str, str | None, str]]:
    return [(one.action, one.after, one.said) for one in memory.changes()[::-1]]


def found(memory: Memory, words: str) -> list[str]:
    return [hit.id for hit in memory.recall(words, sources=["record"])]


def repeated(memory: Memory) -> Record:
    memory.remember(FIRST)
    return memory.remember(AGAIN)


def test_a_duplicate_keeps_its_words_and_is_found_by_them(memory: Memory) -> None:
    record = repeated(memory)
    assert (record.action, record.text, record.evidence) == ("duplicate", FIRST, 2)
    assert record.wordings == (Wording(AGAIN),)
    assert memory.get(record.id) == record
    (hit,) = memory.recall("resides")
    assert (hit.id, hit.text, hit.wordings) == (record.id, FIRST, (AGAIN,))
    assert "resides" in hit.why.words
    memory.remember(AGAIN)
    assert said(memory) == [("add", FIRST, ""), *[("duplicate", FIRST, AGAIN)] * 2]
    assert memory.records()[0].wordings == (Wording(AGAIN),), "the same words are kept once"
    memory.remember("The build needs pnpm 9", "finding", merge=True)
    again = memory.remember("the build needs pnpm 9!", "finding", merge=True)
    assert (again.action, again.wordings) == ("duplicate", (Wording("the build needs pnpm 9!"),))
    assert memory.verify().ok


def test_a_repetition_changes_no_prompt_and_in_the_same_words_no_score(memory: Memory) -> None:
    chat = memory.chat("monday")
    memory.remember(FIRST)
    prompt, score = chat.prompt().system, memory.recall("Berlin")[0].score
    memory.remember(FIRST.upper())
    assert memory.recall("Berlin")[0].score == score
    memory.remember(AGAIN)
    chat.refresh()
    assert chat.prompt().system == prompt


def test_undo_takes_the_words_back_and_the_history_keeps_them(memory: Memory) -> None:
    record = repeated(memory)
    memory.undo()
    left = memory.get(record.id)
    assert left is not None
    assert (left.text, left.evidence, left.wordings) == (FIRST, 1, ())
    assert found(memory, "resides") == []
    assert said(memory) == [("add", FIRST, ""), ("duplicate", FIRST, AGAIN), ("undo", FIRST, "")]
    assert found(memory.at(2), "resides") == [record.id]  # type: ignore[arg-type]  # a view recalls alike
    memory.rollback(record.id, 2)
    assert memory.get(record.id).wordings == (Wording(AGAIN),)  # type: ignore[union-attr]  # it is there
    assert found(memory, "resides") == [record.id]


def test_what_takes_its_place_has_no_words_of_it(memory: Memory) -> None:
    record = repeated(memory)
    moved = memory.remember("User has moved to Lisbon")
    assert (moved.id, moved.action, moved.wordings) == (record.id, "update", ())
    memory.rollback("fact", 2)
    assert memory.records()[0].wordings == (Wording(AGAIN),)


def test_the_same_message_adds_nothing(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([{"role": "user", "content": text} for text in (FIRST, AGAIN, THIRD)])
    one = chat.remember(FIRST, messages=1)
    two = chat.remember(AGAIN, messages=2)
    assert (two.id, two.evidence) == (one.id, 2)
    assert two.wordings == (Wording(AGAIN, chat="monday", messages=(2, 2)),)
    for text, place in ((FIRST, 1), (AGAIN, 1), (AGAIN, 2), (FIRST, 2)):
        assert chat.remember(text, messages=place) == two
    assert memory.version() == 2
    assert memory.scoped().chat("tuesday").remember(AGAIN, messages=2).evidence == 3


# Erasure


@pytest.mark.parametrize("erased", ["record", "chat", "message"])
def test_they_are_erased_with_the_record_or_the_chat_that_they_were_said_in(
    shared_location: str, erased: str
) -> None:
    with Memory(shared_location, user="ada") as memory:
        monday, tuesday = memory.chat("monday"), memory.chat("tuesday")
        monday.append(role="user", content="hello")
        tuesday.append([{"role": "user", "content": "hello"}] * 2)
        record = monday.remember(FIRST, messages=1)
        tuesday.remember(AGAIN, messages=2)
        tuesday.remember("the user lives in BERLIN", messages=1)
        found(memory, "resides")
        if erased == "record":
            memory.erase(record=record.id)
        else:
            receipt = memory.erase(chat="tuesday", messages=None if erased == "chat" else 2)
            assert receipt.counts["wordings"] == (3 if erased == "chat" else 2), "in each version with them"
            (left,) = memory.records()
            assert (left.text, left.evidence) == (FIRST, 3)
            other = ["the user lives in BERLIN"]
            assert [one.text for one in left.wordings] == ([] if erased == "chat" else other)
        assert found(memory, "resides") == []
        assert AGAIN not in {one.said for one in memory.changes()}
        assert memory.verify().ok
        assert b"resides" not in stored(shared_location)


def test_those_of_a_chat_are_erased_where_nobody_said_in_which_message(memory: Memory) -> None:
    memory.remember(FIRST)
    memory.chat("tuesday").append([{"role": "user", "content": "hello"}] * 2)
    record = memory.chat("tuesday").remember(AGAIN)
    memory.erase(chat="tuesday", messages=1)
    assert memory.get(record.id).wordings != ()  # type: ignore[union-attr]  # it is there
    memory.erase(chat="tuesday")
    assert memory.get(record.id).wordings == ()  # type: ignore[union-attr]  # it is there
