"""Tests of values as credentials, by their form and their introduction."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import table_lines

_PLACEHOLDER = late_pattern(
    r"""(?ix)^(?: <.* | \[.* | \$.* | \{.*
    | %.{0,40}% | %[({s]?.{0,40} | [*x•.#_?…-]{3,} | .{0,4}\*{3,}.{0,4} | .{0,8}\.{3}.{0,8} | .{0,8}…+.{0,8}
    | (?:my|your|our|the|some|insert|enter|put|add|replace|a|new|old)[_\s-].* | your[a-z]+
    | \w{0,20}(?:password|secret|token|key) | (?:password|secret|token|pass|passwd|pwd|test)\d{0,4}
    | test[_-].* | ![a-z]+ | correct\ horse\ battery\ staple )$"""
)
_HELD = "example placeholder changeme change_me change-me dummy redacted your_ your- xxxx < ${ {{ ***".split()
_HERE = late_pattern(r"(?:[_\s-]|goes)here$")
CODE = late_pattern(
    r"""[(\[{}]|^[A-Za-z_$]\w*(?:\.[A-Za-z_]\w*)+$|^(?:os|process|self|this|env|config|settings"""
    r"""|secrets|ctx|args|req|request)\b[.\[]|::|->|=>|^[A-Z][A-Z0-9_]*_[A-Z0-9_]+$|^https?://|^/|^\./"""
    r"""|^~/|^@"""
)
_PATH = late_pattern(
    r"\w/\w.*\.[a-z]{1,5}(?:$|[:#])|^[a-z]+(?:[A-Z][a-z]+)+\d?$|\.(?:py|js|ts|go|md|json|ya?ml|toml|txt"
    r"|html)(?:$|[:#])|^\w+\+\w+://"
)
_SHORT_WORDS = frozenset(
    "the a an in on of to is are was be and or it its for with that this we you i my your not at by as from "
    "must should can will has have which when if so than then never only also".split()
)
_OWNED = late_pattern(
    r"(?i)(?:\b(?:my|our|his|her|their|your|mi|mis|tu|su|nuestra|mein|meine|unser|dein|mon|notre|son|ma"
    r"|ton|mijn|ons|minha|meu|nossa|mia|la mia|mio|moje|moj|мои|мое|наш|мій|наш)\b"
    r"|我的|我们的|私の|내|우리|'s|s')[^.!?\n]{0,20}$"
)


class ValueContext(NamedTuple):
    """The introduction of a value."""

    quoted: bool
    assigned: bool
    linked: bool  # by "is" or its like
    text: str
    start: int  # of the name
    end: int

    @property
    def owned(self) -> bool:
        """Whether the text before the name says whose value it is."""
        return _OWNED.search(self.text[max(0, self.start - 24) : self.start]) is not None


@cache
def vocabulary() -> dict[str, str]:
    """Return the vocabulary by title: in the table a title in brackets, then one alternation."""
    table = "\n".join(table_lines("holdfast.safety", "secret_words.txt"))
    parts = (part.partition("]\n") for part in table.removeprefix("[").split("\n["))
    return {title: lines.replace("\n", "|") for title, _, lines in parts}


@cache
def _list(title: str) -> frozenset[str]:
    return frozenset(word.rstrip("?") for word in vocabulary()[title].split())


def has_any(text: str, parts: Iterable[str]) -> bool:
    """Return whether a text has any of some parts."""
    # On the path of every message; `any` takes half as long again.
    for part in parts:  # noqa: SIM110
        if part in text:
            return True
    return False


def is_placeholder(value: str) -> bool:
    """Return whether a value stands for a secret and is none."""
    lower = value.lower()
    return (
        lower in _list("placeholder")
        or bool(_PLACEHOLDER.search(value))
        or has_any(lower, _HELD)
        or (lower.endswith("here") and bool(_HERE.search(lower)))
        or is_filler(value)
    )


def is_filler(value: str) -> bool:
    """Return whether a value repeats a few characters, as in "sk-xxxxxxxx"."""
    return (
        (len(value) >= 8 and len(set(value)) < 5)
        or (len(value) > 16 and len(set(value[8:])) < 4)
        or "xxxx" in value.lower()
        or "…" in value
        or "EXAMPLE" in value
        or "..." in value
    )


def is_key(value: str, context: ValueContext | None = None) -> bool:
    """Return whether a value looks generated."""
    value = value.strip()
    if len(value) < (12 if context else 16) or " " in value or CODE.search(value):
        return False
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not _PATH.search(value)


def is_password(value: str, context: ValueContext) -> bool:
    """Return whether a value is a password."""
    if len(value) < 4 or value.lower() in _list("not a password") or value.isspace():
        return False
    if " " in value:
        words = value.lower().split()
        return context.quoted and len(words) >= 3 and not _SHORT_WORDS.intersection(words)
    if CODE.search(value) and not (context.quoted and not value.startswith(("$", "{", "/"))):
        return False
    if value.isdigit():
        return (context.assigned or context.owned) and not 1900 < int(value) < 2100
    if any(map(str.isdigit, value)) and any(map(str.isalpha, value)):
        return len(value) >= 5 and not re.fullmatch(r"\d+\w{0,3}|\d+[-–]\w+|v\d[\d.]*|[A-Z]+-\d+", value)
    if re.search(r"[!@#$%^&*+=~|]", value.rstrip("!")) and any(map(str.isalpha, value)):
        return len(value) >= 6 and value.isascii()
    if context.quoted:
        return context.assigned or context.owned
    return _is_plain_word(value, context)


def _is_plain_word(value: str, context: ValueContext) -> bool:
    """Return whether a bare word is a password: it ends the sentence, and is somebody's."""
    if not value.isalpha() or len(value) < 6:
        return False
    after = context.text[context.end - 1 : context.end + 2]
    ends = re.search(r"[.,;!\n]|$", after) is not None and not re.match(r".?\s[a-z]", after)
    if context.assigned:
        start = context.end - len(value)
        return context.text[start - 1 : start] == "=" and value.islower()
    return context.owned and context.linked and ends


def is_pin(value: str, context: ValueContext) -> bool:
    """Return whether a value is a PIN."""
    value = value.rstrip("#*")
    is_of_somebody = context.assigned or context.owned or len(value) < 7
    return value.isdigit() and 3 <= len(value) <= 8 and len(set(value)) > 1 and is_of_somebody


def is_phrase(value: str, context: ValueContext) -> bool:
    """Return whether a value is a recovery phrase."""
    sentence = re.split(r"[.!?\n:]", context.text[context.end - len(value) - 1 : context.end + 300])[0]
    words = (value if context.quoted else sentence).split()
    is_plain = all(word.isalpha() and word.islower() for word in words)
    return len(words) >= 4 and is_plain and not _SHORT_WORDS.intersection(words)


def is_basic(value: str) -> bool:
    """Return whether a value is the user and password of basic authentication."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    _, colon, password = plain.partition(":")
    return bool(colon and password) and plain.isprintable() and not is_placeholder(password)
