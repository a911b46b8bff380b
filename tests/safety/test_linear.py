"""Whatever a text is: twice as long, it takes twice the steps to look at. Counted, not timed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from types import FrameType, ModuleType
from typing import Any

import pytest

from holdfast import Memory
from holdfast.compaction import extract, sentence_scoring
from holdfast.safety import (
    alphabets,
    credential_values,
    credentials,
    deobfuscate,
    detectors,
    encodings,
    injection_features,
    injection_roles,
    injection_rules,
    injection_weights,
    invisible,
    markers,
)
from holdfast.text import (
    analyze,
    clean,
    message_text,
    one_line,
    sentences,
    statement_spans,
    statements,
    tokens,
)
from holdfast.text.late_pattern import LatePattern
from hostile_texts import hostile, parts
from soak import cases

MODULES: tuple[ModuleType, ...] = (
    alphabets, analyze, clean, credential_values, credentials, encodings, deobfuscate, one_line,
    injection_roles, invisible, injection_weights, markers, injection_rules, injection_features,
    detectors, tokens, statements, statement_spans,
    sentence_scoring, extract, message_text, sentences,
)  # fmt: skip
SIZE = 4_000  # above what is read as a whole
LARGER = 16_000  # how many sentences are read closely or chosen is chance in a short text, which evens out


class Steps:
    """Count calls, the characters that patterns pass over, and the offsets that are added up."""

    def __init__(self) -> None:
        self.count = 0

    def call(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.count += event in ("call", "c_call")

    def of(self, read: Callable[[str], object], text: str) -> int:
        self.count = 0
        sys.setprofile(self.call)
        try:
            read(text)
        finally:
            sys.setprofile(None)
        return self.count

    def accumulate(self, sizes: Iterable[int]) -> Iterator[int]:
        for total in accumulate(sizes):
            self.count += 1
            yield total


class Counted:
    """A pattern that counts how far it looks for a match."""

    def __init__(self, pattern: re.Pattern[str] | LatePattern, steps: Steps) -> None:
        self._pattern, self._steps = pattern, steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._pattern, name)
        if name not in ("search", "finditer", "findall", "sub", "split"):
            return found

        def looked(*arguments: Any, **named: Any) -> Any:
            text = next(one for one in arguments[name == "sub" :] if isinstance(one, str))
            first, last = (*[one for one in arguments if type(one) is int][:2], 0, len(text))[:2]
            result = found(*arguments, **named)
            end = result.end() if name == "search" and result else min(last, len(text))
            self._steps.count += max(0, end - first)
            return result

        return looked


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Put what counts in the place of every pattern; what they find is the same."""
    counted = Steps()
    for module in MODULES:
        for name, value in list(vars(module).items()):
            if isinstance(value, re.Pattern | LatePattern):
                monkeypatch.setattr(module, name, Counted(value, counted))
    monkeypatch.setattr(deobfuscate, "accumulate", counted.accumulate)
    return counted


QUICK = ("prose after a byte order mark", "orders after a byte order mark", "directions", "flags")
AGAIN = (
    "names of secrets beside accents", "names of pins", "short names of secrets", "secrets within secrets",
    "phrases in French", "passwords in Chinese", "encoded orders",
)  # fmt: skip
MOST = 20  # steps for each character of them
LONG = [pytest.param(part, marks=pytest.mark.soak) for part in ("guard", "summary")]


def grown(steps: Steps, part: str, names: Iterable[str], size: int = SIZE) -> dict[str, float]:
    """Name the texts of which one twice as long takes far more than twice the steps."""
    read, once, twice = parts()[part], hostile(size), hostile(2 * size)
    factors = {}
    for name in names:
        read(twice[name])  # what is made once for all texts
        factors[name] = steps.of(read, twice[name]) / max(200, steps.of(read, once[name]))
    return {name: round(factor, 1) for name, factor in factors.items() if factor > 2.5}


def test_the_guard_takes_twice_the_steps_for_a_text_twice_as_long(steps: Steps) -> None:
    assert grown(steps, "guard", QUICK) == {}


def test_what_is_said_again_is_judged_once(steps: Steps) -> None:
    read, texts = parts()["guard"], hostile(SIZE)
    for name in AGAIN:
        read(texts[name])  # what is made once for all texts
    taken = {name: steps.of(read, texts[name]) / SIZE for name in AGAIN}
    assert {name: round(taken[name]) for name in AGAIN if taken[name] > MOST} == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", ["analysis", "tokens", "gist", "importer", "statements", *LONG])
def test_a_text_twice_as_long_takes_twice_the_steps(steps: Steps, part: str) -> None:
    assert grown(steps, part, hostile(10), LARGER if part in ("guard", "summary") else SIZE) == {}


@pytest.mark.slow
@pytest.mark.scaled
@pytest.mark.parametrize("name", list(hostile(10)))
def test_a_megabyte_of_anything_is_appended(quick: Memory, name: str) -> None:
    text = "a" + hostile(cases(100_000, 1_000_000))[name]
    chat = quick.chat("monday")
    chat.append(role="tool", content=text)
    assert len(chat.history()[0].content) == len(text)
