"""Find summaries: weigh what they score against turns, and read the best until enough are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.search import rank
from holdfast.search.filters import Wanted
from holdfast.store import summaries
from holdfast.store.message_rows import to_micros
from holdfast.types import Summary

if TYPE_CHECKING:
    from holdfast.store.database import Database

_PAGE = 8  # summaries read at once: each is a page of text


def weighed(scores: rank.Scores, weights: rank.Weights) -> rank.Scores:
    """Let a summary count for less than a turn that says the same: it says much else, and the turn says it first hand."""
    return replace(scores, ceiling=scores.ceiling / weights.summary)


def read(
    db: Database, space: str, scores: rank.Scores, places: rank.Numbers, wanted: Wanted
) -> Iterator[tuple[int, Summary]]:
    """Read the summaries at some places of the scores, in order, and keep those that are wanted, up to the limit."""
    left = wanted.limit
    for start in range(0, len(places), _PAGE):
        part = [int(place) for place in places[start : start + _PAGE]]
        found = summaries.by_numbers(db, space, [int(scores.docs[place]) for place in part])
        for place in part:
            summary = found.get(int(scores.docs[place]))
            if summary is not None and _passes(summary, wanted):
                yield place, summary
                left -= 1
                if left <= 0:
                    return


def _passes(summary: Summary, wanted: Wanted) -> bool:
    """Check what the columns do not hold: they have the time of the last message, and that of the first counts as well."""
    return wanted.since is None or to_micros(summary.since) >= wanted.since
