"""From text to search terms: normalise, split, stem. The same function reads messages and questions.

A term is a 64-bit hash, so that a segment of the index is nothing but arrays. Changing anything here changes
what the stored index means: raise `VERSION`, and every index is made anew from the log.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from holdfast.text import unspaced
from holdfast.text.clean import normalized
from holdfast.text.late_pattern import late_pattern
from holdfast.text.sentences import is_question
from holdfast.text.tables import table_lines

if TYPE_CHECKING:
    from Stemmer import Stemmer

VERSION = 5

# What marks the hash of a term of output, so that it is another than that of the word as somebody says it.
OUTPUT = 0x9E3779B97F4A7C15

STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with i you he she we me him her us my your his our its from has have had do does "
    "did been were am so just what which who whom when where why how".split()
)
# Words without which a text says the same.
_COURTESY = frozenset("please thanks thx bitte danke merci gracias hey hi hello".split())
# What follows an apostrophe: she's, don't, I'm, they'd, we'll, you're, I've.
_TAILS = {"s", "t", "m", "d", "ll", "re", "ve"}
_TIME_WORDS = frozenset(
    "yesterday today tomorrow tonight ago last next week weekend month year day morning afternoon evening "
    "night monday tuesday wednesday thursday friday saturday sunday january february march april may june "
    "july august september october november december spring summer autumn fall winter recently soon since "
    "until weeks months years days hours hour minutes".split()
)
_CACHED_WORDS = 65_536  # about 20 MB; words beyond that are analysed each time
_CACHED_LENGTH = 40  # characters of a word or an identifier; longer ones rarely come again
_CACHED_LENGTH_UNICODE = 12  # where a token may be a whole sentence, with two terms per character

# Letters with points above that are also written as two: Müller, Mueller.
_SPELLED_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})

_JOIN = r"[_.\-/:@'’]+"
_ASCII_TOKEN = re.compile(rf"[A-Za-z0-9]+(?:{_JOIN}[A-Za-z0-9]+)*")
_JOINTS = re.compile(_JOIN)
_APOSTROPHE = re.compile(r"['’]")
# Pictures, each a token of its own; not the colours of skin.
_SYMBOL = r"[\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*|[0-9]+")
# Accents, the vowel points of Hebrew and Arabic, and Arabic's stretching line; not its hamza, which
# makes another letter.
_UNWRITTEN = late_pattern(
    r"[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670]"
)
# Letters that readers take for accented ones, although Unicode does not decompose them.
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)


# Marks that are not seen inside a word: soft hyphens, joints and spaces without width.
_INVISIBLE = late_pattern(r"[\u00ad\u200b-\u200d\u2060\ufeff]")
_HEX = late_pattern(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}", re.IGNORECASE)
_SHORT_HASH = 7  # digits, as git shortens a hash
_LONGEST_JOINED = 12  # letters of a word that is also written in parts: CI/CD, e-mail
# Groups of digits that may be one number, of a telephone or a card; not a date.
_GROUPS = late_pattern(r"(?<![\w.,-])(?!(?:19|20)\d\d[-/.])\d{1,6}(?:[ .()/-]{1,3}\d{2,6}){1,6}(?![\w,-])")
_DIGITS_JOINED = range(7, 20)


class Token(NamedTuple):
    """A token of a text as terms: their hashes, the words it counts for, and whether it names a time."""

    terms: tuple[int, ...]
    words: int
    tells_time: bool


def tokens(text: str) -> list[str]:
    """Return the tokens of a text in NFC: words, identifiers, paths, numbers, emoji."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    return _token().findall(_INVISIBLE.sub("", normalized("NFC", text)))


@cache
def _token() -> re.Pattern[str]:
    # Accents, vowel signs and points: no word characters to `re`, yet a part of words in the scripts up to
    # Mongolian.
    marks = filter(lambda c: unicodedata.category(c) in ("Mn", "Mc"), map(chr, range(0x300, 0x1900)))
    letters = rf"[^\W_]+(?:[{''.join(marks)}\u3099\u309a]+[^\W_]*)*"
    return re.compile(rf"{letters}(?:{_JOIN}{letters})*|{_SYMBOL}")


