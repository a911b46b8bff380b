"""All detectors of this room on one text, whose disguises are undone first.

Most texts are harmless, and a score of their words shows it. The others are read by rules and weights, and
trees that were fitted to labelled texts decide whether a text is an injection or only sounds like one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple

from holdfast.safety import (
    alphabets,
    credentials,
    deobfuscate,
    encodings,
    injection_roles,
    injection_rules,
    injection_weights,
    invisible,
    markers,
)
from holdfast.safety.deobfuscate import INVISIBLE, Folded, fold
from holdfast.safety.injection_features import features
from holdfast.safety.injection_roles import Sentence
from holdfast.safety.injection_rules import Order
from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import table_lines
from holdfast.types import Finding

if TYPE_CHECKING:
    from holdfast.text.boosted_trees import Forest

_THRESHOLD = 0.9  # the probability from which a text is an injection
_THRESHOLD_WORDED = 0.1  # the same of a text with the wording of an order (order_wordings.txt)
# A title before an order: "talk 1:", "note:", "page 4 –".
_LABEL = late_pattern(
    r"\W{0,4}(?:\w{1,20}[ -]){0,2}(?:\w{1,20}(?: \([^)\n]{1,30}\))?\s?:|#?\d{1,4}\s?[.)|–—-])\s+"
)
_LONGEST = 600  # characters that are judged together; of a longer text, each sentence is
# Characters of different passages of one text that are judged, at 20 µs each; half as many of encoded ones,
# and half of that again of those encoded within these, so that the sum is bounded.
_MAX_JUDGED = 50_000
_MAX_DEPTH = 2  # encodings within each other that are decoded
_WORD = late_pattern(r"[^\W_]+")
# ASCII in lower case, with a space for all that is not a letter or digit.
_TO_WORDS = bytes(code if bytes((code,)).isalnum() else 32 for code in bytes(range(256)).lower())
# The shape of a text: "a" for a letter, "0" for a sign that may stand for one, and a space.
_TO_SHAPE = bytes(97 if chr(c).isalpha() else 48 if chr(c) in "013457@$" else 32 for c in range(256))


class _Views(NamedTuple):
    """A text, folded, without its disguises, and that in lower case with its words."""

    text: str
    folded: Folded
    plain: Folded
    lower: str
    words: set[str]


def _views(text: str) -> _Views:
    folded = fold(text)
    plain = undisguised(text, folded)
    lower = plain.text.lower()
    return _Views(text, folded, plain, lower, _words(lower))


def find_threats(text: str, *, closely: bool) -> list[Finding]:
    """Return the findings in a text, in no order: injections, disguises, secrets and invisible characters."""
    views = _views(text)
    findings = list(_injections(views, closely=closely))
    words = views.words
    if views.plain is not views.folded:
        words = _words(views.folded.text.lower())
        if not text.isascii():
            mixed = alphabets.find_mixed(text)
            findings += (Finding("disguise", *span, "a word of two alphabets") for span in mixed)
    findings += credentials.find_secrets(views.folded, words)
    if not text.isascii() and INVISIBLE.search(text):
        findings += invisible.find_invisible(text)
    return findings


def _injections(views: _Views, *, closely: bool, depth: int = 0) -> Iterator[Finding]:
    """Yield the orders, markers and encoded orders in a text; `depth` counts the encodings around it."""
    lower, words = views.lower, views.words
    is_long = len(lower) > _LONGEST
    if depth or is_long or injection_weights.score_of_words(lower, words, closely=closely) > -inf:
        yield from _orders_of_passages(views, closely=closely, room=_MAX_JUDGED >> depth)
    if markers.may_have_markers(lower, words):
        yield from (_finding(views, 0, order) for order in markers.find_markers(lower))
    if depth < _MAX_DEPTH and encodings.may_be_encoded(views.folded.text, words):
        yield from _encoded_orders(views.folded, words, depth + 1)


def _encoded_orders(folded: Folded, words: AbstractSet[str], depth: int) -> Iterator[Finding]:
    """Yield the orders in the decoded readings of a text, each where its encoding stands.

    A reading that repeats is judged once; of more than can be judged, those that score highest.
    """
    readings = list(encodings.readings(folded.text, words))
    messages: dict[str, str] = {}
    room = _MAX_JUDGED >> depth
    different = dict.fromkeys(reading.text for reading in readings)
    for text in sorted(different, key=lambda text: _score(text.lower(), closely=True), reverse=True):
        if room > 0:
            nested = _injections(_views(text), closely=True, depth=depth)
            messages[text] = next((finding.message for finding in nested), "")
            room -= len(text)
    for reading in readings:
        if message := messages.get(reading.text):
            yield Finding("disguise", *folded.span(reading.start, reading.end), f"{message}, encoded")


def _score(lower: str, *, closely: bool) -> float:
    return injection_weights.score_of_words(lower, _words(lower), closely=closely)


def _finding(views: _Views, offset: int, order: Order) -> Finding:
    """Return the finding in the original text for an order at `offset` in the view."""
    start, end = offset + order.start, offset + order.end
    span = views.plain.span(start, end)
    kind = _kind(views.text[slice(*span)], views.lower[start:end])
    return Finding(kind, *span, order.message)


def undisguised(text: str, folded: Folded) -> Folded:
    """Return the view of a text without its apparent disguises; `folded` where there are none."""
    view = folded
    if not text.isascii() and deobfuscate.has_lookalikes(text):
        view = deobfuscate.foreign(text) if alphabets.is_cyrillic(text) else deobfuscate.unmask(text)
    shape = view.text.encode("ascii", "replace").translate(_TO_SHAPE)
    if shape.count(b"a0a") + shape.count(b"a00a") + shape.count(b" 0aa") >= 2:
        view = deobfuscate.unleet(view)
    if b"a a a a a" in shape.replace(b"0", b"a") or b"a  a  a  a" in shape:
        view = deobfuscate.unspace(view) or view
    return view


def orders_in(lower: str, sentences: list[Sentence]) -> list[Order]:
    """Return the orders in a folded text in lower case, of these sentences."""
    words = _words(lower)
    intents = (
        injection_rules.judge(lower, start, end, message, f"intent: {message}")
        for start, end, message in injection_roles.find_intents(sentences)
    )
    return [*injection_rules.find_orders(lower, words), *intents]


def _orders_of_passages(views: _Views, *, closely: bool, room: int) -> Iterator[Finding]:
    """Yield the orders in the passages of a text; a passage that repeats is judged once."""
    judged: dict[tuple[str, str], list[Order]] = {}
    for start, end in _passages(views.lower, closely=closely, room=room):
        passage = views.text[slice(*views.plain.span(start, end))], views.lower[start:end]
        if passage not in judged:
            judged[passage] = _judge(*passage, closely=closely)
        yield from (_finding(views, start, order) for order in judged[passage])


def _passages(lower: str, *, closely: bool, room: int) -> list[tuple[int, int]]:
    """Return the spans of a text to judge: all of a short one, else the sentences that do not score low.

    Of more than `room` characters, the sentences that score highest: a text cannot bury an order under
    thousands of sentences that score lower.
    """
    if len(lower) <= _LONGEST:
        return _and_without_label(lower, [(0, len(lower))])
    spans = list(injection_roles.sentences(lower))
    scores = {
        passage: _score(passage, closely=closely)
        for passage in dict.fromkeys(lower[start:end] for start, end in spans)
    }
    suspect = filter(lambda passage: scores[passage] > -inf, scores)
    best = sorted(suspect, key=scores.__getitem__, reverse=True)
    sizes = accumulate(map(len, best))
    chosen = {passage for passage, size in zip(best, sizes, strict=True) if size <= room}
    return _and_without_label(lower, [(start, end) for start, end in spans if lower[start:end] in chosen])


def _and_without_label(lower: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans, and for each that begins with a label the span behind the label."""
    labels = ((_LABEL.match(lower, start, end), end) for start, end in spans)
    return spans + [(label.end(), end) for label, end in labels if label]


