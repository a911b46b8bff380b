"""The words left out of a transcript, to be recognised where other messages repeat them."""

import re
from bisect import bisect_right, insort
from itertools import accumulate
from operator import neg

_SHORTEST = 6  # characters of what is private; shorter words stand in other texts by chance
_LINE = 20  # characters of a line
_LETTERS = 12  # letters and digits of a line that is recognised within others
_KNOWN_BY = 4  # first characters by which words are looked up
_HEAD = 64  # characters by which what is longer is recognised
_FEW = 5  # lines of what is private that are each recognised, however short
# Words as long as that are keys, tokens and digests, if they have letters and digits.
_KEY = 16
_WORD = re.compile(r"[\w.+~-]{6,}+")
_ENDS = ".-+~"
# What editors, tools and quotations put around a line.
_BEFORE = (
    re.compile(r"\s{0,20}(?:[^\s:]{1,400}[:-])?\d{1,9}(?:\u2192|[:|\t-]|\s(?=\s))"),
    re.compile(r"[^\s:]{1,400}:"),
)
_QUOTED = re.compile(r"\"([^\"]{20,})\"|'([^']{20,})'")
_AROUND = " \t\r>+-*|`\"'\u2192"
# Whoever quotes words in a sentence may break, mark, escape or capitalise them, and end them otherwise.
_COMPARED = re.compile(r"[^\s\"'`\u00b4\u2018-\u201f\u00ab\u00bb\u2039\u203a\u300c-\u300f\\*|>]+")
_END = ".,;:!?\u2026\u3002\uff0c\uff01\uff1f"
_UNSPACED = "\u0e00"  # the first letter of scripts that put no space between words


class LeftOut:
    """Words that are not to be stored, with the placeholder that stands for them."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}
        self._words: dict[str, str] = {}
        self._spans: dict[str, str] = {}
        self._lengths: dict[str, list[int]] = {}  # of the spans by their first characters, the longest first

    def __bool__(self) -> bool:
        return bool(self._lines or self._words or self._spans)

    def add_private(self, text: str, placeholder: str) -> None:
        """Leave out a private text wherever it is repeated: each line if they are few, else long lines."""
        self.add_lines(text, placeholder)
        for word in _WORD.findall(text):
            # A password, a number or a date.
            if len(bare := word.strip(_ENDS)) >= _SHORTEST and any(map(str.isdigit, bare)):
                self._words[bare] = placeholder
        lines = text.strip().split("\n")
        for span in (text, *(lines if len(lines) <= _FEW else ())):
            if len(span.strip()) >= _SHORTEST:
                self._add_span(span, placeholder)

    def add_lines(self, text: str, placeholder: str) -> None:
        """Leave out the lines of a text of at least 20 characters, and its words that look like keys."""
        for line in text.split("\n"):
            for plain in _plain(line):
                if len(plain) >= _LINE:
                    self._lines[plain] = placeholder
                    if sum(map(str.isalnum, plain)) >= _LETTERS:
                        self._add_span(plain, placeholder)
        for word in _WORD.findall(text):
            if _is_key(bare := word.strip(_ENDS)):
                self._words[bare] = placeholder

    def add_command(self, text: str, placeholder: str) -> None:
        """Leave out the lines of a command, and of what is quoted in it."""
        for quote in _QUOTED.finditer(text):
            self.add_lines(quote[1] or quote[2], placeholder)
        self.add_lines(text, placeholder)

    def without(self, text: str) -> str:
        """Return a text with placeholders for what it repeats. Linear in its length."""
        if self._lines and len(text) >= _LINE:
            text = "\n".join(map(self._line, text.split("\n")))
        if self._spans:
            text = self._without_spans(text)
        return _WORD.sub(lambda word: self._word(word[0]), text) if self._words else text

    def _line(self, line: str) -> str:
        return next((self._lines[plain] for plain in _plain(line) if plain in self._lines), line)

    def _word(self, word: str) -> str:
        bare = word.strip(_ENDS)
        return word.replace(bare, self._words[bare]) if bare in self._words else word

    def _add_span(self, words: str, placeholder: str) -> None:
        span = _fold("".join(_COMPARED.findall(words)).strip(_END))[:_HEAD]
        if len(span) >= _KNOWN_BY:
            self._spans[span] = placeholder
            lengths = self._lengths.setdefault(span[:_KNOWN_BY], [])
            if len(span) not in lengths:
                insort(lengths, len(span), key=neg)

    def _without_spans(self, text: str) -> str:
        runs = list(_COMPARED.finditer(text))
        letters = _fold("".join(run[0] for run in runs))
        ends = list(accumulate(len(run[0]) for run in runs))
        parts, done = [], 0
        for at in range(len(letters) - _KNOWN_BY + 1):
            for length in self._lengths.get(letters[at : at + _KNOWN_BY], ()):
                if (span := letters[at : at + length]) not in self._spans:
                    continue
                start, end = _place(runs, ends, at), _place(runs, ends, at + length - 1) + 1
                if start >= done and (length >= _LINE or _is_apart(text, start, end)):
                    parts += [text[done:start], self._spans[span]]
                    # Of what is longer, only the beginning was compared.
                    done = end if length < _HEAD else _end_of_line(text, end)
        return "".join((*parts, text[done:])) if parts else text


def _plain(line: str) -> list[str]:
    """Return a line without what is put around it, and also without the name and the number before it."""
    if len(line) < _LINE:
        return []
    heads = [pattern.match(line) for pattern in _BEFORE]
    return [line[start:].strip(_AROUND) for start in (0, *(head.end() for head in heads if head))]


def _fold(text: str) -> str:
    """Return a text in lower case, in which all characters keep their places."""
    return text.replace("\u0130", "i").lower().replace("ς", "σ")


def _place(runs: list[re.Match[str]], ends: list[int], at: int) -> int:
    """Return the position in a text of a character of its joined runs, which end at `ends`."""
    number = bisect_right(ends, at)
    return runs[number].end() - (ends[number] - at)


def _is_apart(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text neither begins nor ends within a word."""
    return not any(
        text[max(at - 1, 0) : at + 1].isalnum() and 0 < at < len(text) and text[at] < _UNSPACED
        for at in (start, end)
    )


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _is_key(word: str) -> bool:
    return len(word) >= _KEY and any(map(str.isdigit, word)) and any(map(str.isalpha, word))
