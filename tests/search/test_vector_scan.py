"""The scan finds the nearest, exactly where there are few and nearly so where there are many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.search.vectors import VectorMatrix
from tables import each


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)
    return found


def conversational(count: int, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Return vectors as embedders make them: of some topics, with a mean, and few strong directions."""
    random = np.random.default_rng(seed)
    scale = 1 / np.sqrt(1 + np.arange(dimension) / 16)
    topics = random.standard_normal((max(count // 20, 1), dimension)) * scale
    rows = topics[random.integers(0, len(topics), count)] + random.standard_normal((count, dimension)) * scale
    mixed = rows @ np.linalg.qr(random.standard_normal((dimension, dimension)))[0]
    return unit(mixed + 0.3 * np.abs(mixed).mean() * random.standard_normal(dimension))


def filled(rows: NDArray[np.float32]) -> VectorMatrix:
    matrix = VectorMatrix(rows.shape[1])
    matrix.put(np.arange(1, len(rows) + 1), rows)
    return matrix


@pytest.mark.slow
@given(
    count=st.integers(1, 60),
    dimension=st.integers(1, 130),
    seed=st.integers(0, 1000),
    wanted=st.integers(0, 70),
)
def test_of_few_the_nearest_are_exact(count: int, dimension: int, seed: int, wanted: int) -> None:
    rows = conversational(count, dimension, seed)
    query = conversational(1, dimension, seed + 1)[0]
    found = filled(rows).nearest(query, wanted)
    expected = np.sort(rows @ query)[::-1][:wanted]
    np.testing.assert_allclose(rows[found - 1] @ query, expected, atol=1e-4)


def test_an_empty_matrix_has_nothing_near() -> None:
    matrix = VectorMatrix(3)
    query = np.ones(3, np.float32)
    assert len(matrix.nearest(query, 5)) == 0
    assert np.isnan(matrix.scores(query, np.array([1, 2]))).all()
    assert len(matrix.sample(query)) == 0


@each("count", [3_000, 20_000])
def test_only_what_is_allowed_is_found(count: int) -> None:
    rows = conversational(count, 64)
    allowed = np.zeros(count + 1, bool)
    allowed[::7] = True
    allowed[0] = False
    query = conversational(1, 64, 1)[0]
    found = filled(rows).nearest(query, 20, allowed)
    assert allowed[found].all()
    scores = rows @ query
    scores[~allowed[1:]] = -1
    assert len(set(found) & set(np.argsort(-scores)[:20] + 1)) >= 19
    none = filled(rows).nearest(query, 20, np.zeros(count + 1, bool))
    assert len(none) == 0


@pytest.mark.slow
@each(("count", "dimension"), [(4_000, 384), (20_000, 100)])
def test_of_many_hardly_one_in_a_thousand_is_missed(count: int, dimension: int) -> None:
    rows = conversational(count, dimension)
    matrix = filled(rows)
    found = 0
    noise = np.random.default_rng(1).standard_normal((100, dimension)).astype(np.float32)
    queries = rows[:: count // 100][:100] + 0.02 * noise
    for query in unit(queries.astype(np.float64)):
        exact = set((np.argpartition(-(rows @ query), 10)[:10] + 1).tolist())
        found += len(exact & set(matrix.nearest(query, 10).tolist()))
    assert found >= 995
