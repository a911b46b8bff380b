"""What recall is held against: the searches that a program would otherwise use."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import Stemmer

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
    """SQLite FTS5 with Porter's stems: any word of the question, ranked by its bm25()."""

    needs = ""

    def __init__(self, path: Path | None = None) -> None:
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS texts "
            "USING fts5(key UNINDEXED, text, tokenize = 'porter unicode61')"
        )

    def add(self, key: str, text: str) -> None:
        """Take in a text, in one transaction with those after it until something is asked."""
        if not self._db.in_transaction:
            self._db.execute("BEGIN")
        self._db.execute("INSERT INTO texts (key, text) VALUES (?, ?)", (key, text))

    def rank(self, question: str, limit: int) -> list[str]:
        """Return the keys of the best texts."""
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        query = any_word(question)
        if not query:
            return []
        sql = "SELECT key FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT ?"
        return [key for (key,) in self._db.execute(sql, (query, limit))]


class Tantivy:
    """The package tantivy: English stems, any word of the question, each text stored with it."""

    needs = "tantivy"

    def __init__(self, path: Path | None = None) -> None:
        tantivy: Any = importlib.import_module("tantivy")
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("key", stored=True, tokenizer_name="raw")
        builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
        if path:
            path.mkdir(exist_ok=True)
        self._document = tantivy.Document
        self._index = tantivy.Index(builder.build(), path=str(path) if path else None)
        self._writer: Any = None

    def add(self, key: str, text: str) -> None:
        """Take in a text."""
        self._writer = self._writer or self._index.writer()
        self._writer.add_document(self._document(key=key, text=text))

    def rank(self, question: str, limit: int) -> list[str]:
        """Return the keys of the best texts."""
        self.commit()
        words = " ".join(_WORD.findall(question.lower()))
        searcher = self._index.searcher()
        # "Only excluding terms given": it takes "not" for an operator.
        with suppress(ValueError):
            hits = searcher.search(self._index.parse_query(words, ["text"]), limit).hits
            return [searcher.doc(address)["key"][0] for _, address in hits]
        return []

    def commit(self) -> None:
        """Make what was added searchable."""
        if self._writer:
            self._writer.commit()
            self._writer.wait_merging_threads()
            self._writer = None
            self._index.reload()


class Bm25s:
    """The package bm25s as its own page shows it: its stop words, English stems, BM25 in a sparse matrix.

    It is made anew of all texts when one was added.
    """

    needs = "bm25s"

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._texts: list[str] = []
        self._ranker: Any = None
        self._bm25s: Any = importlib.import_module("bm25s")
        self._stemmer = Stemmer.Stemmer("english")

    def add(self, key: str, text: str) -> None:
        """Take in a text."""
        self._keys.append(key)
        self._texts.append(text)
        self._ranker = None

    def rank(self, question: str, limit: int) -> list[str]:
        """Return the keys of the best texts."""
        if self._ranker is None:
            self._ranker = self._bm25s.BM25()
            self._ranker.index(self._tokens(self._texts), show_progress=False)
        count = min(limit, len(self._keys))
        places, _ = self._ranker.retrieve(self._tokens([question]), k=count, show_progress=False)
        return [self._keys[place] for place in places[0]]

    def _tokens(self, texts: list[str]) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


BASELINES: dict[str, type[FullText | Tantivy | Bm25s]] = {
    "SQLite FTS5 (porter, any word)": FullText,
    "tantivy": Tantivy,
    "bm25s": Bm25s,
}


def installed() -> dict[str, type[FullText | Tantivy | Bm25s]]:
    """Return the baselines whose packages are installed."""
    return {
        name: one for name, one in BASELINES.items() if not one.needs or importlib.util.find_spec(one.needs)
    }
