"""Write one summary: ask a model, ask it again to be shorter, or choose sentences without one.

What asks is a generator that yields a prompt and receives the answer, so the same code serves a model that is called
and one that is awaited, and nothing here holds a transaction while a model thinks.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from holdfast.compaction.extract import extract
from holdfast.prompt.transcript import transcript
from holdfast.text.clean import clean
from holdfast.text.message_text import Passage, grave, harmless, without_payloads, without_reasoning

if TYPE_CHECKING:
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Level

_OVERAGE = 3  # times the target: what is longer is cut
_SMALLEST = 4  # tokens that can say anything
_NOTHING = "(nothing that can be put into words)"
_MARKS = " .…-–_*#`\n\t"  # an answer of nothing else says nothing
_CUT = " … [cut: the answer was too long]"


@dataclass(frozen=True, slots=True)
class Source:
    """What is to be summarised: its passages, what it costs in a window now, and what the summary is called.

    `depth` is that of the summary; `previous` are the summaries before it, for continuity.
    """

    passages: Sequence[Passage]
    tokens: int
    depth: int
    previous: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A summary as it was written: its text, at which level, and what asking for it took."""

    text: str
    level: Level
    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0


Asking = Generator[str, str, Written]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Say within what a summary is written.

    `target` is what its text should take at most, `cost` what a text costs in a window with the frame around it, `tries`
    how often a model may be asked, and `allowance` the tokens that prompts and answers may take, about.
    """

    target: int
    count: CountTokens
    cost: CountTokens
    tries: int = 0
    allowance: float = math.inf


def write(source: Source, bounds: Bounds) -> Asking:
    """Write a summary, with a model as far as the bounds allow.

    An answer that is not shorter than its source is asked for again, more sternly; if that does not help, or if the
    answer is empty, sentences of the source are chosen instead. An answer above three times the target is cut.
    """
    calls = asked = answered = 0
    policies: tuple[Level, ...] = ("normal", "aggressive")
    for policy in policies[: bounds.tries if source.passages else 0]:
        prompt = prompt_for(source, bounds.target, policy)
        size = bounds.count(prompt)
        if asked + answered + size + _OVERAGE * bounds.target > bounds.allowance:
            break
        answer = yield prompt
        calls, asked, answered = calls + 1, asked + size, answered + bounds.count(answer)
        answer = cleaned(answer)
        if not answer:
            break
        if bounds.cost(answer) < source.tokens:
            if bounds.count(answer) <= _OVERAGE * bounds.target:
                return Written(answer, policy, calls, asked, answered)
            return Written(
                cut(answer, _OVERAGE * bounds.target, bounds.count), "capped", calls, asked, answered
            )
    return Written(chosen(source, bounds), "deterministic", calls, asked, answered)


def chosen(source: Source, bounds: Bounds) -> str:
    """Choose sentences of the source, as many fewer as it takes to cost less than it: markup grows when it is escaped."""
    target = bounds.target
    while target >= _SMALLEST:
        text = extract(source.passages, target, bounds.count)
        over = bounds.cost(text) - source.tokens + 1
        if text and over <= 0:
            return text
        target = min(target - over, target * 3 // 4) if text else 0
    return _NOTHING


def first_cost(source: Source, bounds: Bounds) -> int:
    """Estimate what asking for a summary once takes, the answer included; 0 if there is nothing to ask for."""
    if not source.passages or not bounds.tries:
        return 0
    return bounds.count(prompt_for(source, bounds.target, "normal")) + _OVERAGE * bounds.target


def prompt_for(source: Source, target: int, policy: str) -> str:
    """Write what a model is asked: the instructions, and the source, framed as data that cannot leave its frame."""
    kind = ("leaf", "condensed", "arc")[min(source.depth, 2)]
    previous = "\n\n".join(escape(text, quote=False) for text in source.previous) or "(none)"
    parts = {
        "policy": _prompt(policy).strip(),
        "target": str(target),
        "previous": previous,
        "source": transcript(source.passages),
    }
    before, *rest = _prompt(kind).split("{")
    return before + "".join(parts[name] + text for name, _, text in (piece.partition("}") for piece in rest))


def cleaned(answer: str) -> str:
    """Bring the answer of a model to what may stand in a summary: no reasoning, no payloads, no orders, no credentials.

    What it was shown may have made it say them.
    """
    text = without_payloads(without_reasoning(clean(answer))).strip()
    text = harmless(text) if grave(text) else text
    return text if text.strip(_MARKS) else ""


def cut(text: str, limit: int, count: CountTokens) -> str:
    """Cut a text to `limit` tokens, at the end of a line or a sentence where one is near, and say so."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle] + _CUT) <= limit:
            low = middle
        else:
            high = middle - 1
    kept = text[:low]
    end = max(kept.rfind("\n"), kept.rfind(". ") + 1)
    return (kept[:end] if end > low // 2 else kept).rstrip() + _CUT


@cache
def _prompt(name: str) -> str:
    # Only those who ask a model need it.
    from importlib import resources

    return (resources.files("holdfast.compaction") / "prompts" / f"{name}.md").read_text("utf-8")
