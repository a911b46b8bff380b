"""Orders to the model that a text contains: rules over classes of words, both as data.

A single word proves nothing; a rule asks for several classes of words in one sentence, such as a verb of
disregarding, "previous", and "instructions". Most texts lack a long word of every rule, which the first
letters of their words show; only the others are searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache, reduce
from operator import or_
from typing import Literal, NamedTuple

from holdfast.safety.deobfuscate import fold
from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import table_lines

_PART = late_pattern(r"\([^()]*\)\??|[^ ]+")
_STEM = late_pattern(r"[^\W_]+\*?")
HEAD = 4  # letters of a word by which the cheap look goes
_BREAK = late_pattern(r"[.!?](?=[\s\"'”’)\]*]|$)|[。।؟]|\n\s*\n")
_TOKEN = late_pattern(r" \.\. |\([^()]*\)\? |\([^()]*\)|[ *]|[^ *(]+")
_NEGATED = late_pattern(r"\b(?:never|not|n't|cannot|refuse to|nicht|won't)\s(?:\w+\s)?$")
_REPORTED = late_pattern(
    r"\b(?!you)(?:asked|told|tells|tried|tries|wants|wanted|attempt\w*|decided|instructed|trying|how"
    r"|supposed|used|begged)\s(?:(?!you)\w+\s){0,4}to\s(?:\w+\s)?$"
)
_DISCUSSED = late_pattern(
    r"\b(?:attack\w*|inject\w*|jailbreak(?:s|ing)?|attacker\w*|adversar\w*|red[- ]team\w*|phishing|threat "
    r"model|researchers?|paper|classifier\w*|detect(?:s|or|ion)?|such as|owasp|malicious|payload\w*|talk"
    r"|blog|phrases?)\b"
)


class Order(NamedTuple):
    """The span of an order, its severity, its name, and the rule that found it."""

    start: int
    end: int
    severity: Literal["low", "high"]
    message: str
    rule: str


class _Rule(NamedTuple):
    """A rule: `others` within `reach` characters of a key, in its sentence; or a pattern alone."""

    message: str
    reach: int
    side: str  # "after" the key, "around" it, or "across" the end of its sentence
    key: str
    others: tuple[str, ...]
    pattern: re.Pattern[str] | None


class _Gate(NamedTuple):
    """The classes, as bits, by the hints that a text has; and the rules with the classes that each needs."""

    hints: dict[str, int]
    needles: dict[bool, list[str]]  # for texts in ASCII, and for others
    rules: dict[int, list[tuple[int, _Rule]]]  # by the class that is looked for first


def find_orders(text: str, words: AbstractSet[str]) -> Iterator[Order]:
    """Yield the orders in a folded text in lower case with these `words`."""
    gate = _gate()
    needles = (f" {needle}" for needle in gate.needles[text.isascii()] if needle in text)
    hints = {*words, *(f"{word[:HEAD]}*" for word in words), *needles}
    known = reduce(or_, map(gate.hints.__getitem__, gate.hints.keys() & hints), 0)
    for key, rules in gate.rules.items():
        if known & key:
            for needs, rule in rules:
                if known & needs == needs:
                    yield from _apply(rule, text)


def _apply(rule: _Rule, text: str) -> Iterator[Order]:
    spans = (match.span() for match in rule.pattern.finditer(text)) if rule.pattern else _spans(text, rule)
    for start, end in spans:
        yield judge(text, start, end, rule.message, f"{rule.message} {rule.key} {' '.join(rule.others)}")


def judge(text: str, start: int, end: int, message: str, rule: str) -> Order:
    """Return an order for a span: a light one where it is mentioned rather than given."""
    return Order(start, end, "low" if _is_mention(text, start, end) else "high", message, rule)


def _spans(text: str, rule: _Rule) -> Iterator[tuple[int, int]]:
    """Yield the spans of a key with the others beside it, in one sentence."""
    done = 0
    for key in _class_pattern(rule.key).finditer(text):
        if key.start() < done:
            continue
        first, last = _window(text, key.start(), key.end(), rule)
        start, end = key.span()
        for other in rule.others:
            pattern = _class_pattern(other)
            match = pattern.search(text, key.end(), last) or pattern.search(text, first, key.start())
            if match is None:
                break
            start, end = min(start, match.start()), max(end, match.end())
        else:
            done = end
            yield start, end


def _window(text: str, start: int, end: int, rule: _Rule) -> tuple[int, int]:
    first = max(0, start - rule.reach) if rule.side == "around" else start
    last = min(len(text), end + rule.reach)
    if rule.side == "across":
        return first, last
    for stop in _BREAK.finditer(text, first, start):
        first = stop.end()
    stop_after = _BREAK.search(text, end, last)
    return first, stop_after.start() if stop_after else last


def _is_mention(text: str, start: int, end: int) -> bool:
    """Return whether an order is mentioned rather than given."""
    sentence = re.split(r"[.!?]\s|\n", text[max(0, start - 160) : start])[-1]
    if _NEGATED.search(sentence) or _REPORTED.search(sentence):
        return True
    around = sentence + text[start : end + 80].split("\n", 1)[0]
    return _DISCUSSED.search(around) is not None


@cache
def _rules() -> tuple[tuple[_Rule, str], ...]:
    """Return the rules with their hints: name | "after", "around" or "across", reach | key others."""
    rules = []
    for line in table_lines("holdfast.safety", "order_rules.txt"):
        message, how, what = (part.strip() for part in line.split(" | ", 2))
        if how.startswith("find"):
            rules.append((_Rule(message, 0, "", "", (), late_pattern(what)), fold(how[5:-1]).text))
            continue
        side, reach = how.split(maxsplit=1)
        reach, _, hints = reach.rstrip(">").partition("<")
        key, *others = what.split()
        rules.append((_Rule(message, int(reach), side, key, tuple(others), None), fold(hints).text))
    return tuple(rules)


@cache
def _gate() -> _Gate:
    bits: dict[str, int] = {}
    hints: dict[str, int] = {}
    rules: dict[int, list[tuple[int, _Rule]]] = {}
    for rule, groups in _rules():
        classes = {name: _class_hints(name) for name in (rule.key, *rule.others) if name}
        for group in filter(None, groups.split("+")):
            classes[group] = {_hint(part[1:] if part[0] == "=" else f"{part}*") for part in group.split(",")}
        for name, hints_of_class in classes.items():
            bit = bits.setdefault(name, 1 << len(bits))
            hints.update({hint: hints.get(hint, 0) | bit for hint in hints_of_class})
        needs = [bits[name] for name in classes]
        rules.setdefault(needs[0], []).append((sum(needs), rule))
    needles = [hint[1:] for hint in hints if hint[0] == " "]
    return _Gate(hints, {True: list(filter(str.isascii, needles)), False: needles}, rules)


def _hint(entry: str) -> str:
    """Return a hint: a word, the first letters of words as "igno*", or another part of a text behind " "."""
    stem = entry.rstrip("*")
    is_start = stem != entry and (len(stem) >= HEAD or not stem.isascii())
    if not stem.isalnum() or (is_start and len(stem) < HEAD):
        return f" {stem}"
    return f"{stem[:HEAD]}*" if is_start else stem


@cache
def _class_members() -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for line in table_lines("holdfast.safety", "order_words.txt"):
        name, _, entries = line.partition(":")
        folded = (
            entry.strip() if "re<" in entry else fold(entry).text.lower().strip()
            for entry in entries.split(" | ")
        )
        members.setdefault(name.strip(), []).extend(folded)
    return members


@cache
def _class_hints(name: str) -> set[str]:
    """Return the hints of a class of words: every text with such a word has one of them."""
    hints: set[str] = set()
    for entry in _class_members()[name]:
        if entry.startswith("re<"):
            hints.update(_hint(f"{part}*") for part in entry[3:].partition(">:")[0].split(","))
        elif entry.startswith("*"):
            hints.add(f" {max(entry[1:].split(), key=lambda word: len(word.encode()))}")
        else:
            hints.update(map(_hint, _longest_words(entry)))
    return hints


@cache
def _class_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of a class of words."""
    words, parts = [], []
    for entry in _class_members()[name]:
        if entry.startswith("re<"):
            parts.append(entry[3:].partition(">:")[2])
        elif entry.startswith("*"):
            parts.append(_pattern(entry[1:]))
        else:
            words.append(entry)
    if words:
        parts.insert(0, rf"(?<!\w)(?:{'|'.join(map(_pattern, words))})(?!\w|['’]s\b)")
    return re.compile("|".join(parts))


def _pattern(entry: str) -> str:
    """Return the regular expression of a member of a class."""
    parts = []
    for part in _TOKEN.findall(entry):
        if part == " .. ":
            parts.append(r"(?:\W{1,3}\w{1,24}){0,4}?\W{1,3}")
        elif part == " ":
            parts.append(r"[\W_]{1,4}")
        elif part == "*":
            parts.append(r"\w{0,14}")
        elif part.startswith("("):
            words = "|".join(map(_pattern, part.strip("(?) ").split("/")))
            parts.append(rf"(?:(?:{words})[\W_]{{1,4}})?" if part.endswith(")? ") else f"(?:{words})")
        else:
            parts.append(re.escape(part))
    return "".join(parts)


def _longest_words(entry: str) -> list[str]:
    """Return the longest words of a member of a class: every text with it has one of them."""
    choices = []
    for part in _PART.findall(entry):
        alternatives = [_STEM.findall(words) for words in part.strip("()").split("/")]
        if all(alternatives) and not part.endswith("?"):
            choices.append([max(alternative, key=len) for alternative in alternatives])
    return max(choices, key=lambda words: min(map(len, words)))
