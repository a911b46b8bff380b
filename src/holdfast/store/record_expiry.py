"""Records that the rule of a kind lets expire: current and not pinned, and said or used long enough ago.

A version that brought a record back, or ended its pin, counts as said when it was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.store.database import one_of
from holdfast.store.records import IS_PINNED
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.kinds import Kind
    from holdfast.store.database import Reader, Value

# What was retracted keeps its words until it is erased, unless it went into a record that has them still.
_IS_THERE = "(retracted = 0 OR (:erases = 1 AND (meta IS NULL OR meta NOT LIKE '%\"into\":%')))"
_AGES = f"""
    SELECT version, coalesce((SELECT u.last FROM uses u WHERE u.space = :space AND u.id = r.id), 0) AS used,
        CASE WHEN created > at AND action IN ('undo', 'rollback', 'release', 'unpin')
            THEN created ELSE at END AS said
    FROM records r WHERE r.space = :space AND kind = :kind AND ended = :open AND run = '' AND {_IS_THERE}
        AND (flags IS NULL OR NOT {IS_PINNED})"""
_LAST = "CASE WHEN used > said THEN used ELSE said END"


class Expiring(NamedTuple):
    """A version that a rule lets expire, and when it was said, and said or used, last."""

    version: int
    said: int
    last: int


def expiring(
    db: Reader,
    space: str,
    kind: Kind,
    agents: Sequence[str] | None,
    now: int,
    among: Sequence[int] | None = None,
) -> list[Expiring]:
    """Return the versions of a kind that are due, the oldest first; or only those `among` some."""
    ages, values = _ages(kind, agents)
    condition, chosen = ("1 = 1", {}) if among is None else one_of("version", among)
    sql = f"""
        SELECT version, said, {_LAST} FROM ({ages}) AS aged
        WHERE (said <= :said OR {_LAST} <= :used) AND {condition} ORDER BY version"""
    said, used = (now - kept if kept else -MAX_COUNT for kept in kind.lifetimes)
    return [Expiring(*row) for row in db.all(sql, space=space, said=said, used=used, **values, **chosen)]


def next_due(db: Reader, space: str, kind: Kind, agents: Sequence[str] | None) -> int | None:
    """Return when the first record of a kind is due, None for never."""
    ages, values = _ages(kind, agents)
    firsts = db.all(f"SELECT min(said), min({_LAST}) FROM ({ages}) AS aged", space=space, **values)[0]
    times = zip(firsts, kind.lifetimes, strict=True)
    return min((first + kept for first, kept in times if first is not None and kept), default=None)


def _ages(kind: Kind, agents: Sequence[str] | None) -> tuple[str, dict[str, Value]]:
    values: dict[str, Value] = {"kind": kind.name, "open": MAX_COUNT, "erases": int(kind.erase_expired)}
    condition, names = ("1 = 1", {}) if agents is None else one_of("agent", agents)
    return f"{_AGES} AND {condition}", values | names
