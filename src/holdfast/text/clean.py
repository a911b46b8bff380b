"""What text must lose before it can be stored the same way in every database."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

REPLACEMENT = "\ufffd"
_MARKS = re.compile(r"[^\w\s\x00-\x7f]{40,}")  # a run that may be of accents only; no script has as many
_HALF_WIDTH = str.maketrans("\uff9e\uff9f", "\u3099\u309a")


def clean(text: str) -> str:
    r"""Replace NUL and lone surrogates by U+FFFD, and join surrogate pairs into the character that they encode.

    PostgreSQL stores neither; SQLite would, and the two would answer differently. Linear; the usual text is
    returned as it is.

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
    """Join surrogate pairs into the character that they encode, and leave all else as it is."""
    return (
        text
        if text.isascii()
        else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    )


def each_text(value: object, change: Callable[[str], str]) -> object:
    r"""Change every text in a JSON value, the keys included.

    >>> each_text({"path": ["a\x00", 1]}, clean)
    {'path': ['a\ufffd', 1]}
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {each_text(key, change): each_text(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [each_text(one, change) for one in value]
    return value


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Bring text to a normal form of Unicode, in linear time.

    `unicodedata` sorts the accents on a letter in quadratic time: with 100,000 of them it takes minutes. So
    long runs are brought into their order before, which changes nothing of the result.
    """
    if "K" in form and ("\uff9e" in text or "\uff9f" in text):
        text = text.translate(_HALF_WIDTH)
    return unicodedata.normalize(form, _MARKS.sub(lambda run: "".join(_in_order(run[0])), text))


def _in_order(run: str) -> Iterator[str]:
    """Decompose a run, and sort the accents between two characters that are none."""
    accents: list[str] = []
    for char in "".join([unicodedata.normalize("NFD", char) for char in run]):
        if unicodedata.combining(char):
            accents.append(char)
        else:
            yield from sorted(accents, key=unicodedata.combining)
            accents = []
            yield char
    yield from sorted(accents, key=unicodedata.combining)
