"""Regular expressions in linear time: an automaton, built as it is needed, that never goes back in the text.

`re` backtracks, which may take exponential time, as for `(a+)+b`. Here all ways are followed at once: a
character costs at most as many steps as the pattern has parts, and mostly one look into a dict.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from holdfast.errors import InvalidInput, shown

LONGEST = 1_000  # characters of a pattern
PARTS = 1_000  # of a pattern, with those in braces repeated as often as they say
_MAX_CACHED = 20_000  # transitions
_FLAGS = re.compile(r"\(\?([ims]+)\)")
# The tokens of a pattern; what none of them matches is refused.
_TOKEN = re.compile(
    r"(?P<choice>\|)|(?P<group>\((?:\?:|\?P<\w+>|(?!\?)))|(?P<end>\))|(?P<place>\^|\$|\\[AZbB])"
    r"|(?P<times>[*+?]|\{(?!,?\})(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\})(?P<lazy>\??)"
    r"|(?P<set>\[\^?(?:\\.|[^\\])(?:\\.|[^\]\\])*\])"
    r"|(?P<one>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[dDwWsStnrfva0]|[^a-zA-Z0-9])|[^\\(\[])",
    re.DOTALL,
)
_OTHER, _WORD, _LINE, _BEGIN = range(4)  # the kinds of characters before a place

# Adds the steps of a part before the step that follows it, and returns the first of them.
Build = Callable[[int], int]


class _Step(NamedTuple):
    """A step of the automaton: over a character that fits, or past a place, or past nothing."""

    fits: re.Pattern[str] | None
    place: str
    next: tuple[int, ...]


class _State(dict[str, "_State"]):
    """The steps at which the automaton may be, and the states after the characters read there so far."""

    def __init__(self, steps: frozenset[int], before: int) -> None:
        super().__init__()
        self.steps = steps
        self.before = before


_FOUND = _State(frozenset(), _OTHER)


class Pattern:
    r"""A regular expression that searches in time linear in the length of a text.

    Written as for `re`, with `^` and `$` at each line, and without lookarounds, backreferences, atomic
    groups and possessive quantifiers.

    >>> Pattern(r"ORA-\d{5}\b").find("failed with ORA-00942 at noon")
    21

    Raises:
        InvalidInput: it is not such an expression, or too long.

    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > LONGEST:
            raise InvalidInput(f"The pattern has {len(pattern):,} characters.", f"Use at most {LONGEST:,}.")
        flags = _FLAGS.match(pattern)
        self._flags = re.DOTALL if flags and "s" in flags[1] else re.NOFLAG
        self._flags |= re.IGNORECASE if flags and "i" in flags[1] else re.NOFLAG
        self._pattern, self._at, self._size = pattern, flags.end() if flags else 0, 0
        # The first step stands for a match.
        self._steps = [_Step(None, "", ())]
        try:
            build = self._choice()
            if self._at < len(pattern):
                raise self._refusal("unbalanced parenthesis")
            self._first = build(0)
        except RecursionError as error:
            raise self._refusal("parentheses nested too deeply") from error
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self._cached = 0

    def find(self, text: str) -> int | None:
        """Return the end of the match that is complete first; None for no match."""
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
            f"Unsupported pattern {shown(self._pattern)}: {why}.",
            "Use no lookarounds and backreferences; a backslash makes a sign a plain one.",
        )

    def _token(self, *kinds: str) -> re.Match[str] | None:
        """Return the next token and step past it, if it is of one of these kinds."""
        token = _TOKEN.match(self._pattern, self._at)
        if token is None or not any(token[kind] for kind in kinds):
            return None
        self._at = token.end()
        return token

    def _choice(self) -> Build:
        parts = [self._sequence()]
        while self._token("choice"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else lambda after: self._fork(*(part(after) for part in parts))

    def _sequence(self) -> Build:
        parts: list[Build] = []
        while part := self._part():
            parts.append(part)
        if self._pattern[self._at : self._at + 1] not in ("", "|", ")"):
            raise self._refusal(f"{self._pattern[self._at : self._at + 4]!r} is not supported")

        def build(after: int) -> int:
            for part in reversed(parts):
                after = part(after)
            return after

        return build

    def _part(self) -> Build | None:
        """Read a part with its repetition; None where there is none."""
        if token := self._token("place"):
            place = token["place"]
            return lambda after: self._add(_Step(None, place, (after,)))
        if self._token("group"):
            part = self._choice()
            if not self._token("end"):
                raise self._refusal("unbalanced parenthesis")
        elif token := self._token("set", "one"):
            part = self._character(token)
        else:
            return None
        times = self._token("times")
        if times is None:
            return part
        return self._repeat(part, *self._bounds(times))

    def _character(self, token: re.Match[str]) -> Build:
        written = token["one"] or self._plain_set(token["set"])
        try:
            fits = re.compile(
                written if len(written) > 1 or written == "." else re.escape(written), self._flags
            )
        except (re.error, OverflowError) as error:
            raise self._refusal(str(error)) from error
        return lambda after: self._add(_Step(fits, "", (after,)))

    def _plain_set(self, written: str) -> str:
        """Return a set with the signs escaped that `re` may read otherwise one day."""
        start = 2 if written.startswith("[^") else 1
        if "--" in re.sub(r"\\.", "", written):
            raise self._refusal("two hyphens in a set")
        body = re.sub(
            r"\\.|[\[\]&~|]", lambda sign: sign[0] if len(sign[0]) > 1 else f"\\{sign[0]}", written[start:-1]
        )
        return f"{written[:start]}{body}]"

    def _bounds(self, times: re.Match[str]) -> tuple[int, int | None]:
        if times["times"] in ("*", "+", "?"):
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[times["times"]]
        low = int(times["low"] or 0)
        high = (int(times["high"]) if times["high"] else None) if times["comma"] else low
        if max(low, high or 0) > PARTS or (high is not None and high < low):
            raise self._refusal("too many repetitions, or bounds out of order")
        return low, high

    # Building the automaton

    def _repeat(self, part: Build, low: int, high: int | None) -> Build:
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

    def _count(self) -> None:
        self._size += 1
        if self._size > PARTS:
            raise InvalidInput(
                f"The pattern has more than {PARTS:,} parts, repetitions included.", "Make it shorter."
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
        """Return the state after a character, "" for the end of the text, and cache it."""
        kind = _LINE if character == "\n" else _WORD if character == "_" or character.isalnum() else _OTHER
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
            steps = (self._steps[n] for n in reached if character)
            after = frozenset(edge.next[0] for edge in steps if edge.fits and edge.fits.fullmatch(character))
            if self._cached > _MAX_CACHED:
                self._states.clear()
                self._cached = 0
            following = self._state(after, kind)
        state[character] = following
        self._cached += 1 + len(state.steps)
        return following


def _is_at(place: str, before: int, after: int, following: str) -> bool:
    """Return whether a place is between two kinds of characters; `following` is "" at the end."""
    match place:
        case "^":
            return before in (_BEGIN, _LINE)
        case "$":
            return following in ("", "\n")
        case r"\A":
            return before == _BEGIN
        case r"\Z":
            return not following
    return ((before == _WORD) != (after == _WORD)) == (place == r"\b")
