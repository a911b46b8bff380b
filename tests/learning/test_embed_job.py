"""Vectors are made in the background, in batches, once; they go with what they were made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from embedders import letters, meaning
from holdfast import Learning, Memory, Message, WorkResult
from holdfast.llm.embedding import LONGEST, Embed
from holdfast.search.vectors import SCALE, STORED
from holdfast.store import vectors
from holdfast.store.salvage import salvage
from holdfast.types import SOURCES, Source
from learning_scripts import Clock

KEY = "sk-proj-abcdEFGH1234ijkl5678MNOP9012"
Opened = Callable[..., Memory]


@pytest.fixture
def opened(shared_location: str, clock: Clock) -> Iterator[Opened]:
    """Open one database several times, each with its embedder."""
    memories: list[Memory] = []

    def another(embed: Embed = meaning, texts: int = 64) -> Memory:
        learning = Learning(kinds=(), texts=texts)
        memory = Memory(shared_location, user="ada", clock=clock, learning=learning, embed=embed)
        memories.append(memory)
        return memory

    yield another
    for memory in memories:
        memory.close()


class Recorded:
    """Embed by meaning, and keep what was asked."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        return meaning(texts)

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]


def stored(memory: Memory, source: Source, model: str = "meaning") -> dict[int, list[float]]:
    rows = vectors.read(memory._runtime.database, memory.scope.space, model, source, 0)
    return {number: (np.frombuffer(body, STORED) / SCALE).round(2).tolist() for number, body in rows}


def work(memory: Memory) -> WorkResult:
    return memory.learning.work()


def fill(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append([Message("user", "I like tea."), Message("assistant", "A dog, too?", name="Max")])
    chat.append(role="user", content="qqq")
    memory.remember("User runs a marathon")


def test_what_was_stored_gets_vectors(location: str) -> None:
    embed = Recorded()
    with Memory(location, user="ada", embed=embed, learning=Learning(kinds=())) as memory:
        fill(memory)
        cost = memory.learning.work(dry_run=True)
        assert (cost.calls, embed.calls, cost.prompt_tokens > 0) == (2, [], True)
        done = work(memory)
        assert [job.id for job in done.done] == ["embed:"]
        assert done.calls == 2
        assert embed.calls == [["User runs a marathon"], ["I like tea.", "Max: A dog, too?", "qqq"]]
        assert stored(memory, "record", "Recorded") == {1: [0.0, 0.0, 1.0, 0.1]}
        # Of the third it knows no word.
        assert stored(memory, "message", "Recorded") == {1: [1.0, 0.1, 0.0, 0.0], 2: [0.0, 1.0, 0.1, 0.0]}
        (progress,) = memory.learning.embedding()
        assert (progress.model, progress.dimension, progress.done, progress.total) == ("Recorded", 4, 4, 4)
        assert work(memory).noop
        memory.chat("a").append(role="tool", content="5 pets\nand a long report of them")
        assert work(memory).calls == 1
        assert embed.calls[2:] == [["5 pets"]], "of a tool's words the first line"
        assert memory.verify().problems == ()


def test_credentials_are_masked_before_they_leave() -> None:
    embed = Recorded()
    with Memory(":memory:", user="ada", embed=embed, learning=Learning(kinds=())) as memory:
        memory.chat("a").append(role="user", content=f"The key is {KEY}, keep it. " + "x" * 5_000)
        work(memory)
    assert KEY not in str(embed.texts)
    assert "[redacted" in embed.texts[0]
    assert len(embed.texts[0]) == LONGEST


def test_what_cannot_be_found_is_not_embedded() -> None:
    embed = Recorded()
    with Memory(":memory:", user="ada", embed=embed, learning=Learning(kinds=())) as memory:
        record = memory.remember("User has a dog")
        memory.replace(record.id, "User has a pet")
        memory.retract(memory.remember("User likes tea").id)
        work(memory)
    assert embed.texts == ["User has a pet"]


# What it costs


def test_a_failure_is_tried_again_and_moves_nothing(location: str, clock: Clock) -> None:
    failing = True

    def embed(texts: Sequence[str]) -> list[list[float]]:
        if failing and "Max: A dog, too?" in texts:
            raise ValueError("no")
        return meaning(texts)

    learning = Learning(kinds=(), texts=2)
    with Memory(location, user="ada", embed=embed, learning=learning, clock=clock) as memory:
        fill(memory)
        (job,) = work(memory).postponed
        assert (job.kind, job.reason) == ("embed", "error")
        (progress,) = memory.learning.embedding()
        assert (progress.done, progress.total) == (1, 4)
        failing = False
        clock.move(hours=1)
        assert work(memory).calls == 3  # of one text each, after a failure
        assert memory.learning.embedding()[0].done == 4


# Another embedder


def test_another_embedder_replaces_the_vectors_when_it_is_complete(opened: Opened) -> None:
    old = opened(meaning)
    fill(old)
    work(old)
    before = stored(old, "message")
    is_down = True

    def new(texts: Sequence[str]) -> list[list[float]]:
        if is_down and "qqq" in texts:
            raise TimeoutError
        return letters(texts)

    other = opened(new, texts=1)
    work(other)
    assert stored(old, "message") == before, "those of the old one serve until then"
    progress = {one.model.rpartition(".")[2]: one.done for one in old.learning.embedding()}
    assert progress == {"meaning": 4, "new": 3}
    is_down = False
    other.learning.retry_job(other.learning.jobs()[0].id)
    done = work(other)
    assert any("meaning were replaced" in note for note in done.notes)
    assert stored(old, "message") == {}
    (progress_of_new,) = other.learning.embedding()
    assert len(stored(other, "message", progress_of_new.model)) == 3


def test_an_embedder_that_changes_its_dimension_begins_anew(opened: Opened) -> None:
    size = 4

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] * size for _ in texts]

    memory = opened(embed)
    fill(memory)
    work(memory)
    size = 3
    memory.chat("a").append(role="user", content="More.")
    work(memory)
    (progress,) = memory.learning.embedding()
    assert (progress.dimension, progress.done) == (3, 5)
    assert {len(row) for row in stored(memory, "message", progress.model).values()} == {3}
    assert memory.verify().problems == ()


