"""A record moves between any two kinds of space that its user may write, and an undo takes both back."""

from __future__ import annotations

from itertools import permutations

import pytest

from every_space import fill_every_space, told
from holdfast import Memory

# Each reference with the parts of a scope of the same space, for the user who may write to all of them.
PLACES = {
    "user": {},
    "project:shop": {"project": "shop"},
    "project:50%25 %2Foff": {"project": "50% /off"},
    "team:core": {"team": "core"},
    "team:a%2Fb": {"team": "a/b"},
}


@pytest.fixture
def ada(app: Memory) -> Memory:
    fill_every_space(app)
    for place in ("team:core", "team:a%2Fb", "tenant", "user:a%2Fb%25"):
        app.grants.add(place, to="user:ada", rights="write")
    return app.scoped(user="ada")


def test_it_is_there_and_then_back(app: Memory, ada: Memory) -> None:
    pairs = [*permutations(PLACES, 2), *((place, "tenant") for place in PLACES)]
    for here, there in [*pairs, *((place, "user:a%2Fb%25") for place in PLACES)]:
        source = ada.scoped(**PLACES[here])
        record = source.remember(f"Goes from {here} to {there}.", by="user")
        before = told(source)["records"]
        moved = source.grants.move(record.id, there, by="user")
        assert (moved.space, moved.text) == (there, record.text)
        assert record.id not in dict(told(source)["records"])
        source.undo(by="user")
        assert told(source)["records"] == before
    for parts in PLACES.values():
        assert ada.scoped(**parts).verify().ok
    for name in ("", "a/b%"):
        assert app.scoped(user=name).verify().ok
