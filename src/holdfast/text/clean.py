"""Replacement of what databases cannot store, and Unicode normal forms in linear time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Literal

REPLACEMENT = "\ufffd"
_MARKS = re.compile(r"[^\w\s\x00-\x7f]{40,}")  # a run that may be of accents only; no script has as many
_HALF_WIDTH = str.maketrans("\uff9e\uff9f", "\u3099\u309a")


def clean(text: str) -> str:
    r"""Return text with NUL and lone surrogates replaced by U+FFFD, and surrogate pairs joined.

    PostgreSQL stores neither; SQLite would, and the two would differ. Linear.

    >>> clean("a\x00b")
    'a\ufffdb'
    """
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def whole(text: str) -> str:
    """Return text with surrogate pairs joined into the character that they encode."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def each_text(value: object, change: Callable[[str], str]) -> object:
    r"""Return a JSON value with every text changed, including the keys.

    >>> each_text({"path": ["a\x00", 1]}, clean)
    {'path': ['a\ufffd', 1]}
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {each_text(key, change): each_text(part, change) for key, part in value.items()}
    if isinstance(value, list):
        return [each_text(part, change) for part in value]
    return value


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return text in a normal form of Unicode, in linear time.

    `unicodedata` sorts the accents on a letter in quadratic time: 100,000 of them take
    minutes. Long runs are sorted before, which does not change the result.
    """
    if "K" in form and ("\uff9e" in text or "\uff9f" in text):
        text = text.translate(_HALF_WIDTH)
    return unicodedata.normalize(form, _MARKS.sub(lambda run: "".join(_in_order(run[0])), text))


def _in_order(run: str) -> Iterator[str]:
    """Yield the characters of a run, decomposed, with the accents between others sorted."""
    chars = "".join([unicodedata.normalize("NFD", char) for char in run])
    for _, part in groupby(chars, key=lambda char: unicodedata.combining(char) > 0):
        yield from sorted(part, key=unicodedata.combining)
