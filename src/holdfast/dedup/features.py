"""Features of two texts, as named numbers: what they share, what is left of each, and how they are worded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import mul

import numpy as np
from numpy.typing import NDArray

from holdfast.dedup import aligned_pair
from holdfast.dedup.aligned_pair import PERSONAL, STATES, TIMED, is_relation, is_weak
from holdfast.dedup.alignment import Alignment, alike, difference
from holdfast.dedup.change_phrases import Cue, count_facets, count_opposites, ends_in, flags_of_kinds
from holdfast.dedup.parsed_text import FAMILY, FUNCTION, ParsedText
from holdfast.dedup.slots import is_exchanged, slot_features
from holdfast.dedup.statement import ContentItem, Statement

Features = dict[str, float]

_NAMES = frozenset({"name", "first", "id"})
_VALUES = TIMED | {"number", "version"}
_WORDS = frozenset("again longer never new no not now since t to too was".split())
_SHARED_WORDS = frozenset("and for has in is likes on the".split())
_DENYING = frozenset("not no never none without isn doesn don cannot nobody t".split())
# Closeness of two words of one family: commuter, commute.
_KIN = 0.85
_NEAR, _LIKE, _SAME = 0.5, 0.7, 0.999
# Words at most in the one place where two texts differ.
_SLOT = 3
_LINKING = frozenset("is are am be the a an now current to at on in of".split())
# Words at most of a key.
_KEY = 3
_BE = frozenset("is are am".split())
_SOME = frozenset("a an some one another any many most several".split())
# Words that deny; "no" only where a text begins with it, since it stands for "in the" in Portuguese.
_NEVER = frozenset("not never without nobody isn doesn don cannot nicht nie kein keine jamais nunca".split())
# Features under which another value in the same frame is another thing: a friend lives in Rome, in Milan.
_UNFRAMED = (
    "slot beside many",
    "slot of some",
    "exchanged of two types",
    "exchanged conditions",
    "exchanged subjects",
    "old past",
    "new past",
    "new plan",
    "old event",
)
# Before the class of two values that differ.
_CLASS = "alike: "
# Features of a value of which a thing has one at a time, whatever else is known of it.
_PLAIN = ("value of newest", "state of rank", "slot of switch at end", "exchanged over")
_OTHER = tuple(name for name in _UNFRAMED if name != "exchanged subjects")
# Words at most of two short values together.
_SHORT = 4
# The place of something missing.
_GAP = -0.5


def features(old: ParsedText, new: ParsedText) -> Features:
    """Return the features of two parsed texts. Those that are 0 may be missing."""
    parts = difference(old.statement, new.statement)
    found: Features = defaultdict(float)
    _add_traits(found, old, new)
    _add_shared(found, old.statement, new.statement, parts)
    _add_remaining(found, "old", parts.old)
    _add_remaining(found, "new", parts.new)
    _add_opposed(found, parts)
    _add_cues(found, old, new, parts)
    _add_similarity(found, old, new)
    _add_word_differences(found, old, new)
    if found["slot"]:
        _add_exchange(found)
    if found["slot after frame"] or found["slot of attribute"]:
        found["framed"] = not any(found[name] for name in _UNFRAMED)
    return found


def _add_traits(found: Features, old: ParsedText, new: ParsedText) -> None:
    """Add the traits of each statement."""
    for side, text, other in (("old", old, new), ("new", new, old)):
        statement = text.statement
        found[f"{side} exact"] = len(text.exact)
        found[f"{side} exact alone"] = text.exact_alone(other)
        found[f"{side} unknown"] = len(text.unknown) / max(1, len(text.content))
        for name in statement.traits:
            found[f"{side} {name}"] = 1
        for item in statement.items:
            found[f"{side} items"] += not item.light
            if item.negated:
                found[f"{side} negated"] += 1
            if item.gone:
                found[f"{side} gone"] += 1
            if item.conditional:
                found[f"{side} conditional"] += 1
            if "=user" in item.keys:
                found[f"{side} user"] = 1


def _add_shared(found: Features, old: Statement, new: Statement, parts: Alignment) -> None:
    """Add what both have, and in what order and sense."""
    solid = [pair for pair in parts.both if not pair[0].light]
    found["shared"] = len(solid)
    for a, b in solid:
        relation, weak = is_relation(a), is_weak(a)
        found["shared relations"] += relation
        found["shared weak"] += weak
        found["shared things"] += not (relation or weak)
        found["shared subjects"] += a.subject and b.subject
        found["shared moved"] += a.subject != b.subject
        found["shared gone"] += a.gone != b.gone
        found["shared flips"] += a.negated != b.negated
        found["shared names"] += a.kind in _NAMES
        found["shared values"] += a.kind in _VALUES
        found["shared states"] += not a.keys.isdisjoint(STATES)
        found["shared personal"] += not a.keys.isdisjoint(PERSONAL)
        for flag in a.flags:
            found[f"shared {flag}"] += 1
    total = len(old.items) + len(new.items)
    found["share"] = 2 * len(parts.both) / total if total else 0.0
    found["share of keys"] = len(old.keys & new.keys) / max(1, len(old.keys | new.keys))
    found["one value"] = aligned_pair.has_one_value(solid)
    found["many values"] = found["shared many"] > 0
    found["turned round"] = aligned_pair.is_turned_round(parts)
    found["reordered"] = aligned_pair.is_reordered(parts.both)


def _add_remaining(found: Features, side: str, left: Iterable[ContentItem]) -> None:
    """Add what one text has alone."""
    for item in left:
        if item.light:
            continue
        relation, weak = is_relation(item), is_weak(item)
        seen = [item.kind, *item.flags]
        seen += ["subject"] if item.subject else []
        seen += ["relation"] if relation else []
        seen += ["weak"] if weak else []
        seen += ["heavy"] if not (weak or relation) else []
        seen += ["heavy subject"] if item.subject and not weak else []
        seen += ["negated"] if item.negated else []
        if item.classes:
            seen.append("classed")
            seen += ["kin"] if "kin" in item.classes else []
            seen += ["condition"] if any(label[-1] == "?" for label in item.classes) else []
        seen += ["states"] if not item.keys.isdisjoint(STATES) else []
        found[f"{side} left"] += 1
        for name in seen:
            found[f"{side} left {name}"] += 1


def _add_opposed(found: Features, parts: Alignment) -> None:
    """Add which of the remaining items are values of one type."""
    for a in parts.old:
        for b in parts.new:
            label = alike(a, b)
            if label:
                found["alike"] += 1
                found["alike aligned"] += a.before == b.before
                found["alike subjects"] += a.subject and b.subject
                found[f"alike {_type(label)}"] = 1
                found[f"{_CLASS}{label}"] = 1
    # Two things with a number each: Kafka 3.6, Redis 7.2.
    found["two numbered"] = _has_numbered(parts.old) and _has_numbered(parts.new)
    olds, news = ([item for item in left if not item.light] for left in (parts.old, parts.new))
    if len(olds) == len(news) == 1:
        _add_exchanged(found, olds[0], news[0])


def _has_numbered(left: Sequence[ContentItem]) -> bool:
    """Return whether a number stands right behind what has it."""
    return any(
        b.kind in ("number", "version") and b.place == a.place + 1 and not is_relation(a)
        for a, b in pairwise(left)
    )


def _add_exchanged(found: Features, old: ContentItem, new: ContentItem) -> None:
    """Add whether the one item that each text has alone may stand for the other one."""
    label = alike(old, new)
    found["exchanged"] = 1
    found["exchanged of a type"] = bool(label) and label[-1] != "?"
    found["exchanged of a kind"] = old.kind == new.kind
    found["exchanged of two types"] = bool(old.classes and new.classes) and not label
    found["exchanged, one typed"] = bool(old.classes) != bool(new.classes)
    found["exchanged conditions"] = any(name[-1] == "?" for name in old.classes | new.classes)
    found["exchanged subjects"] = old.subject and new.subject


def _type(label: str) -> str:
    if label[-1] in "!?":
        return label[-1]
    return label if label in ("number", "time", "name", "amount", "id") else "class"


def _add_cues(found: Features, old: ParsedText, new: ParsedText, parts: Alignment) -> None:
    """Add the wordings of change, and whether the old text has what they speak of."""
    flags = flags_of_kinds()
    before = {(cue.kind, cue.side) for cue in old.cues.all if not cue.denied}
    for cue in new.cues.all:
        state = "denied" if cue.denied else "told"
        if not cue.side:
            found[f"{cue.kind} {state}"] = 1
            _add_cue_context(found, cue, parts)
        elif cue.side == ">" and (cue.kind, "<") in before:
            found[f"follows {state}"] = 1
            for flag in flags[cue.kind]:
                found[f"follows {flag} {state}"] = 1
        elif cue.side == "<" and (cue.kind, ">") in before:
            found[f"precedes {state}"] = 1
            found[f"alternates {state}"] += "sym" in flags[cue.kind]
        if (cue.kind, cue.side) in before:
            found["same cue"] = 1
    for cue in old.cues.all:
        if not cue.side:
            found[f"{cue.kind} before"] = 1
    found["old told words"] = old.cues.covered
    found["new told words"] = new.cues.covered


def _add_cue_context(found: Features, cue: Cue, parts: Alignment) -> None:
    """Add whether the old text names what was left or replaced, and whether another thing is named."""
    if cue.kind in ("leave", "away") and not cue.denied:
        near = [a for a, b in parts.both if cue.start <= b.place <= cue.end + 1]
        if any(not is_weak(a) for a in near):
            found[f"{cue.kind} shared"] = 1
        if any(b.place >= cue.end for b in parts.new):
            found[f"{cue.kind} other"] = 1


def _add_similarity(found: Features, old: ParsedText, new: ParsedText) -> None:
    """Add how close the words of the two texts are."""
    close = _closeness(old, new)
    best = close.max(axis=1, initial=0.0), close.max(axis=0, initial=0.0)
    _add_coverage(found, "old", old, best[0].tolist())
    _add_coverage(found, "new", new, best[1].tolist())
    found["cosine"] = float(old.direction @ new.direction)
    for name, level in (("far", _LIKE), ("differing", _SAME)):
        chosen = [nearest < level for nearest in best]
        both = all(mask.any() for mask in chosen)
        found[f"cosine of {name}"] = float(old.mean(chosen[0]) @ new.mean(chosen[1])) if both else -1.0


def _closeness(old: ParsedText, new: ParsedText) -> NDArray[np.float32]:
    """Return the closeness of words of content, 0 to 1, shape (old, new)."""
    close: NDArray[np.float32] = np.maximum(old.vectors @ new.vectors.T, 0)
    for row in old.unknown:
        for column in new.unknown:
            one, other = old.content[row], new.content[column]
            shared = _common_length(one, other)
            close[row, column] = shared / max(len(one), len(other)) if shared < FAMILY else 0.0
    for start, rows in old.by_start.items():
        for row in rows:
            for column in new.by_start.get(start, ()):
                close[row, column] = max(close[row, column], _KIN)
    for root, rows in old.by_root.items():
        for row in rows:
            for column in new.by_root.get(root, ()):
                close[row, column] = 1.0
    return close


def _add_coverage(found: Features, side: str, text: ParsedText, nearest: Sequence[float]) -> None:
    """Add how far the other text covers the words of one text, and what it does not cover."""
    weights = text.weights.tolist()
    total = sum(weights)
    found[f"{side} covered"] = sum(map(mul, weights, nearest)) / total if total else 1.0
    found[f"{side} least covered"] = min(nearest, default=1.0)
    found[f"{side} words"] = len(nearest)
    for name, level in (("far", _NEAR), ("unlike", _LIKE), ("differing", _SAME)):
        chosen = [number for number, near in enumerate(nearest) if near < level]
        if not chosen:
            found[f"{side} {name} first"] = found[f"{side} {name} last"] = _GAP
            continue
        places = text.places[chosen[0]], text.places[chosen[-1]]
        last = max(1, len(text.words) - 1)
        found[f"{side} {name} words"] = len(chosen)
        found[f"{side} {name} weight"] = sum([weights[number] for number in chosen])
        found[f"{side} {name} heaviest"] = max([weights[number] for number in chosen])
        found[f"{side} {name} capitals"] = sum([text.capital[text.places[number]] for number in chosen])
        found[f"{side} {name} numbers"] = sum([text.content[number][0].isdigit() for number in chosen])
        found[f"{side} {name} first"] = places[0] / last
        found[f"{side} {name} last"] = places[1] / last


def _add_word_differences(found: Features, old: ParsedText, new: ParsedText) -> None:
    """Add where the two differ as sequences of words, and by which function words."""
    one, other = old.words, new.words
    start = _common_length(one, other)
    end = _common_length(one[start:][::-1], other[start:][::-1])
    slots = one[start : len(one) - end], other[start : len(other) - end]
    gone, come = old.known - new.known, new.known - old.known
    found["same start"] = start
    found["same end"] = end
    found["old slot"] = len(slots[0])
    found["new slot"] = len(slots[1])
    found["slot of the whole"] = (len(slots[0]) + len(slots[1])) / max(1, len(one) + len(other))
    found["same words"] = 2 * len(old.known & new.known) / max(1, len(old.known) + len(new.known))
    found["words gone"] = len(gone)
    found["words come"] = len(come)
    found["function words gone"] = len(gone & FUNCTION)
    found["function words come"] = len(come & FUNCTION)
    for word in come & _WORDS:
        found[f"+{word}"] = 1
    for word in gone & _WORDS:
        found[f"-{word}"] = 1
    for word in old.known & new.known & _SHARED_WORDS:
        found[f"={word}"] = 1
    found["old possession"] = "s" in one[1:3]
    found["new possession"] = "s" in other[1:3]
    found["denied before"] = len(old.known & _DENYING)
    found["denied"] = len(new.known & _DENYING) - found["denied before"]
    found["opposite words"] = count_opposites(gone, come)
    found["facets"] = count_facets(gone, come)
    found["exchanged over"] = is_exchanged(one, other)
    if 0 < len(slots[0]) <= _SLOT and 0 < len(slots[1]) <= _SLOT:
        _add_slot(found, old, new, start, slots)


def _add_slot(
    found: Features,
    old: ParsedText,
    new: ParsedText,
    start: int,
    slots: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    """Add what stands in the one place where two texts differ, and after which words."""
    spans = [slice(start, start + len(slot)) for slot in slots]
    before = old.stems_of(slice(0, start))
    bare = tuple(word for word in before if word not in _LINKING)
    found["slot"] = 1
    found["slot after function word"] = bool(start) and old.words[start - 1] in FUNCTION
    found["slot after frame"] = ends_in(before, "frame")
    found["slot of attribute"] = _is_value_of(old, start) and (
        ends_in(bare, "attr") or (old.words[1:2] == ("of",) and ends_in(bare[:1], "attr"))
    )
    found["slot of many"] = ends_in(bare, "many")
    found["slot beside many"] = any(ends_in((word,), "many") for word in before)
    found["slot of some"] = old.words[0] in _SOME
    found["slot capitals"] = any(old.capital[spans[0]]) and any(new.capital[spans[1]])
    chosen = [
        np.array([span.start <= place < span.stop for place in text.places], bool)
        for text, span in zip((old, new), spans, strict=True)
    ]
    found["slot cosine"] = float(old.mean(chosen[0]) @ new.mean(chosen[1]))
    classes = {name[len(_CLASS) :].rstrip("!") for name in found if name.startswith(_CLASS)}
    found |= slot_features(old, new, start, slots, classes)
    found["slot of denial"] = not found["slot of number"] and all(
        text.words[0] == "no" or not _NEVER.isdisjoint(text.words) for text in (old, new)
    )


def _add_exchange(found: Features) -> None:
    """Add whether two values of one thing stand in the one place, as far as rules can tell."""
    other = any(found[name] for name in _OTHER)
    past = found["both past"] = found["slot of past"] or (found["old past"] and found["new past"])
    found["plain value"] = any(found[name] for name in _PLAIN) and not other
    short = found["old slot"] + found["new slot"] <= _SHORT
    is_none = other or past or found["slot of denial"]
    found["one exchanged"] = found["exchanged"] and short and not is_none


def _is_value_of(text: ParsedText, start: int) -> bool:
    """Return whether the value of something starts here: the owner is Ana, owner: Ana."""
    return text.words[start - 1] in _BE or ("keyed" in text.statement.traits and start <= _KEY)


def _common_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the common beginning of two sequences."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
