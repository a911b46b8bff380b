"""The decision how a new text relates to known ones: a duplicate, an update, unsure, or new.

Both texts are parsed (`parsed_text.py`) and compared (`features.py`). Boosted trees fitted to labelled pairs
(`scripts/fit_merge.py`) give the likelihood of each relation. A wrong update destroys a fact, so doubt stays
"unsure".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from holdfast.dedup.contrast import contrast
from holdfast.dedup.features import features
from holdfast.dedup.parsed_text import ParsedText, parse_text
from holdfast.dedup.relation import Relation
from holdfast.text.boosted_trees import Forest

CLASSES = ("duplicate", "new", "update")
# Likelihoods above which a relation is accepted. On authors whose pairs were not fitted, 0.9 % of pairs are
# then wrongly duplicates, and 0.7 % wrongly updates: fewer, as they take a text out of use.
_DUPLICATE, _UPDATE = 0.773, 0.765
# Likelihood of "not new" above which it is unsure.
_DOUBT = 0.4
# Known texts at most whose features are computed.
_COMPARED = 4
# Share of the highest likelihood of an update; a second one above it leaves a doubt.
_TIE = 0.93


_NEW = Relation("new", None, "nothing like it is stored")


def relate(text: str, known: Sequence[str]) -> Relation:
    """Return how a text relates to the known ones; see `holdfast.dedup.relate`."""
    new = parse_text(text)
    olds = [parse_text(other) for other in known]
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
    """Return the likeliest duplicate, else the likeliest update, else the greatest doubt."""
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


def _nearest(olds: Sequence[ParsedText], new: ParsedText) -> list[int]:
    """Return the indexes of the texts whose words are most like the new ones."""
    if not _is_comparable(new):
        return []
    short = [place for place, old in enumerate(olds) if _is_comparable(old)]
    if len(short) <= _COMPARED:
        return short
    alike = np.array([olds[place].direction for place in short]) @ new.direction
    shared = np.array([len(new.roots & olds[place].roots) for place in short])
    best = np.argsort(-(alike + shared / (1 + len(new.roots))), kind="stable")[:_COMPARED]
    return [short[place] for place in sorted(best.tolist())]


def _is_comparable(text: ParsedText) -> bool:
    """Return whether a text is short enough to be a fact, and has words of content."""
    return bool(text.content) and not text.statement.long


@cache
def _forest() -> Forest:
    return Forest.load("holdfast.dedup", "merge_forest.npz")
