"""Part of `python -m benchmarks context`: how many answers a summary still holds, and others of its length.

Each LoCoMo conversation is compacted to a tenth of its tokens without knowing a question. A question is
answered when all words of its gold answer that say something occur in the text. The others read the same
sentences with the same names and dates, choose by their own rules, and fill the same number of tokens.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import Corpus
from benchmarks.readers import found_in, locomo
from benchmarks.report import Table
from holdfast.compaction.extract import layout
from holdfast.compaction.sentence_scoring import SentenceUnit, history
from holdfast.errors import InvalidInput
from holdfast.memory import Memory
from holdfast.messages.passages import Passage, passages
from holdfast.prompt.window import Compaction, Lossless
from holdfast.text import analyze
from holdfast.text.tokens import estimate_tokens
from holdfast.types import Message

SHARE = 10  # a tenth is kept
KINDS = ("multi-hop", "temporal", "single-hop")
_OURS = "Holdfast"
INSTALL = "not measured: pip install '.[bench]' in a checkout"

Summarise = Callable[[Sequence[Message], int], str]
Kept = dict[str, dict[str, list[bool]]]  # of each system, by kind


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's kind and the terms of its gold answer."""

    kind: str
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
    files = found_in(paths, readers=[locomo.READER])
    for corpus in (corpus for file in files for corpus in file.corpora()):
        asked, empty = questions(corpus)
        without_words += empty
        progress(f"LoCoMo: what summaries keep of {corpus.name}")
        _keep(corpus.messages(), asked, summarise, kept)
    if not any(map(len, kept.values())):
        raise InvalidInput("None of these files has answers to look for.", "Give LoCoMo files, or a folder.")
    return _report(kept, without_words)


def questions(corpus: Corpus) -> tuple[list[Asked], int]:
    """List the questions whose answer the text can hold, and count those with no word to look for."""
    answers = [(one.kind, one.answer) for one in corpus.questions if one.kind in KINDS and one.answer]
    asked = [Asked(kind, terms(answer, content=True)) for kind, answer in answers]
    usable = [one for one in asked if one.terms]
    return usable, len(asked) - len(usable)


def terms(text: str, *, content: bool = False) -> frozenset[int]:
    """Return the terms of a text; of `content`, those of its words without stop words."""
    analysed = map(analyze.analyze, analyze.tokens(text))
    return frozenset(term for one in analysed for term in (one.terms[: one.words] if content else one.terms))


def _keep(messages: Sequence[Message], asked: Sequence[Asked], summarise: Summarise, kept: Kept) -> None:
    target = sum(estimate_tokens(message.content) for message in messages) // SHARE
    texts = {_OURS: summarise(messages, target), **others(passages(messages), target)}
    for name, text in texts.items():
        held = terms(text)
        for one in asked:
            kept.setdefault(name, {}).setdefault(one.kind, []).append(one.terms <= held)


# The others -------------------------------------------------------------------------------------------------


def others(said: Sequence[Passage], target: int) -> dict[str, str]:
    """Summarise in the other ways, within the same number of tokens."""
    units = history(said, trimmed=False).units
    texts = by_place(units, said, target)
    if installed():
        for name, order in (("sumy LexRank", lex_rank(units)), ("sumy TextRank", _text_rank(units))):
            texts[name] = filled(order, units, said, target)
    return texts


def by_place(units: Sequence[SentenceUnit], said: Sequence[Passage], target: int) -> dict[str, str]:
    """Summarise by where sentences stand."""
    return {
        "the beginning": filled(range(len(units)), units, said, target),
        "evenly spaced sentences": _spaced(units, said, target),
    }


def installed() -> bool:
    """Return whether the package is installed."""
    return importlib.util.find_spec("sumy") is not None


def filled(order: Sequence[int], units: Sequence[SentenceUnit], said: Sequence[Passage], target: int) -> str:
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


def lex_rank(units: Sequence[SentenceUnit]) -> list[int]:
    """Order sentences as LexRank does."""
    # An optional dependency.
    from sumy.summarizers.lex_rank import LexRankSummarizer

    class LexRank(LexRankSummarizer):  # type: ignore[misc]  # it has no types
        @staticmethod
        def cosine_similarity(
            one: Sequence[str],
            other: Sequence[str],
            terms: Mapping[str, float],
            other_terms: Mapping[str, float],
            idf: Mapping[str, float],
        ) -> float:
            # So it is of most pairs: the formula for them takes minutes.
            if terms.keys().isdisjoint(other_terms):
                return 0.0
            return float(LexRankSummarizer.cosine_similarity(one, other, terms, other_terms, idf))

    return _by_sumy(LexRank, units)


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
    shares = {name: _shares(by_kind) for name, by_kind in kept.items()}
    asked = sum(map(len, next(iter(kept.values())).values()))
    numbers: dict[str, object] = {"questions": asked, "left_out": without_words, "share": 1 / SHARE, **shares}
    columns = ("summary", "all", *KINDS)
    rows = [
        (name, *(f"{of_system[column]:.1f}" if column in of_system else "" for column in columns[1:]))
        for name, of_system in shares.items()
    ]
    if not installed():
        numbers |= {"sumy LexRank": INSTALL, "sumy TextRank": INSTALL}
        rows += [(name, INSTALL, *[""] * len(KINDS)) for name in ("sumy LexRank", "sumy TextRank")]
    title = (
        f"LoCoMo, answers that are still in a tenth of the tokens: {asked} questions, "
        f"{without_words} whose answer has no word to look for left out"
    )
    return numbers, [Table(title, columns, tuple(rows))]


def _shares(by_kind: Mapping[str, Sequence[bool]]) -> dict[str, float]:
    """Return the percentage of questions whose answer is still there, of all and of each kind."""
    held = [one for of_kind in by_kind.values() for one in of_kind]
    shares = {"all": _percent(held)}
    return shares | {kind: _percent(by_kind[kind]) for kind in KINDS if kind in by_kind}


def _percent(held: Sequence[bool]) -> float:
    return round(100 * sum(held) / len(held), 2)
