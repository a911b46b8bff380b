"""Injection scores of a text: sums of weights that were fitted to labelled texts.

There are four readings of a text: its words; its phrases, which are pairs of words that follow each other;
the roles (see `injection_roles`) that its words fill, and the pairs of those; and its letters, which are runs
of a few characters. The words have a table of their own and score every message; the others are looked up by
a hash, and only for texts whose words do not score low.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import combinations, pairwise
from math import inf, sqrt
from typing import NamedTuple
from zlib import crc32

from holdfast.safety.injection_roles import Sentence, roles
from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import load_arrays, table_lines

LETTERS = 7  # of a word by which it is known
BUCKETS = 1 << 16  # of the readings that are hashed
_SHORTEST = 10  # characters of an order in ASCII
_LOW = -1.1  # a text that scores less is harmless: 1 in 200 detected orders does
_LOW_FOREIGN = -2.0  # the same of a text with accents or of another script, of which fewer words are known
_LOW_MESSAGE = -0.3  # the same of a text that is only to be flagged: 1 in 50 orders scores less
_LOW_OF_THREE = 0.8  # the same by the sum of three readings: 1 in 200 orders scores less
_RUNS = (3, 4, 5)  # lengths of the runs of letters
_UNSPACED = late_pattern("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


class InjectionWeights(NamedTuple):
    """The weights of words and of the buckets of hashed readings, and the bias of each reading."""

    words: Mapping[str, float]
    buckets: Mapping[str, Sequence[float]]
    biases: Mapping[str, float]


def score_of_words(text: str, words: AbstractSet[str], *, closely: bool) -> float:
    """Return the score of a folded text in lower case by its words alone; -inf for a harmless one. Cheap."""
    is_ascii = text.isascii()
    if is_ascii and len(text) < _SHORTEST:
        return -inf
    table, bias = _words()
    known = {word[:LETTERS] for word in words}
    if not is_ascii:
        known |= _pairs_of_characters(text)
    sum_of_words = _scale([table[word] for word in known if word in table], bias)
    low = _LOW_MESSAGE if not closely else _LOW if is_ascii else _LOW_FOREIGN
    return -inf if sum_of_words < low else sum_of_words


def scores_low(sentences: Sequence[Sentence]) -> bool:
    """Return whether words, phrases and roles of a text score low. A third of the time of all features."""
    table = weights()
    total = word_score(set().union(*map(words, sentences)), table)
    for reading in ("phrases", "roles"):
        total += bucket_score(
            reading, set().union(*(buckets(reading, sentence) for sentence in sentences)), table
        )
    return total < _LOW_OF_THREE


def word_score(words: Iterable[str], weights: InjectionWeights) -> float:
    """Return the score of the words of a text, or of a sentence."""
    table = weights.words
    return _scale([table[word] for word in words if word in table], weights.biases["words"])


def bucket_score(reading: str, buckets: Iterable[int], weights: InjectionWeights) -> float:
    """Return the score of one of the hashed `READINGS` of a text, or of a sentence."""
    table = weights.buckets[reading]
    return _scale([table[bucket] for bucket in buckets], weights.biases[reading])


def _scale(parts: list[float], bias: float) -> float:
    """Return the sum of weights, scaled for the length of the text."""
    return 4 * sum(parts) / sqrt(max(4, len(parts))) + bias


def words(sentence: Sentence) -> set[str]:
    """Return the starts of the words, and pairs of characters in scripts without spaces."""
    starts = {word[:LETTERS] for word in sentence.words}
    return starts if sentence.text.isascii() else starts | _pairs_of_characters(sentence.text)


def _pairs_of_characters(text: str) -> set[str]:
    return {pair for run in _UNSPACED.findall(text) for pair in map("".join, pairwise(run))}


def _phrases(sentence: Sentence) -> Iterator[str]:
    """Yield the words, those at the beginning, and the pairs next to each other or one apart."""
    words = sentence.words
    yield from words
    yield from (f"^{' '.join(words[:count])}" for count in (1, 2))
    yield from (f"{first} {second}" for first, second in pairwise(words))
    yield from (f"{first[:5]}_{second[:5]}" for first, second in zip(words, words[2:], strict=False))


def _letters(sentence: Sentence) -> Iterator[str]:
    text = f" {' '.join(sentence.words)} "
    for length in _RUNS:
        yield from (text[at : at + length] for at in range(len(text) - length + 1))
    for run in () if text.isascii() else _UNSPACED.findall(text):
        yield from (run[at : at + length] for length in (1, 2, 3) for at in range(len(run) - length + 1))


def _roles(sentence: Sentence) -> Iterator[str]:
    """Yield the roles, the pairs that follow each other, and the pairs in the sentence."""
    in_turn = [roles(mark.bits) for mark in sentence.marks]
    known = sorted({role for roles_of_mark in in_turn for role in roles_of_mark})
    yield from known
    for before, after in pairwise(in_turn):
        yield from (f"{first}>{second}" for first in before for second in after)
    yield from (f"{first}&{second}" for first, second in combinations(known, 2))


_Reading = Callable[[Sentence], Iterable[str]]
READINGS: dict[str, _Reading] = {"phrases": _phrases, "roles": _roles, "letters": _letters}


def buckets(reading: str, sentence: Sentence) -> set[int]:
    """Return the hashed features of a sentence in one of the `READINGS`."""
    return {crc32(feature.encode()) % BUCKETS for feature in set(READINGS[reading](sentence))}


@cache
def _words() -> tuple[dict[str, float], float]:
    """Return the weights of the words and their bias: a line has a weight and its words; "=" is the bias."""
    table: dict[str, float] = {}
    for line in table_lines("holdfast.safety", "order_weights.txt"):
        weight, *names = line.split()
        table.update(dict.fromkeys(names, float(weight)))
    return table, table.pop("=")


@cache
def weights() -> InjectionWeights:
    """Return all weights."""
    words, bias = _words()
    packed = load_arrays("holdfast.safety", "order_weights.npz")
    # A view, since a text looks up few of them.
    buckets = {reading: memoryview(packed[reading] * packed["scale"]) for reading in READINGS}
    biases = dict(zip(READINGS, packed["biases"].tolist(), strict=True))
    return InjectionWeights(words, buckets, biases | {"words": bias})
