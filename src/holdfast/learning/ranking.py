"""Which episodes matter to a question: by the index, by random projections, by time, or as a model says.

Each way looks at the whole text of an episode, never at its beginning alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from html import escape
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from holdfast.errors import InvalidInput, ModelFailed, shown
from holdfast.llm.json_answers import has, listed, parse, picked
from holdfast.llm.llm_request import LLMRequest, Unreadable, exactly
from holdfast.llm.prompt_files import load
from holdfast.text.message_text import without_reasoning
from holdfast.types import Record, check_count, is_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from holdfast.llm.prompt_files import PromptTemplate

Strategy = Literal["index", "projection", "recency", "llm"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
KIND = "episode"
CANDIDATES = 20  # that a model is shown at most

_PURPOSE = "rank"
DIMENSIONS = 256
_CACHED = 1_024  # texts, with their projections about 2 MB
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NOTHING = re.compile(r"[\s\"'\[(]*(?:none|null|nothing)[\s\"'\]).!]*", re.IGNORECASE)
_NUMBERS = re.compile(r"[\s\d,;#]*\d[\s,;.]*")
_NUMBER = re.compile(r"\s*#?(\d{1,9})\s*")
_SCHEMA = exactly({"episodes": {"type": "array", "items": {"type": "integer"}}})


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hold episodes, the best first, as a sequence of records, and the strategy that gave them their order.

    `why` says what kept the strategy that was wanted from doing so, "" if nothing did.
    """

    episodes: tuple[Record, ...]
    strategy: Strategy
    why: str = ""

    def __iter__(self) -> Iterator[Record]:
        return iter(self.episodes)

    def __len__(self) -> int:
        return len(self.episodes)

    def __getitem__(self, place: int) -> Record:
        return self.episodes[place]


def rank(
    strategy: Strategy,
    episodes: Iterable[Record],
    query: str | None,
    limit: int,
    *,
    hits: Sequence[str] = (),
    ask: Callable[[LLMRequest], str] | None = None,
    prompt: PromptTemplate | None = None,
) -> Ranking:
    """Choose at most `limit` episodes for a query, the best first; without a query, the newest.

    What is in quarantine or retracted is left out. A model that fails, or whose answer cannot be read, leaves the newest
    of those that it was shown, and `why` says so.

    Args:
        strategy: "index", in the order of `hits`; "projection", those that share a word with the query; "recency"; or
            "llm", those that a model chooses of 20.
        episodes: all that there are.
        query: a question, or some words.
        limit: at most so many.
        hits: the ids that the index found for the query, the best first; for "index" and "llm".
        ask: what asks a model; for "llm".
        prompt: what it is asked with; the newest of the package by default.

    Raises:
        InvalidInput: there is no such strategy, the limit is negative, or nothing was passed that can be asked.

    """
    if strategy not in STRATEGIES:
        raise InvalidInput(f"{shown(strategy)} is no strategy.", f"Use one of {', '.join(STRATEGIES)}.")
    if strategy == "llm" and ask is None:
        raise InvalidInput("No model is there to rank episodes.", "Pass llm=, or use another strategy.")
    most = check_count(limit, "limit")
    newest = by_recency(episodes)
    if query is None or not query.strip() or strategy == "recency":
        return Ranking(tuple(newest[:most]), "recency")
    if strategy == "llm" and ask is not None:
        return _by_model(candidates(newest, hits), query, most, ask, prompt or load(_PURPOSE))
    found = by_index(newest, hits) if strategy == "index" else by_projection(newest, query)
    return Ranking(tuple(found[:most]), strategy)


def _by_model(
    shown: Sequence[Record], query: str, limit: int, ask: Callable[[LLMRequest], str], prompt: PromptTemplate
) -> Ranking:
    if not shown or not limit:
        return Ranking((), "llm")
    try:
        chosen = read(ask(question(shown, query, limit, prompt)), shown)
    except (Unreadable, ModelFailed) as error:
        why = (
            "the answer cannot be read"
            if isinstance(error, Unreadable)
            else f"the model failed: {error.reason}"
        )
        return Ranking(tuple(by_recency(shown)[:limit]), "recency", why)
    return Ranking(tuple(chosen[:limit]), "llm")


def recallable(record: Record) -> bool:
    """Say whether a record is an episode that may be shown: not in quarantine, and not retracted."""
    return record.kind == KIND and record.trust != "quarantined" and not record.retracted


def by_recency(episodes: Iterable[Record]) -> list[Record]:
    """Order the episodes that may be shown, that of the session that ended last first."""
    return sorted(filter(recallable, episodes), key=recency, reverse=True)


def by_index(episodes: Iterable[Record], hits: Sequence[str]) -> list[Record]:
    """Take the episodes that the index found, in its order."""
    there = {one.id: one for one in episodes if recallable(one)}
    return [there[identity] for identity in dict.fromkeys(hits) if identity in there]


