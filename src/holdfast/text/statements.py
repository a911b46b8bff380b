"""Statements worth keeping, recognised by their form: decisions, instructions, causes, outcomes, facts.

What is said is not looked at, only how: person, mood and tense, what is named, and where it stands. The
weights were fitted to labelled conversations by `scripts/fit_statements.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from holdfast.text import vectors
from holdfast.text.statement_forms import Place, forms, with_neighbours
from holdfast.text.statement_spans import Span, spans
from holdfast.text.tables import table_lines

StatementKind = Literal[
    "decision", "instruction", "preference", "correction", "cause", "outcome", "environment", "personal"
]
Speaker = Literal["assistant", "user", "person"]

WORTH = 0.4  # from which on a statement is worth keeping
_PLAIN = 0.8  # the worth of what is said in so many words: "from now on", "the root cause"
_DOUBTFUL = -2.4  # the score up to which the words of a decision decide nothing
# Two quotations in a sentence: how something is worded.
_NO_STATEMENT = frozenset({"question", "offer", "ends-colon", "only-strong", "quotes"})
_UNSURE = frozenset({"hedge", "wh"})
_TELLING = frozenset({"^i", "^this", "^they", "was"})  # "it's always fun" is no instruction
_SETTLED = frozenset({"decides", "settles", "^concludes"})
_UNSETTLED = frozenset({"never-so", "want"})
_SHORT = frozenset({"words-0", "words-1"})
_NOT_TYPED = frozenset({"shell", "pasted", "^wh"})  # of a user: pasted from a terminal, or a question
_LONGEST_TYPED = 1_500  # characters of what a user types; what is longer, and laid out, was pasted
_LAID_OUT = re.compile(r"^#{1,6} |[“”’—→]", re.MULTILINE)
_WORD = re.compile(r"[a-z']{1,40}")
_EXACT = frozenset({"number", "version", "path", "code"})
_TOLD = frozenset({"tells", "state", "be", "version", "path"})


class JudgedStatement(NamedTuple):
    """A statement of a message: its place in the text, its kind, and its worth from 0 to 1."""

    start: int
    end: int
    kind: StatementKind
    worth: float


class Context(NamedTuple):
    """What is around a message: whether it answers a question and ends its turn, and what the chat is.

    `is_work` is whether it is about code, `among_people` whether no assistant takes part. `dialog` are the
    forms of what the other side said before a user's message and after it.
    """

    answers: bool = False
    concludes: bool = False
    is_work: bool = False
    among_people: bool = False
    dialog: frozenset[str] = frozenset()


def statements(role: str, text: str, context: Context | None = None) -> list[JudgedStatement]:
    """Return the statements of a user's or an assistant's message in their order, each with its worth.

    >>> said = statements("user", "From now on, answer in French. Thanks!")
    >>> [(one.kind, one.worth >= WORTH) for one in said]
    [('instruction', True), ('decision', False)]
    """
    context = context or Context()
    found = list(spans(text))
    speaker = speaker_of(role, context)
    return [
        JudgedStatement(span.start, span.end, *_judged(has, speaker, text[span.start : span.end]))
        for span, has in zip(found, features(text, found, context), strict=True)
    ]


def speaker_of(role: str, context: Context) -> Speaker:
    """Return by whose weights a message is judged."""
    if role != "user":
        return "assistant"
    return "person" if context.among_people else "user"


def features(text: str, found: list[Span], context: Context) -> list[set[str]]:
    """Return what the weights are for: the forms of statements, of their neighbours, and of the message."""
    around = {name for name, holds in context._asdict().items() if holds is True} | context.dialog
    count = len(found)
    own = [
        forms(text[one.start : one.end], Place(index, count, one.line, one.leads, len(text)))
        for index, one in enumerate(found)
    ]
    shells = [index for index, has in enumerate(own) if "shell" in has]
    for has in own[shells[0] : shells[-1]] if shells else ():
        has.add("pasted")
    if len(text) > _LONGEST_TYPED and _LAID_OUT.search(text):
        around.add("edited")
    return [has | around for has in with_neighbours(own)]


def known_words(said: str) -> list[tuple[int, float]]:
    """Return the rows of the words of a statement in the table of word vectors, and their weights."""
    rows = vectors.table().rows
    return [(rows[word], vectors.weight(word)) for word in _WORD.findall(said.lower()) if word in rows]


def _of_words(said: str, scores: list[float]) -> float:
    """Return what the words of a statement add to its score: the mean of theirs, by their weights."""
    known = known_words(said)
    total = sum(weight for _, weight in known)
    return sum(scores[row] * weight for row, weight in known) / total if known else 0.0


@cache
def _word_scores(speaker: Speaker) -> list[float]:
    weights, words = _weights()[speaker], vectors.table().vectors
    direction = np.array([weights.get(f"~{place}", 0.0) for place in range(words.shape[1])], np.float32)
    # Not by BLAS, whose threads cost more than so small a product.
    scores: list[float] = np.einsum("ij,j->i", words, direction).tolist()
    return scores


def _judged(has: AbstractSet[str], speaker: Speaker, said: str) -> tuple[StatementKind, float]:
    if speaker == "user" and has & _NOT_TYPED:
        return "decision", 0.0
    plain = _plain_kind(has, speaker)
    weights = _weights()[speaker]
    score = weights["="] + sum(weights.get(name, 0.0) for name in has)
    if speaker == "person":
        score += _of_words(said, _word_scores(speaker))
    worth = 0.0 if speaker == "user" and "edited" in has else 1 / (1 + math.exp(-score))
    if plain and (plain != "decision" or score > _DOUBTFUL or has & _SETTLED):
        return plain, max(worth, _PLAIN)
    return _likely_kind(has, speaker), worth


def _plain_kind(has: AbstractSet[str], speaker: Speaker) -> StatementKind | None:
    """Return the kind of a statement that says what it is, None if it does not."""
    if "decides" in has and not has & _NO_STATEMENT:
        return "decision"
    if has & _NO_STATEMENT or has & _UNSURE or has & _SHORT or "^next" in has or "shell" in has:
        return None
    if speaker != "assistant" and (kind := _plainly_wished(has, speaker)):
        return kind
    if "words-2" in has:
        return None
    if "^concludes" in has:
        return "decision"
    if "settles" in has and (speaker != "assistant" or has & {"^settles", "^we"}) and not has & _UNSETTLED:
        return "decision"
    return "cause" if "^explains" in has or {"explains", "was"} <= has else None


def _plainly_wished(has: AbstractSet[str], speaker: Speaker) -> StatementKind | None:
    if "reminds" in has:
        return "personal" if has & {"i", "my"} else "environment"
    if has >= {"^state", "name"} and has & _EXACT and not has & _TELLING:
        return "environment"
    if "stands" in has and has & {"orders", "forbids", "^stands"} and not has & _TELLING:
        return "instruction"
    if "^likes" in has:
        return "preference"
    if speaker == "person" or "is_work" not in has or "words-2" in has:
        return None
    if {"^correct", "contrast"} <= has and "^i" not in has:
        return "correction" if has & {"be", "was", "state"} else "decision"
    if "forbids" in has and "words>22" not in has:
        return "instruction"
    is_decision = (
        has & {"proposes", "so-it-is"}
        or ("approves" in has and not has & {"^this", "dots"})
        or ("choose" in has and not {"^i", "never-so"} <= has)
        or ("modal" in has and not has & {"^i", "^you", "edited"})
    )
    return "decision" if is_decision else None


def _likely_kind(has: AbstractSet[str], speaker: Speaker) -> StatementKind:
    if speaker == "person":
        return "preference" if has & {"likes", "prefer"} else "personal"
    if speaker == "user":
        if "^correct" in has:
            return "correction"
        if "prefer" in has and "is_work" not in has:
            return "preference"
        is_told = "be" in has and not has & {"choose", "modal", "accept", "want", "settles"}
        return ("environment" if "is_work" in has else "personal") if is_told else "decision"
    if has & {"changes", "first-ed", "amount", "have-been"} or ("^done" in has and "cause" not in has):
        return "outcome"
    if has & {"cause", "explains"}:
        return "cause"
    if has & {"settles", "^choose", "modal", "proposes"}:
        return "decision"
    return "environment" if has & _TOLD else "outcome"


@cache
def _weights() -> dict[str, dict[str, float]]:
    """Return the weights of forms for each speaker; "=" is the bias."""
    found: dict[str, dict[str, float]] = {}
    for line in table_lines("holdfast.text", "statement_weights.txt"):
        if line.startswith("["):
            current = found.setdefault(line.strip("[]"), {})
        else:
            weight, name = line.split()
            current[name] = float(weight)
    return found
