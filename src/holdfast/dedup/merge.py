"""How a new text relates to those that are stored: a duplicate, an update, unsure, or new. No model is asked, no network.

Both texts are read (`reading.py`) and laid side by side (`features.py`); trees that were fitted to labelled pairs say how
likely each relation is (`scripts/fit_merge.py`). A wrong update destroys, so doubt is said to be doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from holdfast.dedup.contrast import contrast
from holdfast.dedup.features import features
from holdfast.dedup.parsed_text import Reading, read
from holdfast.dedup.relation import Relation
from holdfast.text.boosted_trees import Forest

CLASSES = ("duplicate", "new", "update")
# From here on it is believed. Over authors of whom nothing was fitted, 0.9 % of all pairs are then wrongly duplicates, and
# 0.7 % wrongly updates, since those take a text out of use.
_DUPLICATE, _UPDATE = 0.773, 0.765
_DOUBT = 0.4  # that it is not new
_COMPARED = 4  # texts at most that are laid beside a new one
_TIE = 0.93  # of the likelihood of the likeliest update; as likely a second one leaves a doubt


_NEW = Relation("new", None, "nothing like it is stored")


def relate(text: str, known: Sequence[str]) -> Relation:
    """Return how a text relates to the known ones; see `holdfast.dedup.relate`."""
    new = read(text)
    olds = [read(other) for other in known]
    for place, old in enumerate(olds):
        if old.says_literally(new):
            return Relation("duplicate", place, "the same words")
    near = _nearest(olds, new)
    if not near:
        return _NEW
    likely = _forest().judge([features(olds[place], new) for place in near])
    for row, place in zip(likely, near, strict=True):
        if contrast(olds[place], new):
            row[0] = 0.0
    return _decided(likely, near)


def _decided(likely: np.typing.NDArray[np.float32], places: Sequence[int]) -> Relation:
    """Take the surest duplicate, else the surest update, else the greatest doubt."""
    same, new, changed = likely.T
    first = int(same.argmax())
    if same[first] > _DUPLICATE:
        return Relation("duplicate", places[first], f"it says the same: {same[first]:.0%} sure")
    first = int(changed.argmax())
    if changed[first] > _UPDATE:
        if np.sum(changed > max(_UPDATE, _TIE * changed[first])) > 1:
            return Relation("unsure", places[first], "it may update one of several")
        return Relation("update", places[first], f"another value of the same: {changed[first]:.0%} sure")
    first = int(new.argmin())
    if 1 - new[first] > _DOUBT:
        what = "say the same" if same[first] > changed[first] else "replace it"
        return Relation("unsure", places[first], f"it may {what}")
    return _NEW


def _nearest(olds: Sequence[Reading], new: Reading) -> list[int]:
    """Choose the texts that are worth a closer look: those whose words are most like the new ones."""
    if not _is_comparable(new):
        return []
    short = [place for place, old in enumerate(olds) if _is_comparable(old)]
    if len(short) <= _COMPARED:
        return short
    alike = np.array([olds[place].direction for place in short]) @ new.direction
    shared = np.array([len(new.roots & olds[place].roots) for place in short])
    best = np.argsort(-(alike + shared / (1 + len(new.roots))), kind="stable")[:_COMPARED]
    return [short[place] for place in sorted(best.tolist())]


def _is_comparable(text: Reading) -> bool:
    """Say whether a text is short enough to be a fact, and says something."""
    return bool(text.content) and not text.statement.long


@cache
def _forest() -> Forest:
    return Forest.load("holdfast.dedup", "merge_forest.npz")
