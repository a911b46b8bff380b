"""What two texts must have alike as they are written, before one can be called a repetition of the other.

Numbers as written, signs, symbols, emoji, paths, flags and identifiers with their case; and who does what to
whom. Comparison by meaning folds all of this away: 3.10 and 3.1, `-v` and `-V`, O+ and O-, "Ann leads Bo".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations

from holdfast.dedup.alignment import VALUES
from holdfast.dedup.lexicon import openings
from holdfast.dedup.parsed_text import FUNCTION
from holdfast.dedup.statement import LONGEST
from holdfast.text.clean import normalized
from holdfast.text.fillers import fillers, stem
from holdfast.text.units import UNITS
from holdfast.text.value_tokens import UNSPACED, tokenize, with_day_ranges

_AROUND, _BEHIND = "\"'“”‘’„«»‹›()[]{}`*", ".,;:!?…"
_WORDS = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*")
_PARTS = re.compile(r"['’.-]")
# A number with what value tokens read as a part of it: a currency, a unit, the suffix of an ordinal.
_NUMBER = re.compile(r"[€$£¥]?\d[\d.,’'\u202f]*(?::\d\d)?[^\W\d_]{0,3}[€$£¥%°]?[CF]?")
_NO_WORD = re.compile(r"[-–—·•|]+|[€$£¥%]|°[CF]?")
_THOUSANDS = re.compile(r"(?<=\d)[,'’\u202f](?=\d{3}(?:\D|$))")
_UNIT = re.compile(r"\d\s?([^\W\d_]{1,3})\b")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_ARTICLES = frozenset("a an the der die das el la le il".split())
_JOINING = frozenset("and or , & / und oder y o et ou e en".split())
_LINKING = frozenset(stem(word) for word in "is are was were be : =".split())
_ENDS = frozenset('.!?"“”„«»()')
# Pairs of neighbours that an exchange of two words must explain, words that two texts may have apart, and
# words of a text in which every other order is one in doubt.
_EXPLAINED, _APART, _LONG = 2, 4, 60


def is_written_alike(old: str, new: str) -> bool:
    """Return whether two texts have the same symbols, identifiers and values, as they are written.

    >>> is_written_alike("The budget is 1,000 euros", "Budget: 1000 euros")
    True
    >>> is_written_alike("Requires Python 3.10", "Requires Python 3.1")
    False
    """
    one, other = (with_day_ranges(normalized("NFC", text)) for text in (old, new))
    if set(_exact(one)) != set(_exact(other)):
        return False
    return max(len(one), len(other)) > LONGEST or (
        set(_values(one)) == set(_values(other))
        and _unspaced(one) == _unspaced(other)
        and not _differ_in_case(one, other)
    )


def _exact(text: str) -> Iterator[str]:
    """Yield what is neither a word nor a number: in it each character and its case may count."""
    is_loud = text.isupper()
    for chunk in text.replace("−", "-").replace("\ufe0f", "").split():
        bare = _stripped(chunk)
        if not bare or _NO_WORD.fullmatch(bare) or _NUMBER.fullmatch(bare) or _UNSPACED.search(bare):
            continue
        # What the tables list, such as PostgreSQL, is compared as other words are.
        is_listed = stem(bare.lower()) in openings()
        name, is_word = re.sub(r"['’]s$", "", bare), _WORDS.fullmatch(bare)
        parts = _PARTS.split(bare)
        is_dotted = "." in bare and any(len(part) > 1 for part in parts)
        # Us or the US: as a word without content nothing else would tell them apart.
        is_short = not is_loud and len(bare) > 1 and bare.isupper() and bare.lower() in _short()
        is_odd = not is_word or is_dotted or not all(map(_has_usual_case, parts))
        if is_short or (is_odd and not is_listed):
            yield name


@cache
def _short() -> frozenset[str]:
    return FUNCTION | fillers()["empty"] | {"us"}


def _stripped(chunk: str) -> str:
    while (bare := chunk.strip(_AROUND).rstrip(_BEHIND).lstrip("¿¡")) != chunk:
        chunk = bare
    return chunk


def _has_usual_case(word: str) -> bool:
    return word in (word.lower(), word.upper(), word.capitalize())


def _values(text: str) -> Iterator[str]:
    """Yield the keys of values; of a plain number with a point or a leading zero, how it is written."""
    for token in tokenize(text):
        if token.kind in VALUES:
            written = _THOUSANDS.sub("", token.text)
            is_code = "." in written or (len(written) > 1 and written[0] == "0")
            is_plain = token.kind == "number" and not token.unit and written[:1].isdigit()
            yield f"#{written}" if is_plain and is_code else token.key


def _differ_in_case(one: str, other: str) -> bool:
    """Return whether two texts have the same units in another case: 5 mW, 5 MW."""
    units = [{unit for unit in _UNIT.findall(text) if unit.lower() in UNITS} for text in (one, other)]
    return units[0] != units[1] and {u.lower() for u in units[0]} == {u.lower() for u in units[1]}


def _unspaced(text: str) -> list[str]:
    """Return the characters of scripts without spaces, in which order alone tells who does what."""
    empty = fillers()["cjk"]
    return [character for character in _UNSPACED.findall(text) if character not in empty]


def has_exchanged_roles(old: str, new: str) -> bool:
    """Return whether two words have changed places in what is otherwise the same: Ann leads Bo, Bo leads Ann.

    Not in a list, nor where a whole statement is turned round its verb: X is Y, Y is X.
    """
    one, other = _sequence(old), _sequence(new)
    apart = (Counter(one) - Counter(other)) + (Counter(other) - Counter(one))
    is_same = apart.total() <= _APART and _short() | fillers()["now"] >= apart.keys()
    if one == other or not is_same or _is_turned(one, other):
        return False
    if max(len(one), len(other)) > _LONG:
        return True
    shared = [word for word in one if one.count(word) == other.count(word) == 1 and _may_act(word)]
    beside, places = _neighbours(other), {word: place for place, word in enumerate(other)}
    unchanged = (_neighbours(one) & beside).total()
    for a, b in combinations(shared, 2):
        if places[a] < places[b] or (_is_listed(one, a, b) and _is_listed(other, b, a)):
            continue
        swapped = [b if word == a else a if word == b else word for word in one]
        if (_neighbours(swapped) & beside).total() - unchanged >= _EXPLAINED:
            return True
    return False


@lru_cache(maxsize=4096)
def _sequence(text: str) -> tuple[str, ...]:
    """Return the stems of all words; an A that is a name is none of the articles."""
    tokens = tokenize(text[:LONGEST])
    lettered = any(
        len(token.text) == 1 and token.text.isupper() and token.text not in "AI" for token in tokens
    )
    names = {place for place, token in enumerate(tokens) if token.text == "A" and (place or lettered)}
    return tuple(
        "A" if place in names else stem(token.key)
        for place, token in enumerate(tokens)
        if place in names or token.key not in _ARTICLES | _ENDS
    )


def _may_act(word: str) -> bool:
    return word == "user" or (word not in FUNCTION and (word[0].isalnum() or word[0] == "#"))


def _neighbours(words: Sequence[str]) -> Counter[tuple[str, str]]:
    return Counter(zip(("<", *words), (*words, ">"), strict=True))


def _is_listed(words: Sequence[str], first: str, last: str) -> bool:
    """Return whether two words stand in one list; numbers that count different things do not."""
    between = words[words.index(first) + 1 : words.index(last)]
    counted = first.startswith("#") and last.startswith("#")
    return not counted and not _JOINING.isdisjoint(between) and _LINKING.isdisjoint(between)


def _is_turned(one: Sequence[str], other: Sequence[str]) -> bool:
    return any(
        one[place] in _LINKING and [*one[place + 1 :], one[place], *one[:place]] == list(other)
        for place in range(len(one))
    )