def _judge(text: str, lower: str, *, closely: bool) -> list[Order]:
    """Return the orders in a passage that is likely to be meant for the model."""
    sentences = injection_roles.read_sentences(lower)
    if not closely and injection_weights.scores_low(sentences):
        return []
    orders = orders_in(lower, sentences)
    example = features(text, lower, sentences, orders, injection_weights.weights())
    likely = _forest().judge([example])[0, 1]
    if likely < _THRESHOLD_WORDED or (likely < _THRESHOLD and not _is_worded_as_order(lower)):
        return []
    return [order for order in orders if order.severity == "high"] or [_highest_scoring(sentences)]


def _is_worded_as_order(lower: str) -> bool:
    return any(first.search(lower) and second.search(lower) for first, second in _wordings())


@cache
def _wordings() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    rows = (line.partition(" | ") for line in table_lines("holdfast.safety", "order_wordings.txt"))
    return [(late_pattern(first), late_pattern(second)) for first, _, second in rows]


def _highest_scoring(sentences: Sequence[Sentence]) -> Order:
    """Return the sentence with the highest score as an order."""
    weights = injection_weights.weights()
    most = max(
        sentences, key=lambda part: injection_weights.word_score(injection_weights.words(part), weights)
    )
    start = most.start + len(most.text) - len(most.text.lstrip())
    return Order(start, start + len(most.text.strip()), "high", "worded like an order to the model", "")


def _kind(text: str, lower: str) -> Literal["instruction", "disguise"]:
    """Return the kind of a finding: a disguise where a machine and a reader see different text."""
    if text.isascii():
        return "instruction" if text.lower() == lower else "disguise"
    is_plain = fold(text).text.lower() == lower and not INVISIBLE.search(text) and not _is_styled(text)
    return "instruction" if is_plain else "disguise"


def _is_styled(text: str) -> bool:
    """Return whether a text has letters of another width or style, such as mathematical ones."""
    return any(
        not c.isascii() and unicodedata.normalize("NFKC", c).isascii() and not c.isspace() for c in text
    )


def _words(lower: str) -> set[str]:
    """Return the runs of letters and digits of a text in lower case."""
    if lower.isascii():
        return set(lower.encode().translate(_TO_WORDS).decode().split())
    return set(_WORD.findall(lower))


@cache
def _forest() -> Forest:
    # Needs numpy, which most texts do not.
    from holdfast.text.boosted_trees import Forest

    return Forest.load("holdfast.safety", "order_forest.npz")
