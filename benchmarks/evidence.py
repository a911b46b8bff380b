"""How much of what answers a question is in the prompt for it, word for word, within a budget.

All that a data set has as one chat with the times and names of its messages, far longer than the budgets. The
prompt of `Chat.prompt`, of this chat and of a new one, and of LoCoMo also of one that was compacted for the
budget after each message, is beside the newest messages that fit the same budget, and beside the hits of
`Memory.recall` written as lines until the budget is full. There is no randomness in it, and no time is
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC
from functools import cache
from html import unescape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from benchmarks.datasets import Corpus, Question
from benchmarks.readers import found_in, locomo
from benchmarks.report import Table
from holdfast.chat import Chat
from holdfast.errors import InvalidInput
from holdfast.memory import Memory
from holdfast.text.tokens import estimate_tokens
from holdfast.types import Hit, Message, Prompt

BUDGETS = (2_000, 4_000, 8_000)
SYSTEMS = ("Holdfast", "Holdfast, a new chat", "Holdfast, compacted", "recall, top hits", "newest")
_SMALLEST = 10  # tokens of a line of a hit at least: so many hits are recalled as could fill a budget

Shown = Callable[[str, int], set[str]]  # a question and a budget: the ids of the turns that are there whole


class Shares(NamedTuple):
    """How much of the evidence of one question a prompt had."""

    kind: str
    share: float
    whole: bool


Answers = dict[tuple[int, str], list[Shares]]  # by budget and system
Means = dict[str, dict[str, dict[str, float]]]  # by kind of question and system


def run_evidence(
    paths: Sequence[Path],
    progress: Callable[[str], None] = lambda _: None,
    *,
    systems: Collection[str] = SYSTEMS,
) -> tuple[dict[str, object], list[Table]]:
    """Measure some of the systems on data sets whose answers are messages; other files are passed over.

    Raises:
        InvalidInput: there is no such file, or none of them has such questions.

    """
    figures: dict[str, object] = {"unit": "turn"}
    tables: list[Table] = []
    for reader, files in groupby(found_in(paths), key=lambda file: file.reader):
        answers: Answers = {}
        left_out = 0
        chosen = [name for name in systems if reader is locomo.READER or name != SYSTEMS[2]]
        for corpus in (corpus for file in files for corpus in file.corpora() if corpus.unit == "message"):
            usable = [question for question in corpus.questions if question.gold]
            progress(f"{reader.name}: prompts for {len(usable)} questions about {corpus.name}")
            left_out += len(corpus.questions) - len(usable)
            asked = [question for question in usable if not reader.main or question.kind in reader.main]
            _ask(corpus, asked, answers, chosen)
        if answers:
            means = {budget: _means(answers, budget) for budget in BUDGETS}
            named = {f"{budget} tokens": of_budget for budget, of_budget in means.items()}
            figures[reader.name] = {"left_out": left_out, **named}
            tables += [_table(reader.name, of_budget, budget) for budget, of_budget in means.items()]
    if not tables:
        raise InvalidInput("None of these files names messages that answer.", "Give LoCoMo, for example.")
    return figures, tables


def _ask(corpus: Corpus, questions: Sequence[Question], answers: Answers, chosen: Collection[str]) -> None:
    """Append a corpus to one chat, and ask every question about it within every budget."""
    messages = corpus.messages()
    with Memory(":memory:", user="person", admin=True) as memory:
        chat = memory.chat(corpus.name)
        chat.append(messages)
        compacted = cache(lambda budget: _compacted(memory, corpus.name, messages, budget))
        every: Sequence[Shown] = (
            _prompted(chat),
            _prompted(memory.chat("new")),
            lambda question, budget: _prompted(compacted(budget))(question, budget),
            _recalled(memory),
            _newest(chat),
        )
        systems = {name: shown for name, shown in zip(SYSTEMS, every, strict=True) if name in chosen}
        for question in questions:
            for budget in BUDGETS:
                for name, shown in systems.items():
                    there = shown(question.text, budget)
                    hit = sum(turn in there for turn in question.gold)
                    shares = Shares(question.kind, hit / len(question.gold), hit == len(question.gold))
                    answers.setdefault((budget, name), []).append(shares)


def _compacted(memory: Memory, name: str, messages: Sequence[Message], budget: int) -> Chat:
    """Append to a chat of another user, and compact after each message, as an agent does."""
    chat = memory.scoped(user=f"compacted for {budget}").chat(name)
    for message in messages:
        chat.append(message)
        chat.compact(budget=budget)
    return chat


def _prompted(chat: Chat) -> Shown:
    return lambda question, budget: shown_whole(chat.prompt(budget, query=question))


def shown_whole(prompt: Prompt) -> set[str]:
    """Return the ids of the messages whose whole text is in a prompt."""
    sent = _plain("\n".join(str(message["content"]) for message in prompt.messages))
    recalled = {hit.id for hit in prompt.hits if _squeezed(hit.text) in sent}
    shortened = {one.seq for one in prompt.window.shortened}
    return recalled | {message.id for message in prompt.window.messages if message.seq not in shortened}


def _recalled(memory: Memory) -> Shown:
    def shown(question: str, budget: int) -> set[str]:
        there, used = set(), 0
        for hit in memory.recall(question, limit=budget // _SMALLEST):
            used += estimate_tokens(_as_line(hit))
            if used > budget:
                break
            there.add(hit.id)
        return there

    return shown


def _as_line(hit: Hit) -> str:
    return f"[{hit.at.astimezone(UTC):%Y-%m-%d %H:%M}] {hit.actor}: {hit.text}\n"


def _newest(chat: Chat) -> Shown:
    return lambda _, budget: {message.id for message in chat.window(budget).messages}


def _plain(text: str) -> str:
    return _squeezed(unescape(text))


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _means(answers: Answers, budget: int) -> Means:
    kinds = tuple(dict.fromkeys(shares.kind for some in answers.values() for shares in some))
    return {
        group: {
            name: _mean([shares for shares in some if group in ("all", shares.kind)])
            for (of_budget, name), some in answers.items()
            if of_budget == budget
        }
        for group in ("all", *kinds)
    }


def _mean(some: Sequence[Shares]) -> dict[str, float]:
    count = max(1, len(some))
    return {
        "questions": len(some),
        "share": 100 * sum(shares.share for shares in some) / count,
        "all": 100 * sum(shares.whole for shares in some) / count,
    }


def _table(name: str, means: Means, budget: int) -> Table:
    rows = []
    for system in means["all"]:
        parts = (of_group[system] for of_group in means.values())
        rows.append((system, *(f"{one['share']:.1f} / {one['all']:.1f}" for one in parts)))
    asked = next(iter(means["all"].values()))["questions"]
    title = (
        f"{name}, prompts of {budget:,} tokens, {asked} questions: % of the evidence / of questions with all"
    )
    return Table(title, ("system", *means), tuple(rows))
