from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.learn.projection import classify


@pytest.mark.parametrize(
    ("old", "new", "relation"),
    [
        ("User lives in Berlin", "user lives in berlin!", "duplicate"),
        # The known weakness: the only word that differs is unknown, so it does not count.
        ("User lives in Berlin", "User lives in Lisbon", "update"),
        ("The database is PostgreSQL 14", "The database is PostgreSQL 16", "update"),
        ("User lives in Berlin", "Quarterly revenue doubled", "new"),
        ("User lives in Berlin", "", "new"),
        ("", "User lives in Berlin", "new"),
    ],
)
def test_one_old_text(old: str, new: str, relation: str) -> None:
    assert classify(new, [old]).relation == relation


def test_nothing_is_stored() -> None:
    verdict = classify("User lives in Berlin", [])
    assert (verdict.relation, verdict.place) == ("new", None)


def test_the_nearest_one_decides() -> None:
    verdict = classify("cats like fish", ["dogs like bones", "cats like fish", "birds sing"])
    assert (verdict.relation, verdict.place) == ("duplicate", 1)


def test_between_the_thresholds_it_is_unsure() -> None:
    old = "alpha beta gamma delta epsilon zeta eta theta"
    assert classify("alpha beta gamma", [old]).relation == "unsure"


@pytest.mark.parametrize(("merge", "add"), [(0, 0.3), (-1, 5), (0.7, 0.9), (0.7, -1), (math.nan, math.nan)])
def test_senseless_thresholds_are_the_defaults(merge: float, add: float) -> None:
    for new in ("User lives in Lisbon", "Something else", "User lives in Berlin"):
        assert classify(new, ["User lives in Berlin"], merge=merge, add=add) == classify(
            new, ["User lives in Berlin"]
        )


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=5))
def test_it_never_raises_and_is_deterministic(text: str, existing: list[str]) -> None:
    assert classify(text, existing) == classify(text, existing)
