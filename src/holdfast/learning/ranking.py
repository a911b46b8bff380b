"""Ranking of episodes for a query: by the index, by random projections, by recency, or by a model.

Each way reads the whole text of an episode, not only its beginning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from html import escape
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from holdfast.errors import InvalidInput, ModelFailed, shown
from holdfast.llm.json_answers import has, listed, parse, picked
from holdfast.llm.llm_request import Ask, LLMRequest, Unreadable, exactly
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
CANDIDATES = 20  # episodes that a model is shown at most

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
    """Episodes, the best first, as a sequence of records, and the strategy that ranked them.

    `why` is what kept the chosen strategy from doing so, "" if nothing did.
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
    ask: Ask | None = None,
) -> Ranking:
    """Return at most `limit` episodes for a query, the best first; without a query, the newest.

    What is in quarantine or retracted is left out. If the model fails, or its answer cannot be read, the
    newest of those that it was shown are returned, with the reason in `why`.

    Args:
        strategy: "index", in the order of `hits`; "projection", those that share a word with the query;
            "recency"; or "llm", those that a model chooses of 20.
        hits: the ids that the index found for the query, the best first; for "index" and "llm".
        ask: calls a model; for "llm".

    Raises:
        InvalidInput: unknown strategy, negative limit, or no model for "llm".

    """
    if strategy not in STRATEGIES:
        raise InvalidInput(f"Unknown strategy {shown(strategy)}.", f"Use one of {', '.join(STRATEGIES)}.")
    if strategy == "llm" and ask is None:
        raise InvalidInput("There is no model to rank episodes with.", "Pass llm=, or use another strategy.")
    most = check_count(limit, "limit")
    newest = _by_recency(
        episode
        for episode in episodes
        if episode.kind == KIND and episode.trust != "quarantined" and not episode.retracted
    )
    if query is None or not query.strip() or strategy == "recency":
        return Ranking(tuple(newest[:most]), "recency")
    recallable = {episode.id: episode for episode in newest}
    best = [recallable[id] for id in dict.fromkeys(hits) if id in recallable]
    if strategy == "llm" and ask is not None:
        # What the index found, and the newest where that is less.
        return _by_model([*dict.fromkeys((*best, *newest))][:CANDIDATES], query, most, ask)
    best = _by_projection(newest, query) if strategy == "projection" else best
    return Ranking(tuple(best[:most]), strategy)


def _by_model(shown: Sequence[Record], query: str, limit: int, ask: Ask) -> Ranking:
    if not shown or not limit:
        return Ranking((), "llm")
    try:
        chosen = read_choice(ask(request(shown, query, limit, load(_PURPOSE))), shown)
    except Unreadable:
        why = "the answer cannot be read"
    except ModelFailed as error:
        why = f"the model failed: {error.reason}"
    else:
        return Ranking(tuple(chosen[:limit]), "llm")
    return Ranking(tuple(_by_recency(shown)[:limit]), "recency", why)


def _by_recency(episodes: Iterable[Record]) -> list[Record]:
    return sorted(episodes, key=recency, reverse=True)


def _by_projection(newest: Iterable[Record], query: str) -> list[Record]:
    """Return the episodes that share a word with a query, the closest first; of equals, the newest first."""
    words = _project(query).words
    similar = [episode for episode in newest if not words.isdisjoint(_project(episode.text).words)]
    near = dict(zip(similar, closeness(query, [episode.text for episode in similar]), strict=True))
    return sorted(similar, key=lambda episode: -near[episode])


def request(shown: Sequence[Record], query: str, limit: int, prompt: PromptTemplate) -> LLMRequest:
    """Return the request to choose the episodes that help with a query; their texts are framed as data."""
    filled = prompt.fill(
        question=_indent(query),
        episodes="\n".join(f"{number}. {_indent(episode.text)}" for number, episode in enumerate(shown, 1)),
        limit=str(limit),
    )
    return LLMRequest(_PURPOSE, filled, _SCHEMA, prompt.label, answer_tokens=100)