def analyze(token: str) -> Token:
    """Return the terms of a token: its words, and the token itself when it has several."""
    longest = _CACHED_LENGTH if token.isascii() else _CACHED_LENGTH_UNICODE
    return _analyze_cached(token) if len(token) <= longest else _analyze(token)


def _analyze(token: str) -> Token:
    content: list[str] = []
    others: list[str] = []
    for word, weight in weigh(token):
        # A character counts for the length in its pairs.
        (content if weight == 1 or (weight and len(word) > 1) else others).append(word)
    words = [normal(word) for word in content]
    others = [word if word.isascii() else normal(word) for word in others]
    tells_time = any(word in _TIME_WORDS or (len(word) == 4 and word.isdigit()) for word in content)
    if not token.isascii():
        tells_time = tells_time or unspaced.tells_time(fold(token))
    terms = [*words, *others, *filter(None, (whole_term(token), spelled_out(token))), *variants(token)]
    return Token(tuple(hash_term(term) for term in terms), len(words), tells_time)


_analyze_cached = lru_cache(maxsize=_CACHED_WORDS)(_analyze)


def parts(token: str) -> list[str]:
    """Return the parts of a compound token: j'ai → j, ai."""
    return _JOINTS.split(token)


def is_symbol(token: str) -> bool:
    """Return whether a token, or a word of one, is an emoji."""
    return len(token) == 1 and not token.isalnum()


def split(token: str) -> list[str]:
    """Split a token into its words, case-folded and without accents.

    >>> split("parse_http_header"), split("HTTPServer's"), split("Café")
    (['parse', 'http', 'header'], ['http', 'server'], ['cafe'])
    """
    return [word for word, _ in weigh(token)]


def weigh(token: str) -> list[tuple[str, float]]:
    """Return the words of a token with what each counts in a query: less for a piece, 0 for a stop word.

    >>> weigh("the_cat"), weigh("猫的")
    ([('the', 0), ('cat', 1)], [('猫的', 0.2), ('猫', 0.3), ('的', 0)])
    """
    if is_symbol(token):
        return [(token, unspaced.SINGLE)]
    parts: list[tuple[str, float]] = []
    for part in _JOINTS.split(_without_tail(token)):
        if part.isascii():
            pieces = _CAMEL.findall(part) if _is_camel(part) else [part]
            weighed: Iterable[tuple[str, float]] = [(piece.lower(), 1) for piece in pieces]
        else:
            weighed = unspaced.split_mixed(fold(part))
        parts.extend((word, 0 if word in STOP_WORDS else weight) for word, weight in weighed)
    return parts


def _is_camel(part: str) -> bool:
    mixed = not part.islower() and not part.isupper() and not part.isdigit()
    return mixed and not part[1:].islower()


def _without_tail(token: str) -> str:
    """Drop a possessive or a contraction: Anna's, they'll. A negation (don't) leaves nothing."""
    if "'" not in token and "’" not in token:
        return token
    head, *tails = _APOSTROPHE.split(token)
    if len(tails) == 1 and tails[0].lower() in _TAILS:
        return "not" if tails[0].lower() == "t" and head.lower().endswith("n") else head
    return token


def fold(text: str) -> str:
    """Return text in the form for comparisons: NFKC, case-folded, without accents and vowel points.

    >>> fold("Łódź"), fold("STRASSE") == fold("Straße")
    ('lodz', True)
    """
    decomposed = normalized("NFKD", text).casefold()
    stripped = _UNWRITTEN.sub("", decomposed).translate(_PLAIN)
    return normalized("NFKC", stripped)


