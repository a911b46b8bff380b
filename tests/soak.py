"""How much is tried: in every run the same few cases, in a soak many random ones."""

from __future__ import annotations

import os
from random import Random

SEED = os.environ.get("HOLDFAST_SOAK")
"""What the random cases of `make soak` are made from; None in every other run."""


def cases(few: int, many: int) -> int:
    """Return how many cases to try: few, or many in a soak."""
    return few if SEED is None else many


def seeds(few: int, many: int) -> list[int]:
    """Return the first few numbers as seeds, or many random ones in a soak: in each process the same."""
    return list(range(few)) if SEED is None else [Random(f"{SEED} {n}").getrandbits(32) for n in range(many)]
