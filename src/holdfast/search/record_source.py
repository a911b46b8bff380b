"""Find records: score those that are alive at a version, and read the best until enough are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.search import rank
from holdfast.search.columns import Versions
from holdfast.search.filters import Wanted
from holdfast.search.postings import Sought
from holdfast.search.query import Question
from holdfast.store import records
from holdfast.types import Record

if TYPE_CHECKING:
    from holdfast.store.database import Database

_PAGE = 64  # records read at once, at most


def visible(columns: Versions, agent: str, version: int, *, common: bool = True) -> NDArray[np.bool_]:
    """Say which versions are alive and an agent's, to an empty one all; with `common`, those of none are everybody's."""
    alive = columns.alive(version)
    if agent and columns.chats:
        allowed = np.fromiter(
            (owner == agent or (common and not owner) for _, owner in columns.chats), bool, len(columns.chats)
        )
        alive &= allowed.take(columns.chat[: columns.last + 1])
    return alive


def ranked(db: Database, space: str, columns: Versions, scores: rank.Scores, wanted: Wanted) -> rank.Numbers:
    """Order the places of the scores, the best first, by what can be known of the filters without reading records."""
    shares = scores.total / scores.ceiling
    at = columns.at.take(scores.docs)
    if wanted.kinds is not None:
        allowed = np.array([kind in wanted.kinds for kind, _ in columns.actors], bool)
        shares *= allowed.take(columns.actor.take(scores.docs))
    if wanted.tags is not None:
        shares *= np.isin(scores.docs, records.versions_with_tags(db, space, sorted(wanted.tags)))
    if wanted.since is not None:
        shares *= at >= wanted.since
    if wanted.until is not None:
        shares *= at < wanted.until
    places = np.flatnonzero((shares > 0) & (shares >= wanted.min_score))
    return places[np.argsort(-shares[places], kind="stable")]


def read(
    db: Database, space: str, scores: rank.Scores, places: rank.Numbers, wanted: Wanted
) -> Iterator[tuple[int, Record]]:
    """Read the records at some places of the scores, in order, and keep those that are wanted, up to the limit."""
    left, size, places = wanted.limit, min(wanted.limit, _PAGE), places[: wanted.looked]
    for start in range(0, len(places), size):
        part = [int(place) for place in places[start : start + size]]
        found = records.by_versions(db, space, [int(scores.docs[place]) for place in part])
        for place in part:
            record = found.get(int(scores.docs[place]))
            if record is not None and _passes(record, wanted):
                yield place, record
                left -= 1
                if left <= 0:
                    return


def _passes(record: Record, wanted: Wanted) -> bool:
    return (
        not record.retracted
        and record.trust != "quarantined"
        and (wanted.tags is None or not wanted.tags.isdisjoint(record.tags))
        and (wanted.chat is None or record.chat == wanted.chat)
        and wanted.target in (None, record.target)
        and (wanted.agents is None or record.agent in wanted.agents)
        and (wanted.valid_at is None or record.valid(wanted.valid_at))
    )


def matching(
    columns: Versions,
    asked: Question,
    sought: Sequence[Sought],
    alive: NDArray[np.bool_],
    weights: rank.Weights,
) -> rank.Scores:
    """Score the records that are alive for the terms of a question."""
    focus = rank.Focus(asks_time=asked.asks_time)
    return rank.score_alone([one.term for one in sought], columns, alive, focus, weights)
