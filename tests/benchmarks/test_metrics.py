"""The metrics, on examples that were worked out by hand."""

from __future__ import annotations

import math

import pytest

from benchmarks.metrics import METRICS, Answer, hit_at, ndcg_at, recall_at, reciprocal_rank, summarise

RANKED = ("a", "b", "c", "d", "e")


def test_recall_is_the_share_of_gold_among_the_first() -> None:
    assert recall_at(RANKED, ("b", "e", "x", "y"), 3) == 0.25
    assert recall_at(RANKED, ("b", "e", "x", "y"), 5) == 0.5
    assert recall_at((), ("b",), 5) == 0.0


def test_hit_is_whether_any_gold_is_among_the_first() -> None:
    assert hit_at(RANKED, ("c", "x"), 2) == 0.0
    assert hit_at(RANKED, ("c", "x"), 3) == 1.0


def test_ndcg_is_held_against_all_of_the_gold() -> None:
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at(RANKED, ("a", "c", "x"), 10) == pytest.approx((1 + 1 / math.log2(4)) / ideal)
    assert ndcg_at(RANKED, ("a", "b", "c"), 10) == pytest.approx(1.0)
    assert ndcg_at(RANKED, ("b",), 10) == pytest.approx(1 / math.log2(3))


def test_ideal_ranking_has_no_more_places_than_are_looked_at() -> None:
    assert ndcg_at(RANKED, ("a", "b", "x"), 2) == pytest.approx(1.0)


def test_reciprocal_rank_is_that_of_the_first_find() -> None:
    assert reciprocal_rank(RANKED, ("c", "e")) == pytest.approx(1 / 3)
    assert reciprocal_rank(RANKED, ("x",)) == 0.0


def test_summary_is_the_mean_over_questions_and_the_median_of_times() -> None:
    answers = [Answer(RANKED, ("a",), 1.0), Answer(RANKED, ("x",), 2.0), Answer(RANKED, ("b", "y"), 9.0)]
    summary = summarise(answers)
    assert tuple(summary) == METRICS
    assert summary["R@5"] == 50.0
    assert summary["hit@10"] == 66.67
    assert summary["MRR"] == 50.0
    assert summary["ms/query"] == 2.0
