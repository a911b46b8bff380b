"""All that may do harm in a text: every rule reads several views of it, so that a disguise changes nothing but the kind.

Most texts are clean, and a look at the first letters of their words shows it; only what that look stops at is read in
full.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from holdfast.text import credentials, intents, invisible, leaning, orders
from holdfast.text.fold import INVISIBLE, Folded, fold, foreign, has_lookalikes, unleet, unmask, unspace
from holdfast.types import Finding

_WORD = re.compile(r"[^\W_]+")
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
    found: list[Finding] = []
    folded = fold(text)
    lower = folded.text.lower()
    words = _words(lower)
    heads = _heads(words)
    if not leaning.is_quiet(lower, words, closely=closely):
        found += _instructions(text, folded, lower, words, heads)
    for view in _disguises(text, folded):
        bare = view.text.lower()
        words_bare = _words(bare)
        heads_bare = _heads(words_bare)
        mask = intents.known(bare, words_bare, heads_bare)
        for order in _orders(bare, words_bare, heads_bare, mask):
            found += _told(text, "disguise", view.span(order.start, order.end), order, found)
    for secret in credentials.find_secrets(folded.text, words, heads):
        found.append(Finding("secret", *folded.span(secret.start, secret.end), "high", secret.what))
    if not text.isascii() and INVISIBLE.search(text):
        found += invisible.find_invisible(text)
    return found


def _instructions(text: str, folded: Folded, lower: str, words: set[str], heads: set[str]) -> list[Finding]:
    """Find the orders in a text as it stands: by the rules, or else by what its words lean to."""
    found: list[Finding] = []
    mask = intents.known(lower, words, heads)
    for order in _orders(lower, words, heads, mask):
        found += _told(text, "instruction", folded.span(order.start, order.end), order, found)
    if not any(finding.severity == "high" for finding in found):
        for start, end in leaning.find_leaning(lower, mask):
            order = orders.Order(start, end, "high", "worded like an order to the model")
            found += _told(text, "instruction", folded.span(start, end), order, found)
    return found


def _orders(lower: str, words: set[str], heads: set[str], mask: int) -> Iterator[orders.Order]:
    """Find the orders in a view, by their words and by what they are after."""
    yield from orders.find_orders(lower, words, heads)
    for start, end, message in intents.find_intents(lower, mask):
        yield orders.judge(lower, start, end, message)


def _words(lower: str) -> set[str]:
    """Split a text in lower case into runs of letters and digits."""
    if lower.isascii():
        return set(lower.encode().translate(_TO_WORDS).decode().split())
    return set(_WORD.findall(lower))


def _heads(words: set[str]) -> set[str]:
    return {word[: orders.HEAD] for word in words}


def _disguises(text: str, folded: Folded) -> list[Folded]:
    """Read a text without the disguises that it seems to wear."""
    views = []
    if not text.isascii() and has_lookalikes(text):
        views += [unmask(text), foreign(text)]
    codes = folded.text.encode("ascii", "replace")
    shape = codes.translate(_TO_SHAPE)
    if shape.count(b"a0a") + shape.count(b"a00a") + shape.count(b" 0aa") >= 2:
        views.append(unleet(folded))
    if b"a a a a a" in shape.replace(b"0", b"a") or b"a  a  a  a" in shape:
        apart = unspace(folded)
        views += [apart] if apart else []
    return views


_Kind = Literal["instruction", "disguise"]


def _told(
    text: str, kind: _Kind, span: tuple[int, int], order: orders.Order, found: list[Finding]
) -> Iterator[Finding]:
    """Make a finding of an order, unless it was found without taking a disguise off."""
    start, end = span
    if kind == "disguise" and any(other.start < end and start < other.end for other in found):
        return
    part = text[start:end]
    if not part.isascii() and (INVISIBLE.search(part) or _is_styled(part)):
        kind = "disguise"
    yield Finding(kind, start, end, order.severity, order.message)


def _is_styled(text: str) -> bool:
    """Say whether a text has letters of another width or style, such as mathematical ones."""
    return any(
        not c.isascii() and unicodedata.normalize("NFKC", c).isascii() and not c.isspace() for c in text
    )
