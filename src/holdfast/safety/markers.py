"""Markers of turns, tool calls and tool results in the prompt formats of models: syntax, found by rule.

The text between them does not matter: whoever writes a marker can speak as the system or as a tool. A marker
that is mentioned rather than used, in quotes, beside words about templates, or in a template itself, is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import islice
from typing import NamedTuple

from holdfast.safety.credential_values import has_any
from holdfast.safety.injection_rules import Order
from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import table_lines

_SIGNS = ("<", "[", "{", "#", "`", "]~")
_WORDS = frozenset(
    "human assistant instructions action functions gpt4 instruction curious tool function curl wget fetch "
    "aria2c lynx http iwr irm iex disregard ignore forget skip overlook dismiss discard drop scrap neglect "
    "mind aside throw heed task goal objective directive mission assignment job prompt".split()
)
_ANY = late_pattern(r"<\|?/?[\w▁.:/-]{1,60}\|?>|\[/?[\w|]{2,30}\]|<</?sys>>")
_ROLE = late_pattern(r"(?:system|user|assistant|tool|developer|function|ipython|model|human|observation)\b")
_PLACEHOLDER = late_pattern(r"\{\{|\{%|\$\{|\{\w+\}|%s|\{\w+\[|…|\.\.\.")
_IN_CODE = late_pattern(r"[=(,]\s?[\[{(]|\breturn\b|\.append\(")
_WORD = late_pattern(r"[^\W_]{2,}")
_QUOTES = dict(zip("\"'`“„«»‘「(", "\"'`”“»«’」)", strict=True))  # the closing one by the opening one
# Words beside which a marker is mentioned rather than used.
_NAMED = late_pattern(
    r"\b(?:token\w*|template\w*|chatml|llama\w*|mistral|mixtral|gemma|qwen|alpaca|vicuna|deepseek|gpt-?\d"
    r"|prompt formats?|formats?|parser|parses?|parsing|escap\w+|strip\w*|regex\w*|vocab\w*|eos\w*|bos\w*"
    r"|stop sequences?|delimiter\w*|separat\w+|marks?|marker\w*|tags?|syntax|schema|blocks?|api|docs?"
    r"|documentation|fields?|column|wraps?|decod\w+|encod\w+|fine-?tun\w*|jinja|red team|test(?:s|ed|ing)?"
    r"|bug|emits?|sanitiz\w+|headings?)\b"
)
_NEAR = 160  # characters before and after a marker that show whether it is mentioned
_MOST = 200  # markers of a text that are looked at one by one


class _Form(NamedTuple):
    message: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]


def may_have_markers(lower: str, words: AbstractSet[str]) -> bool:
    """Return whether a folded text in lower case, with these words, may have a marker. Cheap."""
    return not _WORDS.isdisjoint(words) or has_any(lower, _SIGNS)


def find_markers(lower: str) -> Iterator[Order]:
    """Yield the markers in a folded text in lower case that are used, not mentioned."""
    done = -1
    spans = sorted(
        (match.start(), match.end(), form.message)
        for form in _forms()
        if has_any(lower, form.needles)
        for match in islice(form.pattern.finditer(lower), _MOST)
    )
    for start, end, message in spans:
        if start >= done:
            done = end
            if not _is_named(lower, start, end):
                yield Order(start, end, "high", message, message)


def _is_named(lower: str, start: int, end: int) -> bool:
    """Return whether a marker is mentioned rather than used."""
    line_start = max(lower.rfind("\n", 0, start) + 1, start - _NEAR)
    stop = lower.find("\n", end)
    line_end = min(len(lower) if stop < 0 else stop, end + _NEAR)
    before, after = lower[line_start:start], lower[end:line_end]
    near = max(0, start - _NEAR)
    if (
        _is_quoted(before, lower[start:end], after)
        or ('"' in lower[start:end] and _IN_CODE.search(lower, near, start + 1))
        or _PLACEHOLDER.search(lower, near, end + _NEAR)
    ):
        return True
    if "\n" in lower[start:end] or not before.strip():
        return _NAMED.match(after.lstrip()) is not None
    if _opens_turn(lower, end, line_end):
        return False
    return _NAMED.search(_ANY.sub(" ", f"{before} {after}")) is not None


def _is_quoted(before: str, marker: str, after: str) -> bool:
    """Return whether a marker stands in quotes that hold little else."""
    for place in range(len(before) - 1, max(-1, len(before) - 40), -1):
        closing = _QUOTES.get(before[place])
        if closing is None:
            continue
        end = after.find(closing)
        if end < 0:
            if closing in marker and closing in "\"'":
                return False
            continue
        inside = _ANY.sub(" ", before[place + 1 :] + marker + after[:end])
        return len(_WORD.findall(inside)) <= 3
    return False


def _opens_turn(lower: str, end: int, line_end: int) -> bool:
    """Return whether a role follows a marker and then a line of its own, as in a real turn."""
    role = _ROLE.match(lower, end)
    if role is None:
        return line_end == end and line_end < len(lower)
    rest = _ANY.sub("", lower[role.end() : line_end])
    return not rest.strip() and line_end < len(lower)


@cache
def _forms() -> tuple[_Form, ...]:
    """Return the markers of the table."""
    rows = (line.split(" | ", 2) for line in table_lines("holdfast.safety", "markers.txt"))
    return tuple(
        _Form(what, tuple(needles.replace("\\n", "\n").split(" or ")), late_pattern(pattern))
        for what, needles, pattern in rows
    )
