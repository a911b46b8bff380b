from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.search import columns, index
from recall_corpora import QUERIES, Said, ask_all, conversations, forget, tell
from soak import cases

pytest_plugins = ["recall_fixtures"]

LONG = [
    Said(
        chat=f"chat{n * 7 % 5}",
        text=f"word{n % 13} berlin {'marathon ' * (n % 3)}東京タワー café{n % 4} ERR_{n % 6}",
        role="user" if n % 2 else "assistant",
        name=(None, "Ada", "Bob Stone")[n % 3],
        minutes=n * n,
    )
    for n in range(150)
]
LONG_QUERIES = (*QUERIES, "word7 marathon", "When did Ada run in Berlin in July 2022?", "ERR_3 タワー cafe2")


@pytest.mark.slow
def test_all_databases_give_the_same_hits_with_the_same_scores(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "FREEZE", 16)
    results = []
    for location in (":memory:", str(tmp_path / "memory.db"), postgres_url):
        with Memory(location, user="ada") as memory:
            for start in range(0, len(LONG), 20):
                tell(memory, LONG[start : start + 20])
                memory.recall("berlin")
            results.append(ask_all(memory, LONG_QUERIES))
    assert results[0] == results[1]
    assert results[0] == results[2]
    assert sum(map(len, results[0])) > 500


@pytest.mark.slow
def test_rebuild_gives_the_same_hits_with_the_same_scores(
    space: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "FREEZE", 16)
    for start in range(0, len(LONG), 9):
        tell(space, LONG[start : start + 9])
        space.recall("berlin")
    before = ask_all(space, LONG_QUERIES)
    assert space.verify(repair=True).checked["messages"] == len(LONG)
    assert ask_all(space, LONG_QUERIES) == before


def test_rebuild_of_an_empty_space_counts_nothing(space: Memory) -> None:
    assert space.verify(repair=True).checked["messages"] == 0


def test_rebuild_is_noticed_by_another_memory(shared_location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "FREEZE", 16)
    with Memory(shared_location, user="ada") as one, Memory(shared_location, user="ada") as two:
        tell(one, LONG)
        before = ask_all(two, LONG_QUERIES)
        one.verify(repair=True)
        tell(one, LONG[:20])
        after = ask_all(two, LONG_QUERIES)
        assert after == ask_all(one, LONG_QUERIES)
        assert after != before


def test_a_memory_that_loads_segments_answers_as_the_one_that_made_them(
    shared_location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "FREEZE", 16)
    with Memory(shared_location, user="ada") as one:
        tell(one, LONG)
        expected = ask_all(one, LONG_QUERIES)
    with Memory(shared_location, user="ada") as two:
        assert ask_all(two, LONG_QUERIES) == expected


def test_asking_twice_gives_the_same(space: Memory) -> None:
    tell(space, LONG)
    assert ask_all(space, LONG_QUERIES) == ask_all(space, LONG_QUERIES)


@pytest.mark.slow
@settings(max_examples=cases(15, 180))
@given(
    said=conversations(),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=20),
    actions=st.lists(st.sampled_from(["", "recall", "restart", "rebuild"]), min_size=1, max_size=20),
    freeze=st.integers(1, 12),
    largest=st.integers(1, 40),
    batch=st.integers(1, 12),
    block=st.integers(1, 9),
)
def test_results_do_not_depend_on_how_the_index_is_cut(
    spaces: Iterator[Memory],
    said: list[Said],
    sizes: list[int],
    actions: list[str],
    freeze: int,
    largest: int,
    batch: int,
    block: int,
) -> None:
    whole, cut = next(spaces), next(spaces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BLOCK", block)
        tell(whole, said)
        expected = ask_all(whole)
        patch.setattr(index, "FREEZE", freeze)
        patch.setattr(index, "LARGEST", largest)
        patch.setattr(index, "_BATCH", batch)
        start, step = 0, 0
        while start < len(said):
            size = sizes[step % len(sizes)]
            tell(cut, said[start : start + size])
            match actions[step % len(actions)]:
                case "recall":
                    cut.recall("berlin")
                case "restart":
                    forget(cut)
                case "rebuild":
                    cut.verify(repair=True)
            start, step = start + size, step + 1
        assert ask_all(cut) == expected
        forget(cut)
        assert ask_all(cut) == expected
        assert cut.verify().ok
