"""What recall is held against: the searches that a program would otherwise use."""

from __future__ import annotations

import importlib.util
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from holdfast.text import analyze

_WORD = re.compile(r"\w+")


class Baseline(Protocol):
    """Rank texts for a question."""

    def add(self, key: str, text: str) -> None:
        """Take in a text."""

    def rank(self, question: str, limit: int) -> list[str]:
        """Return the keys of the best texts, best first; of equal ones the earlier first."""


def any_word(question: str) -> str:
    """Write a question as an FTS5 query for any of its words."""
    return " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(question.lower())))


class FullText:
    """SQLite FTS5: any word of the question, ranked by its bm25()."""

    def __init__(self, tokenizer: str = "porter unicode61", path: Path | None = None) -> None:
        self._keys: list[str] = []
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = '{tokenizer}')")

    def add(self, key: str, text: str) -> None:
        """Take in a text."""
        self._db.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (len(self._keys) + 1, text))
        self._keys.append(key)

    def add_all(self, texts: Iterable[str]) -> None:
        """Take in many texts in one transaction, numbered from 1."""
        self._db.execute("BEGIN")
        for number, text in enumerate(texts, 1):
            self.add(str(number), text)
        self._db.execute("COMMIT")

    def rank(self, question: str, limit: int) -> list[str]:
        """Return the keys of the best texts."""
        query = any_word(question)
        if not query:
            return []
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT ?"
        return [self._keys[row - 1] for (row,) in self._db.execute(sql, (query, limit))]

    def close(self) -> None:
        """Close the database."""
        self._db.close()


class Okapi:
    """The package rank_bm25 as its own page shows it: BM25Okapi over words that stand between spaces."""

    @staticmethod
    def installed() -> bool:
        """Return whether the package is installed."""
        return importlib.util.find_spec("rank_bm25") is not None

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._texts: list[list[str]] = []
        self._ranker: Any = None

    def add(self, key: str, text: str) -> None:
        """Take in a text."""
        self._keys.append(key)
        self._texts.append(text.lower().split())
        self._ranker = None

    def rank(self, question: str, limit: int) -> list[str]:
        """Return the keys of the best texts."""
        if self._ranker is None:
            # An optional dependency.
            from rank_bm25 import BM25Okapi

            self._ranker = BM25Okapi(self._texts)
        scores = self._ranker.get_scores(question.lower().split())
        return [self._keys[place] for place in np.argsort(-scores, kind="stable")[:limit]]


class PlainBM25:
    """BM25 over stems without stop words, with the analysis that Holdfast uses and nothing else of it."""

    def __init__(self, k1: float = 1.5, b: float = 0.5) -> None:
        self._k1, self._b = k1, b
        self._keys: list[str] = []
        self._counts: list[Counter[str]] = []
        self._having: Counter[str] = Counter()
        self._words = 0

    def add(self, key: str, text: str) -> None:
        """Take in a text."""
        counts = Counter(stems(text))
        self._keys.append(key)
        self._counts.append(counts)
        self._having.update(counts.keys())
        self._words += counts.total()

    def rank(self, question: str, limit: int) -> list[str]:
        """Return the keys of the best texts."""
        number = len(self._keys)
        mean = self._words / max(1, number)
        asked = {
            term: count * math.log(1 + (number - self._having[term] + 0.5) / (self._having[term] + 0.5))
            for term, count in Counter(stems(question)).items()
        }
        scores = []
        for counts in self._counts:
            norm = self._k1 * (1 - self._b + self._b * counts.total() / max(mean, 1.0))
            found = ((counts[term], weight) for term, weight in asked.items() if term in counts)
            scores.append(sum(weight * tf * (self._k1 + 1) / (tf + norm) for tf, weight in found))
        return [self._keys[place] for place in np.argsort(-np.array(scores), kind="stable")[:limit]]


def stems(text: str) -> list[str]:
    """Return the stems of the words of a text that say something."""
    words = (word for token in analyze.tokens(text) for word in analyze.split(token))
    return [analyze.normal(word) for word in words if word not in analyze.STOP_WORDS]
