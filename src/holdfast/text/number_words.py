"""Values in words or in unusual notations, rewritten for `value_tokens.py`.

Half past five, quarter to nine, halb zehn; the third quarter; UTC+02:00; 3e-4; 21.1 km for a half marathon.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_HOURS = {
    word: hour
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "een twee drie vier vijf zes zeven acht negen tien elf twaalf",
        "une deux trois quatre cinq six sept huit neuf dix onze douze",
    )
    for hour, word in enumerate(words.split(), 1)
}
_HOUR = rf"(?P<hour>\d{{1,2}}|{'|'.join(_HOURS)})"
_QUARTERS = "first second third fourth 1st 2nd 3rd 4th".split()
_COUNTED = "kitten|cat|dog|pupp|kid|child|friend|day|week|month|year|hour"
_OFFSETS = {"half past": 30, "quarter past": 15, "quarter to": -15, "quarter after": 15}
_OFFSETS |= {"um halb": -30, "om half": -30}


def _hour(match: re.Match[str]) -> int:
    word = match["hour"].lower()
    return _HOURS.get(word) or int(word)


def _past(match: re.Match[str]) -> str:
    minutes = _hour(match) * 60 + _OFFSETS[" ".join(match["how"].lower().split())]
    return f"{minutes // 60 % 24}:{minutes % 60:02}"


def _zone(match: re.Match[str]) -> str:
    sign = "plus" if match["sign"] == "+" else "minus"
    minutes = match["minutes"] if match["minutes"] not in (None, "00") else ""
    return f"{match['zone']}_{sign}_{int(match['of'])}{minutes}"


_Rewrite = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]
_REWRITES: tuple[_Rewrite, ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), made)
    for pattern, made in (
        (rf"\b(?:a\s)?(?P<how>half\s+past|quarter\s+(?:past|to|after))\s+{_HOUR}\b(?!:)", _past),
        (rf"\b(?P<how>um\s+halb|om\s+half)\s+{_HOUR}\b", _past),
        (
            rf"\b(?P<at>à|dès|vers|avant|après)\s+{_HOUR}\s?(?:h|heures?)\b(?!\s?\d)",
            lambda match: f"{match['at']} {_hour(match)}h00",
        ),
        (
            r"\b(?P<nth>first|second|third|fourth|1st|2nd|3rd|4th)\s+quarter\b",
            lambda match: f"Q{_QUARTERS.index(match['nth'].lower()) % 4 + 1}",
        ),
        (r"\b(?P<zone>UTC|GMT)\s?(?P<sign>[+-])\s?(?P<of>\d{1,2})(?::(?P<minutes>\d\d))?\b", _zone),
        (r"(?<![\w.])\d(?:\.\d+)?e-?\d\b", lambda match: f"{float(match[0]):.12f}".rstrip("0").rstrip(".")),
        (r"\bnet\s(?P<days>\d\d)\b(?!\s?(?:days|%|€|\$))", lambda match: f"{match['days']} days"),
        (r"\b(?P<of>\d\d)(?:th|st|nd|rd)\s+percentile\b", lambda match: f"p{match['of']}"),
        (r"\b21[.,]1\d?\s?(?:km|kilomet(?:er|re)s?)\b", lambda _: "half marathon"),
        (r"\b42[.,](?:2|195)\s?(?:km|kilomet(?:er|re)s?)\b", lambda _: "marathon"),
        (r"\b(?P<far>5|10)k(?=\s(?:run|race|jog)\b)", lambda match: f"{match['far']} km"),
        (rf"\ba (?:pair|couple) of (?=(?:\w+ )?(?:{_COUNTED}))", lambda _: "two "),
    )
)
_HINT = re.compile(
    r"half\s|halb\s|quarter|\bheures?|\d\s?h\b|UTC|GMT|\de-?\d|\d\s?k|a pair|a couple|net\s\d|percentile",
    re.IGNORECASE,
)


def rewrite(text: str) -> str:
    """Return a text with its values in the notations that `value_tokens.py` reads.

    >>> rewrite("up at half past five, UTC+02:00")
    'up at 5:30, UTC_plus_2'
    """
    if _HINT.search(text):
        for pattern, made in _REWRITES:
            text = pattern.sub(made, text)
    return text
