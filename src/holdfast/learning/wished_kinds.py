"""Sentences of users that say what a kind is to hold, found by the form of its examples: without a model.

An example gives a cue: the words that another example or the description of the kind has too, the small
words around them, and a gap in place of each value. "I'm allergic to peanuts" gives "I am allergic to …".
Precision comes first: an example with no such word gives no cue, and a sentence fits only with the words of
a cue in their order, something in each gap, and no other negation, condition or question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from holdfast.kinds import Kind
from holdfast.learning.decision_sentences import shortened, speeches_of
from holdfast.learning.grounding import Observation
from holdfast.text.sentences import sentences
from holdfast.types import Message

_GAP, _TIME_GAP = _GAPS = ("", "#")  # in a cue, what stands for a value, and for a time or a number
_FEWEST = 3  # words of a cue
# So many of the commonest words are no values, and no words of a kind because two examples have them; of so
# many not even because its description does.
_COMMON, _COMMONEST = 400, 100
_LONGEST_GAP = 4  # words of a value between two words of a cue
_QUOTED = re.compile(r"[\"“„«][^\"”“»]*[\"”“»]|(?<!\w)[‘'][^‘’']+[’'](?!\w)")
_CLAUSE = re.compile(
    r"[,;:.!?()\[\]\n…–—]+|\s-\s|\b(?:but|because|since|although|though|while|and(?=\s+I\b))\b", re.IGNORECASE
)
_WORD = re.compile(r"\w+")
_QUESTION = re.compile(r"[?？؟][\"'”’)*_ ]*$")
_CONTRACTED = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"\bcan(?:'t|not)\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"'m\b", " am"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
        (r"'d\b", " would"),
        (r"'s\b", " is"),
    )
)
_NEGATIONS = frozenset(
    "not no never nothing none neither nor without hardly nicht kein keine keinen nie ohne ne pas jamais "
    "sans nunca ni sin".split()
)
_UNREAL = frozenset(
    "if whether unless would could might maybe perhaps possibly pretend imagine suppose hypothetically wish "
    "wenn ob wurde konnte vielleicht si peut tal vez quizas".split()
)
_DETERMINERS = frozenset("a an the any some all my our your his her their this that these those".split())
_BEFORE_VALUE = _DETERMINERS | frozenset("kind kinds sort sorts type types of most every".split())
# Words that are no values: "I can't eat right now".
_NO_VALUE = _NEGATIONS | frozenset(
    "right now much more most anything everything something else here there out before after while until "
    "during because when whenever so too very well yet again anymore today tonight tomorrow yesterday at in "
    "on by for with about enough either both long soon later then than".split()
)


class _Word(NamedTuple):
    """A word as cues compare it, as it was written, whether it is more than a small word, and a time."""

    key: str
    written: str
    is_content: bool = False
    is_time: bool = False

    def is_rarer_than(self, common: int) -> bool:
        """Return whether it is more than a small word, and not one of so many commonest words."""
        # Numpy is loaded by the first comparison.
        from holdfast.text import vectors

        rows = [row for form in (self.written, self.key) if (row := vectors.row(form)) is not None]
        return self.is_content and min(rows, default=common) >= common

    def fills(self, gap: str) -> bool:
        """Return whether it can be the value that stands in a gap."""
        if self.written in _NO_VALUE or not self.is_content:
            return False
        return self.is_time if gap == _TIME_GAP else not self.is_time and self.is_rarer_than(_COMMON)


def observed(messages: Sequence[Message], kinds: Iterable[Kind]) -> Iterator[Observation]:
    """Yield the sentences of users that fit the examples of kinds, each once for each kind."""
    cues = {kind.name: cues_of(kind.name, kind.learn, tuple(kind.examples)) for kind in kinds}
    if not any(cues.values()):
        return
    seen: set[tuple[str, str]] = set()
    for message, prose in speeches_of(one for one in messages if one.role == "user"):
        for sentence in sentences(prose):
            for name, own in cues.items():
                if (name, sentence.casefold()) not in seen and fits(sentence, own):
                    seen.add((name, sentence.casefold()))
                    text = shortened(sentence)
                    yield Observation(name, text, (message.seq, message.seq), speaker=message.actor)


@lru_cache(maxsize=256)
def cues_of(name: str, learn: str, examples: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the cues of a kind: the keys of words, with "" for a gap; none of an example that gives none."""
    described = {word.key for word in _words(f"{name} {learn}") if word.is_content}
    said = [{word.key for word in _words(example) if word.is_content} for example in examples]
    found: dict[tuple[str, ...], None] = {}
    for place, example in enumerate(examples):
        others = set[str]().union(*said[:place], *said[place + 1 :])
        for clause in _clauses(example):
            if cue := _cue(clause, described, others):
                found[cue] = None
    return tuple(found)


def fits(sentence: str, cues: Sequence[tuple[str, ...]]) -> bool:
    """Return whether a sentence is built as one of the cues, and says so of what is."""
    if _QUESTION.search(sentence):
        return False
    clauses = list(_clauses(_QUOTED.sub(" … ", sentence)))
    unreal = _UNREAL.intersection(word.written for clause in clauses for word in clause)
    return any(_matches(cue, clause) for cue in cues if unreal <= {*cue} for clause in clauses)


