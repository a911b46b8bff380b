"""The metrics, on examples that were worked out by hand, and their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.metrics import METRICS, Answer, first_rank, intervals, ndcg_at, recall_at, values

RANKED = ("a", "b", "c", "d", "e")


def test_recall_is_the_share_of_gold_among_the_first() -> None:
    assert recall_at(RANKED, ("b", "e", "x", "y"), 3) == 0.25
    assert recall_at(RANKED, ("b", "e", "x", "y"), 5) == 0.5
    assert recall_at((), ("b",), 5) == 0.0


def test_ndcg_is_held_against_all_of_the_gold() -> None:
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at(RANKED, ("a", "c", "x"), 10) == pytest.approx((1 + 1 / math.log2(4)) / ideal)
    assert ndcg_at(RANKED, ("a", "b", "c"), 10) == pytest.approx(1.0)
    assert ndcg_at(RANKED, ("b",), 10) == pytest.approx(1 / math.log2(3))


def test_ideal_ranking_has_no_more_places_than_are_looked_at() -> None:
    assert ndcg_at(RANKED, ("a", "b", "x"), 2) == pytest.approx(1.0)


def test_rank_is_that_of_the_first_find() -> None:
    assert first_rank(RANKED, ("c", "e")) == 3
    assert first_rank(RANKED, ("x",)) == math.inf


def test_any_all_and_the_share_are_told_apart() -> None:
    found = dict(zip(METRICS, values(Answer(RANKED, ("b", "x"), 1.0)), strict=True))
    assert (found["hit@1"], found["hit@5"], found["all@5"], found["R@5"]) == (0.0, 1.0, 0.0, 0.5)
    assert found["MRR"] == 0.5
    assert math.isnan(found["outdated first"])
    assert values(Answer(RANKED, ("b",), 1.0, ("a",)))[-1] == 1.0
    assert values(Answer(RANKED, ("b",), 1.0, ("c",)))[-1] == 0.0
    assert values(Answer(RANKED, ("x",), 1.0, ("y",)))[-1] == 0.0


def rows(*ranks: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the metrics of answers whose only gold has these ranks."""
    return np.array([values(Answer(("-",) * (rank - 1) + ("a",), ("a",), 1.0)) for rank in ranks])


def test_an_interval_is_around_the_mean_and_the_same_in_every_run() -> None:
    some = intervals(rows(*[1] * 30, *[2] * 70))
    assert some == intervals(rows(*[1] * 30, *[2] * 70))
    assert "outdated first" not in some
    mean, low, high = some["hit@1"]
    # The normal approximation of a share of 30 in 100 is 21.0 to 39.0.
    assert mean == 30.0
    assert 19 < low < 23
    assert 37 < high < 41
    assert some["hit@5"] == (100.0, 100.0, 100.0)


def test_paired_differences_are_surer_than_the_two_means() -> None:
    ours, theirs = rows(*[1] * 60, *[2] * 40), rows(*[1] * 50, *[2] * 50)
    apart = intervals(ours - theirs)["hit@1"]
    assert apart.mean == 10.0
    assert apart.low > 0
    assert apart.high - apart.low < 0.7 * (intervals(ours)["hit@1"].high - intervals(ours)["hit@1"].low)
