"""The words of a part of an index, and those of them that a misspelt word may stand for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.text.synonyms import is_known

# Letters of a word that may be misspelt, and of one in which two letters may be wrong; at most.
SHORTEST, TWO_WRONG, LONGEST = 5, 8, 30
_BITS = np.array([byte.bit_count() for byte in range(256)], np.uint8)


def words_of(plain: Iterable[str]) -> set[str]:
    """Return the words among plain tokens that may be looked up by their letters."""
    return {word for word in set(plain) if SHORTEST <= len(word) <= LONGEST and word.isalpha()}


def may_be_slip(word: str) -> bool:
    """Return whether a word of a query, which no text has, may be misspelt: letters, and unknown."""
    return SHORTEST <= len(word) <= LONGEST and word.isalpha() and not is_known(word)


class Vocabulary:
    """Distinct words in order; their lengths and letters are arrays, made when they are first needed."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def near(self, word: str) -> list[tuple[int, str]]:
        """Return the words that one may be a slip for, each with the number of wrong letters.

        One letter may be wrong, two in a longer word: missing, too many, another one, or two exchanged. The
        first is right, and so is the last of a short word, which else may be another form. Compares lengths
        and letters with all words of its first letter at once, and letter by letter with the few left.
        """
        most, first = 1 + (len(word) >= TWO_WRONG), bisect_left(self.words, word[0])
        some = slice(first, bisect_left(self.words, chr(ord(word[0]) + 1)))
        near = np.abs(self._lengths[some] - len(word)) <= most
        differing = (self._letters[some] ^ np.uint32(_mask(word))).view(np.uint8).reshape(-1, 4)
        near &= _BITS.take(differing).sum(axis=1) <= 2 * most
        found = []
        for place in np.flatnonzero(near).tolist():
            other = self.words[first + place]
            if len(word) >= TWO_WRONG or other[-1] == word[-1]:
                slips = count_slips(word, other, most)
                if 0 < slips <= most:
                    found.append((slips, other))
        return found

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        return np.fromiter(map(len, self.words), np.int64, len(self.words))

    @cached_property
    def _letters(self) -> NDArray[np.uint32]:
        return np.fromiter(map(_mask, self.words), np.uint32, len(self.words))


def _mask(word: str) -> int:
    mask = 0
    for letter in word:
        mask |= 1 << (ord(letter) & 31)
    return mask


def count_slips(word: str, other: str, most: int) -> int:
    """Return the number of wrong letters between two words, or more than `most`.

    Damerau's distance with each letter changed once (optimal string alignment).

    >>> count_slips("siobahn", "siobhan", 1), count_slips("cat", "dog", 1)
    (1, 2)
    """
    if word == other:
        return 0
    if not most:
        return 1
    same = 0
    while same < min(len(word), len(other)) and word[same] == other[same]:
        same += 1
    word, other = word[same:], other[same:]
    ways = [(word[1:], other), (word, other[1:]), (word[1:], other[1:])]
    if word[:2] == other[1::-1] and len(word) > 1:
        ways.append((word[2:], other[2:]))
    return 1 + min(
        (count_slips(one, two, most - 1) for one, two in ways if abs(len(one) - len(two)) < most),
        default=most,
    )
