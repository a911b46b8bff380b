"""Features of two texts, as named numbers: shared items, remaining items and wordings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from operator import eq

from holdfast.dedup.alignment import VALUES, Alignment, alike, difference
from holdfast.dedup.parsed_text import FAMILY, FUNCTION, ParsedText
from holdfast.dedup.slots import is_exchanged, slot_features
from holdfast.dedup.statement import ContentItem, Statement
from holdfast.text.fillers import weak_words

Features = dict[str, float]

_NAMES = frozenset({"name", "first", "id"})
_STATES = frozenset(
    "=enabled =opened =works =available =done =merged =approved =required =allowed =supported =cancelled "
    "=confirmed =married =paid =retire =over =born =end =begin =sold".split()
)
# Relations that say little beside the things they relate: stored in, found in, shown.
_WEAK = frozenset(
    "=create =send =show =take =keep =located =location =place =reside =host =scheduled =price =pay "
    "=paid =have =use =name =job =type =prefer =favourite =want =contains =receive =put =supply =say "
    "=release =answer =origin =work =be =cause =because =find =interval =request =count =set =config "
    "=file =acquired =require =required =must =people".split()
) | {"=store data", "=find under"}
_WORDS = frozenset("again longer never new no not now since t to too was".split())
_SHARED_WORDS = frozenset("and for has in is likes on the".split())
_DENYING = frozenset("not no never none without isn doesn don cannot nobody t".split())
# Words at most in the only place where two texts differ.
_SLOT = 3
# Words that deny; "no" only where a text begins with it, since it stands for "in the" in Portuguese.
_NEVER = frozenset("not never without nobody isn doesn don cannot nicht nie kein keine jamais nunca".split())
# Features under which another value in the same frame is another thing: a friend lives in Rome, in Milan.
_OTHER = (
    "slot beside many",
    "slot of some",
    "exchanged of two types",
    "exchanged conditions",
    "old past",
    "new past",
    "new plan",
    "old event",
)
# Features of a value that a thing has only one of at a time.
_PLAIN = ("value of newest", "state of rank", "slot of switch at end", "exchanged over")
# Words at most of two short values together.
_SHORT = 4
# The place of missing words.
_GAP = -0.5


def features(old: ParsedText, new: ParsedText) -> Features:
    """Return the features of two parsed texts. Those that are 0 may be missing."""
    parts = difference(old.statement, new.statement)
    values: Features = defaultdict(float)
    _add_shared(values, old.statement, new.statement, parts)
    for side, text, other, left in (("old", old, new, parts.old), ("new", new, old, parts.new)):
        _add_traits(values, side, text.statement)
        _add_remaining(values, side, left)
        _add_coverage(values, side, text, other)
    _add_opposed(values, parts)
    _add_cues(values, old, new, parts)
    _add_word_differences(values, old, new)
    return values


def _add_traits(values: Features, side: str, statement: Statement) -> None:
    """Add the traits of a statement."""
    for name in statement.traits:
        values[f"{side} {name}"] = 1
    for item in statement.items:
        values[f"{side} items"] += not item.light
        values[f"{side} negated"] += item.negated
        if "=user" in item.keys:
            values[f"{side} user"] = 1


def _add_shared(values: Features, old: Statement, new: Statement, parts: Alignment) -> None:
    """Add the shared items, with their order and sense."""
    solid = [pair for pair in parts.both if not pair[0].light]
    values["shared"] = len(solid)
    for a, b in solid:
        relation, weak = _is_relation(a), _is_weak(a)
        values["shared relations"] += relation
        values["shared weak"] += weak
        values["shared things"] += not (relation or weak)
        values["shared subjects"] += a.subject and b.subject
        values["shared moved"] += a.subject != b.subject
        values["shared flips"] += a.negated != b.negated
        values["shared names"] += a.kind in _NAMES
        values["shared values"] += a.kind in VALUES
        values["shared states"] += not a.keys.isdisjoint(_STATES)
        for flag in a.flags:
            values[f"shared {flag}"] += 1
    total = len(old.items) + len(new.items)
    values["share"] = 2 * len(parts.both) / total if total else 0.0
    values["share of keys"] = len(old.keys & new.keys) / max(1, len(old.keys | new.keys))
    denied = sum(item.negated for item in (*parts.old, *parts.new))
    # One of them denies what the other says.
    values["turned round"] = values["shared flips"] > 0 and (values["shared flips"] + denied) % 2 == 1


def _add_remaining(values: Features, side: str, left: Iterable[ContentItem]) -> None:
    """Add the items of one text alone."""
    for item in left:
        if item.light:
            continue
        relation, weak = _is_relation(item), _is_weak(item)
        traits = {
            "subject": item.subject,
            "relation": relation,
            "weak": weak,
            "heavy": not (weak or relation),
            "heavy subject": item.subject and not weak,
            "negated": item.negated,
            "classed": bool(item.classes),
            "kin": "kin" in item.classes,
            "condition": any(label[-1] == "?" for label in item.classes),
            "states": not item.keys.isdisjoint(_STATES),
        }
        values[f"{side} left"] += 1
        for name in (item.kind, *item.flags, *(name for name, holds in traits.items() if holds)):
            values[f"{side} left {name}"] += 1


def _is_relation(item: ContentItem) -> bool:
    """Return whether an item is a relation, not a thing."""
    return bool(item.flags & {"verb", "one", "change"})


def _is_weak(item: ContentItem) -> bool:
    """Return whether an item says little beside names and values."""
    return bool(item.keys & _WEAK) or (item.kind == "word" and not item.keys.isdisjoint(weak_words()))


def _add_opposed(values: Features, parts: Alignment) -> None:
    """Add which of the remaining items are values of one type."""
    for a in parts.old:
        for b in parts.new:
            label = alike(a, b)
            if label:
                values["alike"] += 1
                values["alike aligned"] += a.before == b.before
                values["alike subjects"] += a.subject and b.subject
                values[f"alike {_type(label)}"] = 1
                values[f"alike: {label}"] = 1
    # Two things with a number each: Kafka 3.6, Redis 7.2.
    values["two numbered"] = _has_numbered(parts.old) and _has_numbered(parts.new)
    olds, news = ([item for item in left if not item.light] for left in (parts.old, parts.new))
    if len(olds) == len(news) == 1:
        _add_exchanged(values, olds[0], news[0])


def _has_numbered(left: Sequence[ContentItem]) -> bool:
    """Return whether a number directly follows the thing it belongs to."""
    return any(
        b.kind in ("number", "version") and b.place == a.place + 1 and not _is_relation(a)
        for a, b in pairwise(left)
    )


def _add_exchanged(values: Features, old: ContentItem, new: ContentItem) -> None:
    """Add whether the only remaining items of both texts may replace each other."""
    label = alike(old, new)
    values["exchanged"] = 1
    values["exchanged of a type"] = bool(label) and label[-1] != "?"
    values["exchanged of a kind"] = old.kind == new.kind
    values["exchanged of two types"] = bool(old.classes and new.classes) and not label
    values["exchanged conditions"] = any(name[-1] == "?" for name in old.classes | new.classes)
    values["exchanged subjects"] = old.subject and new.subject


def _type(label: str) -> str:
    if label[-1] in "!?":
        return label[-1]
    return label if label in ("number", "time", "name", "amount", "id") else "class"


def _add_cues(values: Features, old: ParsedText, new: ParsedText, parts: Alignment) -> None:
    """Add the wordings of change, and whether they concern items of the old text."""
    before = {(cue.kind, cue.side) for cue in old.cues.all if not cue.denied}
    for cue in new.cues.all:
        state = "denied" if cue.denied else "told"
        if not cue.side:
            values[f"{cue.kind} {state}"] = 1
            near = [a for a, b in parts.both if cue.start <= b.place <= cue.end + 1]
            if cue.kind in ("leave", "away") and not cue.denied and not all(map(_is_weak, near)):
                values[f"{cue.kind} shared"] = 1
        elif (cue.kind, "<" if cue.side == ">" else ">") in before:
            values[f"{'follows' if cue.side == '>' else 'precedes'} {state}"] = 1
        if (cue.kind, cue.side) in before:
            values["same cue"] = 1
    for cue in old.cues.all:
        if not cue.side:
            values[f"{cue.kind} before"] = 1
    values["old told words"] = old.cues.covered
    values["new told words"] = new.cues.covered


def _add_coverage(values: Features, side: str, text: ParsedText, other: ParsedText) -> None:
    """Add the share of a text's words of content that another text covers, and the uncovered words."""
    alone = [number for number, root in enumerate(text.stems) if root not in other.roots]
    far = [number for number in alone if text.content[number][:FAMILY] not in other.families]
    count = len(text.content)
    values[f"{side} words"] = count
    values[f"{side} covered"] = 1 - len(alone) / count if count else 1.0
    last = max(1, len(text.words) - 1)
    for name, chosen in (("far", far), ("differing", alone)):
        places = [text.places[number] for number in chosen]
        values[f"{side} {name} words"] = len(places)
        values[f"{side} {name} capitals"] = sum(text.capital[place] for place in places)
        values[f"{side} {name} numbers"] = sum(text.words[place][0].isdigit() for place in places)
        values[f"{side} {name} first"] = places[0] / last if places else _GAP
        values[f"{side} {name} last"] = places[-1] / last if places else _GAP


