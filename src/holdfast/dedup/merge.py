"""The decision how a new text relates to known ones: a duplicate, an update, unsure, or new.

Both texts are parsed (`parsed_text.py`) and compared (`features.py`). Boosted trees fitted to labelled pairs
(`scripts/fit_merge.py`) give the likelihood of each relation, others that of an update where one value is
exchanged (`slots.py`). A wrong update destroys a fact, so doubt stays "unsure".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from holdfast.dedup.aligned_pair import is_weak
from holdfast.dedup.alignment import difference
from holdfast.dedup.features import Features, features
from holdfast.dedup.parsed_text import ParsedText, parse_text
from holdfast.dedup.relation import Comparison, Relation
from holdfast.dedup.writing import has_exchanged_roles, is_written_alike
from holdfast.kinds import Thresholds
from holdfast.text.boosted_trees import Forest

_Likely = NDArray[np.float32]
CLASSES = ("duplicate", "new", "update")
# Known texts at most whose features are computed.
_COMPARED = 4
# Share of the highest likelihood of an update; a second one above it leaves a doubt.
_TIE = 0.93


# Of the classes, where the one value of a thing differs: on and off, the latest version, its floor. The
# fitted pairs have too few of these; all 100 among them are updates.
_PLAIN = (0.0, 0.05, 0.95)
# The second forest is asked below these likelihoods of a duplicate and of something new. What it finds less
# likely an update than the last of these is none.
_SAME_AT_MOST, _NEW_AT_MOST, _VALUE_AT_LEAST = 0.3, 0.99, 0.3
# Deviations by which an embedding stands out a little, and altogether: chance hardly gives the first.
_STANDS_OUT = (3.0, 5.0)
# A reason at the end of a text.
_REASON = re.compile(r",?\s(?:because|weil|parce que|porque)\s[^.;!?]*(?=[.;!?]?\s*\Z)", re.IGNORECASE)
# How much an update counts that is told in other words, of those that stand in the one place where two texts
# differ: 0.85 of them is as sure as 0.765 of these.
_IN_OTHER_WORDS = 0.9
_DENIALS = frozenset(
    "not no never none nobody nothing neither nor without cannot t nicht nie niemals kein keine keinen "
    "keinem keiner keines ohne pas jamais sans nunca jamás sin niet nooit geen zonder non mai senza não "
    "nem sem".split()
)
# What comes and goes with a denial: he always eats meat, he does not eat any meat.
_BESIDE = frozenset(
    "any ever always every all at longer more anymore either even yet still already don doesn didn isn "
    "aren wasn weren won ne".split()
)
# Words without content that tell one statement from another: persons beside the user, times, places.
_TELLING = frozenset(
    "he she you your before after during since until till over under above below off out up down "
    "vor nach seit bis über unter antes después desde hasta avant après depuis prima dopo da fino voor na "
    "sinds tot depois até".split()
)
_NEW = Relation("new", None, "nothing like it is stored")


def relate(text: str, known: Sequence[str], limits: Thresholds, standing: Sequence[float] = ()) -> Relation:
    """Return how a text relates to the known ones; see `holdfast.dedup.relate`."""
    found = _related(text, known, limits, standing)
    if found.kind in ("duplicate", "update"):
        return found
    # What was chosen for one reason may be chosen anew for another, or for none.
    bare, *others = (_REASON.sub("", one) for one in (text, *known))
    if (bare, *others) == (text, *known):
        return found
    again = _related(bare, others, limits, standing)
    return again if again.kind == "update" else found


def _related(text: str, known: Sequence[str], limits: Thresholds, standing: Sequence[float]) -> Relation:
    new = parse_text(text)
    olds = [parse_text(other) for other in known]
    for place, old in enumerate(olds):
        if _says_literally(old, new) or (_has_same_words(old, new) and _may_repeat(old, new)):
            return Relation("duplicate", place, "the same words")
    near = _nearest(olds, new)
    if not near:
        return _NEW
    likely = _judged([olds[place] for place in near], new)
    if any(standing):
        # What means much the same is no news, but may be another value: nearness alone leaves a doubt.
        likely[:, 1] *= 1 - np.interp([standing[place] for place in near], _STANDS_OUT, (0, 1))
    return _decided(likely, near, limits)


def classify(old: str, new: str, limits: Thresholds) -> Comparison:
    """Return how two texts relate; see `holdfast.dedup.classify`."""
    one, other = parse_text(old), parse_text(new)
    if _says_literally(one, other) or (_has_same_words(one, other) and _may_repeat(one, other)):
        return Comparison("duplicate", "the same words", 1.0, 0.0)
    if not (_is_comparable(one) and _is_comparable(other)):
        return Comparison("different", "a text is too long or has no words of content", 0.0, 0.0)
    likely = _judged([one], other)
    relation = _decided(likely, [0], limits)
    kind = relation.kind if relation.kind in ("duplicate", "update") else "different"
    why = "neither the same nor another value" if relation.kind == "new" else relation.why
    return Comparison(kind, why, float(likely[0, 0]), float(likely[0, 2]))


def _judged(olds: Sequence[ParsedText], new: ParsedText) -> _Likely:
    """Return the probability of each class for each known text, shape (texts, classes)."""
    examples = [features(old, new) for old in olds]
    likely = _forest("merge_forest.npz").judge(examples)
    for row, old, example in zip(likely, olds, examples, strict=True):
        if row[0] > _SAME_AT_MOST and not _may_repeat(old, new):
            row[0] = 0.0
        if example["plain value"]:
            row[:] = _PLAIN
        elif example["both past"] or (example["slot"] and example["slot of some"]):
            row[2] = 0.0
    _weigh_values(likely, examples)
    for row, example in zip(likely, examples, strict=True):
        if not example["slot"]:
            row[2] *= 0.0 if example["two numbered"] else _IN_OTHER_WORDS
    return likely


def _may_repeat(old: ParsedText, new: ParsedText) -> bool:
    """Return whether each text covers all that the other one says, as it is written there.

    However likely it is that they say the same: what was not fitted has other words. Of content each item has
    to be the same word or a listed paraphrase; those that say little beside names and values are passed over.
    """
    parts = difference(old.statement, new.statement)
    return (
        all(item.light or is_weak(item) for item in (*parts.old, *parts.new))
        and ("change" in old.statement.traits) == ("change" in new.statement.traits)
        and _TELLING & old.known == _TELLING & new.known
        and not _is_denial(old, new)
        and is_written_alike(old.text, new.text)
        and not has_exchanged_roles(old.text, new.text)
    )


def _is_denial(old: ParsedText, new: ParsedText) -> bool:
    """Return whether one of two texts denies what the other says in the same words."""
    if sum(word in _DENIALS for word in (*old.words, *new.words)) % 2 == 0:
        return False
    one, other = (
        {root for word, root in zip(text.content, text.stems, strict=True) if word not in _DENIALS | _BESIDE}
        for text in (old, new)
    )
    return one == other


def _says_literally(old: ParsedText, new: ParsedText) -> bool:
    """Return whether two texts have the same words, whatever their usual case and punctuation."""
    one, other = old.statement, new.statement
    same = one.plain == other.plain and one.long == other.long
    return same and (old.text == new.text or is_written_alike(old.text, new.text))


def _has_same_words(old: ParsedText, new: ParsedText) -> bool:
    """Return whether two texts have the same words, in whatever order."""
    one, other = old.statement, new.statement
    return bool(one.items) and not one.long and sorted(one.plain) == sorted(other.plain)


def _weigh_values(likely: _Likely, examples: Sequence[Features]) -> None:
    """Change the likelihood of an update where two texts differ in one place.

    A forest of its own, fitted to such pairs, finds more of them and costs no duplicates.
    """
    places = [
        place
        for place, (row, example) in enumerate(zip(likely, examples, strict=True))
        if row[0] < _SAME_AT_MOST
        and row[1] < _NEW_AT_MOST
        and (example["one exchanged"] or (example["slot"] and row[2] > _VALUE_AT_LEAST))
    ]
    if not places:
        return
    values = _forest("slot_forest.npz").judge([examples[place] for place in places])[:, 2]
    for place, value in zip(places, values.tolist(), strict=True):
        row = likely[place]
        if value < _VALUE_AT_LEAST:
            row[2] = min(row[2], value)
        elif examples[place]["one exchanged"]:
            row[2] = max(row[2], value)


def _decided(likely: _Likely, places: Sequence[int], limits: Thresholds) -> Relation:
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
def _forest(name: str) -> Forest:
    return Forest.load("holdfast.dedup", name)