def by_projection(episodes: Iterable[Record], query: str) -> list[Record]:
    """Order the episodes that share a word with a query by how close they are to it; of equals, the newest first."""
    words = _projected(query).words
    found = [one for one in by_recency(episodes) if not words.isdisjoint(_projected(one.text).words)]
    near = dict(zip(found, closeness(query, [one.text for one in found]), strict=True))
    return sorted(found, key=lambda one: -near[one])


def candidates(episodes: Iterable[Record], hits: Sequence[str], most: int = CANDIDATES) -> list[Record]:
    """Choose what a model is shown: what the index found, and the newest where that is less than `most`."""
    newest = by_recency(episodes)
    found = by_index(newest, hits)[:most]
    ids = {one.id for one in found}
    return [*found, *(one for one in newest if one.id not in ids)][:most]


def question(shown: Sequence[Record], query: str, limit: int, prompt: PromptTemplate) -> LLMRequest:
    """Ask a model which of some episodes help with a query; their whole texts, framed as data that cannot leave its frame."""
    filled = prompt.fill(
        question=_lines(query),
        episodes="\n".join(f"{number}. {_lines(one.text)}" for number, one in enumerate(shown, 1)),
        limit=str(limit),
    )
    return LLMRequest(_PURPOSE, filled, _SCHEMA, prompt.label, answer_tokens=100)


def read(answer: str, shown: Sequence[Record]) -> list[Record]:
    """Take the episodes that a model chose, in its order. Numbers that no episode has, and repeated ones, are dropped.

    Raises:
        Unreadable: it names none of them, and does not say either that none helps.

    """
    named = _named(answer)
    numbers = [number for one in named if (number := _number(one)) and number <= len(shown)]
    if named and not numbers:
        raise Unreadable("it names none of the episodes.")
    return [shown[number - 1] for number in dict.fromkeys(numbers)]


def _named(answer: str) -> list[object]:
    """Read what an answer lists, as JSON or as plain numbers; nothing where it says "none"."""
    plain = without_reasoning(answer).strip()
    if _NOTHING.fullmatch(plain):
        return []
    return [*re.findall(r"\d+", plain)] if _NUMBERS.fullmatch(plain) else _items(parse(answer))


def _items(value: object) -> list[object]:
    if not isinstance(value, Mapping):
        return listed(value)
    if not has(value, "episodes"):
        raise Unreadable("it has no episodes.")
    chosen = picked(value, "episodes")
    return [] if isinstance(chosen, str) and _NOTHING.fullmatch(chosen) else listed(chosen)


def _number(value: object) -> int:
    """Take the number of an episode, from 1 on; 0 for what is none."""
    if isinstance(value, Mapping):
        value = picked(value, "episode" if has(value, "episode") else "number")
    if isinstance(value, str):
        digits = _NUMBER.fullmatch(value)
        return int(digits[1]) if digits else 0
    return max(value, 0) if isinstance(value, int) and is_whole(value) else 0


def _lines(text: str) -> str:
    """Indent all lines but the first, so that no text can pose as another episode."""
    return "\n    ".join(escape(text, quote=False).splitlines())


# How new an episode is, and how near two texts are


def recency(episode: Record) -> tuple[datetime, int]:
    """Give what episodes are ordered by, the older the less: when the session ended, then when it was written."""
    return ended(episode), episode.version


def ended(episode: Record) -> datetime:
    """Say when the session of an episode ended; of one that does not tell, when it was written."""
    told = episode.meta.get("ended")
    try:
        time = datetime.fromisoformat(told) if isinstance(told, str) else None
    except ValueError:  # somebody else wrote it
        time = None
    time = time or episode.at or _LONG_AGO
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def closeness(text: str, others: Sequence[str]) -> list[float]:
    """Give the cosines of the random projections of whole texts: 1 for the same words, about 0 for no common one.

    The same in every process, and whatever other texts there are. Words that say nothing do not count.
    """
    mine = _projected(text).vector
    return [float(mine @ _projected(other).vector) for other in others]


class _Projected(NamedTuple):
    """A text as its words, and as the sum of a row of random signs for each of them, of length 1."""

    words: frozenset[int]
    vector: NDArray[np.float32]


@lru_cache(maxsize=_CACHED)
def _projected(text: str) -> _Projected:
    # Only those who compare episodes need it.
    import numpy as np

    from holdfast.text.analyze import analyze, tokens

    counted: Counter[int] = Counter()
    for token in map(analyze, tokens(text)):
        counted.update(token.terms[: token.words])
    drawn = b"".join(map(_signs, counted))
    bits = np.unpackbits(np.frombuffer(drawn, np.uint8)).reshape(len(counted), DIMENSIONS)
    total = np.fromiter(counted.values(), np.float32, len(counted)) @ (2 * bits.astype(np.float32) - 1)
    length = max(float(np.linalg.norm(total)), 1.0)  # no words, no length
    return _Projected(frozenset(counted), (total / length).astype(np.float32))


def _signs(term: int) -> bytes:
    """Draw the signs of a word, a bit each: from its hash, so that they are the same everywhere."""
    return blake2b(term.to_bytes(8, "little"), digest_size=DIMENSIONS // 8).digest()
