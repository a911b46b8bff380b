"""Extractive summaries: the sentences of a history that cover most of its topics and decisions.

Budgeted maximum coverage: each thing that the history speaks of (a word, or two side by side) has a weight,
and counts once. Sentences are taken by what they add for each token that they cost, so a second wording of
the same adds nothing and is not taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import groupby

from holdfast.compaction.sentence_scoring import COMMON_WEIGHT, PAIR_BITS, History, SentenceUnit, history
from holdfast.compaction.summary_passages import JOINED, MONTHS, UNDATED, label
from holdfast.compaction.work_steps import chief, lines, merged, read_steps
from holdfast.messages.passages import EXPAND, STEPS, Passage
from holdfast.text.tokens import CountTokens, estimate_tokens

# Topics that the last line names.
_TOPICS = 8
# Tokens of a summary that has room for that line.
_ROOM_FOR_TOPICS = 80
# The share of the weight of two words that their standing side by side adds.
_PAIR = 0.1
# The share of the weight of a concept that counts again in work sessions.
_AGAIN = 0.8
# The weight of a sentence of a work session besides that of its words: a short one may be a decision.
_EACH = 5.0
# Tokens of the name of a speaker, with a share of the line of the day.
_LABEL = 3.0
# The share of a summary that may be steps of the work.
_STEPS = 0.35
# The share of a summary that may be previews of code and tools …
_PREVIEWS = 0.25
# … and the tokens of previews in a short one.
_FEW_PREVIEWS = 200
# The factor of a sentence after another one that differs in its numbers only.
_REPEATED = 0.5
# Tokens of one more sentence of a turn that was begun.
_SAME_TURN = 0.5
_LONGEST_TOPIC = 40
_SHORTEST_TOPIC = 4
# The least factor of a sentence that topics are taken from.
_PROSE = 0.6
_ENDS = '.!?…。！？:;)"”'
# How much more than the target is ranked: costs are estimates, and the rest names topics.
_SPARE = 2.0
_LAST_TRIES = 40
_MASK = (1 << PAIR_BITS) - 1


def extract(passages: Sequence[Passage], target: int, count: CountTokens = estimate_tokens) -> str:
    """Return the sentences that say most within `target` tokens, in the order in which they were said.

    The steps of a work session come after them. The last line names a few topics that were left out. The
    text is empty only when no passage has text, or when not one character of it fits.
    """
    work = (passage.text for passage in passages if passage.role == STEPS)
    steps = chief(merged(step for line in work for step in read_steps(line)))
    room = int(_STEPS * target)
    most = largest(len(steps), lambda size: count("\n".join(lines(steps[:size]))) <= room)
    done = "\n".join(lines(steps[:most]))
    date = in_words(passages[-1].at) if done else ""
    passages = [passage for passage in passages if passage.role != STEPS and passage.text.strip()]
    source = history(passages)
    if target <= 0:
        return ""
    alone = f"{date}\n{done}" if done and count(f"{date}\n{done}") <= target else ""
    if not source.units:
        return alone
    room = target - (min(40, target // 12) if target >= _ROOM_FOR_TOPICS else 0)
    room -= count(f"\n{done}") if done else 0
    ranked = _rank(source, room * _rate(source.units, count) * _SPARE)
    taken = _fit(ranked, source, passages, room, count)
    if not taken:
        return alone or _cut(source.units[ranked[0] if ranked else 0], passages, target, count)
    body = layout([source.units[number] for number in sorted(taken)], passages)
    whole = f"{body}\n{done}" if done else body
    body = whole if count(whole) <= target else body
    return _with_topics(body, _topics(source, ranked, taken), target, count)


def _rate(units: Sequence[SentenceUnit], count: CountTokens) -> float:
    """Return the number of estimated tokens for each token of the counter, by a sample."""
    if count is estimate_tokens:
        return 1.0
    sample = "\n".join(unit.text for unit in units[:: max(1, len(units) // 50)])[:20_000]
    return max(0.1, min(10.0, estimate_tokens(sample) / max(1, count(sample))))


class _Cover:
    """The concepts that are covered so far, and the gain of a further sentence."""

    def __init__(self, source: History) -> None:
        self._units, self._weights = source.units, source.weights
        self._words: set[int] = set()
        self._pairs: set[int] = set()
        self._shapes: Counter[str] = Counter()
        # The turns that have a sentence.
        self.begun: set[int] = set()

    def cost(self, unit: SentenceUnit) -> float:
        return unit.cost + (_SAME_TURN if unit.turn in self.begun else _LABEL)

    def gain(self, number: int) -> float:
        """Return the weight that a sentence adds, for each token of its cost."""
        unit, weights = self._units[number], self._weights
        words = [weights[concept] for concept in unit.concepts if concept not in self._words]
        pairs = [pair for pair in unit.pairs if pair not in self._pairs]
        if 2 * len(pairs) < len(unit.pairs) and max(words, default=0.0) <= COMMON_WEIGHT:
            # It says the same in other words.
            return 0.0
        added = sum(words) + _PAIR * sum(
            [weights[pair >> PAIR_BITS] + weights[pair & _MASK] for pair in pairs]
        )
        if unit.is_work:
            again = sum([weights[concept] for concept in unit.concepts if concept in self._words])
            added += _EACH * len(words) / max(1, len(unit.concepts)) + _AGAIN * again
        return added * unit.factor * _REPEATED ** self._shapes[unit.shape] / self.cost(unit)

    def take(self, unit: SentenceUnit) -> None:
        self._words.update(unit.concepts)
        self._pairs.update(unit.pairs)
        self._shapes[unit.shape] += 1
        self.begun.add(unit.turn)


def _rank(source: History, budget: float) -> list[int]:
    """Return sentences by their gain over those before them, for their cost, until the budget is used up.

    The gain of a sentence only falls, so its old value is a bound: a sentence whose new gain beats all old
    ones is the best. Only the others of its turn become cheaper, and are valued anew.
    """
    turns: dict[int, list[int]] = {}
    for number, unit in enumerate(source.units):
        if unit.factor > 0:
            turns.setdefault(unit.turn, []).append(number)
    cover = _Cover(source)
    room = max(budget * _PREVIEWS, _FEW_PREVIEWS)
    heap = [(-cover.gain(number), number) for of_turn in turns.values() for number in of_turn]
    heapify(heap)
    ranked: dict[int, None] = {}
    while heap and budget > 0:
        _, number = heappop(heap)
        now = cover.gain(number)
        if number in ranked or now <= 0:
            continue
        if heap and now < -heap[0][0]:
            heappush(heap, (-now, number))
            continue
        unit = source.units[number]
        if unit.preview and (room := room - cover.cost(unit)) < 0:
            continue
        ranked[number] = None
        budget -= cover.cost(unit)
        anew = [] if unit.turn in cover.begun else turns[unit.turn]
        cover.take(unit)
        for other in anew:
            if other not in ranked:
                heappush(heap, (-cover.gain(other), other))
    return list(ranked)


def _fit(
    ranked: Sequence[int], source: History, passages: Sequence[Passage], room: int, count: CountTokens
) -> set[int]:
    """Return as many of the first sentences as fit, and then any others that still fit.

    Their tokens are counted in the layout of the text.
    """

    def size(chosen: Iterable[int]) -> int:
        return count(layout([source.units[number] for number in sorted(chosen)], passages))

    first = largest(len(ranked), lambda first: size(ranked[:first]) <= room)
    taken = set(ranked[:first])
    left = room - size(taken)
    for number in ranked[first + 1 : first + 1 + _LAST_TRIES]:
        if count(source.units[number].text) < left and (now := size({*taken, number})) <= room:
            taken.add(number)
            left = room - now
    return taken


def layout(units: Sequence[SentenceUnit], passages: Sequence[Passage]) -> str:
    """Return sentences as text: a line for each day, then one for each speaker or turn."""
    written: list[str] = []
    day, speaker = "", None
    for turn, of_turn in groupby(units, key=lambda unit: unit.turn):
        passage = passages[turn]
        said = _join(unit.text for unit in of_turn)
        date = in_words(passage.at)
        if date != day or (speaker and not passage.speaker):
            written.append(date)
            day, speaker = date, None
        same = passage.speaker == (speaker or "") and not passage.mark
        written.append(f"{passage.mark}{label(passage, same=same)}{said}")
        speaker = passage.speaker
    return "\n".join(written)


def _join(texts: Iterable[str]) -> str:
    """Join sentences, with a dot between those that would run into each other."""
    joined = ""
    for text in texts:
        joined += f"{'' if not joined else ' ' if joined[-1] in _ENDS else JOINED}{text}"
    return joined


def in_words(at: datetime | None) -> str:
    """Return a day in words, by which a search can find it: 8 May 2023."""
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}" if at else UNDATED


def _topics(source: History, ranked: Sequence[int], taken: set[int]) -> list[str]:
    """Return the topics of the next sentences: the weightiest word of each, or two."""
    covered = {concept for number in taken for concept in source.units[number].concepts}
    topics: dict[str, str] = {}
    for number in ranked:
        unit = source.units[number]
        topic = _topic(unit, source, covered) if number not in taken and unit.factor >= _PROSE else ""
        if topic and topic.lower() not in topics:
            topics[topic.lower()] = topic
            covered.update(unit.concepts)
        if len(topics) == _TOPICS:
            break
    return list(topics.values())


def _topic(unit: SentenceUnit, source: History, covered: set[int]) -> str:
    """Return the weightiest word or two of a sentence that are not covered; "" for none."""
    best, weight = "", 1.4
    for pair in unit.pairs:
        first, second = pair >> PAIR_BITS, pair & _MASK
        if first in covered and second in covered:
            continue
        phrase = f"{source.names[first]} {source.names[second]}"
        low, high = sorted((source.weights[first], source.weights[second]))
        if low >= 1.0 and low + high > weight and len(phrase) <= _LONGEST_TOPIC and phrase in unit.text:
            best, weight = phrase, low + high
    for concept in unit.concepts:
        name, own = source.names[concept], source.weights[concept]
        if concept not in covered and own > weight and _SHORTEST_TOPIC <= len(name) <= _LONGEST_TOPIC:
            best, weight = name, own
    return best


def _with_topics(body: str, topics: list[str], target: int, count: CountTokens) -> str:
    for some in range(len(topics), 0, -1):
        text = f"{body}\n{EXPAND}{', '.join(topics[:some])}"
        if count(text) <= target:
            return text
    return body


def _cut(unit: SentenceUnit, passages: Sequence[Passage], target: int, count: CountTokens) -> str:
    """Return the beginning of a sentence that does not fit whole, with its day and speaker if these fit."""
    whole = layout([unit], passages)
    if count(whole) <= target:
        return whole
    head = whole[: len(whole) - len(unit.text)]
    text = unit.text
    for before in (head, ""):

        def fits(size: int, before: str = before) -> bool:
            return count(f"{before}{text[:size].rstrip()}…") <= target

        size = largest(len(text), fits)
        if size >= min(len(text), 3 * len(before)) and size:
            return f"{before}{text[:size].rstrip()}…"
    return text[:1] if count(text[:1]) <= target else ""


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest size from 0 to `most` that fits, by bisection; 0 is taken to fit."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
