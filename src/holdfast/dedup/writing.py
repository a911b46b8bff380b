"""Comparison of two texts as written: the parts that a repetition must have unchanged.

Numbers as written, signs, symbols, emoji, paths, flags and words with their case. Comparison by meaning folds
all of this away: 3.10 and 3.1, `-v` and `-V`, O+ and O-, PATH and path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from holdfast.dedup.alignment import VALUES
from holdfast.dedup.lexicon import openings
from holdfast.dedup.parsed_text import FUNCTION
from holdfast.text.clean import normalized
from holdfast.text.fillers import fillers, stem
from holdfast.text.units import UNITS
from holdfast.text.value_tokens import UNSPACED, tokenize, with_day_ranges

_AROUND, _BEHIND = "\"'“”‘’„«»‹›()[]{}`", ".,;:!?…"
# Marks with a meaning: a bracket within or around one of several words, a mark of a pattern.
_MARKED = re.compile(r"[][(){}<>|*]|\?.|^[^'\"]*\d['\"′″]|^\w'$")
_EMPHASIS = re.compile(r"(\*\*)(?=\S)([^*]+)(?<=\S)\1(?!\w)")
_WORDS = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*")
_PARTS = re.compile(r"['’.-]")
# A number with what value tokens read as a part of it: a currency, a unit, the suffix of an ordinal.
_NUMBER = re.compile(r"\d{4}-\d\d-\d\d|[€$£¥]?\d[\d.,’'\u202f]*(?::\d\d)?[^\W\d_]{0,3}[€$£¥%°]?[CF]?")
# An interval, whose brackets tell whether its ends belong to it.
_INTERVAL = re.compile(r"[\[(]\s*-?\d[^][()]*[,;][^][()]*[\])]")
# Code of more than a word, a literal as a text, and "a few", which is not "few".
_QUOTED = re.compile(r"[\"“„«](?=\S)([^\"“”„«»]*\s[^\"“”„«»]*)[\"“”»]")
_CODE, _A_FEW = re.compile(r"`([^`]*\s[^`]*)`"), re.compile(r"\b[Aa] (?:few|little)\b")
_LITERAL = re.compile(r"['\"](?:null|none|nil|true|false|\d+)['\"]", re.IGNORECASE)
_NO_FORMULA = re.compile(r"[^][(){}+*/-]")
# A mark of a relation between two things, whose order counts.
OPERATOR = re.compile(r"\S\s(?:[-=~]+>|<[-=~]+|[+*/=<>→←↔⇒≤≥]|[=!]==?|vs\.?)\s\S|(?:\b\w|[)\d])\s[-–]\s")
_NO_WORD = re.compile(r"[-–—·•|]+|°[CF]?|[:!?«»…]")
_BESIDE_NUMBERS = re.compile(r"(?<=\d)\s+(?=[€$£¥%])|(?<=[€$£¥])\s+(?=\d)")
_THOUSANDS = re.compile(r"(?<=\d)[,'’\u202f](?=\d{3}(?:\D|$))")
_UNIT = re.compile(r"\d\s?([^\W\d_]{1,3})\b")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_QUESTION = re.compile(r"[?？]\W*\Z")
_BEGINNING = re.compile(r"(?:\A|[.!?]\s)\W*([^\W\d_]+)|:\s\W*([^\W\d_]+)(?=\s+\w)")
_ANY_CASE = frozenset("a i the am pm".split())
# Letters of a word that may be a name in capitals: BERLIN.
_LONG = 4
_SHOUTED = re.compile(r"\b[^\W\d_a-z]{2,}(?:\s+[^\W\d_a-z]{2,})+\b")


def is_written_alike(old: str, new: str) -> bool:
    """Return whether two texts have the same symbols, identifiers and values, as they are written.

    >>> is_written_alike("The budget is 1,000 euros", "Budget: 1000 euros")
    True
    >>> is_written_alike("Requires Python 3.10", "Requires Python 3.1")
    False
    """
    older, newer = (with_day_ranges(normalized("NFC", text).replace("’", "'")) for text in (old, new))
    if list(_exact_parts(older)) != list(_exact_parts(newer)) or bool(_QUESTION.search(older)) != bool(
        _QUESTION.search(newer)
    ):
        return False
    quoted, quoted_too = _QUOTED.findall(older), _QUOTED.findall(newer)
    return (
        set(_values(older)) == set(_values(newer))
        and _accented_words(older) == _accented_words(newer)
        and _shape(older) == _shape(newer)
        and (not quoted or not quoted_too or quoted == quoted_too)
        and _unspaced_characters(older) == _unspaced_characters(newer)
        and not _differ_in_case(older, newer)
        and ("\n" not in old.strip() + new.strip() or old.split("\n") == new.split("\n"))
    )


def _exact_parts(text: str) -> Iterator[str]:
    """Yield the parts that are neither words nor numbers, where each character and its case may count."""
    is_loud = text.isupper()
    plain = _BESIDE_NUMBERS.sub("", _EMPHASIS.sub(r"\2", text.replace("−", "-").replace("\ufe0f", "")))
    for pattern in (_INTERVAL, _CODE, _LITERAL, _A_FEW):
        yield from pattern.findall(text)
    if OPERATOR.search(text):
        yield _NO_FORMULA.sub("", text)
    for chunk in plain.split():
        # A lone mark may be the subject of the statement.
        bare = _strip_marks(chunk) or chunk.strip("\"'“”‘’„`") or chunk
        if _MARKED.search(chunk):
            yield chunk.rstrip(".,;:!")
        if not bare or _NO_WORD.fullmatch(bare) or _NUMBER.fullmatch(bare) or _UNSPACED.search(bare):
            continue
        name, is_word = re.sub(r"['’]s$", "", bare), _WORDS.fullmatch(bare)
        parts = _PARTS.split(bare)
        is_dotted = "." in bare and any(len(part) > 1 for part in parts)
        # Us or the US: as a word without content nothing else would tell them apart.
        is_short = (
            not is_loud and len(bare) > 1 and bare.isupper() and bare.lower() in short_words() - _ANY_CASE
        )
        is_odd = not is_word or is_dotted or not all(map(_has_usual_case, parts))
        if is_short or (is_odd and stem(bare.lower()) not in openings()):
            yield name


@cache
def short_words() -> frozenset[str]:
    """Return words without content, and "us", which in capitals is a country."""
    return FUNCTION | fillers()["empty"] | {"us"}


def _strip_marks(chunk: str) -> str:
    while (bare := chunk.strip(_AROUND).rstrip(_BEHIND).lstrip("¿¡")) != chunk:
        chunk = bare
    return chunk


def _has_usual_case(word: str) -> bool:
    return word in (word.lower(), word.upper(), word.capitalize())


def _shape(text: str) -> list[str]:
    """Return the words written in more than one case, and the symbols between words, in order."""
    words = [word for word in _WORDS.findall(text) if word.lower() not in _ANY_CASE]
    written = {word.lower(): word for word in words}
    cases = [word for word in words if written[word.lower()] != word]
    chunks = [
        "" if any(c.isalnum() for c in chunk) else chunk for chunk in _BESIDE_NUMBERS.sub("", text).split()
    ]
    symbols = [chunk for chunk, before in zip(chunks, ["", *chunks], strict=False) if chunk or before]
    return cases + (symbols if any(chunk and not _NO_WORD.fullmatch(chunk) for chunk in chunks) else [])


def _values(text: str) -> Iterator[str]:
    """Yield the keys of values; plain numbers with a point or a leading zero as written."""
    for token in tokenize(text):
        if token.kind in VALUES:
            written = _THOUSANDS.sub("", token.text)
            is_code = "." in written or (len(written) > 1 and written[0] == "0")
            is_plain = token.kind == "number" and not token.unit and written[:1].isdigit()
            # On Fridays is not on Friday.
            number = "s" if token.kind == "weekday" and token.text.endswith("s") else ""
            yield f"#{written}" if is_plain and is_code else token.key + number


def _differ_in_case(old: str, new: str) -> bool:
    """Return whether two texts have the same units or words in another case: 5 mW, 5 MW; PATH, path."""
    units = [{unit for unit in _UNIT.findall(text) if unit.lower() in UNITS} for text in (old, new)]
    if units[0] != units[1] and {u.lower() for u in units[0]} == {u.lower() for u in units[1]}:
        return True
    # The first word of a sentence has its capital from there.
    begins = [word.lower() for text in (old, new) for pair in _BEGINNING.findall(text) for word in pair]
    written, written_too = ({w for w in _word_forms(text) if w.lower() not in begins} for text in (old, new))
    if old.islower() or new.islower():
        # Whoever writes no capitals at all means none by it.
        written, written_too = ({w for w in words if not w.istitle()} for words in (written, written_too))
    apart = written ^ written_too
    return len({word.lower() for word in apart}) < len(apart)


def _word_forms(text: str) -> list[str]:
    """Return the words whose case may matter; shouted words in the case of names."""
    calm = "" if text.isupper() else _SHOUTED.sub(lambda shouted: shouted[0].lower(), text)
    words = [word.removesuffix("'s") for word in _WORDS.findall(calm) if word.lower() not in _ANY_CASE]
    return [word.title() if word.isupper() and len(word) >= _LONG else word for word in words]


def _accented_words(text: str) -> set[str]:
    """Return the words with accented or foreign letters, which comparison by meaning folds: año, ano."""
    return {word.lower() for word in _WORDS.findall(text) if not word.isascii()}


def _unspaced_characters(text: str) -> list[str]:
    """Return the characters of scripts without spaces in order, which alone tells who does what."""
    empty = fillers()["cjk"]
    return [character for character in _UNSPACED.findall(text) if character not in empty]
