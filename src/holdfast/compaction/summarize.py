"""One summary: a model is asked for it, and again to be shorter, or sentences are chosen without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from holdfast.compaction.extract import extract, largest
from holdfast.compaction.summary_passages import NOTHING
from holdfast.messages.passages import Passage, grave, harmless
from holdfast.prompt.transcript import transcript
from holdfast.text.clean import clean
from holdfast.text.message_text import without_payloads, without_reasoning

if TYPE_CHECKING:
    from holdfast.compaction.driver import Requests
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Level

# Times the target: what is longer is cut.
_OVERAGE = 3
# Tokens that can say anything.
_SMALLEST = 4
# An answer of nothing else says nothing.
_MARKS = " .…-–_*#`\n\t"
_CUT = " … [cut: the answer was too long]"


@dataclass(frozen=True, slots=True)
class SummarySource:
    """What is to be summarised: its passages, and the tokens that it takes in a window now.

    `depth` is that of the summary; `previous` are the summaries before it, for continuity; `work` are its
    passages as those of a work session, empty for other conversations.
    """

    passages: Sequence[Passage]
    tokens: int
    depth: int
    previous: tuple[str, ...] = ()
    work: Sequence[Passage] = ()


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """The text of a summary, at which level it was written, and what asking for it took."""

    text: str
    level: Level
    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a summary.

    `target` is what its text should take at most, `cost` what a text costs in a window with the frame around
    it, `tries` how often a model may be asked, and `allowance` the tokens that prompts and answers may take,
    about.
    """

    target: int
    count: CountTokens
    cost: CountTokens
    tries: int = 0
    allowance: float = math.inf


def write(source: SummarySource, bounds: Bounds) -> Requests[WrittenSummary]:
    """Write a summary, with a model as far as the bounds allow.

    An answer that is not shorter than its source is asked for again, more sternly; if that does not help, or
    if the answer is empty, sentences of the source are chosen instead. An answer above three times the target
    is cut.
    """
    calls = prompt_tokens = answer_tokens = 0
    most = _OVERAGE * bounds.target
    levels: tuple[Level, ...] = ("normal", "aggressive")
    for level in levels[: bounds.tries if source.passages else 0]:
        prompt = prompt_for(source, bounds.target, level)
        size = bounds.count(prompt)
        if prompt_tokens + answer_tokens + size + most > bounds.allowance:
            break
        answer = yield prompt
        calls, prompt_tokens = calls + 1, prompt_tokens + size
        answer_tokens += bounds.count(answer)
        answer = cleaned(answer)
        if not answer:
            break
        if bounds.cost(answer) < source.tokens:
            if bounds.count(answer) <= most:
                return WrittenSummary(answer, level, calls, prompt_tokens, answer_tokens)
            text = cut(answer, most, bounds.count)
            return WrittenSummary(text, "capped", calls, prompt_tokens, answer_tokens)
    return WrittenSummary(extracted(source, bounds), "deterministic", calls, prompt_tokens, answer_tokens)


def extracted(source: SummarySource, bounds: Bounds) -> str:
    """Return sentences of the source that cost less than it.

    Escaping makes markup longer, so that fewer may fit than the target says.
    """
    target = bounds.target
    while target >= _SMALLEST:
        text = extract(source.work or source.passages, target, bounds.count)
        over = bounds.cost(text) - source.tokens + 1
        if text and over <= 0:
            return text
        target = min(target - over, target * 3 // 4) if text else 0
    return NOTHING


def share_out(sources: Sequence[SummarySource], bounds: Sequence[Bounds], room: int) -> list[Bounds]:
    """Return bounds that share out an allowance of `room` tokens.

    The last ones that would get too few to ask once are left out.
    """
    costs: list[int] = []
    for source, one in zip(sources, bounds, strict=True):
        asks = source.passages and one.tries
        prompt = prompt_for(source, one.target, "normal") if asks else ""
        costs.append(one.count(prompt) + _OVERAGE * one.target if asks else 0)
        if sum(costs) > room:
            costs.pop()
            break
    spare = (room - sum(costs)) // max(1, len(costs))
    return [replace(one, allowance=cost + spare) for one, cost in zip(bounds, costs, strict=False)]


def prompt_for(source: SummarySource, target: int, level: str) -> str:
    """Return the prompt for a summary: instructions, and the source, framed as data."""
    kind = ("leaf", "condensed", "arc")[min(source.depth, 2)]
    previous = "\n\n".join(escape(text, quote=False) for text in source.previous) or "(none)"
    parts = {
        "policy": _prompt(level).strip(),
        "target": str(target),
        "previous": previous,
        "source": transcript(source.passages),
    }
    before, *rest = _prompt(kind).split("{")
    return before + "".join(parts[name] + text for name, _, text in (piece.partition("}") for piece in rest))


def cleaned(answer: str) -> str:
    """Return the answer of a model without reasoning, payloads, orders and credentials.

    What it was shown may have made it say them.
    """
    text = without_payloads(without_reasoning(clean(answer))).strip()
    text = harmless(text) if grave(text) else text
    return text if text.strip(_MARKS) else ""


def cut(text: str, limit: int, count: CountTokens) -> str:
    """Return a text cut to `limit` tokens and marked, at the end of a line or sentence if near."""
    size = largest(len(text), lambda size: count(text[:size] + _CUT) <= limit)
    start = text[:size]
    end = max(start.rfind("\n"), start.rfind(". ") + 1)
    return (start[:end] if end > size // 2 else start).rstrip() + _CUT


@cache
def _prompt(name: str) -> str:
    # Only those who ask a model need it.
    from importlib import resources

    return (resources.files("holdfast.compaction") / "prompts" / f"{name}.md").read_text("utf-8")
