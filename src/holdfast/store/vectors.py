"""Vectors of messages, records and summaries, and the progress of each embedder in a space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from holdfast.store.database import batched, one_of
from holdfast.store.schema import DOCUMENTS
from holdfast.store.table_rows import insertion, put
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Reader, Row
    from holdfast.store.segments import IndexState
    from holdfast.types import Source

_SETS = """
    SELECT model, dimension, begun, message, record, summary FROM vector_sets
    WHERE space = :space ORDER BY begun, model"""
_LEARN_DIMENSION = "UPDATE vector_sets SET dimension = :dimension WHERE space = :space AND model = :model"
_ADVANCE = "UPDATE vector_sets SET {source} = :until WHERE space = :space AND model = :model"
_ADD = insertion("vectors", ("space", "model", "source", "number", "body"))
_OF_SOURCE = "FROM vectors WHERE space = :space AND model = :model AND source = :source"
_READ = f"SELECT number, body {_OF_SOURCE} AND number > :after AND number <= :until ORDER BY number"
_ERASE_FROM = f"DELETE {_OF_SOURCE} AND number >= :number"
# Of documents that can be found now, which are not replaced.
_IS_FINDABLE = {"record": "AND retracted = 0 AND trust <> 'quarantined'", "summary": ""}
# Vectors of documents that are not there, and those of no set.
_ORPHANS = " UNION ALL ".join(
    f"""SELECT model, source, number FROM vectors v
    WHERE space = :space AND source = '{source}' AND NOT EXISTS (
        SELECT 1 FROM {table} d WHERE d.space = :space AND d.{column} = v.number)"""
    for source, (table, column) in DOCUMENTS.items()
)
_SIZES = """
    SELECT v.model, v.source, v.number, s.dimension
    FROM vectors v LEFT JOIN vector_sets s ON s.space = v.space AND s.model = v.model
    WHERE v.space = :space AND (s.model IS NULL OR length(v.body) <> 2 * s.dimension)"""


class VectorSet(NamedTuple):
    """The vectors of an embedder: their dimension, and the newest embedded document of each source."""

    model: str
    dimension: int
    begun: int
    message: int
    record: int
    summary: int

    def done(self, source: Source) -> int:
        """Return the number of the newest document of a source that was embedded."""
        return int(getattr(self, source))

    def is_complete(self, state: IndexState) -> bool:
        """Return whether all documents of a space were embedded."""
        return all(self.done(source) >= getattr(state, source) for source in DOCUMENTS)


def sets(db: Reader, space: str) -> list[VectorSet]:
    """Return the sets of vectors of a space, in the order in which they were begun."""
    return [VectorSet(*row) for row in db.all(_SETS, space=space)]


def set_of(db: Reader, space: str, model: str) -> VectorSet:
    """Return the set of an embedder; an empty one before its first vector."""
    matches = (vector_set for vector_set in sets(db, space) if vector_set.model == model)
    return next(matches, VectorSet(model, 0, 0, 0, 0, 0))


def read(db: Reader, space: str, model: str, source: Source, after: int, until: int = MAX_COUNT) -> list[Row]:
    """Return number and body of the vectors of documents after a number up to another one, in order."""
    return db.all(_READ, space=space, model=model, source=source, after=after, until=until)


def by_numbers(db: Reader, space: str, model: str, source: Source, numbers: Sequence[int]) -> list[Row]:
    """Return number and body of the vectors of some documents."""
    condition, values = one_of("number", numbers)
    return db.all(
        f"SELECT number, body {_OF_SOURCE} AND {condition}", space=space, model=model, source=source, **values
    )


def findable(
    db: Reader, space: str, source: Literal["record", "summary"], after: int, until: int, limit: int
) -> list[Row]:
    """Return number and text of the first records or summaries after a number that can be found now."""
    table, number = DOCUMENTS[source]
    sql = f"""
        SELECT {number}, text FROM {table}
        WHERE space = :space AND {number} > :after AND {number} <= :until AND ended = {MAX_COUNT}
        {_IS_FINDABLE[source]} ORDER BY {number} LIMIT :limit"""
    return db.all(sql, space=space, after=after, until=until, limit=limit)


def add(
    tx: Connection,
    space: str,
    model: str,
    source: Source,
    span: tuple[int, int],
    bodies: Iterable[tuple[int, bytes]],
    *,
    dimension: int,
    now: int,
) -> bool:
    """Store the vectors of the documents in a span; `tx` has locked the space.

    Nothing is stored, and False returned, unless the set ends exactly where the span begins: another worker
    was faster, or the embedder has changed its dimension, and the set begins anew.
    """
    keys = {"space": space, "model": model}
    stored = set_of(tx, space, model)
    if not stored.begun or (dimension and stored.dimension not in (0, dimension)):
        tx.all("DELETE FROM vectors WHERE space = :space AND model = :model", **keys)
        stored = VectorSet(model, dimension, now, 0, 0, 0)
        put(tx, "vector_sets", {"space": space, **stored._asdict()})
    elif dimension and not stored.dimension:
        tx.all(_LEARN_DIMENSION, dimension=dimension, **keys)
    after, until = span
    if stored.done(source) != after:
        return False
    tx.many(_ADD, [{**keys, "source": source, "number": number, "body": body} for number, body in bodies])
    tx.all(_ADVANCE.format(source=source), until=until, **keys)
    return True


def drop_others(tx: Connection, space: str, model: str) -> list[str]:
    """Delete the sets of all other models, and return the names of those."""
    others = [vector_set.model for vector_set in sets(tx, space) if vector_set.model != model]
    for other in others:
        tx.all("DELETE FROM vectors WHERE space = :space AND model = :model", space=space, model=other)
        tx.all("DELETE FROM vector_sets WHERE space = :space AND model = :model", space=space, model=other)
    return others


def erase(tx: Connection, space: str, source: Source, numbers: Iterable[int]) -> list[Row]:
    """Delete the vectors of some documents, of all models, and return the number of each."""
    named, erased = list(numbers), []
    for vector_set in sets(tx, space):
        keys = {"space": space, "model": vector_set.model, "source": source}
        for some in batched(named):
            condition, values = one_of("number", some)
            erased += tx.all(f"DELETE {_OF_SOURCE} AND {condition} RETURNING number", **keys, **values)
    return erased


def bring_back(tx: Connection, space: str, source: Source, numbers: Sequence[int]) -> None:
    """Let documents without vectors be embedded that can be found again.

    Embedding follows the order of numbers, so all documents after the first of them are embedded again.
    """
    for vector_set in sets(tx, space):
        there = {number for number, _ in by_numbers(tx, space, vector_set.model, source, numbers)}
        lacking = [number for number in numbers if number <= vector_set.done(source) and number not in there]
        if lacking:
            keys = {"space": space, "model": vector_set.model}
            tx.all(_ERASE_FROM, source=source, number=min(lacking), **keys)
            tx.all(_ADVANCE.format(source=source), until=min(lacking) - 1, **keys)


def count(db: Reader, space: str) -> int:
    """Return the number of the vectors of a space."""
    return int(db.all("SELECT count(*) FROM vectors WHERE space = :space", space=space)[0][0])


def orphans(db: Reader, space: str) -> list[Row]:
    """Return model, source and number of the vectors of missing documents."""
    return db.all(_ORPHANS, space=space)


def misshapen(db: Reader, space: str) -> list[Row]:
    """Return model, source, number and dimension of the vectors of no set, or of another size."""
    return db.all(_SIZES, space=space)


def remove_orphans(tx: Connection, space: str) -> int:
    """Delete the vectors of missing documents, and return their number."""
    rows = orphans(tx, space)
    tx.many(
        f"DELETE {_OF_SOURCE} AND number = :number",
        [{"space": space, "model": model, "source": source, "number": doc} for model, source, doc in rows],
    )
    return len(rows)
