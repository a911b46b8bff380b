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
from holdfast.dedup.relation import Comparison, Relation
from holdfast.kinds import Thresholds
from holdfast.text.boosted_trees import Forest

CLASSES = ("duplicate", "new", "update")
# Known texts at most whose features are computed.
_COMPARED = 4
# Share of the highest likelihood of an update; a second one above it leaves a doubt.
_TIE = 0.93


# Of the classes, where the one value of a thing differs: on and off, the latest version, its floor. The
# fitted pairs have too few of these; all 100 among them are updates.
_PLAIN = (0.0, 0.05, 0.95)
_NEW = Relation("new", None, "nothing like it is stored")


def relate(text: str, known: Sequence[str], limits: Thresholds) -> Relation:
    """Return how a text relates to the known ones; see `holdfast.dedup.relate`."""
    new = parse_text(text)
    olds = [parse_text(other) for other in known]
    for place, old in enumerate(olds):
        if old.says_literally(new):
            return Relation("duplicate", place, "the same words")
    near = _nearest(olds, new)
    if not near:
        return _NEW
    return _decided(_judged([olds[place] for place in near], new), near, limits)


def classify(old: str, new: str, limits: Thresholds) -> Comparison:
    """Return how two texts relate; see `holdfast.dedup.classify`."""
    one, other = parse_text(old), parse_text(new)
    if one.says_literally(other):
        return Comparison("duplicate", "the same words", 1.0, 0.0)
    if not (_is_comparable(one) and _is_comparable(other)):
        return Comparison("different", "a text is too long or has no words of content", 0.0, 0.0)
    likely = _judged([one], other)
    relation = _decided(likely, [0], limits)
    kind = relation.kind if relation.kind in ("duplicate", "update") else "different"
    why = "neither the same nor another value" if relation.kind == "new" else relation.why
    return Comparison(kind, why, float(likely[0, 0]), float(likely[0, 2]))


def _judged(olds: Sequence[ParsedText], new: ParsedText) -> np.typing.NDArray[np.float32]:
    """Return the probability of each class for each known text, shape (texts, classes)."""
    examples = [features(old, new) for old in olds]
    likely = _forest().judge(examples)
    for row, old, example in zip(likely, olds, examples, strict=True):
        if example["plain value"]:
            row[:] = _PLAIN
        elif contrast(old, new) or (example["reordered"] and example["same words"] == 1):
            row[0] = 0.0
    return likely


def _decided(likely: np.typing.NDArray[np.float32], places: Sequence[int], limits: Thresholds) -> Relation:
    """Return the likeliest duplicate, else the likeliest update, else the greatest doubt."""
    same, new, changed = likely.T
    first = int(same.argmax())
    if same[first] > limits.duplicate:
        return Relation("duplicate", places[first], f"it says the same: {same[first]:.0%} sure")
    first = int(changed.argmax())
    if changed[first] > limits.update:
        if np.sum(changed > max(limits.update, _TIE * changed[first])) > 1:
            return Relation("unsure", places[first], "it may update one of several")
        return Relation("update", places[first], f"another value of the same: {changed[first]:.0%} sure")
    first = int(new.argmin())
    if 1 - new[first] > limits.doubt:
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
