"""One summary: written by a model, which may be asked again for less, or chosen sentences without one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from holdfast.compaction.extract import extract, largest
from holdfast.compaction.summary_passages import NOTHING
from holdfast.messages.passages import Passage, grave, harmless
from holdfast.prompt.transcript import transcript
from holdfast.text import analyze
from holdfast.text.clean import clean
from holdfast.text.message_text import without_payloads, without_reasoning

if TYPE_CHECKING:
    from holdfast.compaction.driver import Requests
    from holdfast.llm.prompt_files import PromptTemplate
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Level

# Times the target: a longer answer is cut.
_OVERAGE = 3
# The share of the words of an answer that a summary has from its source; with many words, half of it.
_SHARED = 1 / 3
_MANY = 20
# The share of the passages in which a word of the source stands.
_SPREAD = 1 / 10
# Tokens that can say anything.
_SMALLEST = 4
# An answer of nothing else says nothing.
_MARKS = " .…-–_*#`\n\t"
_CUT = " … [cut: the answer was too long]"
# The depth from which all summaries have the same prompt.
_DEEPEST = 2
# What to keep: at the first try, and after an answer that was not shorter than its source.
_POLICIES: Mapping[Level, str] = {
    "normal": "Keep decisions and the reasons for them, constraints and preferences, facts about people and "
    "things, open tasks, and the state of what is being worked on.",
    "aggressive": "Be as short as you can: keep only lasting facts, the current state, and open tasks and "
    "blockers. Leave out how it came about, pleasantries, and whatever can be read again when it is needed.",
}


@dataclass(frozen=True, slots=True)
class SummarySource:
    """The source of a summary: its passages, and the tokens that it takes in a window now.

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
    """The text of a summary, its level, and the calls and tokens of a model that it took.

    `prompt` names the prompt of the model, "" where none was asked.
    """

    text: str
    level: Level
    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a summary.

    `target` is the most tokens that its text should take, `cost` counts those of a text in a window with the
    frame around it, `tries` is how often a model may be asked, and `allowance` about the most tokens of
    prompts and answers.
    """

    target: int
    count: CountTokens
    cost: CountTokens
    tries: int = 0
    allowance: float = math.inf


def prompts_of(versions: Mapping[str, str] | None) -> Sequence[PromptTemplate]:
    """Return the prompts of summaries by depth, in the versions that were chosen.

    Raises:
        InvalidInput: an unknown prompt or version, or one with wrong places.

    """
    # Only those who ask a model need it.
    from holdfast.llm.prompt_files import SUMMARIES, check_versions, load

    chosen = check_versions({} if versions is None else versions, SUMMARIES)
    return [load(name, chosen.get(name)) for name in SUMMARIES]


def write(
    source: SummarySource, bounds: Bounds, prompts: Sequence[PromptTemplate]
) -> Requests[WrittenSummary]:
    """Write a summary, with a model as far as the bounds allow; `prompts` are those of the depths.

    An answer that is not shorter than its source is asked for again, more sternly; if that does not help, or
    if the answer is empty or does not speak of its source, sentences of the source are chosen instead. An
    answer above three times the target is cut.
    """
    done = WrittenSummary("", "deterministic")
    most = _OVERAGE * bounds.target
    for level in tuple(_POLICIES)[: bounds.tries if source.passages else 0]:
        template = prompts[min(source.depth, _DEEPEST)]
        room = bounds.allowance - done.prompt_tokens - done.answer_tokens - most
        prompt = _fill_with_outline(
            source, bounds, partial(_fill, source, bounds.target, template, level), room
        )
        size = bounds.count(prompt)
        if size > room:
            break
        answer = yield prompt
        usage = done.calls + 1, done.prompt_tokens + size, done.answer_tokens + bounds.count(answer)
        done = WrittenSummary("", level, *usage, template.fingerprint)
        answer = clean_answer(answer)
        if not answer:
            break
        if bounds.cost(answer) < source.tokens:
            if not speaks_of(answer, source.passages):
                break
            if bounds.count(answer) <= most:
                return replace(done, text=answer)
            return replace(done, text=cut(answer, most, bounds.count), level="capped")
    return replace(done, text=extract_sentences(source, bounds), level="deterministic")


def extract_sentences(source: SummarySource, bounds: Bounds) -> str:
    """Return sentences of the source that cost less than the source."""

    def excess(text: str) -> float:
        return bounds.cost(text) - source.tokens + 1

    return _choose(source.work or source.passages, bounds, excess) or NOTHING


def _fill_with_outline(source: SummarySource, bounds: Bounds, fill: Callable[[str], str], room: float) -> str:
    """Return a prompt with an outline that could be its answer, as long as both fit the room."""

    def excess(outline: str) -> float:
        return max(bounds.cost(outline) - source.tokens + 1, bounds.count(fill(outline)) - room)

    numbered = [replace(said, mark=f"#{said.seq} " if said.seq else said.mark) for said in source.passages]
    return fill(_choose(source.work or numbered, bounds, excess))


def _choose(passages: Sequence[Passage], bounds: Bounds, excess: Callable[[str], float]) -> str:
    """Return sentences within the target, fewer as long as there is an excess of tokens; "" if none will do.

    Escaping makes markup longer, so that fewer may fit than the target says.
    """
    target = bounds.target
    while target >= _SMALLEST and (text := extract(passages, target, bounds.count)):
        if (over := excess(text)) <= 0:
            return text
        target = min(target - int(over), target * 3 // 4)
    return ""


def share_out(
    sources: Sequence[SummarySource], bounds: Sequence[Bounds], room: int, prompts: Sequence[PromptTemplate]
) -> list[Bounds]:
    """Return bounds that share out an allowance of `room` tokens, not counting outlines.

    The last ones are left out where the room is too small to ask for them once.
    """
    costs: list[int] = []
    for source, bound in zip(sources, bounds, strict=True):
        asks = source.passages and bound.tries
        template = prompts[min(source.depth, _DEEPEST)]
        prompt = _fill(source, bound.target, template, "normal", "") if asks else ""
        costs.append(bound.count(prompt) + _OVERAGE * bound.target if asks else 0)
        if sum(costs) > room:
            costs.pop()
            break
    spare = (room - sum(costs)) // max(1, len(costs))
    return [replace(bound, allowance=cost + spare) for bound, cost in zip(bounds, costs, strict=False)]


def _fill(source: SummarySource, target: int, template: PromptTemplate, level: Level, outline: str) -> str:
    """Return the prompt for a summary: instructions, and the source, framed as data."""
    parts = {
        "policy": _POLICIES[level],
        "target": str(target),
        "previous": "\n\n".join(escape(text, quote=False) for text in source.previous) or "(none)",
        "source": transcript(source.passages),
        "outline": escape(outline, quote=False) or "(none)",
    }
    return template.fill(**{name: parts[name] for name in template.places})


def clean_answer(answer: str) -> str:
    """Return the answer of a model without reasoning, payloads, orders and credentials.

    The text that it was shown may have put them there.
    """
    text = without_payloads(without_reasoning(clean(answer))).strip()
    text = harmless(text) if grave(text) else text
    return text if text.strip(_MARKS) else ""


def speaks_of(answer: str, passages: Sequence[Passage]) -> bool:
    """Return whether an answer shares its words with its source, unlike a refusal or an error.

    A word counts if it stands in a tenth of the passages, a number or an identifier if it stands in any.
    """
    words = _words(answer)
    said = (f"{passage.speaker.removeprefix(passage.role)} {passage.text}" for passage in passages)
    spread = Counter(word for text in said for word in _words(text))
    least = _SPREAD * len(passages)
    shared = [word for word in words if spread[word] >= (least if word.isalpha() else 1) and spread[word]]
    return bool(words) and len(shared) >= len(words) * (_SHARED if len(words) <= _MANY else _SHARED / 2)


def _words(text: str) -> set[str]:
    """Return the telling words of a text in their normal form, with numbers and identifiers."""
    tokens = {token: analyze.weigh(token) for token in analyze.tokens(text)}
    words = {word for weighed in tokens.values() for word, weight in weighed if weight}
    # What a summary says of crane7 and crane12 is true of cranes.
    names = {word.rstrip("0123456789") for word in words}
    return {*map(analyze.normal, words | names), *filter(None, map(analyze.whole_term, tokens))} - {""}


def cut(text: str, limit: int, count: CountTokens) -> str:
    """Return a text cut to `limit` tokens and marked, at the end of a line or sentence if near."""
    size = largest(len(text), lambda size: count(text[:size] + _CUT) <= limit)
    start = text[:size]
    end = max(start.rfind("\n"), start.rfind(". ") + 1)
    return (start[:end] if end > size // 2 else start).rstrip() + _CUT
