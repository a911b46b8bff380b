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
    monkeypatch.setattr(index, "WORTH_STORING", 16)
    results = []
    for location in (":memory:", str(tmp_path / "memory.db"), postgres_url):
        with Memory(location, user="ada") as memory:
            for start in range(0, len(LONG), 20):
                tell(memory, LONG[start : start + 20])
                memory.recall("berlin")
            results.append(ask_all(memory, LONG_QUERIES))
            assert memory.verify(repair=True).checked["messages"] == len(LONG)
            assert ask_all(memory, LONG_QUERIES) == results[-1]
    assert results[0] == results[1]
    assert results[0] == results[2]
    assert sum(map(len, results[0])) > 500


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
        patch.setattr(index, "WORTH_STORING", freeze)
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
