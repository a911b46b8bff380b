"""`python -m benchmarks prompts`: recall for a question as people write it, beside the question alone.

Each question of the data sets is asked alone, after some words of small talk, beside a pasted trace, and as a
follow-up. What is found may not fall by more than a little, and as many hits must be worth showing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.datasets import Corpus, Question
from benchmarks.machine import basis
from benchmarks.metrics import recall_at
from benchmarks.readers import found_in
from benchmarks.recall import SESSION_DEPTH, ids_of
from benchmarks.report import Report, Table
from holdfast.errors import InvalidInput
from holdfast.memory import Memory

SHOWN = 0.3  # the score from which a hit is worth showing
_COLUMNS = ("questions", "asked", "hit@1", "R@10", f"first hit ≥ {SHOWN}")
_SEED = 37
_TALK = (
    "Hello my friend, thanks a lot for all the help lately, you really are a lifesaver, seriously, always.",
    "Ok quick one before I head out for lunch, sorry to bother you again, this should only take a minute.",
    "What a day! The train was late, my phone died, and now I'm finally on the sofa with some tea.",
    "I was talking with my sister last night and we couldn't agree on this, so you have to settle it.",
)
_LONG_TALK = (
    (
        "Hello hello, me again. I know I keep asking you stuff all the time, but honestly my head is like a "
        "sieve these days. Work is crazy, the laundry is piling up, and I still need to plan the weekend. "
        "Before I forget it completely, let me just ask you this one thing and then I leave you alone."
    ),
    (
        "Hey, so I'm sitting on the bus right now and it's raining cats and dogs outside, perfect weather "
        "for some thinking. Yesterday I met an old colleague for a drink and we talked about everything and "
        "nothing for hours. It was really fun. On the way back I started wondering about something."
    ),
)
_FOLLOW_UPS = ("Great, thanks! One more thing: {}", "Got it. And {}", "Perfect, that helped a lot. {}")
_STEPS = (f'  File "/app/part_{n}.py", line {7 * n}, in step_{n}\n    return run_{n}(job)' for n in range(40))
_TRACE = "\n".join(("Traceback (most recent call last):", *_STEPS, "ValueError: bad value"))

Write = Callable[[str, random.Random], str]
PROMPTS: dict[str, Write] = {
    "alone": lambda question, _: question,
    "18 words before it": lambda question, chance: f"{chance.choice(_TALK)} {question}",
    "53 words before it": lambda question, chance: f"{chance.choice(_LONG_TALK)} {question}",
    "a trace before it": lambda question, _: f"{_TRACE}\n\n{question}",
    "a trace after it": lambda question, _: f"{question}\n\n{_TRACE}",
    "as a follow-up": lambda question, chance: chance.choice(_FOLLOW_UPS).format(question),
}


def run(paths: Sequence[Path], *, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Ask the questions of data sets in all these ways.

    Raises:
        InvalidInput: there is no such file, or none of them has questions with known answers.

    """
    numbers: dict[str, object] = {}
    files, rows = [], []
    for found in found_in(paths, progress):
        corpora = list(found.corpora())
        files += [file for corpus in corpora for file in corpus.files]
        for name, write in PROMPTS.items():
            progress(f"{found.reader.name}: {name}")
            figures = np.array([figure for corpus in corpora for figure in _asked(corpus, write)])
            if len(figures):
                measured = [len(figures), *(100 * figures.mean(axis=0)).round(1).tolist()]
                numbers[f"{found.path.name}, {name}"] = dict(zip(_COLUMNS[1:], measured, strict=True))
                rows.append((f"{found.reader.name}, {name}", *map(str, measured)))
    if not rows:
        raise InvalidInput(
            "None of these files has questions with known answers.", "Give files of LoCoMo, for example."
        )
    return Report({**basis(files), **numbers}, (Table("Questions in prompts, %", _COLUMNS, tuple(rows)),))


def _asked(corpus: Corpus, write: Write) -> Iterator[tuple[float, float, float]]:
    """Yield whether the first hit answers, the share of what answers among ten, and whether it is shown."""
    chance = random.Random(_SEED)
    with Memory(":memory:", user="person") as memory:
        for question, new in corpus.asked():
            for session in new:
                memory.chat(session.id).append(list(session.messages))
            if question.gold:
                yield _answered(memory, corpus, question, write(question.text, chance))


def _answered(memory: Memory, corpus: Corpus, question: Question, prompt: str) -> tuple[float, float, float]:
    hits = memory.recall(prompt, limit=SESSION_DEPTH if corpus.unit == "session" else 10)
    ranked = ids_of(hits, corpus.unit)
    shown = float(bool(hits) and hits[0].score >= SHOWN)
    first = float(not set(ranked[:1]).isdisjoint(question.gold))
    return first, recall_at(ranked, question.gold, 10), shown
