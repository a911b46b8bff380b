"""How a new text relates to known ones. Other rooms import only this module.

Both texts are parsed and compared, and boosted trees that were fitted to labelled pairs decide. No model and no network.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.dedup.relation import Relation

__all__ = ["Relation", "relate"]


def relate(text: str, known: Sequence[str]) -> Relation:
    """Return how a text relates to the known ones: to the most relevant of them.

    >>> relate("The user has moved to Lisbon.", ["The user has a dog.", "The user lives in Berlin."]).kind
    'update'
    """
    # numpy and the tables are loaded by the first comparison.
    from holdfast.dedup import merge

    return merge.relate(text, known)
