"""Fusion: meaning adds, and words are never taken away."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.fusion import fuse, standing_out

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(words=SCORES, seed=st.integers(0, 999), weight=st.floats(0, 0.5))
def test_no_score_falls(words: list[float], seed: int, weight: float) -> None:
    by_words = np.sort(np.array(words))[::-1]
    standing = 4 * np.random.default_rng(seed).standard_normal(len(words))
    fused = fuse(by_words, standing, 1_000, weight=weight)
    assert (fused.scores >= by_words[fused.order] - 1e-9).all()
    assert ((fused.scores > 0) & (fused.scores <= 1)).all()
    assert ((fused.meaning >= 0) & (fused.meaning <= 1)).all()
    assert (np.diff(fused.scores) <= 0).all()
    assert set(np.flatnonzero(by_words)) <= set(fused.order)


@given(words=SCORES)
def test_without_vectors_or_weight_words_decide(words: list[float]) -> None:
    by_words = np.sort(np.array(words))[::-1]
    expected = np.flatnonzero(by_words)
    for standing, weight in ((np.zeros(len(words)), 0.4), (np.full(len(words), 9.0), 0.0)):
        fused = fuse(by_words, standing, 100, weight=weight)
        np.testing.assert_array_equal(fused.order, expected)
        np.testing.assert_array_equal(fused.scores, by_words[expected])
        assert not fused.meaning.any()


def test_what_no_word_finds_must_stand_out_of_all() -> None:
    words, few, many = np.array([0.5, 0.0]), 10, 100_000
    standing = np.array([0.0, 3.5])
    assert fuse(words, standing, few).order.tolist() == [0, 1]
    assert fuse(words, standing, many).order.tolist() == [0]
    assert fuse(words, np.array([0.0, 8.0]), many).order.tolist() == [0, 1]


def test_what_words_and_meaning_find_comes_before_what_words_alone_find() -> None:
    fused = fuse(np.array([0.5, 0.45, 0.4]), np.array([0.0, 0.0, 5.0]), 1_000)
    assert fused.order.tolist() == [2, 0, 1]
    assert fused.meaning[1:].tolist() == [0, 0]


def test_all_alike_stand_out_by_nothing() -> None:
    same = np.full(50, 0.8)
    assert np.abs(standing_out(same, same)).max() < 1


def test_what_has_no_vector_stands_out_by_nothing() -> None:
    sample = np.random.default_rng(0).standard_normal(100) / 10
    assert standing_out(np.array([np.nan, 0.9]), sample).tolist()[0] == 0
    assert standing_out(np.array([0.9]), sample)[0] > 5


def test_one_alone_stands_out_if_it_is_near() -> None:
    assert standing_out(np.array([0.9]), np.array([0.9]))[0] > 3
    assert standing_out(np.array([0.1]), np.array([0.1]))[0] < 0
