"""`python -m benchmarks recall`: how much of what answers a question is found, beside other searches.

Two kinds of files have questions with known answers, and are told by what is in them. LoCoMo: find the turns
of a long conversation that answer a question about it. RealMem: at a turn of a session, find the earlier
sessions that the reply needs. Everything goes through the importers and the public methods of `Memory`, and
each system gets the text that serves it best: the baselines read `name: text` where a speaker has a name,
which raises them by about three points. There is no randomness in it, so two runs differ in their times only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks import locomo, realmem
from benchmarks.baselines import Baseline, FullText, Okapi, PlainBM25
from benchmarks.clock import timed
from benchmarks.conversation_files import files_in, messages_in
from benchmarks.metrics import METRICS, Answer, summarise
from benchmarks.report import Report, Table
from holdfast.errors import InvalidInput
from holdfast.io.import_items import ImportedMessage
from holdfast.io.sources import SourceFile
from holdfast.memory import Memory
from holdfast.types import Hit, Message

DEPTH = 100  # the ranks that are looked at: an answer beyond counts as not found
SESSION_DEPTH = 200  # turns that are recalled to rank sessions by
BEST = 3  # turns of a session that count
_INSTALL = "not measured: pip install '.[bench]' in a checkout"
_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_MAIN = (1, 2, 3, 4)  # the categories of the main figure

Answers = dict[str, list[Answer]]  # of each system
Rank = Callable[[str, int], Sequence[str]]  # a question and how many to give, best first


def run(paths: Sequence[Path], *, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Measure recall on LoCoMo and RealMem files, or folders of them; files of one kind together.

    Raises:
        InvalidInput: there is no such file, or none of them has questions with known answers.

    """
    found = files_in(paths, locomo.FORMAT, realmem.FORMAT)
    conversations = [source for source in found if source.format is locomo.FORMAT]
    people = [source for source in found if source.format is realmem.FORMAT]
    if not conversations and not people:
        raise InvalidInput(
            "None of these files has questions with known answers.",
            "Give LoCoMo or RealMem files, or a folder of them.",
        )
    numbers: dict[str, object] = {}
    tables: list[Table] = []
    for name, chosen, measure in (("locomo", conversations, _locomo), ("realmem", people, _realmem)):
        if chosen:
            numbers[name], shown = measure(chosen, progress)
            tables += shown
    return Report(numbers, tuple(tables))


def parsed(source: SourceFile) -> object:
    """Return the JSON of a file."""
    with source.file.open() as stream:
        return json.load(stream)


def _text(message: Message) -> str:
    return f"{message.name}: {message.content}" if message.name else message.content


def _answer(rank: Rank, question: str, gold: tuple[str, ...]) -> Answer:
    """Rank as deep as is looked at; the time is that of the few hits that a program asks for."""
    ranked = tuple(rank(question, DEPTH))
    with timed() as cost:
        rank(question, 10)
    return Answer(ranked, gold, cost.cpu)


def _baselines(own: dict[str, Callable[[], Baseline]]) -> dict[str, Baseline]:
    made: dict[str, Callable[[], Baseline]] = {**own, "SQLite FTS5 (porter, any word)": FullText}
    if Okapi.installed():
        made["rank_bm25"] = Okapi
    return {name: make() for name, make in made.items()}


# LoCoMo -----------------------------------------------------------------------------------------------------


def _locomo(
    files: Sequence[SourceFile], progress: Callable[[str], None]
) -> tuple[dict[str, object], list[Table]]:
    answers: dict[int, Answers] = {category: {} for category in _CATEGORIES}
    unusable = 0
    for file in files:
        said = {place: list(items) for place, items in groupby(messages_in(file), lambda item: item.line)}
        data = parsed(file)
        first = 1 if isinstance(data, list) else 0  # as importers count what they find
        for place, group in enumerate(locomo.questions(data), first):
            progress(f"LoCoMo: {len(group.questions)} questions about {group.conversation}")
            unusable += group.unusable
            _ask_conversation(said.get(place, []), group, answers)
    return _locomo_report(answers, unusable)


def _ask_conversation(
    said: list[ImportedMessage], group: locomo.QuestionSet, answers: dict[int, Answers]
) -> None:
    """Import a conversation as the memory of one user, and ask every question about it."""
    baselines = _baselines({})
    with Memory(":memory:") as opened:
        memory = opened.scoped(user=group.conversation)
        for chat, items in groupby(said, lambda item: item.chat.id):
            memory.chat(chat).append([item.message for item in items])
        for item in said:
            for baseline in baselines.values():
                baseline.add(item.message.id, _text(item.message))
        systems = {"Holdfast": _turns(memory), **{name: one.rank for name, one in baselines.items()}}
        for question in group.questions:
            for name, rank in systems.items():
                answer = _answer(rank, question.text, question.evidence)
                answers.setdefault(question.category, {}).setdefault(name, []).append(answer)


