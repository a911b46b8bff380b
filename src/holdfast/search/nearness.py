"""Hits of several spaces as one list: a nearer one counts a little more, and what two have is there once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.types import Hit, Why
from holdfast.types.messages import flags_like

if TYPE_CHECKING:
    from holdfast.search.filters import Filters
    from holdfast.types import Scope

# The share of a score that nearness may add: it decides between hits that are about equally good, and a
# clearly better one of a distant space still comes first. Of the first space all of it, of the next ones a
# half, a third and so on, so that a space beside others changes nothing in those before it.
SHARE = 0.05


class Scored(Protocol):
    """A hit, or what may become one."""

    @property
    def score(self) -> float:
        """How likely it answers, 0 to 1."""


F = TypeVar("F", bound=Scored)


def weight(place: int) -> float:
    """Return by what the scores of a space are multiplied: the first, at place 0, keeps them."""
    return 1 - SHARE + SHARE / (1 + place)


def joined(
    scope: Scope, spaces: Sequence[str], filters: Filters, find: Callable[[str, Filters], Iterable[F]]
) -> list[tuple[F, int]]:
    """Return what is found in spaces, nearest first, as one list, best first, with the place of its space.

    Of records of one kind and text, that of the nearest space stays.
    """
    if not scope.is_layered:
        every = [(one, place) for place, space in enumerate(spaces) for one in find(space, filters)]
        return sorted(every, key=lambda one: -one[0].score)[: filters.limit]
    found: list[tuple[float, F, int]] = []
    known: set[tuple[str, str] | None] = set()
    least = filters.min_score
    for place, space in enumerate(spaces):
        factor = weight(place)
        # As many more as may be dropped again, but none that could not be among the best.
        wanted = replace(filters, limit=filters.limit + len(known), min_score=min(1.0, least / factor))
        there = [one for one in find(space, wanted) if _text(one) not in known]
        known |= {key for one in there if (key := _text(one))}
        found += ((one.score * factor, one, place) for one in there)
        found.sort(key=lambda one: -one[0])
        del found[filters.limit :]
        if filters.limit and len(found) == filters.limit:
            least = max(least, found[-1][0])
    return [(one, place) for _, one, place in found]


def _text(found: Scored) -> tuple[str, str] | None:
    """Return what makes two records one."""
    if not isinstance(found, Hit) or found.source != "record":
        return None
    return found.kind, " ".join(found.text.split()).casefold()


def labelled(hit: Hit, scope: Scope, spaces: Sequence[str], place: int) -> Hit:
    """Return a hit with the name of its space and, where several are read, its score by nearness.

    What a message is flagged with is found when it is read.
    """
    label, flags = scope.reference(spaces[place]), flags_like(hit)
    if not scope.is_layered:
        return replace(hit, space=label, flags=flags)
    factor = weight(place)
    shares = {name: share * (1 - SHARE) / factor for name, share in hit.why.items()}
    why = Why({**shares, "nearness": SHARE / (1 + place) / factor}, hit.why.words)
    return replace(hit, space=label, score=hit.score * factor, why=why, flags=flags)
