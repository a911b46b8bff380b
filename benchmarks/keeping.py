"""Part of `python -m benchmarks context`: how many answers a summary still holds, and others of its length.

Each LoCoMo conversation is compacted to a tenth of its tokens without knowing a question. A question is
answered when all words of its gold answer that say something occur in the text. The others read the same
sentences with the same names and dates, choose by their own rules, and fill the same number of tokens.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import locomo
from benchmarks.conversation_files import files_in, messages_in
from benchmarks.report import Table
from holdfast.compaction.extract import layout
from holdfast.compaction.sentence_scoring import SentenceUnit, history
from holdfast.errors import InvalidInput
from holdfast.io.sources import SourceFile
from holdfast.memory import Memory
from holdfast.messages.passages import Passage, passages
from holdfast.prompt.window import Compaction, Lossless
from holdfast.text import analyze
from holdfast.text.tokens import estimate_tokens
from holdfast.types import Message

SHARE = 10  # a tenth is kept
CATEGORIES = {1: "multi-hop", 2: "temporal", 4: "single-hop"}
_OURS = "Holdfast"
_INSTALL = "not measured: pip install '.[bench]' in a checkout"

Summarise = Callable[[Sequence[Message], int], str]
Kept = dict[str, dict[int, list[bool]]]  # of each system, by category


@dataclass(frozen=True, slots=True)
class Asked:
    """Hold a question's category and the terms of its gold answer."""

    category: int
    terms: frozenset[int]


def summary_of(messages: Sequence[Message], target: int) -> str:
    """Compact a chat of these messages to a number of tokens, and give the text of its window.

    All of the window but a twentieth is for summaries: nobody goes on with this conversation.
    """
    policy = Lossless(target, Compaction(threshold=1.0, target=1.0, turns=1, tail=0.05))
    with Memory(":memory:") as memory:
        chat = memory.chat("conversation")
        chat.append(messages)
        chat.compact(full=True, policy=policy)
        window = chat.window(policy=policy)
    return "\n".join([*(summary.text for summary in window.summaries), *_lines(window.messages)])


def _lines(messages: Sequence[Message]) -> list[str]:
    """Write messages as lines of who said what on which day."""
    said = [f"{message.actor}: {message.content}" for message in messages]
    days = [f"{message.at:%d %B %Y}" if message.at else "" for message in messages]
    return [f"{day} {line}" for day, line in zip(days, said, strict=True)]


def run_keeping(
    paths: Sequence[Path],
    progress: Callable[[str], None] = lambda _: None,
    *,
    summarise: Summarise = summary_of,
) -> tuple[dict[str, object], list[Table]]:
    """Measure what summaries keep of LoCoMo conversations.

    Raises:
        InvalidInput: there is no such file, or none of them is a LoCoMo conversation with answers.

    """
    kept: Kept = {}
    without_words = 0
    for file in files_in(paths, locomo.FORMAT):
        said = {place: list(items) for place, items in groupby(messages_in(file), lambda item: item.line)}
        for place, conversation in _conversations(file):
            asked, empty = questions(conversation)
            without_words += empty
            progress(f"LoCoMo: what summaries keep of {conversation.get('sample_id', place)}")
            _keep([item.message for item in said.get(place, [])], asked, summarise, kept)
    if not any(map(len, kept.values())):
        raise InvalidInput("None of these files has answers to look for.", "Give LoCoMo files, or a folder.")
    return _report(kept, without_words)


def _conversations(source: SourceFile) -> list[tuple[int, Mapping[str, object]]]:
    with source.file.open() as stream:
        data = json.load(stream)
    first = 1 if isinstance(data, list) else 0  # as importers count what they find
    items = data if isinstance(data, list) else [data]
    return [(place, item) for place, item in enumerate(items, first) if isinstance(item, dict)]


def questions(conversation: Mapping[str, object]) -> tuple[list[Asked], int]:
    """List the questions whose answer the text can hold, and count those with no word to look for."""
    listed = conversation.get("qa")
    asked = []
    empty = 0
    for item in listed if isinstance(listed, list) else []:
        category, answer = item.get("category"), item.get("answer")
        if category in CATEGORIES and answer is not None:
            terms = _terms(str(answer), content=True)
            empty += not terms
            asked.extend([Asked(category, terms)] if terms else [])
    return asked, empty


def _terms(text: str, *, content: bool = False) -> frozenset[int]:
    """Return the terms of a text; of `content`, those of its words without stop words."""
    analysed = map(analyze.analyze, analyze.tokens(text))
    return frozenset(term for one in analysed for term in (one.terms[: one.words] if content else one.terms))


