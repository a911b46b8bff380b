"""Classification of a new text against known ones: a duplicate, an update, unsure, or new.

Both texts are parsed (`parsed_text.py`) and compared (`features.py`). Boosted trees fitted to labelled pairs
(`scripts/fit_merge.py`) give the likelihood of each relation. A wrong update destroys a fact, so doubt stays
"unsure".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from holdfast.dedup.features import features
from holdfast.dedup.parsed_text import ParsedText, parse_text
from holdfast.dedup.relation import SEVERAL, Comparison, Relation
from holdfast.dedup.repetition import repeats, says_literally
from holdfast.kinds import Thresholds
from holdfast.text.boosted_trees import Forest

_Likely = NDArray[np.float32]
CLASSES = ("duplicate", "new", "update")
# Known texts at most whose features are computed.
_COMPARED = 4
# Share of the highest likelihood of an update; a second one above it leaves a doubt.
_TIE = 0.95


# Likelihoods of the classes where the only value of a thing differs: on and off, the latest version, its
# floor. The fitted pairs have too few of these; all 100 among them are updates.
_PLAIN = (0.0, 0.05, 0.95)
# Features that exclude an update: two things with a number each, past facts, one of several things, two
# denials.
_NO_UPDATE = ("two numbered", "both past", "slot of some", "slot of denial")
# Deviations by which an embedding stands out a little, and altogether: chance hardly gives the first.
_STANDS_OUT = (3.0, 5.0)
# A reason at the end of a text.
_REASON = re.compile(r",?\s(?:because|weil|parce que|porque)\s[^.;!?]*(?=[.;!?]?\s*\Z)", re.IGNORECASE)
# Weight of an update in other words, relative to an update in the only place where two texts differ: 0.83
# counts as 0.765.
_IN_OTHER_WORDS = 0.92
_NEW = Relation("new", None, "nothing like it is stored")


def relate(text: str, known: Sequence[str], limits: Thresholds, prominence: Sequence[float] = ()) -> Relation:
    """Return how a text relates to the known ones; see `holdfast.dedup.relate`."""
    relation = _relate(text, known, limits, prominence)
    if relation.kind in ("duplicate", "update"):
        return relation
    # The same choice may be made again for another reason, or for none.
    bare, *others = (_REASON.sub("", whole) for whole in (text, *known))
    if (bare, *others) == (text, *known):
        return relation
    again = _relate(bare, others, limits, prominence)
    return again if again.kind == "update" else relation


def _relate(text: str, known: Sequence[str], limits: Thresholds, prominence: Sequence[float]) -> Relation:
    new = parse_text(text)
    olds = [parse_text(other) for other in known]
    for place, old in enumerate(olds):
        if says_literally(old, new):
            return Relation("duplicate", place, "the same words")
    near = _nearest(olds, new)
    for place in near:
        if repeats(olds[place], new):
            return Relation("duplicate", place, "it says the same")
    if not near:
        return _NEW
    likely = _likelihoods([olds[place] for place in near], new)
    if any(prominence):
        # A text of a near meaning is not new, but may give another value: nearness alone leaves a doubt.
        likely[:, 1] *= 1 - np.interp([prominence[place] for place in near], _STANDS_OUT, (0, 1))
    return _decide(likely, near, limits)


def classify(old: str, new: str, limits: Thresholds) -> Comparison:
    """Return how two texts relate; see `holdfast.dedup.classify`."""
    older, newer = parse_text(old), parse_text(new)
    if says_literally(older, newer):
        return Comparison("duplicate", "the same words", 1.0, 0.0)
    if not (_is_comparable(older) and _is_comparable(newer)):
        return Comparison("different", "a text is too long or has no words of content", 0.0, 0.0)
    if repeats(older, newer):
        return Comparison("duplicate", "it says the same", 1.0, 0.0)
    likely = _likelihoods([older], newer)
    relation = _decide(likely, [0], limits)
    why = "neither the same nor another value" if relation.kind == "new" else relation.why
    return Comparison(
        "update" if relation.kind == "update" else "different", why, float(likely[0, 0]), float(likely[0, 2])
    )


def _likelihoods(olds: Sequence[ParsedText], new: ParsedText) -> _Likely:
    """Return the probability of each class for each known text, shape (texts, classes)."""
    examples = [features(old, new) for old in olds]
    likely = _forest().judge(examples)
    for row, example in zip(likely, examples, strict=True):
        if example["plain value"]:
            row[:] = _PLAIN
        elif any(example[name] for name in _NO_UPDATE):
            row[2] = 0.0
        elif not example["slot"]:
            row[2] *= _IN_OTHER_WORDS
    return likely


def _decide(likely: _Likely, places: Sequence[int], limits: Thresholds) -> Relation:
    """Choose the likeliest update, else the greatest doubt."""
    same, new, changed = likely.T
    first = int(changed.argmax())
    if changed[first] > limits.update:
        if np.sum(changed > max(limits.update, _TIE * changed[first])) > 1:
            return Relation("unsure", places[first], SEVERAL)
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
    best = sorted(short, key=lambda place: -_count_common(olds[place], new))[:_COMPARED]
    return sorted(best)


def _count_common(old: ParsedText, new: ParsedText) -> int:
    """Count the words and the meanings that two texts share."""
    return len(old.roots & new.roots) + len(old.statement.keys & new.statement.keys)


def _is_comparable(text: ParsedText) -> bool:
    """Return whether a text is short enough to be a fact, and has words of content."""
    return bool(text.content) and not text.statement.long


@cache
def _forest() -> Forest:
    return Forest.load("holdfast.dedup", "merge_forest.npz")
