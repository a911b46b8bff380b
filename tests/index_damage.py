"""Damage to a stored index, for the tests that it is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from holdfast import Memory
from holdfast.search import segment as segments
from holdfast.search.segment import Segment
from holdfast.store import segments as stored
from holdfast.store.database import Connection

Damage = Callable[[Connection, str], object]


def damage(memory: Memory, change: Damage) -> None:
    with memory._runtime.database.writing() as tx:
        change(tx, memory.scope.space)


def rows(tx: Connection, space: str) -> list[stored.StoredSegment]:
    found = tx.all(
        "SELECT first, last, version, checksum, body FROM segments WHERE space = :space ORDER BY first",
        space=space,
    )
    return [stored.StoredSegment(*row) for row in found]


def put(tx: Connection, space: str, row: stored.StoredSegment) -> None:
    tx.all("DELETE FROM segments WHERE space = :space AND first = :first", space=space, first=row.first)
    tx.all(
        "INSERT INTO segments (space, source, first, last, version, checksum, body) "
        "VALUES (:space, 'message', :first, :last, :version, :checksum, :body)",
        space=space,
        **row._asdict(),
    )


def in_row(place: int, change: Callable[[stored.StoredSegment], stored.StoredSegment]) -> Damage:
    def apply(tx: Connection, space: str) -> None:
        put(tx, space, change(rows(tx, space)[place]))

    return apply


def flipped(at: int) -> Callable[[stored.StoredSegment], stored.StoredSegment]:
    def change(row: stored.StoredSegment) -> stored.StoredSegment:
        body = bytearray(row.body)
        body[at] ^= 64
        return row._replace(body=bytes(body))

    return change


def forged(change: Callable[[Segment], Segment]) -> Callable[[stored.StoredSegment], stored.StoredSegment]:
    """Change a segment and give it the right checksum."""

    def apply(row: stored.StoredSegment) -> stored.StoredSegment:
        body = change(Segment.decode(row.body)).encode()
        return row._replace(body=body, checksum=segments.checksum(body))

    return apply


def longer(segment: Segment) -> Segment:
    """Let a segment claim documents that the log does not have."""
    more = 1000
    return replace(
        segment,
        words=np.pad(segment.words, (0, more)),
        passages=np.pad(segment.passages, (0, more), constant_values=1),
        output=np.pad(segment.output, (0, more)),
        at=np.pad(segment.at, (0, more)),
        same=np.pad(segment.same, (0, more)),
        chat=np.pad(segment.chat, (0, more)),
        actor=np.pad(segment.actor, (0, more)),
        tells_time=np.pad(segment.tells_time, (0, more)),
    )


def remove(place: int) -> Damage:
    def apply(tx: Connection, space: str) -> None:
        first = rows(tx, space)[place].first
        tx.all("DELETE FROM segments WHERE space = :space AND first = :first", space=space, first=first)

    return apply


def insert(first: int, last: int) -> Damage:
    """Add a row beside the others, with a sound body of other documents."""

    def apply(tx: Connection, space: str) -> None:
        put(tx, space, rows(tx, space)[0]._replace(first=first, last=last))

    return apply
