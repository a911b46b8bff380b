"""What is said again in other words: they are kept, found, taken back and erased with what they repeat."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_a_duplicate_keeps_its_words(memory: Memory) -> None:
    record = repeated(memory)
    assert (record.action, record.text, record.evidence) == ("duplicate", FIRST, 2)
    assert record.wordings == (Wording(AGAIN),)
    assert memory.get(record.id) == record
    assert said(memory) == [("add", FIRST, ""), ("duplicate", FIRST, AGAIN)]


def test_it_is_found_by_its_words(memory: Memory) -> None:
    record = repeated(memory)
    (hit,) = memory.recall("resides")
    assert (hit.id, hit.text, hit.wordings) == (record.id, FIRST, (AGAIN,))
    assert "resides" in hit.why.words
    assert memory.verify().ok


def test_a_repetition_in_the_same_words_weighs_nothing(memory: Memory) -> None:
    memory.remember(FIRST)
    before = memory.recall("Berlin")[0].score
    memory.remember(FIRST.upper())
    assert memory.recall("Berlin")[0].score == before


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


def test_the_same_words_from_nowhere_are_kept_once(memory: Memory) -> None:
    memory.remember(FIRST)
    for _ in range(3):
        memory.remember(AGAIN)
    (record,) = memory.records()
    assert (record.evidence, record.wordings) == (4, (Wording(AGAIN),))
    assert [one.said for one in memory.changes(limit=3)] == [AGAIN] * 3


def test_findings_that_are_compared_keep_them_as_well(memory: Memory) -> None:
    memory.remember("The build needs pnpm 9", "finding", merge=True)
    again = memory.remember("the build needs pnpm 9!", "finding", merge=True)
    assert (again.action, again.wordings) == ("duplicate", (Wording("the build needs pnpm 9!"),))


def test_prompts_do_not_change_by_it(memory: Memory) -> None:
    chat = memory.chat("monday")
    memory.remember(FIRST)
    before = chat.prompt().system
    memory.remember(AGAIN)
    chat.refresh()
    assert chat.prompt().system == before


# Erasure


def in_the_file(location: str, words: str) -> bool:
    path = Path(location)
    return any(words.encode() in file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def test_they_are_erased_with_the_record(tmp_path: Path) -> None:
    location = str(tmp_path / "memory.db")
    with Memory(location, user="ada") as memory:
        record = repeated(memory)
        memory.recall("resides")
        memory.erase(record=record.id)
        assert found(memory, "resides") == []
        assert memory.verify().ok
    assert not in_the_file(location, "resides")


@pytest.mark.parametrize("whole", [True, False])
def test_they_are_erased_with_the_chat_that_they_were_said_in(location: str, whole: bool) -> None:
    with Memory(location, user="ada") as memory:
        monday, tuesday = memory.chat("monday"), memory.chat("tuesday")
        monday.append(role="user", content="hello")
        tuesday.append([{"role": "user", "content": "hello"}] * 2)
        record = monday.remember(FIRST, messages=1)
        tuesday.remember(AGAIN, messages=2)
        tuesday.remember("the user lives in BERLIN", messages=1)
        found(memory, "resides")
        receipt = memory.erase(chat="tuesday", messages=None if whole else 2)
        assert receipt.counts["wordings"] == (3 if whole else 2), "in each version that had them"
        left = memory.get(record.id)
        assert left is not None
        assert (left.text, left.evidence) == (FIRST, 3)
        assert [one.text for one in left.wordings] == ([] if whole else ["the user lives in BERLIN"])
        assert found(memory, "resides") == []
        assert AGAIN not in {one.said for one in memory.changes()}
        assert memory.verify().ok
    if location.endswith(".db"):
        assert not in_the_file(location, "resides")


def test_those_of_a_chat_are_erased_where_nobody_said_in_which_message(memory: Memory) -> None:
    memory.remember(FIRST)
    memory.chat("tuesday").append([{"role": "user", "content": "hello"}] * 2)
    record = memory.chat("tuesday").remember(AGAIN)
    memory.erase(chat="tuesday", messages=1)
    assert memory.get(record.id).wordings != ()  # type: ignore[union-attr]  # it is there
    memory.erase(chat="tuesday")
    assert memory.get(record.id).wordings == ()  # type: ignore[union-attr]  # it is there
