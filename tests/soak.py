"""How much is tried: in every run the same few cases, in a soak many random ones."""

from __future__ import annotations

import os

SEED = os.environ.get("HOLDFAST_SOAK")
"""What the random cases of `make soak` are made from; None in every other run."""


def cases(few: int, many: int) -> int:
    """Return how many cases to try: few, or many in a soak."""
    return few if SEED is None else many
