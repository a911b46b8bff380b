"""Messages and questions to measure speed on: random words, so that lists of postings are realistic.

A message is drawn word by word from real turns (the sessions of the demo, or a data set as `recall` reads
them), and 7 % of its words are made-up names, a few common and most of them rare, as names are. About 30
words a message. Such text has the latency of real text, and says nothing about the quality of an answer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.readers import found_in
from holdfast.errors import InvalidInput
from holdfast.text.analyze import STOP_WORDS

NAMES = 400_000  # made-up ones
NAME_SHARE = 0.07
MEAN_WORDS = 29.5
MAX_QUESTION = 12  # words
_BATCH = 10_000
_SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]


class Words:
    """Draw messages and questions; the same seed gives the same ones.

    Without `source` a question is the first four words of one from the demo and four to eight neighbouring
    words of a message like those in the store. With a data set, questions are real ones cut at 12 words.
    """

    def __init__(self, source: Path | None = None, seed: int = 7) -> None:
        self._seed = seed
        turns, self._asked = _demo() if source is None else _file(source)
        self._openings = source is None
        self._words = np.array([word for turn in turns for word in turn.split()], dtype=object)

    def messages(self, count: int, stream: int = 0) -> Iterator[str]:
        """Draw messages; another stream draws others."""
        draw = np.random.default_rng((self._seed, stream))
        for start in range(0, count, _BATCH):
            size = min(_BATCH, count - start)
            lengths = np.maximum(3, np.rint(draw.gamma(4.0, MEAN_WORDS / 4, size))).astype(np.int64)
            words = self._draw(draw, int(lengths.sum())).tolist()
            end = 0
            for length in lengths.tolist():
                end += length
                yield " ".join(words[end - length : end])

    def _draw(self, draw: np.random.Generator, count: int) -> NDArray[np.object_]:
        words = self._words[draw.integers(0, len(self._words), count)]
        named = np.flatnonzero(draw.random(count) < NAME_SHARE)
        # The rank of a name is log-uniform: Zipf's law with exponent 1.
        ranks = (NAMES ** draw.random(len(named))).astype(np.int64)
        words[named] = [made_up_name(rank) for rank in ranks.tolist()]
        return words

    def frequent(self, count: int, size: int) -> list[str]:
        """Draw questions of `size` words from those that most messages have and that say something."""
        known = Counter(word.lower() for word in self._words if word.isalpha())
        words = [word for word, _ in known.most_common(200) if word not in STOP_WORDS][: 3 * size]
        draw = np.random.default_rng((self._seed, 1_000_004))
        return [" ".join(draw.choice(words, size, replace=False)) for _ in range(count)]

    def questions(self, count: int) -> list[str]:
        """Draw questions of at most 12 words."""
        draw = np.random.default_rng((self._seed, 1_000_003))
        chosen = [self._asked[place].split() for place in draw.integers(0, len(self._asked), count).tolist()]
        if not self._openings:
            return [" ".join(words[:MAX_QUESTION]) for words in chosen]
        sizes = draw.integers(4, 9, count).tolist()
        return [
            " ".join([*words[:4], *self._draw(draw, size).tolist()])
            for words, size in zip(chosen, sizes, strict=True)
        ]


def made_up_name(rank: int) -> str:
    """Spell a number as a name, each number as another."""
    syllables = ""
    while rank:
        rank, place = divmod(rank, len(_SYLLABLES))
        syllables = _SYLLABLES[place] + syllables
    return (syllables or "ba").capitalize() + "x"


def _demo() -> tuple[list[str], list[str]]:
    folder = resources.files("holdfast_cli.demo")
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").read_text("utf-8").splitlines()]
    asked = json.loads((folder / "questions.json").read_text("utf-8"))
    turns = [message.get("content") or "" for session in sessions for message in session["messages"]]
    return turns, [question["question"] for question in asked]


def _file(path: Path) -> tuple[list[str], list[str]]:
    turns, asked = [], []
    for corpus in (corpus for file in found_in([path]) for corpus in file.corpora()):
        turns += [message.content for message in corpus.messages()]
        asked += [question.text for question in corpus.questions if question.gold]
    if not turns or not asked:
        raise InvalidInput(
            f"{path} has no questions.", "Give a data set as of `recall`, or none for the texts of the demo."
        )
    return turns, asked
