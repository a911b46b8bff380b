"""Tokens and the values among them: numbers with units, versions, times of day, dates, weekdays, identifiers.

Two writings of one value have one key: `5 pm` and `17:00`, `half an hour` and `30 min`, `1,000` and `1k`.
Values in words or in unusual notations are rewritten before: half past five, quarter to nine, halb zehn; the
third quarter; UTC+02:00; 3e-4; 21.1 km for a half marathon.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

from holdfast.text import analyze
from holdfast.text.clean import normalized
from holdfast.text.units import AMOUNTS, MONTHS, NUMBER_WORDS, ORDINALS, UNITS, WEEKDAYS

# Scripts without spaces are read character by character.
UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\u0e00-\u0e7f"
_WORD = rf"[^\W_{UNSPACED}]"
_TOKEN = re.compile(
    rf"""
    (?P<url>\b[a-z]{{2,8}}://[^\s,;)\]>"']+)
    | (?P<email>{_WORD}[\w.+-]*@\w[\w.-]*\w)
    | (?P<date>\b(?:19|20)\d\d-\d\d?-\d\d?\b | \b\d\d?/(?:19|20)\d\d\b | \b\d\d?\.\d\d?\.(?:19|20)\d\d\b)
    | (?P<clock>\b\d\d?[:.]\d\d\s?(?:[ap]\.?m\b\.?|uhr\b) | \b\d\d?:\d\d\b(?!:) | \b\d\d?\s?[ap]\.?m\b\.?
        | \b\d\d?\s?uhr\b | \b\d\d?\s?o['’]clock\b | \b\d\d?h\d\d\b)
    | (?P<path>[~.]{{0,2}}(?:/[\w.-]*\w)+/? | [\w.-]*\w(?:/[\w.-]*\w)+/?)
    | (?P<number>(?<![\w.])[-+]?\d{{1,3}}(?:[,\u202f'’]\d{{3}})+(?:\.\d+)?(?![\d.])
        | (?<![\w.])\d+(?:\.\d+)?(?![\w.-]*[\w])
        | (?<![\w.])\d+(?:\.\d+)?(?=-?(?:[kKmM]|bn|[kmgt]i?b|ms|s|sec|secs|min|mins|h|hrs?|km|cm|mm|m|kg|g|mg
            |ml|l|lbs?|[kKmM]?[€$£]|px|x|st|nd|rd|th|hz|ghz|mhz|w|kw|kwh|mph|rpm|qps|rps|eur|usd|gb|mb|°[cf]|%)\b)
        | (?<![\w.])\d+(?=-[a-zA-Z]))
    | (?P<version>\bv?\d+(?:\.\d+)+(?:[-+.]?[a-z]+[\d.]*)?\b | \bv\d+\b)
    | (?P<id>\b[a-z]+-[a-z]+-\d+[a-z]?\b | \bno-[a-z]+\b | --[a-z][\w-]* | @[\w-]+ | \#\d+ | \w*{_WORD}_\w+
        | \w+(?:\.\w+)+(?:\(\))? | \w+\(\))
    | (?P<cjk>[{UNSPACED}])
    | (?P<word>{_WORD}[^\W_{UNSPACED}\u0300-\u036f]*(?:['’]{_WORD}+)*(?:\+\+|\#(?!\w))?)
    | (?P<mark>[$€£¥%°→=:;,.!?()&≥≤<>"“”„«»、。，；：—–])
    """,
    re.VERBOSE | re.IGNORECASE,
)


# Longer runs without spaces are cut, as no value is as long and patterns take the square of the length.
_LONG_RUN = re.compile(r"(\S{200})(?=\S)")

# Most words stand alone; they need not be matched against all of the above.
_PLAIN = re.compile(r"\s*(?<!\S)(?P<word>[A-Za-z]+)(?=[,.;:!?]?(?:\s|$))")


class ValueToken(NamedTuple):
    """A token: its text, the key by which it is compared, and its kind.

    Kinds: word, mark, cjk, id, number, version, time, date, weekday. `unit` is the dimension of a number.
    """

    text: str
    key: str
    kind: str
    unit: str = ""
    # Whether it begins a sentence.
    start: bool = False


def tokenize(text: str) -> list[ValueToken]:
    """Split a text into tokens and join those that make one value."""
    return _join(_raw(with_day_ranges(rewrite(_LONG_RUN.sub(r"\1 ", normalized("NFKC", text))))))


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
    """Return a text with values in words or in unusual notations written as `tokenize` reads them.

    >>> rewrite("up at half past five, UTC+02:00")
    'up at 5:30, UTC_plus_2'
    """
    if _HINT.search(text):
        for pattern, made in _REWRITES:
            text = pattern.sub(made, text)
    return text


def with_day_ranges(text: str) -> str:
    """Write out both days of a range: `3-17 July` and `July 3-17` have two dates."""
    if any(map(str.isdigit, text)):
        for pattern, written in _day_ranges():
            # A word in small letters would make of a text in capitals one with names in capitals.
            text = pattern.sub(written.upper() if text.isupper() else written, text)
    return text


@cache
def _day_ranges() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the patterns of ranges of days, in both orders, each with its replacement."""
    months = "|".join(sorted((month for month in MONTHS if len(month) > 2), key=len, reverse=True))
    joint = r"\s?(?:[-–—]|\b(?:to|until|through|and|bis|al|au)\b)\s?"
    day = r"(\d{1,2})"
    return (
        (re.compile(rf"(?i)(?<![\w.:/-]){day}{joint}{day}\.?\s+({months})\b"), r"\1 \3 to \2 \3"),
        (re.compile(rf"(?i)\b({months})\s+{day}{joint}{day}(?![\w:/%-])"), r"\1 \2 to \1 \3"),
    )


def _raw(text: str) -> list[ValueToken]:
    tokens: list[ValueToken] = []
    start = True
    place = 0
    while match := _PLAIN.match(text, place) or _TOKEN.search(text, place):
        place = match.end()
        kind, written = str(match.lastgroup), match.group(str(match.lastgroup))
        made = _read_token(kind, written)
        tokens.extend((made[0]._replace(start=True), *made[1:]) if start and made else made)
        start = kind == "mark" and written in '.!?;:"“。'
    return tokens


@lru_cache(maxsize=16_384)
def _read_token(kind: str, written: str) -> tuple[ValueToken, ...]:
    return tuple(_READERS.get(kind, _read_word)(written))


def _read_word(token: str) -> list[ValueToken]:
    token = token.replace("’", "'")
    key = analyze.fold(token)
    if key.isascii() and key.isdigit() and len(key) < 19:
        return _read_number(key)
    if "'" in key:
        head, _, tail = key.rpartition("'")
        if tail == "t" and head.endswith("n"):
            verb = {"won": "will", "can": "can"}.get(head, head[:-1])
            return [ValueToken(token, verb, "word"), ValueToken(token, "not", "word")]
        if tail == "s":
            return [*_read_word(token[: len(head)]), ValueToken("'s", "'s", "word")]
        if tail in ("m", "re", "ve", "ll", "d"):
            return [ValueToken(token[: len(head)], head, "word")]
        # As in: l'ordinateur, d'accord, n'aime.
        if len(head) <= 2:
            article = "ne" if head == "n" else head
            return [ValueToken(head, article, "word"), ValueToken(token[len(head) + 1 :], tail, "word")]
    if key in WEEKDAYS and len(key) > 3:
        return [ValueToken(token, f"weekday:{WEEKDAYS[key]}", "weekday")]
    if key.endswith("s") and key[:-1] in WEEKDAYS and len(key) > 5:
        return [ValueToken(token, f"weekday:{WEEKDAYS[key[:-1]]}", "weekday", "every")]
    if key in _TIMES:
        return [ValueToken(token, f"time:{_TIMES[key]}", "time")]
    return [ValueToken(token, key, "word")]


def _read_number(token: str) -> list[ValueToken]:
    plain = re.sub(r"[,\u202f'’]", "", token)
    value = float(plain)
    if value.is_integer() and 1900 <= value <= 2099 and len(token) == 4:
        return [ValueToken(token, f"year:{plain}", "date")]
    return [ValueToken(token, _number_key(value, ""), "number")]


def _number_key(value: float, unit: str) -> str:
    return f"#{value:.10g}{unit}"


def _read_clock(token: str) -> list[ValueToken]:
    digits = re.findall(r"\d+", token)
    hour, minute = int(digits[0]), int(digits[1]) if len(digits) > 1 else 0
    lower = token.lower()
    if re.search(r"p\.?m", lower) and hour < 12:
        hour += 12
    elif re.search(r"a\.?m", lower) and hour == 12:
        hour = 0
    return [ValueToken(token, f"time:{hour * 60 + minute}", "time")]


def _read_date(token: str) -> list[ValueToken]:
    parts = [int(part) for part in re.findall(r"\d+", token)]
    if len(parts) == 2:
        return [ValueToken(token, f"date:{parts[1]}-{parts[0]}-", "date")]
    year, month, day = parts if parts[0] > 31 else parts[::-1]
    return [ValueToken(token, f"date:{year}-{month}-{day}", "date")]


def _read_path(token: str) -> list[ValueToken]:
    parts = token.split("/")
    if len(parts) == 2 and all(part.isalpha() for part in parts):
        return [made for part in parts for made in _read_word(part)]
    return _read_id(token)


def _read_id(token: str) -> list[ValueToken]:
    return [ValueToken(token, analyze.fold(token.rstrip(".")), "id")]


_READERS: dict[str, Callable[[str], list[ValueToken]]] = {
    "url": _read_id,
    "email": _read_id,
    "id": _read_id,
    "path": _read_path,
    "number": _read_number,
    "clock": _read_clock,
    "date": _read_date,
    "version": lambda token: [ValueToken(token, "#" + analyze.fold(token).removeprefix("v"), "version")],
    "mark": lambda token: [ValueToken(token, unicodedata.normalize("NFKC", token), "mark")],
    "cjk": lambda token: [ValueToken(token, token, "cjk")],
}


# The words with which a value may begin.
_OPENING = frozenset({*MONTHS, *NUMBER_WORDS, *ORDINALS, "half", "a", "an", "per"})
_TIMES = dict.fromkeys("noon midday mediodia mittag midi".split(), 720) | {"midnight": 0, "mitternacht": 0}
# Months that are other words as well, and the words after which they are months.
_AMBIGUOUS_MONTHS = frozenset("may jan april june august mar march sun mars mai mei marco".split())
_BEFORE_MONTHS = frozenset(
    "in of early late mid since by until last next this for im is on en to from".split()
)
_SUFFIXES = ("st", "nd", "rd", "th")
# Words that may be part of a value.
SPECIAL = _OPENING | WEEKDAYS.keys() | {f"{day}s" for day in WEEKDAYS} | _TIMES.keys()


def _join(raw: list[ValueToken]) -> list[ValueToken]:
    """Join the tokens of one value: a number and its unit; a day, a month and a year; five o'clock."""
    tokens: list[ValueToken] = []
    place = 0
    while place < len(raw):
        if raw[place].kind == "word" and raw[place].key not in _OPENING:
            tokens.append(raw[place])
            place += 1
            continue
        value, length = _date_at(raw, place) or _number_at(raw, place) or (raw[place], 1)
        tokens.append(value._replace(start=raw[place].start))
        place += length
    return tokens


def _word(raw: list[ValueToken], place: int) -> str:
    return raw[place].key if 0 <= place < len(raw) else ""


def _day_at(raw: list[ValueToken], place: int) -> tuple[int, int]:
    """Return the day of a month at a place, 0 for none, and how many tokens it takes."""
    word = _word(raw, place)
    if not (word.startswith("#") and word[1:].isdigit() and 1 <= int(word[1:]) <= 31):
        return 0, 0
    length = 1
    for joint in ((*_SUFFIXES, "."), ("of", "de")):
        length += _word(raw, place + length) in joint
    return int(word[1:]), length


def _date_at(raw: list[ValueToken], place: int) -> tuple[ValueToken, int] | None:
    day, length = _day_at(raw, place)
    month = MONTHS.get(_word(raw, place + length))
    if not month or raw[place + length].kind != "word":
        return None
    length += 1
    if day and _word(raw, place + length) == "." and len(_word(raw, place + length - 1)) < 5:
        length += 1
    if not day:
        day, more = _day_at(raw, place + length)
        length += more
    gap = 1 if _word(raw, place + length) in (",", "of", "de") else 0
    year = _word(raw, place + length + gap)
    if year.startswith("year:"):
        length += gap + 1
    elif not day and raw[place].key in _AMBIGUOUS_MONTHS and _word(raw, place - 1) not in _BEFORE_MONTHS:
        return None
    key = f"date:{year[5:] if year.startswith('year:') else ''}-{month}-{day or ''}"
    return ValueToken(raw[place].text, key, "date"), length


def _number_at(raw: list[ValueToken], place: int) -> tuple[ValueToken, int] | None:
    token = raw[place]
    unit, factor, length = "", 1.0, 1
    if token.kind == "mark" and token.key in "$€£" and _word(raw, place + 1).startswith(("#", "year:")):
        unit, factor = UNITS[token.key]
        token, length = raw[place + 1], 2
    value = _value(token)
    if value is None:
        if token.kind == "word" and token.key in ORDINALS:
            return ValueToken(token.text, f"nth:{ORDINALS[token.key]}", "number", "nth", token.start), 1
        words = [_word(raw, place + ahead) for ahead in range(3)]
        if words == ["half", "an", "hour"]:
            return ValueToken("half", _number_key(1800, "s"), "number", "s"), 3
        if words[0] in ("a", "an", "per") and words[1] == "dozen":
            return ValueToken("dozen", _number_key(12, ""), "number"), 2
        return None
    while _word(raw, place + length) in AMOUNTS or (_word(raw, place + length) == "m" and unit):
        value *= AMOUNTS.get(_word(raw, place + length), 1e6)
        length += 1
    if token.kind == "word" and value in range(20, 100, 10) and place + length < len(raw):
        ones = (_value(raw[place + length]) or 0) if raw[place + length].kind == "word" else 0
        value, length = (value + ones, length + 1) if 0 < ones < 10 else (value, length)
    if _word(raw, place + length) in _SUFFIXES:
        return ValueToken(token.text, f"nth:{value:g}", "number", "nth"), length + 1
    if token.kind == "date" and length == 1:
        return None
    after = _word(raw, place + length)
    if after in ("year", "years") and _word(raw, place + length + 1) in ("old", "of"):
        return ValueToken(token.text, _number_key(value, ""), "number"), length + 1
    is_pronoun = token.kind == "word" and token.key == "one" and len(after) == 1
    if after in UNITS and (UNITS[after][0] == unit if unit else not is_pronoun):
        unit, factor = (unit, factor) if unit else UNITS[after]
        length += 1
    return ValueToken(token.text, _number_key(round(value * factor, 6), unit), "number", unit), length


def _value(token: ValueToken) -> float | None:
    if token.kind == "number" or (token.kind == "date" and token.key.startswith("year:")):
        return float(token.key.removeprefix("year:").removeprefix("#"))
    return float(NUMBER_WORDS[token.key]) if token.kind == "word" and token.key in NUMBER_WORDS else None


def same_value(key: str, other: str) -> bool:
    """Return whether two keys name one value; of dates, the parts that both have must agree.

    >>> same_value("date:-5-3", "date:2024-5-3"), same_value("date:2023-5-3", "date:2024-5-3")
    (True, False)
    """
    if not (key.startswith("date:") and other.startswith("date:")):
        return key == other
    parts = zip(key.split("-"), other.split("-"), strict=True)
    return all(a == b or "" in (a, b) or "date:" in (a, b) for a, b in parts)