# Erasure


def test_vectors_are_erased_with_what_they_were_made_of(location: str) -> None:
    with Memory(location, user="ada", embed=meaning, learning=Learning(kinds=())) as memory:
        fill(memory)
        record = memory.remember("User has a dog")
        work(memory)
        receipt = memory.erase(chat="a", messages=2)
        assert receipt.counts["vectors"] == 1
        assert list(stored(memory, "message")) == [1]
        memory.erase(record=record.id)
        assert len(stored(memory, "record")) == 1
        memory.erase(chat="a")
        assert stored(memory, "message") == {}
        assert memory.verify().problems == ()
        memory.chat("b").append(role="user", content="More tea.")
        work(memory)
        assert len(stored(memory, "message")) == 1
        memory.scoped().erase(user="ada")
        assert [stored(memory, source) for source in SOURCES] == [{}, {}, {}]
        assert memory.learning.embedding() == []


def test_an_erasure_while_the_embedder_is_asked_leaves_no_vector(opened: Opened) -> None:
    other = opened()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        if "I like tea." in texts:
            other.erase(chat="a", messages=1)
        return meaning(texts)

    memory = opened(embed)
    fill(memory)
    work(memory)
    # What was asked meanwhile was dropped, and asked again without it.
    assert list(stored(memory, "message", memory.learning.embedding()[0].model)) == [2]
    assert memory.verify().problems == ()


def test_a_repair_a_backup_and_a_salvaged_file_keep_the_vectors(tmp_path: Path) -> None:
    file, backup, saved = (tmp_path / name for name in ("a.db", "b.db", "c.db"))
    with Memory(file, user="ada", embed=meaning, learning=Learning(kinds=())) as memory:
        fill(memory)
        work(memory)
        before = [stored(memory, source) for source in SOURCES]
        memory.verify(repair=True)
        assert [stored(memory, source) for source in SOURCES] == before
        memory.backup(backup)
    salvage(file, saved)
    for copy in (backup, saved):
        with Memory(copy, user="ada", embed=meaning, learning=Learning(kinds=())) as memory:
            assert [stored(memory, source) for source in SOURCES] == before
            assert memory.verify().problems == ()
            assert memory.learning.embedding()[0].done == 4


def test_damage_is_found(opened: Opened) -> None:
    memory = opened()
    fill(memory)
    work(memory)
    with memory._runtime.database.writing() as tx:
        space = memory.scope.space
        tx.all("UPDATE vectors SET number = 99 WHERE space = :space AND source = 'record'", space=space)
        tx.all("UPDATE vectors SET body = :body WHERE space = :space AND number = 2", space=space, body=b"x")
    assert memory.verify().problems == (
        "the vector of record 99 by meaning belongs to nothing that is there",
        "the vector of message 2 by meaning is not of the size of its set",
    )


def test_what_an_erasure_brings_back_gets_a_vector(location: str) -> None:
    with Memory(location, user="ada", embed=meaning, learning=Learning(kinds=())) as memory:
        memory.chat("a").append(role="user", content="It is a pet.")
        first = memory.remember("User has a dog")
        second = memory.remember("User runs a marathon")
        memory.replace(first.id, "User has a pet", chat="a", messages=1)
        work(memory)
        assert list(stored(memory, "record")) == [2, 3]
        memory.erase(chat="a", messages=1)
        work(memory)
        assert [record.version for record in memory.records()] == [1, second.version]
        assert list(stored(memory, "record")) == [1, 2]
        assert work(memory).noop


# Workers beside each other


@pytest.mark.parametrize("agents", [("", ""), ("x", "y")])
def test_two_workers_store_each_vector_once(opened: Opened, agents: tuple[str, str]) -> None:
    both, asked = Barrier(2), list[str]()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        if agents[0] and len(asked) <= 4:
            both.wait()  # those of two agents are asked the same at first
        return meaning(texts)

    workers = [opened(embed, texts=2).scoped(agent=agent) for agent in agents]
    for n in range(40):
        workers[0].chat("a").append(role="user", content=f"tea {n}")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, workers))
    (progress,) = workers[0].learning.embedding()
    assert list(stored(workers[0], "message", progress.model)) == list(range(1, 41))
    assert set(asked) == {f"tea {n}" for n in range(40)}
    assert len(asked) <= (44 if agents[0] else 40)
