from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import InvalidInput, Kind, Memory
from holdfast.dedup import classify, relate
from holdfast.kinds import Thresholds
from tables import each

PAIRS = [
    ("The beta flag is off", "The beta flag is on", "update"),
    ("2.3 is the latest version", "2.4 is the latest version", "update"),
    ("The office is on the 3rd floor", "The office is on the 5th floor", "update"),
    ("User uses vim", "User uses emacs", "update"),
    ("The build is green", "The build is green.", "duplicate"),
    ("User lives in Berlin", "The user resides in Berlin", "duplicate"),
    ("Ana uses vim", "Bob uses emacs", "different"),
    ("User has a cat", "User has a dog", "different"),
    ("User speaks French", "User speaks Dutch", "different"),
    ("", "User lives in Berlin", "different"),
]


@each(("old", "new", "kind"), PAIRS)
def test_two_texts_are_classified(old: str, new: str, kind: str) -> None:
    found = classify(old, new)
    assert found.kind == kind
    assert found.why
    assert 0 <= found.duplicate <= 1 >= found.update >= 0


def test_thresholds_decide_how_sure_it_must_be() -> None:
    old, new = "User lives in Berlin", "User lives in Lisbon"
    sure = classify(old, new).update
    assert classify(old, new, Thresholds(update=sure + 0.001)).kind == "different"
    assert classify(old, new, Thresholds(update=sure - 0.001)).kind == "update"
    assert relate(new, [old], Thresholds(update=1)).kind == "unsure"
    assert relate(new, [old], Thresholds(update=1, doubt=1)).kind == "new"


FACTS = [text for old, new, _ in PAIRS for text in (old, new)]


@given(st.sampled_from(FACTS), st.lists(st.sampled_from(FACTS), min_size=1, max_size=6), st.data())
def test_what_is_near_in_meaning_is_at_most_left_in_doubt(
    text: str, known: list[str], data: st.DataObject
) -> None:
    alone = relate(text, known)
    numbers = st.lists(st.floats(-10, 10), min_size=len(known), max_size=len(known))
    near = relate(text, known, prominence=data.draw(numbers))
    assert near == alone or (near.kind == "unsure" and alone.kind in ("new", "unsure"))
    assert relate(text, known, prominence=[2.9] * len(known)) == alone


def test_what_stands_out_in_meaning_is_not_simply_new() -> None:
    old, new = "User supports Borussia Dortmund", "User is a BVB fan"
    assert relate(new, [old], prominence=[0.5]).kind == "new"
    assert relate(new, [old], prominence=[6.0]).kind == "unsure"


@pytest.mark.slow
@given(st.text(max_size=60), st.text(max_size=60))
def test_what_is_in_doubt_is_different(old: str, new: str) -> None:
    kind = relate(new, [old]).kind
    assert classify(old, new).kind == (kind if kind in ("duplicate", "update") else "different")


@each("value", [-0.1, 1.1, True, "0.5", None])
def test_a_threshold_is_a_probability(value: float) -> None:
    with pytest.raises(InvalidInput, match="`update` is"):
        Thresholds(update=value)


def test_the_thresholds_of_a_kind_decide(location: str) -> None:
    kinds = [
        Kind("home", merge=True),
        Kind("strict", merge=True, thresholds=Thresholds(update=1)),
    ]
    with Memory(location, user="ada", kinds=kinds) as memory:
        for kind in ("home", "strict"):
            memory.remember("User lives in Berlin", kind)
            memory.remember("User lives in Lisbon", kind)
        assert [one.text for one in memory.records(kind="home")] == ["User lives in Lisbon"]
        assert len(memory.records(kind="strict")) == 2


def test_the_thresholds_of_a_kind_are_thresholds() -> None:
    with pytest.raises(InvalidInput, match="`thresholds` is"):
        Kind("home", thresholds=0.5)  # type: ignore[arg-type]
