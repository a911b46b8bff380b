"""How good a ranking is, and how sure that is: pure functions of what was ranked and what answers.

*hit* is whether anything that answers is among the first k (others call it recall_any@k, or recall), *all*
whether all of it is (recall_all@k), *R* the share of it that is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

KS = (1, 5, 10, 20)
METRICS = (
    *(f"{name}@{k}" for name in ("hit", "all", "R") for k in KS),
    "nDCG@10",
    "MRR",
    "outdated first",
)
RESAMPLES = 2_000
SEED = 17


def recall_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of what should have been found that is among the first `k`."""
    return len(set(ranked[:k]) & set(gold)) / len(set(gold))


def ndcg_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the discounted gain, 1/log2(rank + 1) for each find, over that of the ideal ranking."""
    wanted = set(gold)
    gain = sum(1 / math.log2(rank + 1) for rank, one in enumerate(ranked[:k], 1) if one in wanted)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))


def first_rank(ranked: Sequence[str], wanted: Collection[str]) -> float:
    """Return the rank of the first find, infinity when there is none."""
    return next((rank for rank, one in enumerate(ranked, 1) if one in wanted), math.inf)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one system answered to one question: ids, best first, with the CPU time that it took."""

    ranked: tuple[str, ...]
    gold: tuple[str, ...]
    cpu_ms: float
    outdated: tuple[str, ...] = ()


def values(answer: Answer) -> list[float]:
    """Return the metrics of an answer, in the order of `METRICS`, NaN for one that does not apply."""
    first = first_rank(answer.ranked, answer.gold)
    shares = [recall_at(answer.ranked, answer.gold, k) for k in KS]
    outdated = first_rank(answer.ranked, answer.outdated) < first if answer.outdated else math.nan
    return [
        *(float(share > 0) for share in shares),
        *(float(share == 1) for share in shares),
        *shares,
        ndcg_at(answer.ranked, answer.gold, 10),
        1 / first,
        outdated,
    ]


class Interval(NamedTuple):
    """A mean in percent, and the bounds of its 95 % interval."""

    mean: float
    low: float
    high: float


def intervals(rows: NDArray[np.float64]) -> dict[str, Interval]:
    """Return the means of rows of metrics, with intervals by bootstrap of the rows.

    Metrics that apply to no row are left out. Of differences between the rows of two systems, the intervals
    are those of paired differences.
    """
    found = {}
    for name, column in zip(METRICS, 100 * rows.T, strict=True):
        known = column[~np.isnan(column)]
        if len(known):
            low, high = np.percentile(_weights(len(known)) @ known, (2.5, 97.5))
            found[name] = Interval(*(round(float(value), 2) for value in (known.mean(), low, high)))
    return found


@lru_cache(maxsize=4)
def _weights(count: int) -> NDArray[np.float64]:
    """Draw with replacement, as the share that each row has of each resample."""
    draw = np.random.default_rng(SEED)
    return draw.multinomial(count, np.full(count, 1 / count), RESAMPLES) / count
