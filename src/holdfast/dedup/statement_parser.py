"""The parser of statements: from tokens to items of content with their possible meanings.

Words without content are dropped, wordings become concepts, values typed keys. An item knows whether it
stands before the verb, is negated, names only a former state (*from* Berlin), or is part of a condition.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from holdfast.dedup import lexicon
from holdfast.dedup.lexicon import Meaning
from holdfast.dedup.statement import LONGEST, ContentItem, Statement
from holdfast.text import analyze
from holdfast.text.fillers import fillers, foreign, stem, weak_words
from holdfast.text.value_tokens import ValueToken, tokenize

# Tokens of a text; one with more is compared for equality only.
_MAX_TOKENS = 300
_BE = frozenset(
    "is are was were be been am has have had will can does do should must may ist sind war hat es est "
    "sont son è é são heeft".split()
)
_ADVERBS = frozenset("now also currently been just recently still already his her my their".split())
# Words before a former state, and words before a current one.
_GOING = frozenset(
    "from instead over rather von de previously replacing replaced replace swapped swap formerly statt "
    "anstatt was used unlike vs".split()
)
_COMING = frozenset("to with by for and but auf zu nach a hacia vers is now ist".split())
_NONE: frozenset[str] = frozenset()
_NO_LONGER = {("no", "longer"), ("any", "more"), ("nicht", "mehr"), ("ya", "no"), ("non", "piu")}
_BEFORE_NOUNS = frozenset("the a 's of my their and in for with".split())
_BEFORE_PARTICIPLES = _BE | {"the", "a", "an"}


def parse_statement(text: str) -> Statement:
    """Return the statement of a text."""
    if len(text) > LONGEST:
        return Statement(tuple(analyze.fold(text).split()), long=True)
    tokens = tokenize(text)
    plain = tuple(token.key for token in tokens if token.kind != "mark" or token.key in "$€£%°≥≤<>&")
    if len(tokens) > _MAX_TOKENS:
        return Statement(tuple(analyze.fold(text).split()), long=True)
    reader = _Reader(tokens)
    items = tuple(_merged(reader.run()))
    keys = frozenset(
        key
        for item in items
        if not item.light
        for key in (*item.keys, *(c for c in item.classes if c.endswith("!")))
    )
    words = tuple(token.key for token in tokens)
    return Statement(plain, items, frozenset(reader.traits), keys=keys, words=words)


def _merged(items: list[ContentItem]) -> list[ContentItem]:
    """Return items without repetitions, the characters of an unknown word of an unspaced script joined."""
    found: list[ContentItem] = []
    for item in items:
        last = found[-1] if found else None
        if last and item.kind == last.kind == "cjk" and item.place == last.place + len(last.text):
            found[-1] = replace(last, text=last.text + item.text, keys=frozenset({last.text + item.text}))
        elif not any(
            item.keys == other.keys and item.gone == other.gone and item.negated == other.negated
            for other in found
        ):
            found.append(item)
    return found


@dataclass(slots=True)
class _Reader:
    tokens: list[ValueToken]
    traits: set[str] = field(default_factory=set)
    _items: list[ContentItem] = field(default_factory=list)
    _negate: bool = False
    _gone: bool = False
    _conditional: bool = False
    # Where the first verb stands.
    _verb: int = -1
    _clause: int = 0
    _empty: frozenset[str] = _NONE
    _stems: list[str] = field(default_factory=list)

    def run(self) -> list[ContentItem]:
        kinds = fillers()
        keys = [token.key for token in self.tokens]
        self._empty = kinds["empty"] | kinds["cjk"] | foreign(keys)
        self._stems = list(map(stem, keys))
        pairs = set(pairwise(keys))
        if not (kinds["now"] - {"no"}).isdisjoint(keys) or pairs & _NO_LONGER or {"ne", "plus"} <= set(keys):
            self.traits.add("change")
        if any(_is_past(word, before) for before, word in pairs):
            self.traits.add("event")
        place = 0
        while place < len(self.tokens):
            token = self.tokens[place]
            entry, length = self._lookup(place)
            if token.key == "used" and self._next(place) == "to":
                self.traits.add("past")
            elif token.kind == "mark":
                self._mark(token, place)
            elif entry is not None and not ("light" in entry.flags and self._is_quoted(place)):
                if length == 1 and token.key in kinds["stop"]:
                    self._negate = True
                    self.traits.add("change")
                else:
                    self._concept(entry, token, place, length)
            else:
                self._plain_word(token, place)
            place += length
        keyed = "keyed" in self.traits
        return [
            replace(item, subject=True) if item.place < self._verb and (keyed or not item.clause) else item
            for item in self._items
        ]

    def _is_quoted(self, place: int) -> bool:
        """Return whether one word alone stands in quotes: the table "users" is not about the user."""
        beside = (*self.tokens[max(place - 1, 0) : place], *self.tokens[place + 1 : place + 2])
        return len(beside) == 2 and all(token.key in '"“”„«»' for token in beside)

    def _lookup(self, place: int) -> tuple[Meaning | None, int]:
        token = self.tokens[place]
        # A number word may begin a name: first language.
        counted = token.kind == "number" and token.text.isalpha()
        if token.kind not in ("word", "cjk", "id") and not counted:
            return None, 1
        opening = lexicon.openings().get(self._stems[place])
        if opening is None:
            return None, 1
        alone, followed = opening
        # How long the wording is, how many tokens it takes.
        found, end = (1, 1, alone), place + 1
        while followed and end < len(self.tokens):
            for phrase, entry in followed.get(self._stems[end], ()):
                length = self._fits(phrase, place) if len(phrase) > found[0] else 0
                if length:
                    found = (len(phrase), length, entry)
            if self.tokens[end].key not in _ADVERBS:
                break
            end += 1
        if found[0] == 1 and (counted or token.key in self._empty):
            return None, 1
        return found[2], found[1]

    def _fits(self, phrase: tuple[str, ...], place: int) -> int:
        """Return how many tokens a wording takes here, adverbs included; 0 where it does not fit."""
        end = place + 1
        for word in phrase[1:]:
            while (
                end < len(self.tokens) and self.tokens[end].key in _ADVERBS and self.tokens[end].key != word
            ):
                end += 1
            if end >= len(self.tokens) or self._stems[end] != word:
                return 0
            end += 1
        return end - place

    def _mark(self, token: ValueToken, place: int) -> None:
        if token.key in ":=→" and self._verb < 0 and self._items:
            self._verb = place
            if token.key != "→" and len(self._items) <= 4:
                self.traits.add("keyed")
        if token.key in ",.;!?:()、。→":
            self._clause += 1
            self._gone = self._conditional = False
            if token.key != ",":
                self._negate = False
        if token.key == "→":
            self.traits.add("change")

    def _concept(self, entry: Meaning, token: ValueToken, place: int, length: int) -> None:
        flags, parts = entry.flags, self.tokens[place : place + length]
        self.traits |= flags & {"change", "plan"}
        if self._verb < 0 and (self._items or place):
            last = self._items[-1] if self._items else None
            named = last is not None and last.kind in ("name", "first") and last.place == place - 1
            is_form = last is not None and any(part.key in _BE for part in parts)
            if is_form or flags & {"verb", "change"} or (named and token.key.endswith("s")):
                self._verb = place
        negated = self._negate != ("not" in flags)
        if self._negate and "light" not in flags:
            self._negate = False
        elif self._negate and self._next(place + length - 1) in ("", ".") and self._items:
            # As in: X is not set.
            self._deny_last()
        if "verb" in flags:
            self._gone = False
        text = "".join(part.text for part in parts) if token.kind == "cjk" else token.text
        self._add(place, "concept", text, entry, negated=negated, length=length)

    def _add(
        self,
        place: int,
        kind: str,
        text: str,
        entry: Meaning,
        *,
        unit: str = "",
        negated: bool = False,
        length: int = 1,
    ) -> None:
        self._items.append(
            ContentItem(
                entry.keys,
                kind,
                text,
                unit,
                entry.flags,
                entry.classes,
                entry.senses,
                place,
                length,
                negated=negated,
                gone=self._gone,
                conditional=self._conditional,
                clause=self._clause,
                before=self.tokens[place - 1].key if place else "",
                after=self._next(place),
            )
        )

    def _plain_word(self, token: ValueToken, place: int) -> None:
        key = token.key
        if token.kind in ("word", "cjk"):
            if self._function_word(key, place):
                return
            kind = token.kind if token.kind == "cjk" else _word_kind(token)
            if kind == "word" and self._looks_like_verb(token, place):
                self._verb = place
            keys = frozenset({stem(key)})
            if self._negate and not keys.isdisjoint(weak_words()):
                # As in: stop adding X. It is X that is denied.
                return
        else:
            kind, keys = token.kind, frozenset({key})
        self._add(place, kind, token.text, Meaning(keys), unit=token.unit, negated=self._negate)
        self._negate = False

    def _function_word(self, key: str, place: int) -> bool:
        if key in _BE and self._verb < 0 and self._items:
            self._verb = place
        before = self.tokens[place - 1].key if place else ""
        if key in ("a", "an", "another", "ein", "eine", "un", "una", "une"):
            self.traits.add("indefinite")
        if key == "longer" and before == "no":
            return True
        if key in _GOING:
            self._start_gone(key, before)
        elif key in _COMING:
            self._gone = False
        if key in fillers()["condition"]:
            self._conditional = key != "because" and (place > 0 or key not in ("after", "since"))
            if key == "after" and not place:
                self.traits.add("change")
            self._clause += key == "because"
            return True
        if self._deny(key, place):
            return True
        for trait in ("plan", "past"):
            if key in fillers()[trait]:
                self.traits.add(trait)
                return True
        return key in fillers()["now"] or key in self._empty

    def _deny(self, key: str, place: int) -> bool:
        """Handle a word that denies: not X, without X, free of X, stop X. Return whether it is one."""
        if key == "without" and self._undo_denial():
            return True
        if key == "free" and self._next(place) in ("of", "from"):
            self._negate = not self._negate
            return True
        if key in fillers()["not"] or key in fillers()["stop"]:
            self._negate = True
            if key in fillers()["stop"]:
                self.traits.add("change")
            return True
        return False

    def _deny_last(self) -> None:
        self._items[-1] = replace(self._items[-1], negated=not self._items[-1].negated)
        self._negate = False

    def _undo_denial(self) -> bool:
        """Undo the denial of X in "no X without Y", which requires Y. Return whether there was one."""
        for n, item in enumerate(self._items):
            if item.negated and item.clause == self._clause and "not" not in item.flags:
                self._items[n] = replace(item, negated=False)
                return True
        return False

    def _next(self, place: int) -> str:
        return self.tokens[place + 1].key if place + 1 < len(self.tokens) else ""

    def _start_gone(self, key: str, before: str) -> None:
        if key in ("over", "vs"):
            wishes = {"=prefer", "=favourite", "=like", "=choose"}
            self._gone |= any(item.keys & wishes for item in self._items)
        elif key in ("replaced", "replace", "swapped", "swap"):
            self._gone |= before not in _BE
        elif key in ("from", "von", "de"):
            is_change = "change" in self.traits
            self._gone |= is_change and before not in ("different", "home", "comes", "come")
        elif key in ("previously", "formerly", "was"):
            self._gone |= before in (",", "(", "not")
        else:
            self._gone |= key in ("instead", "rather", "replacing", "statt", "anstatt", "unlike")

    def _looks_like_verb(self, token: ValueToken, place: int) -> bool:
        before = self.tokens[place - 1]
        return (
            self._verb < 0
            and bool(self._items)
            and token.key.endswith("s")
            and not token.key.endswith(("ss", "us", "is"))
            and before.kind != "mark"
            and before.key not in _BEFORE_NOUNS
        )


def _word_kind(token: ValueToken) -> str:
    """Return whether a word is a name; "first" if it may be none, since it begins a sentence."""
    if not token.text[:1].isupper():
        return "word"
    return "first" if token.start and not token.text[1:2].isupper() else "name"


def _is_past(word: str, before: str) -> bool:
    """Return whether a word is a verb in the past without `is` or `has` before it: it happened once."""
    if word in ("was", "were"):
        return True
    return word.endswith("ed") and before not in _BEFORE_PARTICIPLES and stem(word) != word
