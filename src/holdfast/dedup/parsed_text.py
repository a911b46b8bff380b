"""A text parsed for comparison: its statement, its words with their vectors, its wordings of change."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.dedup.alignment import VALUES
from holdfast.dedup.change_phrases import Cues, find_cues
from holdfast.dedup.statement import ContentItem, Statement
from holdfast.dedup.statement_parser import parse_statement
from holdfast.text import analyze, vectors
from holdfast.text.fillers import foreign, stem
from holdfast.text.value_tokens import UNSPACED

# Scripts without spaces are read character by character.
_WORD = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]+|\d+(?:[.,:]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}[.]\d{3}")
# Words of grammar, not of content.
FUNCTION = frozenset(
    "a an the is are was were be been am has have had do does did of in on at to for with by from and or "
    "as that this it its their his her my our your i we they he she user s users not no n t will would "
    "can could should must than then so but if when who which there".split()
)
# It has a "now" that tells of no change.
_SOMETIMES = re.compile(r"\b[Nn]ow and (?:then|again)\b")
_DAYS = {
    "=weekend": frozenset({"weekday:5", "weekday:6"}),
    "=weekdays": frozenset({f"weekday:{day}" for day in range(5)}),
}
# Letters that two words of one family share: commuter, commute.
FAMILY = 5
# The weight of a number: more than that of any word.
_NUMBER = 1.2


@dataclass(frozen=True, slots=True, eq=False)
class ParsedText:
    """A text as a statement, as words with vectors, and as wordings of change."""

    text: str
    statement: Statement
    cues: Cues
    # All, in lower case, numbers as well.
    words: tuple[str, ...]
    # Of each word, unless it begins the text.
    capital: tuple[bool, ...]
    # Of the words of content among all.
    places: tuple[int, ...]
    content: tuple[str, ...]
    # Of the words of content.
    stems: tuple[str, ...]
    weights: NDArray[np.float32]
    # (words of content, dimensions); 0 for a number and an unknown word.
    vectors: NDArray[np.float32]
    # The unit vector of all words of content together; 0 for none.
    direction: NDArray[np.float32]
    # The words.
    known: frozenset[str]
    # The stems of the words of content.
    roots: frozenset[str]
    # Words of content that have no vector.
    unknown: tuple[int, ...]
    # The words of content, by their stem.
    by_root: dict[str, list[int]]
    # Those with enough letters, by their first letters.
    by_start: dict[str, list[int]]
    # All keys of each number and time.
    exact: tuple[frozenset[str], ...]

    def exact_alone(self, other: ParsedText) -> int:
        """Count the numbers and times that another text does not have."""
        known = frozenset().union(*other.exact)
        return sum(keys.isdisjoint(known) for keys in self.exact)

    def stems_of(self, span: slice) -> tuple[str, ...]:
        """Return the stems of some of the words."""
        return tuple(map(_table_stem, self.words[span]))

    def mean(self, chosen: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the unit vector of chosen words of content together; 0 for none."""
        return _direction(self.vectors[chosen], self.weights[chosen])


@lru_cache(maxsize=4096)
def parse_text(text: str) -> ParsedText:
    """Return a text parsed for comparison."""
    if "ow and " in text:
        text = _SOMETIMES.sub("sometimes", text)
    statement = parse_statement(text)
    found = _WORD.findall(text)
    words = tuple(word.lower() for word in found)
    empty = FUNCTION | foreign(words)
    places = [place for place, word in enumerate(words) if word not in empty]
    content = tuple(words[place] for place in places)
    stems = tuple(map(stem, content))
    table = vectors.table()
    rows = [None if word[0].isdigit() else vectors.row(word) for word in content]
    meant = np.zeros((len(content), table.vectors.shape[1]), np.float32)
    for place, row in enumerate(rows):
        if row is not None:
            meant[place] = table.vectors[row]
    weights = np.array(
        [_NUMBER if word[0].isdigit() else vectors.weight(word) for word in content], np.float32
    )
    return ParsedText(
        text,
        statement,
        find_cues(statement.words),
        words,
        tuple(place > 0 and word[0].isupper() for place, word in enumerate(found)),
        tuple(places),
        content,
        stems,
        weights,
        meant,
        _direction(meant, weights),
        frozenset(words),
        frozenset(stems),
        tuple(place for place, row in enumerate(rows) if row is None),
        _places(stems),
        _places(word[:FAMILY] if len(word) >= FAMILY else "" for word in content),
        tuple(_writings(item) for item in statement.items if item.kind in VALUES or item.keys & _DAYS.keys()),
    )


@lru_cache(maxsize=4096)
def _table_stem(word: str) -> str:
    """Return a word as the tables have it, without accents."""
    return stem(analyze.fold(word))


def _places(keys: Iterable[str]) -> dict[str, list[int]]:
    """Return the places of each key that is not empty."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        if key:
            places[key].append(place)
    return places


def _direction(meant: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    total = weights @ meant
    length = float(np.sqrt(total @ total))
    direction: NDArray[np.float32] = total / length if length else total
    return direction


def _writings(item: ContentItem) -> frozenset[str]:
    """Return all keys of a value: for the weekend those of its days, for 1.200 those of 1.2 and 1200."""
    if not _THOUSANDS.fullmatch(item.text):
        return item.keys.union(*(_DAYS.get(key, ()) for key in item.keys))
    short, whole = f"#{float(item.text):g}", "#" + item.text.replace(".", "")
    return item.keys | {key.replace(short, whole, 1) for key in item.keys}
