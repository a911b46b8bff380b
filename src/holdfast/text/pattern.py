"""Regular expressions in linear time: an automaton that is made as it is needed, and never goes back in the text.

`re` tries one way after the other, which takes longer than anyone waits for `(a+)+b`. Here all ways are
followed at once: a character costs at most as many steps as the pattern has parts, and mostly one look into a
dict.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from holdfast.errors import InvalidInput, shown

LONGEST = 1_000  # characters of a pattern
PARTS = 1_000  # of a pattern, with those in braces repeated as often as they say
_KEPT = 20_000  # steps that are remembered
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_GROUP = re.compile(r"\((\?:|\?P<\w+>|(?!\?))")
_CODE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[dDwWsStnrfva0])")
_COUNTS = re.compile(r"\{(\d*)(,?)(\d*)\}")
_PLACES = {"^": "line", "$": "line end", r"\A": "text", r"\Z": "text end", r"\b": "word", r"\B": "no word"}
_OTHER, _WORD, _LINE, _BEGIN = range(4)  # what stands before a place

Build = Callable[
    [int], int
]  # makes the steps of a part before the one that follows it, and returns the first


class _Step(NamedTuple):
    """A step of the automaton: over a character that fits, or past a place, or past nothing."""

    fits: re.Pattern[str] | None
    place: str
    next: tuple[int, ...]


class _State(dict[str, "_State"]):
    """All the steps that the automaton may be at, and where the characters lead from there that came so far."""

    def __init__(self, steps: frozenset[int], before: int) -> None:
        super().__init__()
        self.steps = steps
        self.before = before


_FOUND = _State(frozenset(), _OTHER)


class Pattern:
    r"""Look for a regular expression in texts, in time that is linear in their length.

    Written as for `re`, with `^` and `$` at each line, and what must look around or back left out:
    lookarounds, backreferences, atomic groups and possessive quantifiers.

    >>> Pattern(r"ORA-\d{5}\b").find("failed with ORA-00942 at noon")
    21

    Raises:
        InvalidInput: it is no such expression, or a long one.

    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > LONGEST:
            raise InvalidInput(
                f"The pattern has {len(pattern):,} characters.", f"Use at most {LONGEST:,} of them."
            )
        flags = _FLAGS.match(pattern)
        self._flags = re.DOTALL if flags and "s" in flags[1] else re.NOFLAG
        self._flags |= re.IGNORECASE if flags and "i" in flags[1] else re.NOFLAG
        self._pattern, self._at, self._size = pattern, flags.end() if flags else 0, 0
        self._steps = [_Step(None, "", ())]  # the first stands for a match
        try:
            build = self._any_of()
            if self._at < len(pattern):
                raise self._refusal("a parenthesis is closed that was not opened")
            self._first = build(0)
        except RecursionError as error:
            raise self._refusal("its parentheses are nested too deeply") from error
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self._kept = 0

    def find(self, text: str) -> int | None:
        """Return where the first match to be complete ends; None for no match."""
        state = self._state(frozenset(), _BEGIN)
        for at, character in enumerate(text):
            following = state.get(character)
            if following is None:
                following = self._follow(state, character)
            if following is _FOUND:
                return at
            state = following
        return len(text) if self._follow(state, "") is _FOUND else None

    # Reading the pattern

    def _refusal(self, why: str) -> InvalidInput:
        return InvalidInput(
            f"{shown(self._pattern)} is no pattern that can be looked for: {why}.",
            "Write a regular expression without lookarounds and backreferences; a backslash makes a sign "
            "a plain one.",
        )

    def _any_of(self) -> Build:
        choices = [self._sequence()]
        while self._pattern[self._at : self._at + 1] == "|":
            self._at += 1
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else lambda after: self._fork(*(one(after) for one in choices))

    def _sequence(self) -> Build:
        parts: list[Build] = []
        while self._pattern[self._at : self._at + 1] not in ("", "|", ")"):
            parts.append(self._repeated())

        def build(after: int) -> int:
            for part in reversed(parts):
                after = part(after)
            return after

        return build

    def _repeated(self) -> Build:
        part, repeatable = self._part()
        times = self._times()
        if times is None:
            return part
        if not repeatable:
            raise self._refusal("there is nothing to repeat")
        low, high = times
        self._at += (
            self._pattern[self._at : self._at + 1] == "?"
        )  # the shortest: whether it matches is the same
        if self._pattern[self._at : self._at + 1] == "+" or self._times() is not None:
            raise self._refusal("a repetition is repeated")

        def build(after: int) -> int:
            first = after
            if high is None:
                first = self._fork()
                self._steps[first] = _Step(None, "", (part(first), after))
            else:
                for _ in range(high - low):
                    first = self._fork(part(first), after)
            for _ in range(low):
                self._count()
                first = part(first)
            return first

        return build

    def _times(self) -> tuple[int, int | None] | None:
        sign = self._pattern[self._at : self._at + 1]
        if sign in ("*", "+", "?") and sign:
            self._at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        counts = _COUNTS.match(self._pattern, self._at)
        if counts is None or counts[0] in ("{}", "{,}"):
            return None
        self._at = counts.end()
        low = int(counts[1] or 0)
        high = (int(counts[3]) if counts[3] else None) if counts[2] else low
        if max(low, high or 0) > PARTS or (high is not None and high < low):
            raise self._refusal("it counts to too many, or down")
        return low, high

    def _part(self) -> tuple[Build, bool]:
        """Read one part; say whether it can be repeated."""
        sign = self._pattern[self._at]
        if sign == "(":
            group = _GROUP.match(self._pattern, self._at)
            if group is None:
                raise self._refusal(
                    f"{self._pattern[self._at : self._at + 4]!r} is not to be had in linear time"
                )
            self._at = group.end()
            inner = self._any_of()
            if self._pattern[self._at : self._at + 1] != ")":
                raise self._refusal("a parenthesis is not closed")
            self._at += 1
            return inner, True
        if sign in ("*", "+", "?"):
            raise self._refusal("there is nothing to repeat")
        if (place := _PLACES.get(sign) or _PLACES.get(self._pattern[self._at : self._at + 2])) is not None:
            self._at += 1 if sign in _PLACES else 2
            return lambda after: self._add(_Step(None, place, (after,))), False
        one = self._class() if sign == "[" else self._sign()
        try:
            fits = re.compile(one, self._flags)
        except (re.error, OverflowError) as error:
            raise self._refusal(f"{one} is no class of characters ({error})") from error
        return lambda after: self._add(_Step(fits, "", (after,))), True

    def _sign(self) -> str:
        """Read what one character has to be, and return it as `re` takes it."""
        start = self._at
        sign = self._pattern[start]
        if sign != "\\":
            self._at += 1
            return "." if sign == "." else re.escape(sign)
        if code := _CODE.match(self._pattern, start):
            self._at = code.end()
            return code[0]
        following = self._pattern[start + 1 : start + 2]
        if not following or following.isalnum():
            raise self._refusal(f"there is no {self._pattern[start : start + 2]!r}")
        self._at += 2
        return re.escape(following)

    def _class(self) -> str:
        """Read a class of characters, and return it with what `re` may once read otherwise as plain signs."""
        at, read = self._at + 1, "["
        if self._pattern[at : at + 1] == "^":
            at, read = at + 1, "[^"
        first = at
        while self._pattern[at : at + 1] != "]" or at == first:
            sign = self._pattern[at : at + 1]
            if sign == "\\":
                sign = self._pattern[at : at + 2]
            if not sign or self._pattern[at : at + 2] == "--":
                raise self._refusal(
                    "a class is not closed" if not sign else "a class has two hyphens side by side"
                )
            read += f"\\{sign}" if sign in "[]&~|" else sign
            at += len(sign)
        self._at = at + 1
        return f"{read}]"

    # Making the automaton

    def _count(self) -> None:
        self._size += 1
        if self._size > PARTS:
            raise InvalidInput(
                f"The pattern has more than {PARTS:,} parts, with what it repeats.", "Make it shorter."
            )

    def _add(self, step: _Step) -> int:
        self._count()
        self._steps.append(step)
        return len(self._steps) - 1

    def _fork(self, *after: int) -> int:
        return self._add(_Step(None, "", after))

    # Following it

    def _state(self, steps: frozenset[int], before: int) -> _State:
        return self._states.setdefault((steps, before), _State(steps, before))

    def _follow(self, state: _State, character: str) -> _State:
        """Find where a character leads, "" for the end of the text, and remember it."""
        kind = _kind(character)
        reached: set[int] = set()
        left = [self._first, *state.steps]
        while left:
            number = left.pop()
            if number in reached:
                continue
            reached.add(number)
            step = self._steps[number]
            if step.fits is None and (not step.place or _is_at(step.place, state.before, kind, character)):
                left += step.next
        following = _FOUND
        if 0 not in reached:
            fitting = (self._steps[one] for one in reached if character)
            after = frozenset(one.next[0] for one in fitting if one.fits and one.fits.fullmatch(character))
            if self._kept > _KEPT:
                self._states.clear()
                self._kept = 0
            following = self._state(after, kind)
        state[character] = following
        self._kept += 1 + len(state.steps)
        return following


def _kind(character: str) -> int:
    if character == "\n":
        return _LINE
    return _WORD if character == "_" or character.isalnum() else _OTHER


def _is_at(place: str, before: int, after: int, following: str) -> bool:
    """Say whether a place is between what stands before it and the character that follows."""
    match place:
        case "line":
            return before in (_BEGIN, _LINE)
        case "line end":
            return following in ("", "\n")
        case "text":
            return before == _BEGIN
        case "text end":
            return not following
    return ((before == _WORD) != (after == _WORD)) == (place == "word")
