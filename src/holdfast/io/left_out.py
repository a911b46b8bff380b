"""What was left out of a transcript, to be recognised where other messages repeat it."""

from __future__ import annotations

import re

_SHORTEST = 6  # characters of what is private; shorter words stand in other texts by chance
_LINE = 20  # characters of a line
_HEAD = 64  # characters by which what is longer is recognised
_FEW = 5  # lines that are each recognised within other lines
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


class LeftOut:
    """Words that are not to be stored, with the placeholder that stands for them."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}
        self._words: dict[str, str] = {}
        self._spans: dict[str, str] = {}
        self._lengths: tuple[int, ...] = ()
        self._starts: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return bool(self._lines or self._words or self._spans)

    def add_private(self, text: str, placeholder: str) -> None:
        """Leave out what is private wherever it is repeated: each line if they are few, else long lines."""
        self.add_lines(text, placeholder)
        for word in _WORD.findall(text):
            # A password, a number or a date.
            if len(bare := word.strip(_ENDS)) >= _SHORTEST and any(map(str.isdigit, bare)):
                self._words[bare] = placeholder
        lines = text.strip().split("\n")
        for span in (text, *(lines if len(lines) <= _FEW else ())):
            if len(span := span.strip()) >= _SHORTEST:
                self._spans[span[:_HEAD]] = placeholder
        self._starts = None

    def add_lines(self, text: str, placeholder: str) -> None:
        """Leave out the lines of a text of at least 20 characters, and its words that look like keys."""
        for line in text.split("\n"):
            for plain in _plain(line):
                if len(plain) >= _LINE:
                    self._lines[plain] = placeholder
        for word in _WORD.findall(text):
            if _is_key(bare := word.strip(_ENDS)):
                self._words[bare] = placeholder

    def add_command(self, text: str, placeholder: str) -> None:
        """Leave out the lines of a command, and of what is quoted in it."""
        for quoted in _QUOTED.finditer(text):
            self.add_lines(quoted[1] or quoted[2], placeholder)
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

    def _without_spans(self, text: str) -> str:
        if self._starts is None:
            self._lengths = tuple(sorted({len(span) for span in self._spans}, reverse=True))
            firsts = "".join(map(re.escape, {span[0] for span in self._spans}))
            self._starts = re.compile(f"[{firsts}]")
        parts, done = [], 0
        for found in self._starts.finditer(text):
            at = found.start()
            if at >= done and (end := self._end(text, at)):
                parts += [text[done:at], self._spans[text[at : at + min(end - at, _HEAD)]]]
                done = end
        return "".join((*parts, text[done:])) if parts else text

    def _end(self, text: str, at: int) -> int:
        """Return where what is repeated from a place on ends, 0 if nothing is."""
        if at and text[at - 1].isalnum() and text[at].isalnum():
            return 0
        for length in self._lengths:
            end = at + length
            if end > len(text) or text[at:end] not in self._spans:
                continue
            if length == _HEAD:
                # Of what is longer, only the beginning was compared.
                stop = text.find("\n", end)
                return len(text) if stop < 0 else stop
            if end == len(text) or not (text[end].isalnum() and text[end - 1].isalnum()):
                return end
        return 0


def _plain(line: str) -> list[str]:
    """Return a line without what is put around it, and also without the name and the number before it."""
    if len(line) < _LINE:
        return []
    found = [pattern.match(line) for pattern in _BEFORE]
    return [line[start:].strip(_AROUND) for start in (0, *(one.end() for one in found if one))]


def _is_key(word: str) -> bool:
    return len(word) >= _KEY and any(map(str.isdigit, word)) and any(map(str.isalpha, word))
