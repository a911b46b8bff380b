"""Ranking of episodes for a query: by the index, by their words, by recency, or by a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from html import escape
from typing import Literal, TypeAlias, get_args

from holdfast.errors import InvalidInput, ModelFailed, shown
from holdfast.llm.json_answers import has, listed, parse, picked
from holdfast.llm.llm_request import Ask, LLMRequest, Unreadable, exactly
from holdfast.llm.prompt_files import load
from holdfast.text.message_text import without_reasoning
from holdfast.types import Record, is_whole

Strategy = Literal["index", "projection", "recency", "llm"]
Ranker: TypeAlias = "Callable[[str, Sequence[Record]], Iterable[Record]]"
"""A function from a query and all episodes, the newest first, to the best of them, the best first."""
KIND = "episode"
CANDIDATES = 20  # episodes that a model is shown at most

_PURPOSE = "rank"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NOTHING = re.compile(r"[\s\"'\[(]*(?:none|null|nothing)[\s\"'\]).!]*", re.IGNORECASE)
_NUMBERS = re.compile(r"[\s\d,;#]*\d[\s,;.]*")
_NUMBER = re.compile(r"\s*#?(\d{1,9})\s*")
_SCHEMA = exactly({"episodes": {"type": "array", "items": {"type": "integer"}}})


@dataclass(frozen=True, slots=True)
class Ranking:
    """Episodes, the best first, as a sequence of records, and the strategy that ranked them.

    The strategy is "own" for a function of the caller's. `why` is what kept the chosen one from doing so, ""
    if nothing did.
    """

    episodes: tuple[Record, ...]
    strategy: Strategy | Literal["own"]
    why: str = ""

    def __iter__(self) -> Iterator[Record]:
        return iter(self.episodes)

    def __len__(self) -> int:
        return len(self.episodes)

    def __getitem__(self, place: int) -> Record:
        return self.episodes[place]


def rank(
    strategy: Strategy | Ranker,
    episodes: Iterable[Record],
    query: str | None,
    limit: int,
    *,
    hits: Sequence[str] = (),
    ask: Ask | None = None,
) -> Ranking:
    """Return at most `limit` episodes for a query, the best first; without a query, the newest.

    If the model fails, or its answer cannot be read, the newest of those that it was shown are returned, with
    the reason in `why`.

    Args:
        strategy: "index", in the order of `hits`; "projection", those that share a word with the query;
            "recency"; "llm", those that a model chooses of 20; or a function that chooses of all.
        hits: the ids that the index found for the query, the best first; for "index" and "llm".
        ask: calls a model; for "llm".

    Raises:
        InvalidInput: unknown strategy, no model for "llm", or a function that returns something else.

    """
    if not callable(strategy) and strategy not in (known := get_args(Strategy)):
        raise InvalidInput(
            f"Unknown strategy {shown(strategy)}.", f"Use one of {', '.join(known)}, or a function."
        )
    if strategy == "llm" and ask is None:
        raise InvalidInput("There is no model to rank episodes with.", "Pass llm=, or use another strategy.")
    newest = _by_recency(episodes)
    if query is None or not query.strip() or strategy == "recency":
        return Ranking(tuple(newest[:limit]), "recency")
    if callable(strategy):
        return Ranking(tuple(_chosen(strategy(query, newest), newest)[:limit]), "own")
    recallable = {episode.id: episode for episode in newest}
    best = [recallable[id] for id in dict.fromkeys(hits) if id in recallable]
    if strategy == "llm" and ask is not None:
        # What the index found, and the newest where that is less.
        return _by_model([*dict.fromkeys((*best, *newest))][:CANDIDATES], query, limit, ask)
    if strategy == "projection":
        near = {episode: closeness(query, episode.text) for episode in newest}
        best = sorted(filter(near.__getitem__, newest), key=near.__getitem__, reverse=True)
    return Ranking(tuple(best[:limit]), strategy)


def _chosen(chosen: object, episodes: Sequence[Record]) -> list[Record]:
    """Return the episodes that a function chose, each once."""
    chosen = [*chosen] if isinstance(chosen, Iterable) else [chosen]
    if strange := [item for item in chosen if item not in episodes]:
        raise InvalidInput(
            f"The strategy returned {shown(strange[0])}.", "Return episodes that it was given."
        )
    return [*dict.fromkeys(chosen)]


def _by_model(shown: Sequence[Record], query: str, limit: int, ask: Ask) -> Ranking:
    if not shown or not limit:
        return Ranking((), "llm")
    prompt = load(_PURPOSE)
    texts = (f"{number}. {_indent(episode.text)}" for number, episode in enumerate(shown, 1))
    filled = prompt.fill(question=_indent(query), episodes="\n".join(texts), limit=str(limit))
    try:
        answer = ask(LLMRequest(_PURPOSE, filled, _SCHEMA, prompt.label, answer_tokens=100))
        return Ranking(tuple(read_choice(answer, shown)[:limit]), "llm")
    except Unreadable:
        why = "the answer cannot be read"
    except ModelFailed as error:
        why = f"the model failed: {error.reason}"
    return Ranking(tuple(_by_recency(shown)[:limit]), "recency", why)


def _by_recency(episodes: Iterable[Record]) -> list[Record]:
    return sorted(episodes, key=recency, reverse=True)


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


def recency(episode: Record) -> tuple[datetime, int]:
    """Return the sort key of an episode, the older the less: the end of the chat, then the version.

    Where that is unknown, or not written by us, it ended when the episode was written.
    """
    stored = episode.meta.get("ended")
    try:
        time = datetime.fromisoformat(stored) if isinstance(stored, str) else None
    except ValueError:
        time = None
    time = time or episode.at or _LONG_AGO
    return (time if time.tzinfo else time.replace(tzinfo=UTC)), episode.version


def closeness(text: str, other: str) -> float:
    """Return the cosine of the words of two texts: 1 for the same words, 0 for no common one.

    It is what random projections estimate. Stop words do not count.
    """
    terms, others = _terms(text), _terms(other)
    length = math.hypot(*terms.values()) * math.hypot(*others.values())
    return sum(terms[term] * others[term] for term in terms.keys() & others.keys()) / (length or 1.0)


@lru_cache(maxsize=512)
def _terms(text: str) -> Counter[int]:
    # The text analysis is loaded by the first comparison.
    from holdfast.text.analyze import analyze, tokens

    words = map(analyze, tokens(text))
    return Counter(term for word in words for term in word.terms[: word.words])
