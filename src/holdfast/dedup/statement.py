"""A parsed text: its items of content, and the statement they make."""

from __future__ import annotations

from dataclasses import dataclass

# Characters, at most, of a text to parse; longer texts are compared for equality only.
LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class ContentItem:
    """One piece of content."""

    keys: frozenset[str]
    # One of word, name, concept, id, cjk, number, version, time, date, weekday.
    kind: str
    text: str
    unit: str = ""
    flags: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    # The wordings that say the same.
    senses: frozenset[str] = frozenset()
    place: int = 0
    # How many words it takes.
    length: int = 1
    negated: bool = False
    subject: bool = False
    clause: int = 0
    # The word before it.
    before: str = ""

    @property
    def light(self) -> bool:
        """Whether the statement means the same without it."""
        return "light" in self.flags


@dataclass(frozen=True, slots=True)
class Statement:
    """The content of a text."""

    plain: tuple[str, ...]
    items: tuple[ContentItem, ...] = ()
    # Some of change, plan, past, keyed, event (it happened once).
    traits: frozenset[str] = frozenset()
    # Whether it is too long to be parsed.
    long: bool = False
    keys: frozenset[str] = frozenset()
    # The keys of all tokens, as the places of the items count them.
    words: tuple[str, ...] = ()

    @property
    def bare_words(self) -> frozenset[str]:
        """The words that are no part of a listed wording."""
        listed = {
            place
            for item in self.items
            for place in range(item.place, item.place + item.length)
            if item.senses
        }
        return frozenset(word for place, word in enumerate(self.words) if place not in listed)
