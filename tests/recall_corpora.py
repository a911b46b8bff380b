"""Conversations to search, and ways to look at what was found."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from hypothesis import strategies as st

from holdfast import Memory
from holdfast.types import Hit, Message, Role
from programs import run, start

START = datetime(2022, 7, 1, 9, tzinfo=UTC)
WORDS = (
    "berlin marathon tokyo garden piano winter coffee bicycle yesterday monday the was 2022 don't "
    "parse_http_header HTTPServer ERR_4312 src/a/b.py café naïve Straße 東京タワー 서울에서 Ёлка"
).split()
QUERIES = (
    "berlin",
    "When did Ada drink coffee at the garden?",
    "did you see the http header",
    "ERR_4312 in HTTPServer on 5 July 2022",
    "my piano, Bob?",
    "東京",
    "the was",
    "strasse cafe ёлка",
)


class Said(NamedTuple):
    """A message before it is stored."""

    chat: str
    text: str
    role: Role = "user"
    name: str | None = None
    minutes: int = 0

    @property
    def message(self) -> Message:
        return Message(self.role, self.text, name=self.name, at=START + timedelta(minutes=self.minutes))


def texts(words: Sequence[str] = WORDS, longest: int = 8) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words), min_size=1, max_size=longest).map(" ".join)


def long_texts() -> st.SearchStrategy[str]:
    """Make texts of several passages, and such with what a program put out."""
    sentences = st.lists(texts(longest=14), min_size=1, max_size=12)
    return sentences.map(". ".join) | st.builds("{}\n```\n{}\n```\n{}".format, texts(), texts(), texts())


def conversations(largest: int = 40) -> st.SearchStrategy[list[Said]]:
    """Make chats that alternate, with pauses, clocks that go back, and speakers with and without names."""
    roles: st.SearchStrategy[Role] = st.sampled_from(["user", "assistant", "tool"])
    said = st.builds(
        Said,
        chat=st.sampled_from("abc"),
        text=texts() | long_texts(),
        role=roles,
        name=st.sampled_from([None, "Ada", "Bob Stone"]),
        minutes=st.integers(0, 30) | st.integers(0, 20_000),
    )
    return st.lists(said, min_size=1, max_size=largest)


def tell(memory: Memory, said: Sequence[Said]) -> None:
    """Append messages in their order, those of one chat that follow each other in one transaction."""
    for chat, group in groupby(said, key=lambda one: one.chat):
        memory.chat(chat).append([one.message for one in group])


def ask(memory: Memory, query: str, limit: int = 100_000) -> list[object]:
    """Give everything about the hits but their ids, which differ between databases."""
    return [
        (hit.chat, hit.seq, hit.text, hit.role, hit.name, hit.at, hit.score, dict(hit.why), hit.why.words)
        for hit in memory.recall(query, limit=limit)
    ]


def ask_all(memory: Memory, queries: Sequence[str] = QUERIES) -> list[list[object]]:
    return [ask(memory, query) for query in queries]


def found(hits: Sequence[Hit]) -> list[str]:
    return [hit.text for hit in hits]


def forget(memory: Memory) -> None:
    """Drop what this process holds of the index, as if it had just begun."""
    memory._runtime._search = None


start_python, run_python = start, run
