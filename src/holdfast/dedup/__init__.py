"""The relation of a new text to known ones: `relate`. Nothing else of this room decides for other rooms.

Both texts are parsed and compared, and boosted trees fitted to labelled pairs decide: no model, no network.
Learning also uses `value_preservation`, which checks joined texts, and the tokens of `value_tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.dedup.relation import Relation

__all__ = ["Relation", "relate"]


def relate(text: str, known: Sequence[str]) -> Relation:
    """Return how a text relates to the most relevant of the known ones.

    >>> relate("The user has moved to Lisbon.", ["The user has a dog.", "The user lives in Berlin."]).kind
    'update'
    """
    # numpy and the tables are loaded by the first comparison.
    from holdfast.dedup import merge

    return merge.relate(text, known)
