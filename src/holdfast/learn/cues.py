"""How a change is told: the wordings of `changes.txt` in a text, and other words that tell of which thing it speaks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise

from holdfast.learn.lexicon import stem, stems
from holdfast.learn.measures import UNITS
from holdfast.learn.statement import Statement

_Phrase = tuple[str, ...]
_FLAGS = frozenset({"self", "sym", "value", "cue"})
_SHORT = 12  # tokens of a plain sentence: the user is 41
_VALUE = 4  # tokens of a value and what ends the text
_GAP = 3  # words that `_` may stand for
DENIALS = frozenset(
    "not no never without nicht kein keine ne pas nunca non niet geen nao sin before until stop stopped cease ceased".split()
)
_UNSURE = frozenset(
    "will would could should if want wants hope plan plans almost nearly tries trying try soon sometimes often usually when".split()
)
MARKS = frozenset(",.;!?:()、。，；")
_SPANS = frozenset(UNITS) | frozenset("night quarter fortnight request call".split())


@dataclass(frozen=True, slots=True)
class Cue:
    """A wording of a change: its kind, `<` for before and `>` for after, where it stands, whether it is denied."""

    kind: str
    side: str
    start: int
    end: int
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Signals:
    """The wordings of change in a text, and where they stand."""

    cues: tuple[Cue, ...] = ()
    covered: frozenset[int] = frozenset()

    def of(self, kind: str) -> list[Cue]:
        """Give those of one kind that are not denied."""
        return [cue for cue in self.cues if cue.kind == kind and not cue.denied]


@cache
def _table() -> tuple[dict[str, list[tuple[_Phrase, str, str]]], dict[str, frozenset[str]]]:
    phrases: dict[str, list[tuple[_Phrase, str, str]]] = defaultdict(list)
    flags: dict[str, frozenset[str]] = {}
    for line in (resources.files("holdfast.learn") / "changes.txt").read_text("utf-8").splitlines():
        head, colon, body = line.partition(":")
        if not colon or line.startswith(("#", "facet", "frame", "attr", "contrary")):
            continue
        name, *marks = head.split()
        kind, side = name.rstrip("<>"), name[-1] if name[-1] in "<>" else ""
        flags[kind] = flags.get(kind, frozenset()) | (_FLAGS & set(marks))
        for written in body.split(","):
            phrase = tuple(
                part for word in written.split() for part in ([word] if word[0] in "_=" else stems(word))
            )
            if phrase:
                phrases[phrase[0].lstrip("=")].append((phrase, kind, side))
    return dict(phrases), flags


def flags_of_kinds() -> dict[str, frozenset[str]]:
    """Give the flags of each kind of wording."""
    return _table()[1]


def _fits(phrase: _Phrase, words: tuple[str, ...], exact: tuple[str, ...], place: int) -> int:
    """Say where a wording that begins here ends; 0 when it does not fit."""
    if phrase[0].startswith("=") and phrase[0][1:] != exact[place]:
        return 0
    end, gap = place + 1, 0
    for part in phrase[1:]:
        if part == "_":
            gap = _GAP
            continue
        while gap and end < len(words) and words[end] != part and words[end] not in MARKS:
            end, gap = end + 1, gap - 1
        if end >= len(words) or words[end] != part:
            return 0
        end, gap = end + 1, 0
    return end


def signals(statement: Statement) -> Signals:
    """Give the wordings of change in a statement."""
    return _signals(statement.words)


@lru_cache(maxsize=8192)
def _signals(words: tuple[str, ...]) -> Signals:
    table, _ = _table()
    stemmed = tuple(map(stem, words))
    cues: dict[Cue, None] = {}
    covered: set[int] = set()
    for place, word in enumerate(stemmed):
        starts = {word, words[place]}
        for phrase, kind, side in (found for start in starts for found in table.get(start, ())):
            end = _fits(phrase, stemmed, words, place)
            if end:
                cues[Cue(kind, side, place, end, _is_denied(words, place))] = None
                if kind not in ("leave", "away") and side != "<":  # these are told of what both speak of
                    covered.update(range(place, end))
    return Signals(tuple(cues), frozenset(covered))


def _is_denied(words: tuple[str, ...], place: int) -> bool:
    for word in reversed(words[max(0, place - 3) : place]):
        if word in MARKS:
            return False
        if word in DENIALS or word in _UNSURE or (word == "to" == words[place - 1]):
            return True
    return False


@lru_cache(maxsize=8192)
def _topics(words: tuple[str, ...]) -> frozenset[str]:
    flags = flags_of_kinds()
    return frozenset(cue.kind for cue in _signals(words).cues if "self" in flags[cue.kind])


def may_change(old: Statement, new: Statement) -> bool:
    """Say whether two texts without a common word of content may still be states of one person or thing."""
    same = max(2, min(len(old.words), len(new.words)) - _VALUE)
    framed = old.words[:same] == new.words[:same] and max(len(old.words), len(new.words)) <= _SHORT
    return framed or not _topics(old.words).isdisjoint(_topics(new.words))


@cache
def _opposites() -> dict[str, frozenset[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for line in (resources.files("holdfast.learn") / "changes.txt").read_text("utf-8").splitlines():
        if line.startswith("facet:"):
            for pair in line[6:].split(","):
                one, other = (stem(word) for word in pair.split())
                found[one].add((one, other))
                found[other].add((other, one))
    return {word: frozenset(pairs) for word, pairs in found.items()}


@lru_cache(maxsize=8192)
def facets(words: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Give the words that have an opposite, each with it."""
    table = _opposites()
    return frozenset(pair for word in words for pair in table.get(stem(word), ()))


def per(words: tuple[str, ...]) -> frozenset[str]:
    """Give the things by which something is measured, other than times."""
    return frozenset(
        b for a, b in pairwise(words) if a in ("per", "pro", "por", "par", "each") and b not in _SPANS
    )