def _add_word_differences(values: Features, old: ParsedText, new: ParsedText) -> None:
    """Add the differences of the word sequences: place, length and function words."""
    olds, news = old.words, new.words
    start = _common_length(olds, news)
    end = _common_length(olds[start:][::-1], news[start:][::-1])
    slots = olds[start : len(olds) - end], news[start : len(news) - end]
    gone, come, both = old.known - new.known, new.known - old.known, old.known & new.known
    values["same start"] = start
    values["same end"] = end
    values["old slot"] = len(slots[0])
    values["new slot"] = len(slots[1])
    values["slot of the whole"] = (len(slots[0]) + len(slots[1])) / max(1, len(olds) + len(news))
    values["same words"] = 2 * len(both) / max(1, len(old.known) + len(new.known))
    values["words gone"] = len(gone)
    values["words come"] = len(come)
    values["function words gone"] = len(gone & FUNCTION)
    values["function words come"] = len(come & FUNCTION)
    for sign, words in (("+", come & _WORDS), ("-", gone & _WORDS), ("=", both & _SHARED_WORDS)):
        for word in words:
            values[f"{sign}{word}"] = 1
    values["denied"] = len(new.known & _DENYING) - len(old.known & _DENYING)
    values["exchanged over"] = is_exchanged(olds, news)
    if 0 < len(slots[0]) <= _SLOT and 0 < len(slots[1]) <= _SLOT:
        _add_slot(values, old, new, start, slots)


def _add_slot(
    values: Features,
    old: ParsedText,
    new: ParsedText,
    start: int,
    slots: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    """Add the features of the only place where two texts differ: two values of one thing, or two things."""
    values |= slot_features(old, new, start, slots)
    other = any(values[name] for name in _OTHER)
    past = values["slot of past"] or (values["old past"] and values["new past"])
    denied = not values["slot of number"] and _is_denied(old) and _is_denied(new)
    is_short = values["old slot"] + values["new slot"] <= _SHORT
    values["slot"] = 1
    values["both past"] = past
    values["slot of denial"] = denied
    values["plain value"] = any(values[name] for name in _PLAIN) and not other
    values["one exchanged"] = values["exchanged"] and is_short and not (other or past or denied)
    is_framed = values["slot after frame"] or values["slot of attribute"]
    values["framed"] = is_framed and not (other or values["exchanged subjects"])


def _is_denied(text: ParsedText) -> bool:
    return text.words[0] == "no" or not _NEVER.isdisjoint(text.words)


def _common_length(words: Sequence[str], others: Sequence[str]) -> int:
    """Return the length of the common beginning of two sequences."""
    return sum(takewhile(bool, map(eq, words, others)))
