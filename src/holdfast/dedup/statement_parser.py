"""The parser of statements: from tokens to items of content with their possible meanings.

Words without content are dropped, wordings become concepts, values typed keys. An item knows whether it
stands before the verb, or is negated.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from holdfast.dedup import lexicon
from holdfast.dedup.lexicon import Meaning
from holdfast.dedup.statement import LONGEST, ContentItem, Statement
from holdfast.text import analyze
from holdfast.text.fillers import fillers, foreign, stem, weak_words
from holdfast.text.value_tokens import ValueToken, tokenize

# Tokens, at most, of a text to parse; longer texts are compared for equality only.
_MAX_TOKENS = 300
_BE = frozenset(
    "is are was were be been am has have had will can does do should must may ist sind war hat es est "
    "sont son è é são heeft".split()
)
_ADVERBS = frozenset("now also currently been just recently still already his her my their".split())
_NOTHING: tuple[None, dict[str, Any]] = (None, {})
_NO_LONGER = {("no", "longer"), ("any", "more"), ("nicht", "mehr"), ("ya", "no"), ("non", "piu")}
_BEFORE_NOUNS = frozenset("the a 's of my their and in for with".split())
_BEFORE_PARTICIPLES = _BE | {"the", "a", "an"}


def parse_statement(text: str) -> Statement:
    """Return the statement of a text."""
    tokens = tokenize(text) if len(text) <= LONGEST else []
    if len(text) > LONGEST or len(tokens) > _MAX_TOKENS:
        return Statement(tuple(analyze.fold(text).split()), long=True)
    reader = _Reader(tokens, [*(token.key for token in tokens), ""])
    items = tuple(_merge_items(reader.read_items()))
    keys = frozenset(
        key
        for item in items
        if not item.light
        for key in (*item.keys, *(c for c in item.classes if c.endswith("!")))
    )
    plain = tuple(token.key for token in tokens if token.kind != "mark" or token.key in "$€£%°≥≤<>&")
    return Statement(plain, items, frozenset(reader.traits), keys=keys, words=tuple(reader.keys[:-1]))


def _merge_items(items: list[ContentItem]) -> list[ContentItem]:
    """Drop repeated items, and join the characters of unknown words of unspaced scripts."""
    distinct: list[ContentItem] = []
    for item in items:
        last = distinct[-1] if distinct else None
        if last and item.kind == last.kind == "cjk" and item.place == last.place + len(last.text):
            distinct[-1] = replace(last, text=last.text + item.text, keys=frozenset({last.text + item.text}))
        elif not any(item.keys == other.keys and item.negated == other.negated for other in distinct):
            distinct.append(item)
    return distinct


@dataclass(slots=True)
class _Reader:
    tokens: list[ValueToken]
    # The keys of the tokens and an empty one, which also precedes the first token (index -1).
    keys: list[str]
    traits: set[str] = field(default_factory=set)
    _items: list[ContentItem] = field(default_factory=list)
    _negate: bool = False
    # Where the first verb stands.
    _verb: int = -1
    _clause: int = 0
    _empty: frozenset[str] = frozenset()
    _stems: list[str] = field(default_factory=list)

    def read_items(self) -> list[ContentItem]:
        """Return the items of the tokens, and collect the traits of the statement."""
        kinds, keys = fillers(), self.keys[:-1]
        self._empty = kinds["empty"] | kinds["cjk"] | foreign(keys)
        self._stems = [*map(stem, keys), ""]
        pairs = set(pairwise(keys))
        if not (kinds["now"] - {"no"}).isdisjoint(keys) or pairs & _NO_LONGER or {"ne", "plus"} <= set(keys):
            self.traits.add("change")
        if any(_is_past(word, before) for before, word in pairs):
            self.traits.add("event")
        place = 0
        while place < len(self.tokens):
            token = self.tokens[place]
            meaning, length = self._wording(place)
            if token.key == "used" and self.keys[place + 1] == "to":
                self.traits.add("past")
            elif token.kind == "mark":
                self._mark(token.key, place)
            elif (
                meaning is None
                or ("light" in meaning.flags and self._is_quoted(place))
                or (length == 1 and token.key in kinds["stop"])
            ):
                self._word(token, place)
            else:
                self._concept(meaning, place, length)
            place += length
        keyed = "keyed" in self.traits
        return [
            replace(item, subject=True) if item.place < self._verb and (keyed or not item.clause) else item
            for item in self._items
        ]

    def _is_quoted(self, place: int) -> bool:
        """Return whether one word alone stands in quotes: the table "users" is not about the user."""
        return all(key and key in '"“”„«»' for key in (self.keys[place - 1], self.keys[place + 1]))

    def _wording(self, place: int) -> tuple[Meaning | None, int]:
        """Return the meaning of the longest wording that begins at a place, and how many tokens it takes."""
        token = self.tokens[place]
        # A number word may begin a name: first language.
        counted = token.kind == "number" and token.text.isalpha()
        is_word = counted or token.kind in ("word", "cjk", "id")
        meaning, followed = lexicon.openings().get(self._stems[place], _NOTHING) if is_word else _NOTHING
        longest, length, end = 1, 1, place + 1
        while followed and end < len(self.tokens):
            for phrase, other in followed.get(self._stems[end], ()):
                if len(phrase) > longest and (fitting := self._fits(phrase, place)):
                    meaning, longest, length = other, len(phrase), fitting
            if self.keys[end] not in _ADVERBS:
                break
            end += 1
        if longest == 1 and (counted or token.key in self._empty):
            return None, 1
        return meaning, length

    def _fits(self, phrase: tuple[str, ...], place: int) -> int:
        """Return how many tokens a wording takes here, adverbs included; 0 where it does not fit."""
        end = place
        for word in phrase[1:]:
            end += 1
            while self.keys[end] in _ADVERBS and self.keys[end] != word:
                end += 1
            if self._stems[end] != word:
                return 0
        return end + 1 - place

    def _mark(self, key: str, place: int) -> None:
        if key in ":=→" and self._verb < 0 and self._items:
            self._verb = place
            if key != "→" and len(self._items) <= 4:
                self.traits.add("keyed")
        if key in ",.;!?:()、。→":
            self._clause += 1
            self._negate = self._negate and key == ","
        if key == "→":
            self.traits.add("change")

    def _concept(self, meaning: Meaning, place: int, length: int) -> None:
        flags, words = meaning.flags, self.keys[place : place + length]
        self.traits |= flags & {"change", "plan"}
        if self._verb < 0 and (self._items or place):
            last = self._items[-1] if self._items else None
            named = last is not None and last.kind in ("name", "first") and last.place == place - 1
            is_form = last is not None and not _BE.isdisjoint(words)
            if is_form or flags & {"verb", "change"} or (named and words[0].endswith("s")):
                self._verb = place
        negated = self._negate != ("not" in flags)
        if self._negate and "light" not in flags:
            self._negate = False
        elif self._negate and self.keys[place + length] in ("", ".") and self._items:
            # As in: X is not set.
            self._items[-1] = replace(self._items[-1], negated=not self._items[-1].negated)
            self._negate = False
        self._add(place, "concept", meaning, negated=negated, length=length)

    def _add(self, place: int, kind: str, meaning: Meaning, *, negated: bool, length: int = 1) -> None:
        self._items.append(
            ContentItem(
                meaning.keys,
                kind,
                self.tokens[place].text,
                self.tokens[place].unit,
                meaning.flags,
                meaning.classes,
                meaning.senses,
                place,
                length,
                negated=negated,
                clause=self._clause,
                before=self.keys[place - 1],
            )
        )

    def _word(self, token: ValueToken, place: int) -> None:
        kind, key = token.kind, token.key
        if kind in ("word", "cjk"):
            if self._is_function_word(key, place):
                return
            kind = _word_kind(token) if kind == "word" else kind
            key = stem(key)
            if kind == "word" and self._verb < 0 and self._items and self._looks_like_verb(place):
                self._verb = place
            if self._negate and key in weak_words():
                # As in: stop adding X. It is X that is denied.
                return
        self._add(place, kind, Meaning(frozenset({key})), negated=self._negate)
        self._negate = False

    def _is_function_word(self, key: str, place: int) -> bool:
        """Return whether a word has no content of its own, and keep its effect on others."""
        kinds = fillers()
        if key in _BE and self._verb < 0 and self._items:
            self._verb = place
        if key == "longer" and self.keys[place - 1] == "no":
            return True
        if key in kinds["condition"]:
            self._clause += key == "because"
            self.traits |= {"change"} if key == "after" and not place else set()
            return True
        if key == "without" and self._undo_denial():
            return True
        if key == "free" and self.keys[place + 1] in ("of", "from"):
            self._negate = not self._negate
            return True
        if key in kinds["not"] or key in kinds["stop"]:
            self._negate = True
            self.traits |= {"change"} if key in kinds["stop"] else set()
            return True
        for trait in ("plan", "past"):
            if key in kinds[trait]:
                self.traits.add(trait)
                return True
        return key in kinds["now"] or key in self._empty

    def _undo_denial(self) -> bool:
        """Undo the denial of X in "no X without Y", which requires Y. Return whether there was one."""
        for n, item in enumerate(self._items):
            if item.negated and item.clause == self._clause and "not" not in item.flags:
                self._items[n] = replace(item, negated=False)
                return True
        return False

    def _looks_like_verb(self, place: int) -> bool:
        key, before = self.keys[place], self.tokens[place - 1]
        is_form = key.endswith("s") and not key.endswith(("ss", "us", "is"))
        return is_form and before.kind != "mark" and before.key not in _BEFORE_NOUNS


def _word_kind(token: ValueToken) -> str:
    """Return "name" or "word"; "first" for a capital at the beginning of a sentence."""
    if not token.text[:1].isupper():
        return "word"
    return "first" if token.start and not token.text[1:2].isupper() else "name"


def _is_past(word: str, before: str) -> bool:
    """Return whether a word is a verb in the past tense, without `is` or `has` before it: a single event."""
    if word in ("was", "were"):
        return True
    return word.endswith("ed") and before not in _BEFORE_PARTICIPLES and stem(word) != word