def _cue(clause: Sequence[_Word], described: set[str], others: set[str]) -> tuple[str, ...]:
    """Return the cue of a clause of an example.

    Its values are the rare words that neither the description of the kind nor another example has.
    """
    shared = [
        (word.is_rarer_than(_COMMONEST) and _is_shared(word, described))
        or (word.is_rarer_than(_COMMON) and _is_shared(word, others))
        for word in clause
    ]
    if not any(shared):
        return ()
    cue: list[str] = []
    telling = whole = 0
    for word, is_shared in zip(clause, shared, strict=True):
        if is_shared or not (word.is_time or word.is_rarer_than(_COMMON)):
            cue.append(word.key)
            telling += is_shared or word.is_rarer_than(_COMMONEST)
            # What follows two telling words, as in "I love hiking in the hills", is not needed.
            whole = len(cue) if is_shared and telling > 1 else whole
            continue
        while cue and cue[-1] in _DETERMINERS:
            cue.pop()
        gap = _TIME_GAP if word.is_time else _GAP
        if not cue or cue[-1] not in _GAPS:
            cue.append(gap)
    cue = cue[: whole or None]
    return tuple(cue) if len(cue) - sum(map(cue.count, _GAPS)) >= _FEWEST else ()


def _is_shared(word: _Word, others: set[str]) -> bool:
    # The thesaurus is loaded by the first comparison.
    from holdfast.text.synonyms import related

    return word.key in others or any(word.key in related(one) for one in related(word.key) if one in others)


def _matches(cue: Sequence[str], clause: Sequence[_Word]) -> bool:
    for start in range(len(clause)):
        end = _end(cue, clause, start)
        if end is not None:
            negated = sum(word.key in _NEGATIONS for word in clause[:end])
            if negated == sum(key in _NEGATIONS for key in cue):
                return True
    return False


def _end(cue: Sequence[str], clause: Sequence[_Word], start: int) -> int | None:
    """Return where a cue that begins at a word ends in a clause; None if it does not fit there."""
    place = start
    for number, key in enumerate(cue):
        if key in _GAPS:
            place = _after_value(clause, place, key, *cue[number + 1 : number + 2])
            if place < 0:
                return None
            continue
        # One word, such as an adverb, may stand between, but for a negation.
        may_skip = number > 0 and cue[number - 1] not in _GAPS
        if not _is(clause, place, key) and may_skip and not _is_negation(clause, place):
            place += 1
        if not _is(clause, place, key):
            return None
        place += 1
    return place


def _after_value(clause: Sequence[_Word], place: int, gap: str, after: str = "") -> int:
    """Return the place behind the value that begins at a place, before the word `after`; -1 if none does."""
    while place < len(clause) and clause[place].written in _BEFORE_VALUE:
        place += 1
    # A common word may stand before, as in "red wine".
    if not _is_value(clause, place, gap) and _is_value(clause, place + 1, gap):
        place += clause[place].is_content and clause[place].written not in _NO_VALUE
    if not _is_value(clause, place, gap):
        return -1
    if not after:
        return place + 1
    for end in range(place + 1, min(place + _LONGEST_GAP, len(clause) - 1) + 1):
        if clause[end].key == after:
            return end
        if not clause[end].is_content or clause[end].written in _NO_VALUE:
            break
    return -1


def _is_value(clause: Sequence[_Word], place: int, gap: str) -> bool:
    return place < len(clause) and clause[place].fills(gap)


def _is(clause: Sequence[_Word], place: int, key: str) -> bool:
    # Numpy is loaded by the first comparison.
    from holdfast.text.synonyms import related

    if place >= len(clause):
        return False
    own = clause[place].key
    return own == key or (own in related(key) and key in related(own))


def _is_negation(clause: Sequence[_Word], place: int) -> bool:
    return place < len(clause) and clause[place].key in _NEGATIONS


def _clauses(text: str) -> Iterator[list[_Word]]:
    """Yield the words of each clause of a text."""
    for clause in _CLAUSE.split(text):
        if words := _words(clause):
            yield words


@lru_cache(maxsize=1_024)
def _words(text: str) -> list[_Word]:
    # The text analysis is loaded by the first comparison.
    from holdfast.text.analyze import STOP_WORDS, analyze, fold, normal
    from holdfast.text.function_words import foreign_stop_words

    plain = fold(text).replace("’", "'")
    for pattern, written in _CONTRACTED:
        plain = pattern.sub(written, plain)
    words = _WORD.findall(plain)
    small = STOP_WORDS | foreign_stop_words(words, STOP_WORDS) | _NEGATIONS | _DETERMINERS | {"can"}
    return [
        _Word(_SMALL.get(word, word), word)
        if word in small
        else _Word(normal(word), word, is_content=True, is_time=word.isdigit() or analyze(word).tells_time)
        for word in words
    ]


_SMALL = {"am": "be", "is": "be", "are": "be", "has": "have", "does": "do"}
