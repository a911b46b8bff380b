"""Find messages: score them for a question and take the best that are wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.search import rank
from holdfast.search.columns import Turns
from holdfast.search.filters import Wanted
from holdfast.search.index import Index
from holdfast.search.postings import Kept, Lists, Sought
from holdfast.search.query import Question
from holdfast.store.message_rows import from_micros
from holdfast.store.records import AsOf
from holdfast.text.dates import spans
from holdfast.types import MAX_COUNT

_MAX_YEARS = 50  # that a date without a year is looked for in


def look_up(index: Index[Turns], terms: Sequence[int], moment: AsOf) -> tuple[Lists, int]:
    """Look up terms in the messages of a space as of a moment, and count those messages."""
    lists: Lists = index.look_up(terms)
    if moment.doc >= index.covered and moment.until == MAX_COUNT:
        return lists, index.covered
    there = np.arange(index.covered + 1) <= moment.doc
    there[0] = False  # which stands for no message
    there &= index.columns.at[: index.covered + 1] < moment.until
    return Kept(lists, there), int(there.sum())


def speakers(columns: Turns, asked: Question) -> frozenset[int]:
    """Find the actors whose names are words of the question."""
    return frozenset(number for word in asked.words for number in columns.names.get(word.term, ()))


def best(
    columns: Turns,
    asked: Question,
    sought: Sequence[Sought],
    named: frozenset[int],
    agent: str,
    wanted: Wanted,
    moment: AsOf,
    weights: rank.Weights,
) -> tuple[rank.Scores, list[int]]:
    """Score the messages of a space, and give the places of the best in the scores."""
    focus = rank.Focus(
        named or _actors_of_roles(columns, asked.roles), asked.asks_time, tuple(_spans(columns, asked))
    )
    scores = rank.score([one.term for one in sought], columns, focus, weights)
    shares = scores.total / scores.ceiling
    mask = _mask(columns, scores.docs, agent, wanted, moment)
    if mask is not None:
        shares *= mask
    return scores, [
        int(place) for place in rank.top(shares, wanted.limit) if shares[place] >= wanted.min_score
    ]


def _actors_of_roles(columns: Turns, roles: frozenset[str]) -> frozenset[int]:
    """Take pronouns as naming a role, where more than one role speaks."""
    if len({role for role, _ in columns.actors}) < 2:
        return frozenset()
    return frozenset(number for (role, _), number in columns.actors.items() if role in roles)


def _spans(columns: Turns, asked: Question) -> list[tuple[int, int, float]]:
    if not asked.dates:
        return []
    times = columns.at[1 : columns.last + 1]
    first, last = (from_micros(int(time)).year for time in (times.min(), times.max()))
    first = max(first, last - _MAX_YEARS)
    return [span for date in asked.dates for span in spans(date, first, last)]


def _mask(
    columns: Turns, docs: rank.Numbers, agent: str, wanted: Wanted, moment: AsOf
) -> NDArray[np.bool_] | None:
    """Say which of some documents pass a filter; None if all do."""
    masks: list[NDArray[np.bool_]] = []
    if wanted.chat is not None or agent:
        allowed = [wanted.chat in (None, chat) and agent in ("", owner) for chat, owner in columns.chats]
        masks.append(np.array(allowed, bool).take(columns.chat.take(docs)))
    if wanted.roles is not None:
        allowed = [role in wanted.roles for role, _ in columns.actors]
        masks.append(np.array(allowed, bool).take(columns.actor.take(docs)))
    if wanted.since is not None:
        masks.append(columns.at.take(docs) >= wanted.since)
    if wanted.until is not None:
        masks.append(columns.at.take(docs) < wanted.until)
    if moment.doc < MAX_COUNT:
        masks.append(docs <= moment.doc)
    if moment.until < MAX_COUNT:
        masks.append(columns.at.take(docs) < moment.until)
    return np.logical_and.reduce(masks) if masks else None