def _keep(messages: Sequence[Message], asked: Sequence[Asked], summarise: Summarise, kept: Kept) -> None:
    target = sum(estimate_tokens(message.content) for message in messages) // SHARE
    texts = {_OURS: summarise(messages, target), **others(passages(messages), target)}
    for name, text in texts.items():
        held = _terms(text)
        for one in asked:
            kept.setdefault(name, {}).setdefault(one.category, []).append(one.terms <= held)


# The others -------------------------------------------------------------------------------------------------


def others(said: Sequence[Passage], target: int) -> dict[str, str]:
    """Summarise in the other ways, within the same number of tokens."""
    units = history(said, trimmed=False).units
    texts = {
        "the beginning": _filled(range(len(units)), units, said, target),
        "evenly spaced sentences": _spaced(units, said, target),
    }
    if installed():
        for name, order in (("sumy LexRank", _lex_rank(units)), ("sumy TextRank", _text_rank(units))):
            texts[name] = _filled(order, units, said, target)
    return texts


def installed() -> bool:
    """Return whether the package is installed."""
    return importlib.util.find_spec("sumy") is not None


def _filled(order: Sequence[int], units: Sequence[SentenceUnit], said: Sequence[Passage], target: int) -> str:
    """Take sentences in this order until the next one does not fit."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        fits = estimate_tokens(_text(order[:middle], units, said)) <= target
        low, high = (middle, high) if fits else (low, middle - 1)
    return _text(order[:low], units, said)


def _spaced(units: Sequence[SentenceUnit], said: Sequence[Passage], target: int) -> str:
    """Take as many sentences at equal distances as fit."""
    best = ""
    for number in range(1, len(units) + 1):
        text = _text([place * len(units) // number for place in range(number)], units, said)
        if estimate_tokens(text) > 1.2 * target:
            break
        best = text if estimate_tokens(text) <= target else best
    return best


def _text(chosen: Sequence[int], units: Sequence[SentenceUnit], said: Sequence[Passage]) -> str:
    return layout([units[number] for number in sorted(chosen)], said)


class _Words:
    """Split for sumy without the data that its own tokenizer downloads."""

    def to_sentences(self, text: str) -> tuple[str, ...]:
        return (text,)

    def to_words(self, text: str) -> tuple[str, ...]:
        return tuple(analyze.tokens(text))


def _lex_rank(units: Sequence[SentenceUnit]) -> list[int]:
    # An optional dependency.
    from sumy.summarizers.lex_rank import LexRankSummarizer

    return _by_sumy(LexRankSummarizer, units)


def _text_rank(units: Sequence[SentenceUnit]) -> list[int]:
    # An optional dependency.
    from sumy.summarizers.text_rank import TextRankSummarizer

    return _by_sumy(TextRankSummarizer, units)


def _by_sumy(kind: Any, units: Sequence[SentenceUnit]) -> list[int]:
    """Order sentences as sumy rates them, with stems and stop words, which serve it best."""
    # An optional dependency.
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence

    words = _Words()
    document = ObjectDocumentModel([Paragraph([Sentence(unit.text, words) for unit in units])])
    ranked: list[int] = []

    def all_of_them(rated: Sequence[Any]) -> Sequence[Any]:
        ranked.extend(one.order for one in rated)
        return rated

    summarizer = kind(analyze.normal)
    summarizer.stop_words = analyze.STOP_WORDS
    summarizer(document, all_of_them)
    return ranked


# The figures ------------------------------------------------------------------------------------------------


def _report(kept: Kept, without_words: int) -> tuple[dict[str, object], list[Table]]:
    shares = {name: _shares(by_category) for name, by_category in kept.items()}
    asked = sum(map(len, next(iter(kept.values())).values()))
    numbers: dict[str, object] = {"questions": asked, "left_out": without_words, "share": 1 / SHARE, **shares}
    columns = ("summary", "all", *CATEGORIES.values())
    rows = [
        (name, *(f"{of_system[column]:.1f}" if column in of_system else "" for column in columns[1:]))
        for name, of_system in shares.items()
    ]
    if not installed():
        numbers |= {"sumy LexRank": _INSTALL, "sumy TextRank": _INSTALL}
        rows += [(name, _INSTALL, *[""] * len(CATEGORIES)) for name in ("sumy LexRank", "sumy TextRank")]
    title = (
        f"LoCoMo, answers that are still in a tenth of the tokens: {asked} questions, "
        f"{without_words} whose answer has no word to look for left out"
    )
    return numbers, [Table(title, columns, tuple(rows))]


def _shares(by_category: Mapping[int, Sequence[bool]]) -> dict[str, float]:
    """Return the percentage of questions whose answer is still there, of all and of each category."""
    held = [one for of_category in by_category.values() for one in of_category]
    shares = {"all": _percent(held)}
    return shares | {CATEGORIES[number]: _percent(by_category[number]) for number in sorted(by_category)}


def _percent(held: Sequence[bool]) -> float:
    return round(100 * sum(held) / len(held), 2)