def read_choice(answer: str, shown: Sequence[Record]) -> list[Record]:
    """Return the episodes that a model chose, in its order; numbers that no episode has are dropped.

    Raises:
        Unreadable: it names none of them, and is not "none" either.

    """
    items = _answer_items(answer)
    numbers = [number for item in items if (number := _number(item)) and number <= len(shown)]
    if items and not numbers:
        raise Unreadable("it names none of the episodes.")
    return [shown[number - 1] for number in dict.fromkeys(numbers)]


def _answer_items(answer: str) -> list[object]:
    """Return the items of an answer, as JSON or as plain numbers; none where it is "none"."""
    plain = without_reasoning(answer).strip()
    if _NOTHING.fullmatch(plain):
        return []
    if _NUMBERS.fullmatch(plain):
        return [*re.findall(r"\d+", plain)]
    value = parse(answer)
    if isinstance(value, Mapping):
        if not has(value, "episodes"):
            raise Unreadable("it has no episodes.")
        value = picked(value, "episodes")
        if isinstance(value, str) and _NOTHING.fullmatch(value):
            return []
    return listed(value)


def _number(value: object) -> int:
    """Return the number of an episode, from 1 on; 0 for anything else."""
    if isinstance(value, Mapping):
        value = picked(value, "episode" if has(value, "episode") else "number")
    if isinstance(value, str):
        digits = _NUMBER.fullmatch(value)
        return int(digits[1]) if digits else 0
    return max(value, 0) if isinstance(value, int) and is_whole(value) else 0


def _indent(text: str) -> str:
    """Return a text with all lines but the first indented, so that it cannot pose as another episode."""
    return "\n    ".join(escape(text, quote=False).splitlines())


# How new an episode is, and how near two texts are


def recency(episode: Record) -> tuple[datetime, int]:
    """Return the sort key of an episode, the older the less: the end of the chat, then the version."""
    return end_time(episode), episode.version


def end_time(episode: Record) -> datetime:
    """Return when the chat of an episode ended, or if that is unknown, when the episode was written."""
    stored = episode.meta.get("ended")
    try:
        time = datetime.fromisoformat(stored) if isinstance(stored, str) else None
    except ValueError:
        # Not written by us.
        time = None
    time = time or episode.at or _LONG_AGO
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def closeness(text: str, others: Sequence[str]) -> list[float]:
    """Return the cosines of random projections of texts: 1 for the same words, about 0 for no common one.

    The same in every process, and whatever other texts there are. Stop words do not count.
    """
    vector = _project(text).vector
    return [float(vector @ _project(other).vector) for other in others]


class _Projection(NamedTuple):
    """The words of a text, and the sum of a row of random signs for each of them, of length 1."""

    words: frozenset[int]
    vector: NDArray[np.float32]


@lru_cache(maxsize=_CACHED)
def _project(text: str) -> _Projection:
    # numpy is loaded by the first comparison.
    import numpy as np

    from holdfast.text.analyze import analyze, tokens

    counts: Counter[int] = Counter()
    for token in map(analyze, tokens(text)):
        counts.update(token.terms[: token.words])
    # A bit for each sign, from the hash of a term, so that they are the same everywhere.
    terms = (term.to_bytes(8, "little") for term in counts)
    signs = b"".join(blake2b(term, digest_size=DIMENSIONS // 8).digest() for term in terms)
    bits = np.unpackbits(np.frombuffer(signs, np.uint8)).reshape(len(counts), DIMENSIONS)
    total = np.fromiter(counts.values(), np.float32, len(counts)) @ (2 * bits.astype(np.float32) - 1)
    # Without words, there is no length.
    length = max(float(np.linalg.norm(total)), 1.0)
    return _Projection(frozenset(counts), (total / length).astype(np.float32))
