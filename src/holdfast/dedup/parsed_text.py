"""A text parsed for comparison: its statement, its words, its wordings of change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from holdfast.dedup.change_phrases import Cues, find_cues
from holdfast.dedup.statement import Statement
from holdfast.dedup.statement_parser import parse_statement
from holdfast.text.fillers import foreign, stem
from holdfast.text.value_tokens import UNSPACED

# Scripts without spaces are read character by character.
_WORD = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]+|\d+(?:[.,:]\d+)*")
# Words of grammar, not of content.
FUNCTION = frozenset(
    "a an the is are was were be been am has have had do does did of in on at to for with by from and or "
    "as that this it its their his her my our your i we they he she user s users not no n t will would "
    "can could should must than then so but if when who which there".split()
)
# Its "now" marks no change.
_SOMETIMES = re.compile(r"\b[Nn]ow and (?:then|again)\b")
# Letters that two words of one family share: commuter, commute.
FAMILY = 5


@dataclass(frozen=True, slots=True, eq=False)
class ParsedText:
    """A text as a statement, as words, and as wordings of change."""

    text: str
    statement: Statement
    cues: Cues
    # All words in lower case, and numbers.
    words: tuple[str, ...]
    # Whether each word, but the first of the text, has a capital.
    capital: tuple[bool, ...]
    # The indexes of the words of content among all words.
    places: tuple[int, ...]
    content: tuple[str, ...]
    # The stems of the words of content.
    stems: tuple[str, ...]
    # The distinct words.
    known: frozenset[str]
    # The distinct stems.
    roots: frozenset[str]
    # The first letters of the longer words of content.
    families: frozenset[str]


@lru_cache(maxsize=4096)
def parse_text(text: str) -> ParsedText:
    """Return a text parsed for comparison."""
    if "ow and " in text:
        text = _SOMETIMES.sub("sometimes", text)
    statement = parse_statement(text)
    matches = _WORD.findall(text)
    words = tuple(word.lower() for word in matches)
    empty = FUNCTION | foreign(words)
    places = [place for place, word in enumerate(words) if word not in empty]
    content = tuple(words[place] for place in places)
    stems = tuple(map(stem, content))
    return ParsedText(
        text,
        statement,
        find_cues(statement.words),
        words,
        tuple(place > 0 and word[0].isupper() for place, word in enumerate(matches)),
        tuple(places),
        content,
        stems,
        frozenset(words),
        frozenset(stems),
        frozenset(word[:FAMILY] for word in content if len(word) >= FAMILY),
    )
