"""The vectors in memory are those of the table, averaged with their neighbours, however they came."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedders import Letters, letters
from holdfast import Learning, Memory
from holdfast.llm.embedding import Embed
from holdfast.search import vectors as scanned
from holdfast.search.message_source import MESSAGES
from holdfast.store import vectors
from soak import cases

QUIET = Learning(kinds=())
STEPS = st.lists(st.sampled_from(["a", "b", "c", "work", "recall", "erase"]), min_size=1, max_size=25)


class Watched(Letters):
    """Looks at something before it embeds documents."""

    def __init__(self, look: Callable[[], None] = lambda: None) -> None:
        self.look = look

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Count the letters of each text."""
        self.look()
        return super().embed_documents(texts)


def opened(location: str = ":memory:", embed: Embed = letters, learning: Learning = QUIET) -> Memory:
    return Memory(location, user="ada", admin=True, embed=embed, learning=learning)


def in_memory(memory: Memory) -> tuple[list[int], list[list[float]]]:
    """Return the numbers and the vectors of messages that the next recall compares with."""
    memory.recall("training", sources=["message"])
    index = memory._runtime.search()._indexes[(memory.scope.space, MESSAGES)]
    assert index.vectors is not None
    matrix = index.vectors.matrix
    rows = matrix._rows[: len(matrix)] / 32_767
    return matrix.numbers.tolist(), np.round(rows, 3).tolist()


@settings(max_examples=cases(10, 120))
@given(steps=STEPS)
def test_they_are_the_same_bit_by_bit_and_all_at_once(steps: list[str]) -> None:
    with opened() as memory:
        for n, step in enumerate(steps):
            if step == "work":
                memory.learning.work()
            elif step == "recall":
                memory.recall("training")
            elif step != "erase":
                memory.chat(step).append(role="user", content=f"training {step * n} number {n}")
            elif memory.chat("a").stats().messages:
                memory.erase(chat="a", messages=memory.chat("a").history(limit=1)[0].seq)
        memory.chat("a").append(role="user", content="the end")
        memory.learning.work()
        grown = in_memory(memory)
        memory._runtime._search = None
        assert in_memory(memory) == grown


def test_a_vector_is_averaged_with_its_neighbours_in_the_chat_alone() -> None:
    texts = ["aaa", "zzzz", "mm", "qqqqq", "training"]
    with opened() as memory:
        for text in texts:
            memory.chat("one").append(role="user", content=text)
            memory.chat("other").append(role="user", content="b" * 30)
        memory.learning.work()
        numbers, rows = in_memory(memory)
    assert numbers == list(range(1, 11))
    plain = np.array(letters(texts))
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    expected = plain[2] + 0.5 * plain[1] + 0.3 * plain[3] + 0.25 * plain[0] + 0.15 * plain[4]
    np.testing.assert_allclose(rows[4], expected / np.linalg.norm(expected), atol=2e-3)


def test_many_are_loaded_in_pages_before_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanned, "NEAR", 3)
    monkeypatch.setattr(scanned, "_PAGE", 4)
    monkeypatch.setattr(scanned, "_AVERAGED", 5)
    with opened() as memory:
        for n in range(20):
            memory.chat("a").append(role="user", content=f"training {n * 'x'}")
        memory.learning.work()
        numbers, _ = in_memory(memory)
        assert numbers == list(range(1, 21))


def test_memory_is_bounded() -> None:
    with Memory(":memory:", user="ada", admin=True, embed=letters, learning=QUIET, cache_bytes=1) as memory:
        for user in ("ada", "eve"):
            of = memory.scoped(user="") if user == "eve" else memory
            of.chat("a").append(role="user", content="training")
            of.learning.work()
        memory.recall("training")
        kept = memory._runtime.search()
        memory.chat("a").append(role="user", content="training again")
        assert len(memory.recall("training")) >= 2
        assert len(kept._indexes) == 1
        assert kept._total == sum(index.counted for index in kept._indexes.values())


def test_another_process_learns_the_size_of_vectors_after_it_has_looked(shared_location: str) -> None:
    def look() -> None:
        # By now the retracted record is done, which has no vector.
        other.recall("training")

    with opened(shared_location, Watched()) as other, opened(shared_location, Watched(look)) as memory:
        memory.retract(memory.remember("User runs").id)
        memory.chat("a").append(role="user", content="zzz")
        memory.learning.work()
        assert [hit.text for hit in other.recall("training")] == ["zzz"]


def test_vectors_that_are_stored_while_others_are_read_wait_for_their_turn() -> None:
    seen: list[vectors.VectorSet] = []

    def look() -> None:
        seen.extend(vectors.sets(memory._runtime.database, memory.scope.space))

    with opened(embed=Watched(look), learning=Learning(kinds=(), texts=1)) as memory:
        memory.chat("a").append(role="user", content="training")
        memory.learning.work()
        in_memory(memory)
        for chat, text in (("a", "a coach"), ("b", "the rain"), ("a", "a race")):
            memory.chat(chat).append(role="user", content=text)
        memory.recall("training", meaning=0)
        memory.learning.work()
        # As of when the second message was done; the table has all by now.
        stored = next(one for one in seen if one.message == 2)
        memory._runtime.search()._indexes[(memory.scope.space, MESSAGES)].refresh_vectors(stored)
        grown = in_memory(memory)
        memory._runtime._search = None
        assert in_memory(memory) == grown


def test_damaged_vectors_are_passed_over(location: str) -> None:
    with opened(location) as memory:
        for text in ("training", "coach"):
            memory.chat("a").append(role="user", content=text)
        memory.learning.work()
        with memory._runtime.database.writing() as tx:
            tx.all(
                "UPDATE vectors SET body = :body WHERE space = :space AND number = 1",
                body=b"x",
                space=memory.scope.space,
            )
        numbers, _ = in_memory(memory)
        assert numbers == [2]


def test_recall_beside_another_embedder_that_takes_over(shared_location: str) -> None:
    def other(texts: Sequence[str]) -> list[list[float]]:
        return [row[::-1] for row in letters(texts)]

    with (
        opened(shared_location) as old,
        Memory(shared_location, user="ada", embed=other, learning=QUIET) as new,
    ):
        for text in ("training", "a coach", "the rain"):
            old.chat(text).append(role="user", content=text)
        old.learning.work()
        assert old.recall("training")[0].why["meaning"] > 0
        assert [hit.text for hit in new.recall("training")] == ["training"]
        new.learning.work()
        hits = old.recall("training")
        assert [hit.text for hit in hits] == ["training"]
        assert "embedded nothing here" in str(hits.degraded)
        assert new.recall("training")[0].text == "training"


def test_a_set_that_claims_more_than_there_is_is_named_and_searched() -> None:
    with opened() as memory:
        for text in ("training", "a coach"):
            memory.chat(text).append(role="user", content=text)
        memory.learning.work()
        assert memory.verify().checked["vectors"] == 2
        with memory._runtime.database.writing() as tx:
            tx.all("UPDATE vector_sets SET message = 9999 WHERE space = :space", space=memory.scope.space)
        assert memory.recall("training")[0].why["meaning"] > 0
        (problem,) = memory.verify().problems
        assert "reach to message 9,999, which is not there" in problem
