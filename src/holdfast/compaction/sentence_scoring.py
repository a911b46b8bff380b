"""Scores for the sentences of a history: the concepts they speak of, and how much each of these matters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise
from math import log2, prod
from operator import itemgetter
from typing import NamedTuple

from holdfast.compaction.worth import rate_sentences
from holdfast.messages.passages import Passage
from holdfast.text import analyze
from holdfast.text.sentences import LONGEST, one_line, sentences, without_filler
from holdfast.text.tokens import estimate_tokens

_COMMON = (
    "about after again all also always am amazing another any anything around ask awesome away back bad "
    "because been before being best better big both call can cannot check come congrats cool could day "
    "definitely different doing done each else enjoy even ever every everyone everything exactly excited "
    "far feel few find fine first forward friend full fun get give glad go good gonna got great guess guy "
    "haha happen happy hard haven hear hello help here hey hi hope idea important incredible inspire "
    "inspiring interesting job keep kind know last later learn least let life like little long look lot "
    "love luck make many matter maybe mean might mind moment more most much must need never new next nice "
    "nothing now off often oh ok okay old once one only other our out over own part people perfect person "
    "place please pretty probably proud put quite re read ready real really reason remember right run said "
    "same say see seem set share she should show since some someone something soon sort sound special start "
    "stay still stop stuff such super sure take talk tell than thank thanks thing think those though "
    "thought time today together tomorrow too totally truly try turn two up use usually very wait want way "
    "week well while whole without won wonder wonderful word work world worry would wow year yeah yes "
    "yesterday yet agree appreciate believe care change create deal end experience feeling follow happiness "
    "hang imagine join journey live move plan pleased pay stuff support thankful tough touch amaze "
    "beautiful bye posted ya safe gotta stoked agreed thoughts whoa oops sweet aw yay lol hmm cute cheers "
    "wanna kinda dude buddy def sec woohoo chat however unfortunately current currently appear point "
    "additional following step"
)

DECIDED, OPEN, NUMBER, PATH, TIME, OWN, OTHER = (1 << bit for bit in range(7))
_HINTS = {
    DECIDED: "decide decided decides deciding decision decisions agree agreed agrees agreement chose chosen "
    "settled conclude concluded conclusion fix fixed fixes cause because instead must never always prefer "
    "prefers preferred approved rejected confirmed resolved solved therefore rule requirement required "
    "switched replaced dropped reverted merged deployed released root finally we'll let's should",
    OPEN: "todo fixme next still need needs remaining remains pending blocked unresolved deadline due remind "
    "reminder later follow-up plan plans planning going will wip outstanding",
    OWN: "i i'm i've i'd i'll my me we we've we're our us myself",
    OTHER: "you you're you've you'd you'll your yours yourself",
}
_HINT_WORDS = {hint: frozenset(words.split()) for hint, words in _HINTS.items()}
# News of oneself count more than comments on another's.
_HINT_FACTORS = {DECIDED: 1.25, OPEN: 1.15, NUMBER: 1.1, PATH: 1.15, TIME: 1.2, OWN: 1.2, OTHER: 0.7}
_FACTORS = [
    prod((factor for hint, factor in _HINT_FACTORS.items() if hints & hint), start=1.0)
    for hints in (hints & ~OTHER if hints & OWN else hints for hints in range(1 << 7))
]
_PATH = re.compile(r"[\w.-]*/|\.[a-z]{1,4}$")
# Beginnings of sentences that lean on the one before, of announcements, and of greetings.
_LEANING = tuple(
    f"{word} " for word in "It It's That That's This These Those They They're He She Which".split()
)
_ANNOUNCING = tuple(
    "Let me |let me |Now let|Now I|First, let|First, I|Let's |I'll start |I'll now ".split("|")
)
_GREETING = tuple("Hey|Hi |Hi,|Hello|Thank|Congrat|Bye|Take care|Good luck|Glad |Sorry to hear".split("|"))

COMMON_WEIGHT = 0.1
_NAME_WEIGHT = 1.5
_NUMBER_WEIGHT = 0.6
_WHOLE_WEIGHT = 1.3
_QUESTION = 0.5
_LEANS = 0.8
# Code, tables and logs, which are mostly no words.
_CODE = 0.35
_DENSE = 0.75
_SYMBOL = re.compile(r"[^\w\s.,;'’\"“”!?-]|\d")
_ROLES = {"tool": 0.35, "system": 0.4, "developer": 0.4}
_CALL = 0.4
_QUOTED = 0.2
_HEADING = 0.65
# Characters of a line without a full stop that is rather a heading.
_SHORT = 60
_ANNOUNCED = 0.4
_GREETS = 0.3
# A sentence of one word.
_ALONE = 0.5
# Sentences of the user of an agent.
_ASKED = 1.4
# The first request of the user: it sets the aim of the rest.
_FIRST = 2.5
# Characters; longer messages are mostly not the user's own words.
_PASTED = 1_500


# The factor of a sentence of a work session that is surely worth keeping, and how fast it falls.
_WORTH = 4.5
_SHARPER = 2

_DIGITS = re.compile(r"\d+")


class SentenceUnit(NamedTuple):
    """A sentence that can be taken: its turn, text, cost in tokens, concepts, and factor.

    `shape` is the text without its numbers: the steps of a routine differ in nothing else.
    """

    turn: int
    text: str
    cost: float
    concepts: tuple[int, ...]
    pairs: tuple[int, ...]
    factor: float
    shape: str
    # Whether it is of code or of the use of a tool, not something that was said.
    preview: bool
    # Whether it is of a work session.
    is_work: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """The sentences of a history, the weight of each concept, and a word for it."""

    units: list[SentenceUnit]
    weights: list[float]
    names: list[str]


# A pair of concepts is one number: the first above these bits, the second below.
PAIR_BITS = 32


class _Vocabulary:
    """The numbered concepts of a history, and the concepts and hints of each token."""

    def __init__(self) -> None:
        self.tokens: dict[str, tuple[tuple[int, ...], int]] = {}
        self.names: list[str] = []
        self.scale: list[float] = []
        self._numbers: dict[int, int] = {}

    def concepts(self, text: str) -> tuple[list[int], int]:
        """Return the concepts of a text in order, and the hints of its words."""
        concepts: list[int] = []
        hints = 0
        known = self.tokens
        for token in analyze.tokens(text):
            if token not in known:
                known[token] = self._add(token), _hints(token)
            numbers, hint = known[token]
            concepts += numbers
            hints |= hint
        return concepts, hints

    def _add(self, token: str) -> tuple[int, ...]:
        whole = analyze.whole_term(token)
        if whole is not None and _is_whole(token):
            return (self._number(analyze.hash_term(whole), token, _WHOLE_WEIGHT),)
        analysed = analyze.analyze(token)
        scale = _NUMBER_WEIGHT if token.isdigit() else 1.0
        return tuple(self._number(term, token, scale) for term in analysed.terms[: analysed.words])

    def _number(self, term: int, token: str, scale: float) -> int:
        number = self._numbers.get(term)
        if number is None:
            number = self._numbers[term] = len(self.names)
            self.names.append(token)
            self.scale.append(COMMON_WEIGHT if term in _common() else scale)
        return number


@cache
def _common() -> frozenset[int]:
    return frozenset(analyze.hash_term(analyze.normal(word)) for word in _COMMON.split())


def _is_whole(token: str) -> bool:
    """Return whether the parts of a token say nothing alone: paths, versions, identifiers."""
    return token.isalnum() or len(token) > 40 or any(c in "/_.:@0123456789" for c in token)


def _hints(token: str) -> int:
    lower = token.lower().replace("’", "'")
    hints = sum(hint for hint, words in _HINT_WORDS.items() if lower in words)
    hints |= TIME * analyze.analyze(token).tells_time
    if lower.isalpha():
        return hints
    return hints | NUMBER * any(map(str.isdigit, lower)) | PATH * (_PATH.search(lower) is not None)


def history(passages: Sequence[Passage], *, trimmed: bool = True) -> History:
    """Return the weighed sentences of passages, `trimmed` of filler in front."""
    said = [
        (turn, *sentence)
        for turn in range(len(passages))
        for sentence in _sentences(passages, turn, trimmed=trimmed)
    ]
    # There are signs and pictures only.
    if not said:
        lines = ((turn, one_line(passage.text)[:LONGEST].strip()) for turn, passage in enumerate(passages))
        said = [(turn, line, 1.0) for turn, line in lines if line]
    with_agent = any(passage.role == "assistant" for passage in passages)
    by_role = _role_factors(passages, with_agent=with_agent)
    vocabulary = _Vocabulary()
    having: Counter[int] = Counter()
    weighed: list[tuple[int, str, list[int], float]] = []
    for turn, sentences_of_turn in groupby(said, key=itemgetter(0)):
        of_turn: set[int] = set()
        from_a_person = passages[turn].role == "user" or not with_agent
        asks = from_a_person and with_agent
        for _, text, worth in sentences_of_turn:
            concepts, hints = vocabulary.concepts(text)
            of_turn.update(concepts)
            factor = by_role[turn] * _factor(text, hints, asks=asks, from_a_person=from_a_person)
            if len(concepts) < 2 and not asks:
                factor *= _ALONE
            if passages[turn].number:
                factor *= _WORTH * worth**_SHARPER
            weighed.append((turn, text, concepts, factor))
        having.update(of_turn)
    speakers, _ = vocabulary.concepts(" ".join(dict.fromkeys(passage.speaker for passage in passages)))
    weights = _weights(vocabulary, having)
    # The layout names the speakers.
    for number in speakers:
        weights[number] = 0.0
    units = [
        _unit(passages[turn], turn, text, about, factor * _is_telling(about, weights))
        for turn, text, about, factor in weighed
    ]
    return History(units, weights, vocabulary.names)


def _sentences(passages: Sequence[Passage], turn: int, *, trimmed: bool) -> Iterator[tuple[str, float]]:
    """Yield the sentences of a passage; in work sessions with their worth."""
    passage = passages[turn]
    if passage.number:
        yield from rate_sentences(passages, turn)
    elif passage.role == "tool":
        if line := one_line(passage.text):
            yield line, 1.0
    else:
        for sentence in sentences(passage.text):
            yield without_filler(sentence) if trimmed else sentence, 1.0


def _is_telling(concepts: Sequence[int], weights: Sequence[float]) -> bool:
    """Return whether a sentence is more than chit-chat: it has a word that not every conversation has."""
    return max(map(weights.__getitem__, concepts), default=0.0) >= _NUMBER_WEIGHT


def _is_preview(text: str) -> bool:
    return (text[0] == "`" and text[-1] == "`") or text[0] == "[" or text.startswith("calls ")


def _unit(passage: Passage, turn: int, text: str, concepts: list[int], factor: float) -> SentenceUnit:
    pairs = tuple([(first << PAIR_BITS) | second for first, second in pairwise(concepts)])
    return SentenceUnit(
        turn,
        text,
        estimate_tokens(text),
        tuple(dict.fromkeys(concepts)),
        pairs,
        factor,
        _DIGITS.sub("#", text),
        passage.role == "tool" or _is_preview(text),
        passage.number > 0,
    )


def _weights(vocabulary: _Vocabulary, having: Counter[int]) -> list[float]:
    weights = [
        scale if scale <= COMMON_WEIGHT else scale * (1.0 + log2(max(1, having[number])))
        for number, scale in enumerate(vocabulary.scale)
    ]
    for token, (numbers, _) in vocabulary.tokens.items():
        is_name = token[0].isupper() and token.isalpha() and token.lower() not in vocabulary.tokens
        if is_name and len(numbers) == 1:
            weights[numbers[0]] *= _NAME_WEIGHT
    return weights


def _factor(text: str, hints: int, *, asks: bool, from_a_person: bool) -> float:
    """Return the factor of a sentence by its form; a request of an agent's user (`asks`) counts in full."""
    factor = _FACTORS[hints if from_a_person else hints & ~(OWN | OTHER)]
    last = text[-1]
    if not asks:
        if last in "?？":
            factor *= _QUESTION
        elif last == ":" or (last.isalpha() and len(text) < _SHORT):
            factor *= _HEADING
        if text.startswith(_ANNOUNCING):
            factor *= _ANNOUNCED
    if text.startswith(_LEANING):
        factor *= _LEANS
    elif text.startswith(_GREETING):
        factor *= _GREETS
    if _is_preview(text):
        return factor * (_QUOTED if text[0] == "`" else _CALL)
    start = text[:100]
    symbols = len(_SYMBOL.findall(start)) / len(start)
    return factor * (_CODE if symbols > 0.12 else _DENSE if symbols > 0.07 else 1.0)


def _role_factors(passages: Sequence[Passage], *, with_agent: bool) -> list[float]:
    """Return the factor of each turn by who speaks and where.

    An agent's user sets the task, mostly at the beginning.
    """
    factors = [_ROLES.get(passage.role, 1.0) for passage in passages]
    first = True
    for turn, passage in enumerate(passages):
        if with_agent and passage.role == "user" and len(passage.text) <= _PASTED:
            factors[turn] *= _ASKED * (_FIRST if first else 1.0)
            first = False
    return factors
