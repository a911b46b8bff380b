"""A parsed text: its items of content, and the statement they make."""

from __future__ import annotations

from dataclasses import dataclass

# Characters of a text that is parsed; a longer one is compared for equality only.
LONGEST = 2_000
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ContentItem:
    """One piece of content."""

    keys: frozenset[str]
    kind: str  # word, name, concept, id, cjk, number, version, time, date, weekday
    text: str
    unit: str = ""
    flags: frozenset[str] = _NONE
    classes: frozenset[str] = _NONE
    place: int = 0
    negated: bool = False
    gone: bool = False
    conditional: bool = False
    subject: bool = False
    clause: int = 0
    before: str = ""  # the word before it
    after: str = ""

    def __hash__(self) -> int:
        return hash((self.keys, self.place))

    @property
    def light(self) -> bool:
        """Whether the statement means the same without it."""
        return "light" in self.flags


@dataclass(frozen=True, slots=True)
class Statement:
    """The content of a text."""

    plain: tuple[str, ...]
    items: tuple[ContentItem, ...] = ()
    traits: frozenset[str] = _NONE  # change, plan, past, indefinite, keyed, event (it happened once)
    long: bool = False  # too long to be parsed
    keys: frozenset[str] = _NONE
    words: tuple[str, ...] = ()  # the keys of all tokens, as the places of the items count them

    def __hash__(self) -> int:
        return hash(self.plain)
