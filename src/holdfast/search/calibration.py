"""Calibration: how likely a document answers a query, from its score and the best one of its source.

A score that ranks cannot be compared with that of another query, of another source or of other data: one word
of three found says little where the third is a name. Logistic regression makes of it the probability that it
is among the answers. It was fitted on half of the questions of conversations and coding sessions, and as many
that have no answer there; `python -m benchmarks calibration` fits it anew and reports how far it holds on the
other half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from holdfast.search.columns import Floats
    from holdfast.types import Source


class Calibration(NamedTuple):
    """Coefficients of the log odds: a constant, the log of the score, and that of the best score."""

    constant: float
    score: float
    best: float = 0.0

    def probabilities(self, scores: Floats, best: float) -> Floats:
        """Return the probabilities of scores from 0 to 1; they rise with the scores, and 0 stays 0."""
        found = scores > 0
        odds = np.exp(self.constant) * np.power(scores, self.score, where=found, out=np.zeros(len(scores)))
        if self.best:
            odds *= max(best, 1e-9) ** self.best
        likely: Floats = odds / (1 + odds)
        return likely


BY_WORDS: dict[Source, Calibration] = {
    "message": Calibration(1.87, 4.54, -2.69),
    "record": Calibration(2.36, 2.65),
    "summary": Calibration(2.12, 2.59),
}
"""Where words alone are compared."""

WITH_MEANING: dict[Source, Calibration] = {
    "message": Calibration(2.14, 4.38, -2.15),
    "record": Calibration(2.65, 3.11),
    "summary": Calibration(1.49, 2.39),
}
"""Where an embedder's vectors are compared as well."""
