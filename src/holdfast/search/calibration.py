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


class Calibration(NamedTuple):
    """Coefficients: the log odds of the best document are `constant + slope * ln(score)`.

    Those of the others fall off by `exp(-decay * sqrt(ln(best / score)))`: of two that are nearly as good the
    first is right far more often.
    """

    constant: float
    slope: float
    decay: float

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probabilities of scores above 0, best first."""
        if not len(scores):
            return scores
        odds = np.exp(self.constant) * scores[0] ** self.slope
        likely: Floats = odds / (1 + odds) * np.exp(-self.decay * np.sqrt(np.log(scores[0] / scores)))
        return likely

    def scores(self, likely: Floats) -> Floats:
        """Return the scores that have these probabilities, best first: the inverse of `probabilities`."""
        if not len(likely):
            return likely
        best = (likely[0] / (1 - likely[0]) / np.exp(self.constant)) ** (1 / self.slope)
        scores: Floats = best * np.exp(-((np.log(likely[0] / likely) / self.decay) ** 2))
        return scores


BY_WORDS: dict[Source, Calibration] = {
    "message": Calibration(3.09, 2.28, 3.20),
    "record": Calibration(2.81, 2.39, 3.40),
    "summary": Calibration(0.13, 2.03, 2.90),
}
"""Where words alone are compared."""

WITH_MEANING: dict[Source, Calibration] = {
    "message": Calibration(3.45, 2.98, 3.15),
    "record": Calibration(3.74, 3.57, 3.20),
    "summary": Calibration(-0.49, 1.87, 2.60),
}
"""Where an embedder's vectors are compared as well."""
