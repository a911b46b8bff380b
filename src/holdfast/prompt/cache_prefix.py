"""The part of a prompt that a provider has cached: up to the first difference from an earlier prompt."""

from __future__ import annotations

Fingerprint = tuple[tuple[int, int], ...]
"""The hash and the tokens of each part of a prompt, in order: the system text, then the messages."""


def unchanged(before: Fingerprint, now: Fingerprint) -> int:
    """Count the tokens of the parts that both begin with."""
    tokens = 0
    for one, other in zip(before, now, strict=False):
        if one != other:
            break
        tokens += one[1]
    return tokens
