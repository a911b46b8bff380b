"""Features of a text by which the fitted trees tell an injection from a text that only looks like one.

They are the matches of the rules, the scores and the roles of its words, the addressee, and its form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import TypeVar

from holdfast.safety import injection_roles, injection_weights
from holdfast.safety.injection_roles import Sentence
from holdfast.safety.injection_rules import Order
from holdfast.safety.injection_weights import InjectionWeights
from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import table_lines

Features = dict[str, float]
_Feature = TypeVar("_Feature", str, int)

# Form of a text, counted in lower case.
_FORM_PATTERNS = {
    name: late_pattern(pattern)
    for name, pattern in {
        "tag": r"</?[a-z_|!]",
        "object": r"\{\s?\"",
        "url": r"https?://|www\.|\.example\b",
        "comment": r"<!--|/\*|//|^#|\n#",
        "backtick": r"`",
        "quote": r"[\"“”«»「]",
        "single quote": r"(?:^|\s)'\w",
        "colon": r":\s",
        "question": r"\?",
        "semicolon": r";",
        "parenthesis": r"\(",
        "code": r"\w\(\)|\w\.\w+\(|==|=>|;\n|def |const |import |return ",
        "digit": r"\d",
        "line": r"\n",
    }.items()
}
_CAPITALS = late_pattern(r"\b[A-Z]{3,}\b")
_NAME = late_pattern(r"(?<=[a-z,] )[A-Z][a-z]+")
_LATIN = "\u024f"  # the last Latin letter


def features(
    text: str, lower: str, sentences: Sequence[Sentence], orders: Sequence[Order], weights: InjectionWeights
) -> Features:
    """Return the features of a text; `lower` is its folded form in lower case."""
    signs = _orders(lower, orders)
    signs |= _scores(sentences, weights)
    signs |= _roles(sentences)
    signs |= _word_classes([word for sentence in sentences for word in sentence.words])
    for place, sentence in (("first", sentences[0]), ("last", sentences[-1])) if sentences else ():
        if sentence.words:
            signs[f"{place} begins with: {_classes().get(sentence.words[0], '')}"] = 1
    for name, pattern in _FORM_PATTERNS.items():
        signs[f"made: {name}"] = len(pattern.findall(lower))
    return signs | _sizes(text, lower)


def _orders(lower: str, orders: Sequence[Order]) -> Features:
    """Return the rules that matched, the shares of text before and after them, and whether it is quoted."""
    signs = Features(Counter(f"{order.severity}: {order.rule}" for order in orders))
    for severity in ("high", "low"):
        signs[f"orders, {severity}"] = sum(order.severity == severity for order in orders)
    if orders:
        start, end = min(order.start for order in orders), max(order.end for order in orders)
        signs["before the orders"] = start / len(lower)
        signs["after the orders"] = 1 - end / len(lower)
        quotes = len(_FORM_PATTERNS["quote"].findall(lower[:start]))
        signs["quoted orders"] = quotes % 2
    return signs


def _scores(sentences: Sequence[Sentence], weights: InjectionWeights) -> Features:
    """Return the injection scores of a text as a whole and of its sentences."""
    signs = _spread(
        "words",
        [injection_weights.words(sentence) for sentence in sentences],
        lambda words: injection_weights.word_score(words, weights),
    )
    for reading in injection_weights.READINGS:
        signs |= _spread(
            reading,
            [injection_weights.buckets(reading, sentence) for sentence in sentences],
            partial(injection_weights.bucket_score, reading, weights=weights),
        )
    return signs


def _spread(name: str, parts: list[set[_Feature]], score: Callable[[Iterable[_Feature]], float]) -> Features:
    each = [score(part) for part in parts] or [score(())]
    return {
        f"{name}, all": score(set().union(*parts)) if len(parts) > 1 else each[0],
        f"{name}, most": max(each),
        f"{name}, least": min(each),
        f"{name}, first": each[0],
        f"{name}, last": each[-1],
    }


def _roles(sentences: Sequence[Sentence]) -> Features:
    """Return the roles in a text, and the most in one sentence."""
    each = [
        {role for mark in sentence.marks for role in injection_roles.roles(mark.bits)}
        for sentence in sentences
    ]
    known: set[str] = set().union(*each)
    return dict.fromkeys(known, 1.0) | {
        "roles": len(known),
        "roles in a sentence": max(map(len, each), default=0),
        "sentences with an order": sum(any(role.endswith("!") for role in roles) for roles in each),
    }


def _word_classes(words: Sequence[str]) -> Features:
    """Return the count of words of each class, and the position of the first."""
    signs: Features = {}
    for place, name in enumerate(map(_classes().get, words)):
        if name is not None:
            signs.setdefault(f"first {name}", 1 + place)
            signs[name] = signs.get(name, 0) + 1
    return signs


def _sizes(text: str, lower: str) -> Features:
    """Return the sizes of a text and of its parts."""
    size = max(1, len(text))
    return {
        "sentences": sum(1 for _ in injection_roles.sentences(lower)),
        "length": len(lower),
        "ascii": lower.isascii(),
        "foreign": sum(map(_LATIN.__lt__, lower)) / max(1, len(lower)),
        "disguised": lower != text.lower(),
        "upper": sum(map(str.isupper, text)) / size,
        "digits": sum(map(str.isdigit, text)) / size,
        "capitals": len(_CAPITALS.findall(text)),
        "names": len(_NAME.findall(text)),
    }


@cache
def _classes() -> dict[str, str]:
    """Return the classes of words, by word."""
    rows = (line.partition(":") for line in table_lines("holdfast.safety", "order_signs.txt"))
    return {word: name for name, _, words in rows for word in words.split()}
