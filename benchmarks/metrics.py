"""How good a ranking is: pure functions of what was ranked, best first, and what should have been found."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean, median


def recall_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of what should have been found that is among the first `k`."""
    return len(set(ranked[:k]) & set(gold)) / len(set(gold))


def hit_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 when anything that should have been found is among the first `k`, else 0."""
    return float(not set(gold).isdisjoint(ranked[:k]))


def ndcg_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the discounted gain, 1/log2(rank + 1) for each find, over that of the ideal ranking."""
    wanted = set(gold)
    gain = sum(1 / math.log2(rank + 1) for rank, one in enumerate(ranked[:k], 1) if one in wanted)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 over the rank of the first find, 0 when there is none."""
    wanted = set(gold)
    return next((1 / rank for rank, one in enumerate(ranked, 1) if one in wanted), 0.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what one system answered to one question: keys, best first, with the CPU time that it took."""

    ranked: tuple[str, ...]
    gold: tuple[str, ...]
    cpu_ms: float


METRICS = ("R@5", "R@10", "R@20", "hit@10", "nDCG@10", "MRR", "ms/query")


def summarise(answers: Sequence[Answer]) -> dict[str, float]:
    """Average over questions, in percent, but for the CPU time of a query, of which it gives the median."""
    means = {
        "R@5": fmean(recall_at(one.ranked, one.gold, 5) for one in answers),
        "R@10": fmean(recall_at(one.ranked, one.gold, 10) for one in answers),
        "R@20": fmean(recall_at(one.ranked, one.gold, 20) for one in answers),
        "hit@10": fmean(hit_at(one.ranked, one.gold, 10) for one in answers),
        "nDCG@10": fmean(ndcg_at(one.ranked, one.gold, 10) for one in answers),
        "MRR": fmean(reciprocal_rank(one.ranked, one.gold) for one in answers),
    }
    percent = {name: round(100 * value, 2) for name, value in means.items()}
    return {**percent, "ms/query": round(median(one.cpu_ms for one in answers), 3)}
