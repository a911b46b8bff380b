"""Relations of a new text to known ones (`relate`, `classify`), and values lost or added (`loses`, `adds`).

Texts are parsed and compared, and boosted trees fitted to labelled pairs decide: no model, no network. Other
rooms import only the names below.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.dedup.relation import SEVERAL, Comparison, Relation
from holdfast.dedup.statement import LONGEST
from holdfast.kinds import Thresholds

__all__ = ["LONGEST", "SEVERAL", "Comparison", "Relation", "adds", "classify", "loses", "relate"]

_DEFAULT = Thresholds()


def classify(old: str, new: str, thresholds: Thresholds = _DEFAULT) -> Comparison:
    """Return whether a new text repeats an old one, updates it, or says something different.

    A wrong update takes a fact out of use, so a doubtful text is "different"; `why` gives the reason.

    >>> classify("The flag is off", "The flag is on").kind
    'update'
    """
    from holdfast.dedup import merge

    return merge.classify(old, new, thresholds)


def relate(
    text: str,
    known: Sequence[str],
    thresholds: Thresholds = _DEFAULT,
    prominence: Sequence[float] = (),
) -> Relation:
    """Return how a text relates to the most relevant of the known ones; `merge.py` decides.

    `prominence` has, for each, the deviations by which its embedding is nearer to the text than most are.

    >>> relate("The user has moved to Lisbon.", ["The user has a dog.", "The user lives in Berlin."]).kind
    'update'
    """
    # numpy and the tables are loaded by the first comparison.
    from holdfast.dedup import merge

    return merge.relate(text, known, thresholds, prominence)


def loses(text: str, texts: Sequence[str]) -> bool:
    """Return whether a text lacks a name, number, date or identifier of others, or denies what they do not.

    True for a text that is too long to be parsed.
    """
    # The tables are loaded by the first comparison.
    from holdfast.dedup import value_preservation

    return value_preservation.loses(text, texts)


def adds(text: str, texts: Sequence[str]) -> bool:
    """Return whether a text has a value that no other one has.

    The word that begins a sentence does not count, as it may be no name.
    """
    # The tables are loaded by the first comparison.
    from holdfast.dedup import value_preservation

    return value_preservation.adds(text, texts)