def _turns(memory: Memory) -> Rank:
    return lambda question, limit: [hit.id for hit in memory.recall(question, limit=limit)]


def _locomo_report(answers: dict[int, Answers], unusable: int) -> tuple[dict[str, object], list[Table]]:
    systems = dict.fromkeys(name for of_category in answers.values() for name in of_category)
    main = {name: [one for number in _MAIN for one in answers[number].get(name, [])] for name in systems}
    groups: list[tuple[str, str, Answers]] = [("1-4", "categories 1–4", main)]
    for number, of_category in sorted(answers.items()):
        groups.append((str(number), f"category {number}, {_CATEGORIES.get(number, 'other')}", of_category))
    numbers: dict[str, object] = {"unit": "turn", "left_out": unusable}
    tables = []
    for key, title, of_group in groups:
        asked = max(map(len, of_group.values()), default=0)
        if asked:
            numbers[f"categories {key}"] = _numbers(of_group)
            left_out = f", {unusable} without usable evidence left out" if of_group is main else ""
            tables.append(_table(f"LoCoMo, turns, {title}: {asked} questions{left_out}", of_group))
    return numbers, tables


# RealMem ----------------------------------------------------------------------------------------------------


def _realmem(
    files: Sequence[SourceFile], progress: Callable[[str], None]
) -> tuple[dict[str, object], list[Table]]:
    answers: Answers = {}
    unusable = 0
    for file in files:
        asked = realmem.queries(parsed(file))
        progress(f"RealMem: {len(asked.queries)} queries in {file.file.path}")
        unusable += asked.unusable
        _ask_person(messages_in(file), asked.queries, answers)
    count = max((len(one) for one in answers.values()), default=0)
    if not count:
        return {"unit": "session", "left_out": unusable}, []
    title = f"RealMem, earlier sessions: {count} queries, {unusable} that need no earlier session left out"
    return {"unit": "session", "left_out": unusable, "all": _numbers(answers)}, [_table(title, answers)]


def _ask_person(said: list[ImportedMessage], queries: Sequence[realmem.Query], answers: Answers) -> None:
    """Go through the sessions of one person in order; a query sees all sessions before its own, no others."""
    baselines = _baselines({"BM25 of sessions (stems, stop words)": PlainBM25})
    sessions = {place - 1: list(items) for place, items in groupby(said, lambda item: item.line)}
    before = 0
    with Memory(":memory:", user="person") as memory:
        systems: dict[str, Rank] = {
            f"Holdfast, {BEST} best turns": _sessions(memory, BEST),
            "Holdfast, best turn": _sessions(memory, 1),
            **{name: one.rank for name, one in baselines.items()},
        }
        for query in queries:
            for place in range(before, query.session):
                _add_session(memory, baselines, sessions.get(place, []))
            before = query.session
            for name, rank in systems.items():
                answers.setdefault(name, []).append(_answer(rank, query.text, query.gold))


def _add_session(memory: Memory, baselines: dict[str, Baseline], items: list[ImportedMessage]) -> None:
    if items:
        chat = items[0].chat.id
        memory.chat(chat).append([item.message for item in items])
        for baseline in baselines.values():
            baseline.add(chat, "\n".join(_text(item.message) for item in items))


def _sessions(memory: Memory, best: int) -> Rank:
    return lambda question, limit: by_best(memory.recall(question, limit=SESSION_DEPTH), best)[:limit]


def by_best(hits: Iterable[Hit], count: int) -> list[str]:
    """Rank sessions by the sum of the scores of their best turns; of equals, by the first turn."""
    scores: dict[str, list[float]] = {}
    for hit in hits:
        scores.setdefault(hit.chat, []).append(hit.score)
    return sorted(scores, key=lambda chat: -sum(scores[chat][:count]))


def _numbers(answers: Answers) -> dict[str, object]:
    numbers: dict[str, object] = {
        name: {"questions": len(of_system), **summarise(of_system)} for name, of_system in answers.items()
    }
    return numbers if Okapi.installed() else {**numbers, "rank_bm25": _INSTALL}


def _table(title: str, answers: Answers) -> Table:
    rows = []
    for name, of_system in answers.items():
        values = summarise(of_system)
        rows.append((name, *(f"{values[metric]:.{2 if metric == 'ms/query' else 1}f}" for metric in METRICS)))
    if not Okapi.installed():
        rows.append(("rank_bm25", _INSTALL, *[""] * (len(METRICS) - 1)))
    return Table(title, ("system", *METRICS), tuple(rows))
