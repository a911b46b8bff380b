"""Calibration: how likely a document answers a query, from its score and the best one of its source.

A score that ranks cannot be compared with that of another query, of another source or of other data: one word
of three found says little where the third is a name. Logistic regression makes of it the probability that the
document is among the answers. It was fitted on half of the questions about conversations and coding sessions,
and as many that have no answer there; `python -m benchmarks calibration` fits it anew, and measures how far
it holds on the other half. A summary that has the answer counts a quarter: it has to be found in there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from holdfast.search.columns import Floats
    from holdfast.types import Source


_MOST_AHEAD = 3.0


class Calibration(NamedTuple):
    """Coefficients: the log odds of the best document are `constant + slope * ln(score) + lead * ln(ahead)`.

    The probabilities of the others fall off by `exp(-decay * sqrt(ln(best / score)))`: of two that are nearly
    as good the first is right far more often.
    """

    constant: float
    slope: float
    decay: float
    lead: float = 0.0

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probabilities of scores above 0, best first."""
        if not len(scores):
            return scores
        odds = np.exp(self.constant) * scores[0] ** self.slope * ahead(scores) ** self.lead
        likely: Floats = odds / (1 + odds) * np.exp(-self.decay * np.sqrt(np.log(scores[0] / scores)))
        return likely

    def scores(self, likely: Floats) -> Floats:
        """Return the scores that have these probabilities, best first: the inverse of `probabilities`."""
        if not len(likely):
            return likely
        shares = np.exp(-((np.log(likely[0] / likely) / self.decay) ** 2))
        odds = likely[0] / (1 - likely[0]) / np.exp(self.constant) / ahead(shares) ** self.lead
        best: Floats = shares * odds ** (1 / self.slope)
        return best


def ahead(scores: Floats) -> float:
    """Return how many times the best score is the next one; 3 at most, and where there is none."""
    return min(float(scores[0] / scores[1]), _MOST_AHEAD) if len(scores) > 1 else _MOST_AHEAD


BY_WORDS: dict[Source, Calibration] = {
    "message": Calibration(3.15, 2.50, 3.30, 1.92),
    "record": Calibration(3.35, 2.63, 3.30, 1.65),
    "summary": Calibration(-0.43, 1.82, 2.85, 0.74),
}
"""Where words alone are compared."""

WITH_MEANING: dict[Source, Calibration] = {
    "message": Calibration(4.89, 4.02, 3.50, 0.82),
    "record": Calibration(6.01, 4.65, 3.30, 0.32),
    "summary": Calibration(-0.49, 1.87, 2.60),
}
"""Where an embedder's vectors are compared as well."""
