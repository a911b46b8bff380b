"""All that may do harm in a text. It is read without the disguises that it wears, so that they change nothing but the kind.

Most texts are clean, and a look at their words shows it. Where that look stops, rules and weights say what
there is, and a decision that was fitted to labelled texts says whether it is an order to the model or only
sounds like one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Literal

from holdfast.safety import (
    alphabets,
    credentials,
    encodings,
    injection_roles,
    injection_rules,
    injection_weights,
    invisible,
    markers,
)
from holdfast.safety.deobfuscate import (
    INVISIBLE,
    Folded,
    fold,
    foreign,
    has_lookalikes,
    unleet,
    unmask,
    unspace,
)
from holdfast.safety.injection_features import signs
from holdfast.safety.injection_roles import Sentence
from holdfast.safety.injection_rules import Order
from holdfast.types import Finding

if TYPE_CHECKING:
    from holdfast.text.boosted_trees import Forest

_SURE = 0.9  # how likely what is stopped must be an order to the model
_LONGEST = 600  # characters that are judged together; of a longer text, each sentence is
_CLOSELY = 50_000  # characters of different passages of one text that are judged, at 20 µs each; no text needs as many
# Of what is encoded in it half as many, and of what is encoded in that half of those: all together stays
# bounded.
_DEEPEST = 2  # encodings within each other that are read
_WORD = re.compile(r"[^\W_]+")
_CYRILLIC = re.compile("[\u0400-\u052f]")
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_ALNUM = _LETTERS + _LETTERS.upper() + b"0123456789"
# ASCII in lower case, with a space for all that is no letter or digit.
_TO_WORDS = bytes(code if code in _ALNUM else 32 for code in bytes(range(256)).lower())
# What a text looks like: "a" for a letter, "0" for what may stand for one, and a space.
_TO_SHAPE = bytes(97 if chr(c).isalpha() else 48 if chr(c) in "013457@$" else 32 for c in range(128)) + bytes(
    128
)


def find_threats(text: str, *, closely: bool) -> list[Finding]:
    """Find what hides, what is disguised, what commands, and what is secret; in no order."""
    folded = fold(text)
    view = undisguised(text, folded)
    lower = view.text.lower()
    words = _words(lower)
    found: list[Finding] = []
    if len(lower) > _LONGEST or injection_weights.glance(lower, words, closely=closely) is not None:
        found += _instructions(text, view, lower, closely=closely)
    if markers.may_have_markers(lower, words):
        found += _found(text, view, lower, markers.find_markers(lower))
    if encodings.may_be_encoded(folded.text, words):
        found += _encoded(folded, words)
    if view is not folded:
        words = _words(folded.text.lower())
        if not text.isascii():
            mixed = alphabets.find_mixed(text)
            found += (Finding("disguise", *span, "high", "a word of two alphabets") for span in mixed)
    for secret in credentials.find_secrets(folded.text, words):
        found.append(Finding("secret", *folded.span(secret.start, secret.end), "high", secret.what))
    if not text.isascii() and INVISIBLE.search(text):
        found += invisible.find_invisible(text)
    return found


def _encoded(folded: Folded, words: AbstractSet[str], deep: int = 1) -> Iterator[Finding]:
    """Find the orders in what a text says when it is decoded, each where its encoding stands.

    What is said again is judged once; of more than can be judged, what leans most towards an order.
    """
    readings = list(encodings.readings(folded.text, words))
    said: dict[str, str] = {}
    room = _CLOSELY >> deep
    for text in sorted(dict.fromkeys(one.text for one in readings), key=_leaning_of, reverse=True):
        if room > 0:
            said[text] = _said(text, deep)
            room -= len(text)
    for one in readings:
        if message := said.get(one.text):
            yield Finding("disguise", *folded.span(one.start, one.end), "high", f"{message}, encoded")


def _leaning_of(text: str) -> float:
    lower = text.lower()
    lean = injection_weights.glance(lower, _words(lower), closely=True)
    return -inf if lean is None else lean


def _said(text: str, deep: int) -> str:
    """Return what the first grave order in a decoded text is; "" for none."""
    folded = fold(text)
    view = undisguised(text, folded)
    lower = view.text.lower()
    words = _words(lower)
    found = [*_instructions(text, view, lower, closely=True, room=_CLOSELY >> deep)]
    if markers.may_have_markers(lower, words):
        found += _found(text, view, lower, markers.find_markers(lower))
    if deep < _DEEPEST and encodings.may_be_encoded(folded.text, words):
        found += _encoded(folded, words, deep + 1)
    return next((one.message for one in found if one.severity == "high"), "")


def _found(text: str, view: Folded, lower: str, orders_found: Iterable[Order]) -> Iterator[Finding]:
    """Lead orders back to the text that they were found in."""
    for order in orders_found:
        span = view.span(order.start, order.end)
        kind = _kind(text[slice(*span)], lower[order.start : order.end])
        yield Finding(kind, *span, order.severity, order.message)


def undisguised(text: str, folded: Folded) -> Folded:
    """Read a text without the disguises that it seems to wear; as it is folded where there are none."""
    view = folded
    if not text.isascii() and has_lookalikes(text):
        is_cyrillic = 2 * len(_CYRILLIC.findall(text)) > sum(map(str.isalpha, text))
        view = foreign(text) if is_cyrillic else unmask(text)
    shape = view.text.encode("ascii", "replace").translate(_TO_SHAPE)
    if shape.count(b"a0a") + shape.count(b"a00a") + shape.count(b" 0aa") >= 2:
        view = unleet(view)
    if b"a a a a a" in shape.replace(b"0", b"a") or b"a  a  a  a" in shape:
        view = unspace(view) or view
    return view


def read(lower: str) -> tuple[list[Sentence], list[Order]]:
    """Read a folded text in lower case: its sentences, and the orders in it."""
    sentences = injection_roles.read(lower)
    return sentences, _orders(lower, sentences)


def _orders(lower: str, sentences: list[Sentence]) -> list[Order]:
    words = _words(lower)
    found = list(injection_rules.find_orders(lower, words, {word[: injection_rules.HEAD] for word in words}))
    found += [
        injection_rules.judge(lower, *intent, f"intent: {intent.message}")
        for intent in injection_roles.find_intents(sentences)
    ]
    return found


def _instructions(
    text: str, view: Folded, lower: str, *, closely: bool, room: int = _CLOSELY
) -> Iterator[Finding]:
    """Find the orders in what a reader sees of a text, and in that in lower case; what is said again is judged once."""
    judged: dict[tuple[str, str], list[Order]] = {}
    for start, end in _worth_judging(lower, closely=closely, room=room):
        seen = text[slice(*view.span(start, end))], lower[start:end]
        if seen not in judged:
            judged[seen] = list(_judged(*seen, closely=closely))
        for order in judged[seen]:
            span = view.span(start + order.start, start + order.end)
            kind = _kind(text[slice(*span)], seen[1][order.start : order.end])
            yield Finding(kind, *span, order.severity, order.message)


def _worth_judging(lower: str, *, closely: bool, room: int) -> list[tuple[int, int]]:
    """Cut a long text into sentences, so that no order drowns in it, and pass over those that are far from an order.

    Where more than `room` characters are left to be judged, it is those that lean most towards an order: a
    text cannot bury one under thousands of sentences that lean less.
    """
    if len(lower) <= _LONGEST:
        return [(0, len(lower))]
    spaced = _spaced(lower)
    seen: set[str] = set()
    leaning_to: dict[str, float] = {}
    spans = []
    for start, end in injection_roles.sentences(lower):
        passage = lower[start:end]
        if passage not in seen:
            seen.add(passage)
            words = set(spaced[start:end].split() if passage.isascii() else _WORD.findall(passage))
            lean = injection_weights.glance(passage, words, closely=closely)
            if lean is not None:
                leaning_to[passage] = lean
        if passage in leaning_to:
            spans.append((start, end))
    kept = set()
    for passage in sorted(leaning_to, key=leaning_to.__getitem__, reverse=True):
        room -= len(passage)
        if room < 0:
            break
        kept.add(passage)
    return [(start, end) for start, end in spans if lower[start:end] in kept]


def _judged(text: str, lower: str, *, closely: bool) -> Iterator[Order]:
    """Find the orders in a passage; grave ones only where it is likely to be meant for the model."""
    sentences = injection_roles.read(lower)
    if not closely and injection_weights.is_far(sentences):
        return
    found = _orders(lower, sentences)
    read_of = signs(text, lower, sentences, found, injection_weights.weights())
    if _forest().judge([read_of])[0, 1] < _SURE:
        yield from (order._replace(severity="low") for order in found)
        return
    yield from found
    if not any(order.severity == "high" for order in found):
        yield _leaning_most(sentences)


def _leaning_most(sentences: Sequence[Sentence]) -> Order:
    """Point to the sentence that leans most towards an order."""
    most = max(
        sentences,
        key=lambda sentence: injection_weights.lean_of_words(
            injection_weights.words(sentence), injection_weights.weights()
        ),
    )
    start = most.start + len(most.text) - len(most.text.lstrip())
    return Order(start, start + len(most.text.strip()), "high", "worded like an order to the model", "")


def _kind(text: str, seen: str) -> Literal["instruction", "disguise"]:
    """Say whether a part of a text looks other to a machine than to its reader."""
    if text.isascii():
        return "instruction" if text.lower() == seen else "disguise"
    is_plain = fold(text).text.lower() == seen and not INVISIBLE.search(text) and not _is_styled(text)
    return "instruction" if is_plain else "disguise"


def _is_styled(text: str) -> bool:
    """Say whether a text has letters of another width or style, such as mathematical ones."""
    return any(
        not c.isascii() and unicodedata.normalize("NFKC", c).isascii() and not c.isspace() for c in text
    )


def _words(lower: str) -> set[str]:
    """Split a text in lower case into runs of letters and digits."""
    return set(_spaced(lower).split() if lower.isascii() else _WORD.findall(lower))


def _spaced(lower: str) -> str:
    """Write a space for all that is no ASCII letter or digit; every character keeps its place."""
    return lower.encode("ascii", "replace").translate(_TO_WORDS).decode()


@cache
def _forest() -> Forest:
    # Needs numpy, which most texts do not.
    from holdfast.text.boosted_trees import Forest

    return Forest.load("holdfast.safety", "order_forest.npz")
