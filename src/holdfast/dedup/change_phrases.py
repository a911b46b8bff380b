"""Wordings of change: the table of `changes.txt`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, takewhile

from holdfast.dedup.lexicon import stems
from holdfast.text.fillers import stem
from holdfast.text.tables import headed_lists

_Phrase = tuple[str, ...]
# Words that `_` may stand for.
_GAP = 3
# Words that deny a change, or leave it open.
_DENYING = frozenset(
    "not no never without nicht kein keine ne pas nunca non niet geen nao sin before until stop stopped "
    "cease ceased will would could should if want wants hope plan plans almost nearly tries trying try soon "
    "sometimes often usually when".split()
)
_MARKS = frozenset(",.;!?:()、。，；")


@dataclass(frozen=True, slots=True)
class Cue:
    """A wording of a change: its kind, `<` for before or `>` for after, its span, whether it is denied."""

    kind: str
    side: str
    start: int
    end: int
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Cues:
    """The wordings of change in a text, and the number of words they cover."""

    all: tuple[Cue, ...]
    covered: int


@cache
def _table() -> dict[str, list[tuple[_Phrase, str, str]]]:
    """Return the wordings by their first stem, each with its kind and side."""
    phrases: dict[str, list[tuple[_Phrase, str, str]]] = defaultdict(list)
    for (name,), body in headed_lists("holdfast.dedup", "changes.txt"):
        kind, side = name.rstrip("<>"), name[-1] if name[-1] in "<>" else ""
        for written in body:
            words = ([word] if word[0] in "_=" else stems(word) for word in written.split())
            phrase = tuple(chain.from_iterable(words))
            if phrase:
                phrases[phrase[0].lstrip("=")].append((phrase, kind, side))
    return dict(phrases)


def _fits(phrase: _Phrase, words: tuple[str, ...], exact: tuple[str, ...], place: int) -> int:
    """Return the end of the wording that begins at a place; 0 where it does not fit."""
    if phrase[0].startswith("=") and phrase[0][1:] != exact[place]:
        return 0
    end, gap = place + 1, 0
    for part in phrase[1:]:
        if part == "_":
            gap = _GAP
            continue
        while gap and end < len(words) and words[end] != part and words[end] not in _MARKS:
            end, gap = end + 1, gap - 1
        if end >= len(words) or words[end] != part:
            return 0
        end, gap = end + 1, 0
    return end


@lru_cache(maxsize=8192)
def find_cues(words: tuple[str, ...]) -> Cues:
    """Return the wordings of change among the words of a statement."""
    table = _table()
    stemmed = tuple(map(stem, words))
    cues: dict[Cue, None] = {}
    covered: set[int] = set()
    for place, word in enumerate(stemmed):
        # A set would have another order in every process.
        starts = dict.fromkeys((word, words[place]))
        for phrase, kind, side in (entry for start in starts for entry in table.get(start, ())):
            end = _fits(phrase, stemmed, words, place)
            if end:
                cues[Cue(kind, side, place, end, _is_denied(words, place))] = None
                # "leave" and "away" stand beside what both texts name.
                if kind not in ("leave", "away") and side != "<":
                    covered.update(range(place, end))
    return Cues(tuple(cues), len(covered))


def _is_denied(words: tuple[str, ...], place: int) -> bool:
    near = takewhile(lambda word: word not in _MARKS, reversed(words[max(0, place - 3) : place]))
    return any(word in _DENYING or word == "to" == words[place - 1] for word in near)
