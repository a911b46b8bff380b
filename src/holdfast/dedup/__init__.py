"""How a new text relates to known ones: `relate`. Whether a joined text keeps their values: `loses`, `adds`.

Texts are parsed and compared, and boosted trees fitted to labelled pairs decide: no model, no network. Other
rooms import nothing but what stands here.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.dedup.relation import Relation
from holdfast.dedup.statement import LONGEST

__all__ = ["LONGEST", "Relation", "adds", "loses", "relate"]


def relate(text: str, known: Sequence[str]) -> Relation:
    """Return how a text relates to the most relevant of the known ones; `merge.py` decides.

    >>> relate("The user has moved to Lisbon.", ["The user has a dog.", "The user lives in Berlin."]).kind
    'update'
    """
    # numpy and the tables are loaded by the first comparison.
    from holdfast.dedup import merge

    return merge.relate(text, known)


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
