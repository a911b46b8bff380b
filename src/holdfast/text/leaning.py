"""How much the words of a text lean towards an order to a model: weights fitted to labelled texts, which add up.

The rules of `orders` and `intents` know what they have seen. This knows less of each text, but of all of them: what it
adds up are the beginnings of the words, pairs of characters where words are not parted, and the roles of `intents`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from importlib import resources
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from holdfast.text import intents

LETTERS = 7  # of a word by which it is known
SURE = 2.2  # the sum from which on a text is an order
_SURE_ABROAD = 2.6  # of a text of another script or with accents, of which fewer words are known
_SURE_OF_PART = 4.0  # of a part of a long text, which has many parts that may lean by chance
_FEWEST = 4  # words to go by
_QUIET = (
    -6.0
)  # the sum of the words up to which a text needs no closer look: 1 in 110 orders that are found has less
_QUIET_SAID = (
    -4.0
)  # the same of what is only to be flagged: 1 in 15 orders has less, and 29 in 30 usual messages
_MARKUP = re.compile(
    r'<[|/!a-z]|\{\s?"|\[/?(?:inst|sys)|###|```|:\n|--|\|[a-z_]+\||@'
)  # an order may be in no words
_LONGEST = 600  # characters that are weighed together
_PART = 300
_WORD = re.compile(r"[^\W\d_]+(?:'t)?")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


class _Weights(NamedTuple):
    words: dict[str, float]
    roles: tuple[tuple[int, float], ...]  # by the bit of the role in a mask
    bias: float


def is_quiet(text: str, words: AbstractSet[str], *, closely: bool) -> bool:
    """Say whether a folded text in lower case, with these words, is so far from an order that no rule needs to read it. Cheap.

    Three of four usual messages are. Long texts and those with markup always need a look.
    """
    if len(text) > _LONGEST or _MARKUP.search(text):
        return False
    weights = _weights()
    found = weights.words.keys() & {word[:LETTERS] for word in words}
    if len(found) < _FEWEST:
        return False
    total = sum([weights.words[word] for word in found])
    return 4 * total / sqrt(len(found)) + weights.bias < (_QUIET if closely else _QUIET_SAID)


def find_leaning(text: str, mask: int) -> Iterator[tuple[int, int]]:
    """Find the parts of a folded text in lower case that lean towards an order; the mask is `intents.known`."""
    weights = _weights()
    sure = _SURE_OF_PART if len(text) > _LONGEST else SURE if text.isascii() else _SURE_ABROAD
    for start, end in _parts(text):
        found = words_of(text[start:end]) & weights.words.keys()
        if len(found) < _FEWEST:
            continue
        total = sum([weights.words[word] for word in found])
        count = len(found)
        for bit, weight in weights.roles if len(text) <= _LONGEST else _roles_in(text[start:end]):
            if mask & bit:
                total += weight
                count += 1
        if 4 * total / sqrt(max(4, count)) + weights.bias > sure:
            yield start, end


def _roles_in(part: str) -> Iterator[tuple[int, float]]:
    """Give the weights of the roles that a part of a text may fill."""
    mask = intents.known_of(part)
    return (pair for pair in _weights().roles if mask & pair[0])


def words_of(text: str) -> set[str]:
    """Give what is weighed of the words of a text."""
    words = {word[:LETTERS] for word in _WORD.findall(text)}
    if not text.isascii():
        for run in _UNSPACED.findall(text):
            words.update(map("".join, pairwise(run)))
    return words


def roles_of(text: str) -> set[str]:
    """Give the roles of `intents` that the words of a text may fill."""
    mask = intents.known_of(text)
    return {f"#{name}" for name, bit in intents.names().items() if mask & bit}


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Cut a long text at the ends of its sentences."""
    if len(text) <= _LONGEST:
        yield 0, len(text)
        return
    start = 0
    for _, end in intents.sentences(text):
        if end - start >= _PART or end == len(text):
            yield start, end
            start = end


@cache
def _weights() -> _Weights:
    """Read the weights: on each line one, and what has it; "#" before a role, "=" for every text."""
    table: dict[str, float] = {}
    lines = (resources.files("holdfast.text") / "order_weights.txt").read_text("utf-8").splitlines()
    for line in lines:
        if line.startswith("# "):
            continue
        weight, *names = line.split()
        table.update(dict.fromkeys(names, float(weight)))
    bias = table.pop("=")
    bits = intents.names()
    roles = tuple((bits[name[1:]], weight) for name, weight in table.items() if name[0] == "#")
    words = {name: weight for name, weight in table.items() if name[0] != "#"}
    return _Weights(words, roles, bias)
