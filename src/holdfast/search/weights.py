"""The weights of the signals that make up a score; `docs/decisions.md` says how each was found."""

from __future__ import annotations

import math
from typing import NamedTuple


class RankWeights(NamedTuple):
    """The weights of the signals, 0 or more; `k1` and `b` are BM25's saturation and length norm."""

    k1: float = 0.9
    b: float = 0.75
    # The share of the best passage of a message in the score of its own words.
    passage: float = 0.5
    # The share of the message with its neighbours, against the message alone, and the words at which a
    # message has half of it: a long one says itself what it is about.
    context: float = 0.7
    context_words: float = 60.0
    # How much the previous and the next message count in it, and those two places away.
    before: float = 0.5
    after: float = 0.25
    two_before: float = 0.3
    two_after: float = 0.15
    session: float = 0.6
    session_k1: float = 1.5
    session_b: float = 0.5
    speaker: float = 0.5
    name_as_word: float = 0.25
    time: float = 0.3
    date: float = 0.5
    # What the last message of several of an assistant in a turn counts more.
    conclusion: float = 0.2
    # What a word counts in output, against one that is said.
    output: float = 0.2
    # What the synonyms of a word count, all together, against that word.
    related: float = 0.5
    # The number of words of a query up to which they do: in longer queries they count for less.
    short: int = 6
    # How much worse a later message of a chat may be than an earlier one that it stands for.
    later: float = 0.1
    # The number of words at which a message counts half: "Thanks!" answers nothing.
    substance: float = 2.0


WEIGHTS = RankWeights()


def inverse_frequency(count: int, having: int) -> float:
    """Return the rarity of a term: ln(1 + (n - df + ½) / (df + ½)), never negative (Lucene)."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))
