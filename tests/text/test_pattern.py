"""Regular expressions in linear time: they find what `re` finds, whatever is nested."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import InvalidInput
from holdfast.text.pattern import PARTS, Pattern
from soak import cases
from tables import each

if TYPE_CHECKING:
    from types import FrameType

ATOMS = [
    "a",
    "b",
    ".",
    r"\d",
    r"\w",
    r"\W",
    "[ab]",
    "[^a\\d]",
    "[a-c_]",
    r"\.",
    "é",
    r"\x61",
    "\n",
    "{",
    "]",
    "[]a]",
]
PLACES = ["^", "$", r"\A", r"\Z", r"\b"]


def repeated(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    times = st.sampled_from(
        ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "{,2}", "*?", "+?", "??", "{1,2}?"]
    )
    group = st.sampled_from(["(", "(?:", "(?P<x>"])
    return (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map("|".join)
        | st.tuples(group, inner, times).map(lambda parts: f"{parts[0]}{parts[1]}){parts[2]}")
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS + PLACES), repeated, max_leaves=8)


@settings(max_examples=cases(375, 600))
@given(st.sampled_from(["", "(?i)", "(?s)", "(?is)"]), PATTERNS, st.text("abAc1_ .é\n{]", max_size=12))
@pytest.mark.slow
def test_it_finds_what_re_finds(flags: str, pattern: str, text: str) -> None:
    pattern = flags + pattern.replace("(?P<x>", "(")
    found = re.compile(pattern, re.MULTILINE).search(text)
    end = Pattern(pattern).find(text)
    assert (end is None) == (found is None)
    if found is not None and end is not None:  # of all matches the one that ends first
        ends = (place for place in range(len(text) + 1) if _ends(pattern, text, place))
        assert end == next(ends)


def _ends(pattern: str, text: str, place: int) -> bool:
    """Return whether a match of a pattern ends at a place of a text, so that only the rest follows it."""
    flags = re.match(r"\(\?[is]+\)|", pattern)
    assert flags is not None
    rest = f"(?:{pattern[flags.end() :]})(?=[\\s\\S]{{{len(text) - place}}}\\Z)"
    return re.compile(flags[0] + rest, re.MULTILINE).search(text) is not None


@each(
    ("pattern", "text", "end"),
    [
        (r"ORA-\d{5}", "failed with ORA-00942 at noon", 21),
        (r"^b", "a\nb", 3),
        (r"a$", "a\nb", 1),
        (r"\bcat\b", "concat cat", 10),
        ("", "abc", 0),
        ("(?i)straSSE", "Strasse", 7),
        (r"\[x\]", "a[x]", 4),
        ("x", "abc", None),
        ("(?P<name>b)+?c", "abbc", 4),
        ("[[]", "a[", 2),
    ],
)
def test_where_the_first_match_ends(pattern: str, text: str, end: int | None) -> None:
    assert Pattern(pattern).find(text) == end


@each(
    "pattern",
    [
        *("(", ")", "a)", "(a", "[", "[a", "[]", "[b-a]", "*", "a**", "a+*", "a{2}{3}", "^*", "(*a)", "a|*"),
        *(r"(a)\1", "(?=a)", "(?<!a)", "(?>a)", "a++", "(?P=x)", "(?i:a)", "a(?i)", "\\", r"\p{L}", r"\q"),
        *("[a--b]", "a{3,2}", "a{1001}", "(a{100}){100}", "((((){99}){99}){99}){99}"),
        *("(" * 499 + ")" * 499, "a" * 1_001),
    ],
)
def test_what_is_not_regular_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        Pattern(pattern)


@each(
    "pattern",
    [
        "(a+)+b",
        "(a|a)*b",
        "(a*)*b",
        "(.*a){20}b",
        "a*a*a*a*a*a*b",
        "(a|aa)+$b",
        "[ab]*a[ab]{12}c",
        "(x+x+)+y",
    ],
)
def test_the_steps_are_linear_whatever_is_nested(pattern: str) -> None:
    counts = [steps(pattern, "a" * length) for length in (500, 1_000)]
    assert counts[1] <= 2 * counts[0] + 100


def steps(pattern: str, text: str) -> int:
    """Count the lines of Python that looking for a pattern takes."""
    compiled = Pattern(pattern)
    lines = 0

    def count(_frame: FrameType, _event: str, _argument: object) -> Any:
        nonlocal lines
        lines += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        assert compiled.find(text) is None
    finally:
        sys.settrace(before)
    return lines


def test_what_is_remembered_is_bounded() -> None:
    pattern = Pattern("[ab]*a[ab]{30}c")
    text = "".join("ab"[(n * n // 7) % 2] for n in range(20_000))
    assert pattern.find(text) is None
    assert sum(map(len, pattern._states.values())) < 40_000
    assert len(pattern._steps) < PARTS
