"""Other forms of a word in other languages than English: the stems of the language that a text is in.

The language of a word is told by its script, that of a text in Latin letters by its function words and
letters. Stems are terms beside the word as it is written, named by their language, so that an English text
has none. Hebrew has no stems here: a word stands without its article or preposition as well.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache

from holdfast.text.analyze import STOP_WORDS, fold, hash_term, parts, stemmer_of
from holdfast.text.function_words import count_by_language
from holdfast.text.late_pattern import late_pattern

LATIN = {
    "de": "german", "es": "spanish", "fr": "french", "pt": "portuguese", "it": "italian", "nl": "dutch",
    "sv": "swedish", "da": "danish", "no": "norwegian", "fi": "finnish", "pl": "polish", "cs": "czech",
    "hu": "hungarian", "ro": "romanian", "tr": "turkish",
}  # fmt: skip
_BY_SCRIPT = (
    ("ru", "russian", late_pattern(r"[\u0400-\u04ff]")),
    ("el", "greek", late_pattern(r"[\u0370-\u03ff]")),
    ("ar", "arabic", late_pattern(r"[\u0600-\u06ff]")),
    ("he", "", late_pattern(r"[\u05d0-\u05ea]")),
    ("hy", "armenian", late_pattern(r"[\u0530-\u058f]")),
    ("hi", "hindi", late_pattern(r"[\u0900-\u097f]")),
    ("ta", "tamil", late_pattern(r"[\u0b80-\u0bff]")),
)
_STEMMERS = LATIN | {language: name for language, name, _ in _BY_SCRIPT if name}
# Letters that only some of these languages have.
_LETTERS = {
    "łąęśźżćń": ("pl",), "ěřůťďň": ("cs",), "őű": ("hu",), "ğşı": ("tr",), "ß": ("de",), "ñ¿": ("es",),
    "ãõ": ("pt",), "șță": ("ro",), "å": ("sv", "da", "no"), "æø": ("da", "no"), "äö": ("de", "sv", "fi"),
    "ü": ("de", "tr", "hu"), "œêçû": ("fr",), "òì": ("it",), "àèù": ("fr", "it"),
    "áíóú": ("es", "pt", "hu", "cs"), "é": ("fr", "es", "pt", "it", "hu", "cs"),
}  # fmt: skip
# Words that none of the other languages has: a text with one of them is English.
_ENGLISH = frozenset("the and you this that with my have it they your what not from can i'm".split())
_MOST = 3  # languages that a text may be in, where they cannot be told apart
_SHORTEST = 3  # letters of a word that has forms
_HEBREW_PREFIXES = "הובלמשכ"
_lock = threading.Lock()


def languages(tokens: Sequence[str], plain: Sequence[str]) -> tuple[str, ...]:
    """Return the languages that a text in Latin letters may be in; none for English, or if nothing tells.

    `plain` are its tokens without case and accents.

    >>> languages(["Wir", "haben", "Häuser"], ["wir", "haben", "hauser"])
    ('de',)
    """
    if not _ENGLISH.isdisjoint(plain):
        return ()
    words = {word for part in parts(" ".join(plain)) for word in part.split()}
    counts = count_by_language(words, STOP_WORDS)
    letters = set("".join(token for token in tokens if not token.isascii()).lower())
    for some, spoken in _LETTERS.items() if letters else ():
        if letters.intersection(some):
            counts.update(spoken)
    best = max(counts.values(), default=0)
    found = tuple(language for language, count in counts.items() if count == best)
    return found if best >= max(1, len(words & STOP_WORDS)) and len(found) <= _MOST else ()


def forms(token: str, spoken: Iterable[str]) -> list[int]:
    """Return the hashes of the stems of a token in the languages of its text, or of its script."""
    if token.isascii() and not spoken:
        return []
    return [
        hashed
        for word in parts(token)
        if len(word) >= _SHORTEST and not word.isdigit()
        for language in _languages_of(word, spoken)
        for hashed in _stems(word, language)
    ]


def _languages_of(word: str, spoken: Iterable[str]) -> Iterable[str]:
    scripts = () if word.isascii() else _BY_SCRIPT
    return next(((language,) for language, _, script in scripts if script.search(word)), spoken)


@lru_cache(maxsize=16_384)
def _stems(word: str, language: str) -> tuple[int, ...]:
    lower = word.lower()
    if language == "he":
        bare = fold(lower)
        whole = {bare, bare[1:] if len(bare) > _SHORTEST and bare[0] in _HEBREW_PREFIXES else bare}
    else:
        with _lock:
            stemmer = stemmer_of(_STEMMERS[language])
            whole = {fold(stemmer.stemWord(lower))}
            if language == "fr" and len(lower) > 2 * _SHORTEST and lower.endswith("ons"):
                # Of verbs, which its stemmer leaves: habitons.
                whole.add(fold(stemmer.stemWord(f"{lower[:-3]}er")))
    return tuple(hash_term(f"{language}:{stem}") for stem in sorted(whole))
