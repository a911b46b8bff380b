"""What one recall over several spaces finds in each of them: the same as without the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Memory
from recall_corpora import QUERIES, Said, conversations, tell
from soak import cases

PLACES = ("project:shop", "user", "team:core")


@pytest.fixture(scope="module")
def tenants() -> Iterator[Iterator[Memory]]:
    with Memory(":memory:") as memory:
        yield (memory.scoped(tenant=f"tenant{n}") for n in count())


def reader(app: Memory, told: dict[str, Sequence[Said]]) -> Memory:
    """Store what was said in some spaces, and return a handle that reads all of them."""
    app.grants.add("team:core", to="user:ada", rights="write")
    ada = app.scoped(user="ada")
    written = {
        "project:shop": ada.scoped(project="shop"),
        "user": ada,
        "team:core": ada.scoped(team="core"),
    }
    for place, said in told.items():
        tell(written[place], said)
    return ada.scoped(project="shop", reads=["team:core"])


def found(memory: Memory, place: str, limit: int = 1_000) -> list[object]:
    return [
        (hit.space, hit.chat, hit.seq, hit.text, hit.score, dict(hit.why), hit.why.words)
        for query in QUERIES
        for hit in memory.recall(query, limit=limit)
        if hit.space == place
    ]


@pytest.mark.slow
@settings(max_examples=cases(10, 75))
@given(told=st.fixed_dictionaries(dict.fromkeys(PLACES, conversations(12))))
def test_each_space_gives_the_hits_scores_and_reasons_that_it_gives_alone(
    told: dict[str, list[Said]], tenants: Iterator[Memory]
) -> None:
    together = reader(next(tenants), dict(told))
    for place, said in told.items():
        assert found(together, place) == found(reader(next(tenants), {place: said}), place)


def test_spaces_together_on_each_database(app: Memory) -> None:
    told = {place: [Said("a", f"{place} has a piano in the garden in berlin")] * 3 for place in PLACES}
    memory = reader(app, dict(told))
    hits = memory.recall("the piano in berlin")
    assert {hit.space for hit in hits} == set(PLACES)
    assert all(hit.text.startswith(hit.space) for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
