"""What fits into the result of a ready-made tool, which has no cursor: the rest is counted, and asked for more narrowly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.text.tokens import estimate_tokens

CAP = 4_000  # tokens of a result, about: a target of facts that is full has 2,000
LEFT_OUT = "{} more are left out: ask more narrowly."
_AROUND = 20  # tokens of an item beside its text
Shown = TypeVar("Shown")


def shortened(text: str, cap: int) -> str:
    """Cut a text that takes more than so many tokens, and end it with an ellipsis then."""
    cut = text
    while (cost := estimate_tokens(cut)) > cap:
        cut = cut[: min(len(cut) - 1, len(cut) * cap // cost)]
    return cut if len(cut) == len(text) else f"{cut}…"


def fitting(items: Sequence[Shown], text: Callable[[Shown], str], cap: int) -> tuple[list[Shown], int]:
    """Take items while they fit so many tokens, the first in any case, and count those that are left."""
    taken: list[Shown] = []
    room = cap
    for item in items:
        room -= estimate_tokens(text(item)) + _AROUND
        if room < 0 and taken:
            break
        taken.append(item)
    return taken, len(items) - len(taken)