def whole_term(token: str) -> str | None:
    """Return the term of a whole compound token, such as `parse_http_header`; None for a plain word.

    That of `YouTube` is the one of the plain word `youtube`.
    """
    token = _without_tail(token).replace("’", "'")
    if token.isascii():
        if token.isalnum():
            return normal(token.lower()) if _is_camel(token) else None
        return token.lower()
    return fold(token) if _JOINTS.search(token) else None


def spelled_out(token: str) -> str | None:
    """Return the normal form of a word in which ä, ö or ü is written as two letters; None if it has none.

    >>> spelled_out("Müller"), spelled_out("Mueller")
    ('mueller', None)
    """
    if token.isascii() or not token.isalpha():
        return None
    lower = token.lower()
    spelled = lower.translate(_SPELLED_OUT)
    return None if spelled == lower else normal(fold(spelled))


def variants(token: str) -> list[str]:
    """Return the terms of a token as it is also written: a short hash, or joined.

    >>> variants("CI/CD"), variants("4f1db21c9a77")
    (['cicd'], ['hash 4f1db21'])
    """
    if _HEX.fullmatch(token):
        return [f"hash {token[:_SHORT_HASH].lower()}"]
    parts = _JOINTS.split(token)
    joined = "".join(parts)
    is_word = len(parts) > 1 and len(joined) <= _LONGEST_JOINED and joined.isalpha()
    return [normal(fold(joined))] if is_word and not _APOSTROPHE.search(token) else []


def joined_numbers(text: str) -> list[str]:
    """Return the numbers that are written in groups of digits, joined.

    >>> joined_numbers("Call +49 (30) 123-4567 on 2024-05-06.")
    ['49301234567']
    """
    joined = ("".join(filter(str.isdigit, run)) for run in _GROUPS.findall(text))
    return [number for number in joined if len(number) in _DIGITS_JOINED]


def normal(word: str) -> str:
    """Return the normal form of a word: went → go, running → run, 電腦 → 电脑.

    >>> normal("running"), normal("went"), normal("4312")
    ('run', 'go', '4312')
    """
    if not word.isascii():
        return word.translate(_simplified())
    if not word.isalpha():
        return word
    return str(stemmer_of("english").stemWord(_irregular().get(word, word)))


def is_irregular(word: str) -> bool:
    """Return whether a word is another form of an irregular verb or noun: went, taken, children."""
    return word in _irregular()


@cache
def _simplified() -> dict[int, str]:
    """Return the simplified characters for traditional Chinese ones."""
    pairs = " ".join(table_lines("holdfast.text", "traditional.txt")).split()
    return {ord(pair[0]): pair[1] for pair in pairs}


@cache
def stemmer_of(language: str) -> Stemmer:
    """Return the stemmer of a language, by its English name."""
    # Who only writes needs none.
    from Stemmer import Stemmer

    return Stemmer(language, 0)


@cache
def _irregular() -> dict[str, str]:
    table = {}
    for line in table_lines("holdfast.text", "irregular.txt"):
        base, *forms = line.split()
        table.update(dict.fromkeys(forms, base))
    return table


def hash_same(said: str, output: str = "", words: Sequence[str] | None = None) -> int:
    """Return the 64-bit hash of what a text says, without case, marks and courtesy; 0 if it is empty.

    A question differs from a statement of the same words. `words` are its plain tokens.

    >>> hash_same("Please use tabs!") == hash_same("use tabs, thanks")
    True
    >>> hash_same("You won.") == hash_same("You won?")
    False
    """
    every = plain_tokens(tokens(said)) if words is None else words
    told = [word for word in every if word not in _COURTESY] or every
    if not told:
        return hash_term(said.strip() + output) if said.strip() or output else 0
    return hash_term(" ".join((*told, "?" if is_question(said) else "", output)))


def plain_tokens(every: Iterable[str]) -> list[str]:
    """Return tokens without case and accents."""
    return [token.lower() if token.isascii() else fold(token) for token in every]


def hash_term(term: str) -> int:
    """Return the 64-bit hash of a term, the same in every process and on every machine."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
