"""Hits of several spaces as one list: those of nearer spaces score higher, and duplicates are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from holdfast.types import Hit, Scope, Why
from holdfast.types.messages import changed

if TYPE_CHECKING:
    from holdfast.search.filters import Filters
    from holdfast.search.message_source import RankedMessage

# The share of a score that nearness may add: it decides between hits of about equal scores, and a clearly
# better one of a distant space still comes first. The first space gets all of it, the next ones a half, a
# third and so on, so that a further space changes nothing in those before it.
SHARE = 0.05


F = TypeVar("F", bound="Hit | RankedMessage")


def weight(place: int) -> float:
    """Return the factor for the scores of a space, 1 for the first one at place 0."""
    return 1 - SHARE + SHARE / (1 + place)


def joined(
    scope: Scope, spaces: Sequence[str], filters: Filters, find: Callable[[str, int, float], Iterable[F]]
) -> list[tuple[F, int]]:
    """Return the hits of spaces, nearest first, as one list, best first, each with the place of its space.

    `find` is given a space, the most hits and the least score. In layers, of records with the same kind and
    text that of the nearest space stays.
    """
    best: list[tuple[float, F, int]] = []
    known: set[tuple[str, str] | None] = set()
    least = filters.min_score
    for place, space in enumerate(spaces):
        factor = weight(place) if scope.is_layered else 1.0
        # As many more as may be dropped again, but none that could not be among the best.
        found = find(space, filters.limit + len(known), min(1.0, least / factor))
        hits = [hit for hit in found if _text(hit) not in known]
        known |= {key for hit in hits if scope.is_layered and (key := _text(hit))}
        best += ((hit.score * factor, hit, place) for hit in hits)
        best.sort(key=lambda entry: -entry[0])
        del best[filters.limit :]
        if filters.limit and len(best) == filters.limit:
            least = max(least, best[-1][0])
    return [(hit, place) for _, hit, place in best]


def _text(hit: object) -> tuple[str, str] | None:
    """Return the key by which two records are duplicates; None for other hits."""
    if not isinstance(hit, Hit) or hit.source != "record":
        return None
    return hit.kind, " ".join(hit.text.split()).casefold()


def labelled(hit: Hit, scope: Scope, label: str, place: int) -> Hit:
    """Return a hit with the name of its space and, if several are read, its score by nearness."""
    if not scope.is_layered:
        return hit if hit.space == label else changed(hit, space=label)
    factor = weight(place)
    shares = {name: share * (1 - SHARE) / factor for name, share in hit.why.items()}
    why = Why({**shares, "nearness": SHARE / (1 + place) / factor}, hit.why.words)
    return changed(hit, space=label, score=hit.score * factor, why=why)
