"""JSON in the answers of models, whatever stands around it, and the values expected in it.

Answers are hostile: the text that a model was shown may have made it write them. All here is linear and of
bounded depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from holdfast.llm.llm_request import Unreadable
from holdfast.text.clean import clean
from holdfast.text.message_text import without_reasoning

# Characters, reasoning included: a hundred times the longest answer that our prompts ask for.
LONGEST_ANSWER = 1_000_000
# Levels of lists and objects.
_DEEPEST = 64
_STARTS = re.compile(r"[{\[]")
_BEGINS_WITH_JSON = re.compile(r"\s*(?:[{\[](?!reasoning\])|```)")
_SPACE = re.compile(r"\s*+")
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WORD = re.compile(r"[-+.\w]++")
_FENCE = "```"
# Models often forget to escape a line feed in a string.
_DECODER = json.JSONDecoder(strict=False)
# Stands for a value that is cut off.
_NOTHING = object()
_TEXTS = ("text", "content")
_DIGITS = re.compile(r"(?<!\d)\d{1,15}(?!\d)")


def parse(answer: str) -> object:
    """Return the list or object in an answer; of several, the longest.

    Code fences, prose around it, reasoning before it and trailing commas do not matter. Of JSON that is cut
    off, all that is complete is kept; an incomplete element of a list is dropped as a whole.

    Raises:
        Unreadable: there is none, it is cut off before anything in it is complete, or the answer is far too
        long.

    """
    if len(answer) > LONGEST_ANSWER:
        raise Unreadable(
            f"it has {len(answer):,} characters, and {LONGEST_ANSWER:,} are the most that is read."
        )
    text = answer if _BEGINS_WITH_JSON.match(answer) else without_reasoning(answer)
    best, longest, cut, start = _NOTHING, 0, False, 0
    while match := _STARTS.search(text, start):
        reader = _Reader(text, match.start())
        try:
            value = reader.value()
        except _NotJson:
            value = _NOTHING
        # No beginning within the value would do better.
        start = reader.place
        if value is _NOTHING:
            continue
        if reader.ended and not _says_anything(value):
            cut = True
        elif start - match.start() > longest:
            best, longest = value, start - match.start()
    if best is _NOTHING:
        raise Unreadable("it breaks off before one item is complete." if cut else "there is no JSON in it.")
    return best


class _NotJson(Exception):
    """The text is not JSON from here on."""


class _Reader:
    """A reader of one value.

    `place` is how far it came, `ended` whether the text ended before the value did.
    """

    __slots__ = ("_text", "ended", "place")

    def __init__(self, text: str, place: int) -> None:
        self._text = text
        self.place = place
        self.ended = False

    def value(self, depth: int = 0) -> object:
        """Return the value that begins here, `_NOTHING` where it is cut off."""
        sign = self._next()
        if sign not in ("{", "["):
            return self._scalar(sign)
        if depth == _DEEPEST:
            raise _NotJson
        self.place += 1
        return self._object(depth + 1) if sign == "{" else self._list(depth + 1)

    def _object(self, depth: int) -> dict[str, object]:
        pairs: dict[str, object] = {}
        while not self._closes("}"):
            key = self._scalar(self._next())
            if not self.ended:
                self._pass(":")
            value = _NOTHING if self.ended else self.value(depth)
            if value is not _NOTHING:
                pairs[str(key)] = value
            self._go_on("}")
        return pairs

    def _list(self, depth: int) -> list[object]:
        items: list[object] = []
        while not self._closes("]"):
            item = self.value(depth)
            if not self.ended:
                items.append(item)
            self._go_on("]")
        return items

    def _scalar(self, sign: str) -> object:
        if self.ended:
            return _NOTHING
        match = (_STRING if sign == '"' else _WORD).match(self._text, self.place)
        if match is None and sign != '"':
            raise _NotJson
        self.place = match.end() if match else len(self._text)
        if match is None or (sign != '"' and self.place == len(self._text)):
            self.ended = True
            return _NOTHING
        try:
            value: object = _DECODER.decode(match[0])
        except ValueError as error:
            raise _NotJson from error
        return value

    def _closes(self, sign: str) -> bool:
        if self._next() == sign:
            self.place += 1
            return True
        return self.ended

    def _go_on(self, closing: str) -> None:
        """Skip the comma behind an item; there may be one before the end as well."""
        if not self.ended and self._next() != closing:
            self._pass(",")

    def _pass(self, sign: str) -> None:
        if self._next() == sign:
            self.place += 1
        elif not self.ended:
            raise _NotJson

    def _next(self) -> str:
        """Return the next sign that is no white space; "" at the end of the text or of a code fence."""
        space = _SPACE.match(self._text, self.place)
        self.place = space.end() if space else self.place
        if self.place == len(self._text) or self._text.startswith(_FENCE, self.place):
            self.ended = True
            return ""
        return self._text[self.place]


def _says_anything(value: object) -> bool:
    if isinstance(value, Mapping):
        value = list(value.values())
    return not isinstance(value, list) or any(map(_says_anything, value))


# The values expected in it


def table(value: object, what: str) -> Mapping[str, object]:
    """Return an object, or the only one in a list; `what` names it in the error.

    Raises:
        Unreadable: it is something else.

    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping):
        raise Unreadable(f"{what} is not an object.")
    return value


def picked(value: Mapping[str, object], name: str) -> object:
    """Return the value of a key in any case and number ("findings" is also "Finding"), None for none."""
    plain = _plain(name)
    return next((item for key, item in value.items() if _plain(key) == plain), None)


def has(value: Mapping[str, object], name: str) -> bool:
    """Return whether there is a key that `picked` would take."""
    return _plain(name) in map(_plain, value)


def _plain(key: str) -> str:
    return key.strip().casefold().removesuffix("s")


def listed(value: object) -> list[object]:
    """Return a list: of a single value a list of one, of null and false an empty one."""
    if isinstance(value, list):
        return value
    return [] if value is None or value is False else [value]


def text_of(value: object, *names: str) -> str:
    """Return a text: of a number its digits, of an object its "text", "content" or one of `names`.

    Raises:
        Unreadable: it is something else.

    """
    if isinstance(value, Mapping):
        texts = (picked(value, name) for name in (*_TEXTS, *names))
        value = next((text for text in texts if text is not None), value)
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise Unreadable("a text is something else.")


def numbers_of(value: object) -> list[int]:
    """Return the whole numbers of 0 or more in 3, [3, 5], "3-5" or {"first": 3, "last": 5}."""
    if isinstance(value, Mapping):
        return [number for part in value.values() for number in numbers_of(part)]
    if isinstance(value, list):
        return [number for part in value for number in numbers_of(part)]
    if isinstance(value, str):
        return [int(digits) for digits in _DIGITS.findall(value)]
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**15:
        return [int(value)]
    return []
