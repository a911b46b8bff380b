"""Upkeep of the table of values of metadata: bringing it up to date, its check, and what it can tell."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.errors import Denied, Unavailable
from holdfast.store.database import retry_transaction
from holdfast.store.meta_encoding import entries
from holdfast.store.meta_values import ADD, LABELLED, clear_in, find, metadata, named, state
from holdfast.store.segments import index_state
from holdfast.types import MAX_COUNT
from holdfast.types.where import Condition, conditions

if TYPE_CHECKING:
    import logging

    from holdfast.store.database import Database, Reader
    from holdfast.store.meta_values import Labelled
    from holdfast.types.where import Where

# Documents that are looked at one by one before the table is brought up to date, and rows of a transaction.
NEAR, _PAGE = 256, 4_096
_SET_DONE = """
    INSERT INTO meta_keys (space, source, key, done) VALUES (:space, :source, :key, :done)
    ON CONFLICT (space, source, key) DO UPDATE SET done = excluded.done"""
_KEYS = "SELECT DISTINCT source, key FROM meta_values WHERE space = :space"
_ALL_OF_KEY = """
    SELECT encoded, number, chat FROM meta_values
    WHERE space = :space AND source = :source AND key = :key"""


def candidates(db: Reader, space: str, source: Labelled, where: Where) -> set[int | str] | None:
    """Return documents, or chats, among which are all that pass a filter; None if the table does not tell.

    They are those that have values which pass, and those that were stored since the table was brought up to
    date.
    """
    if isinstance(where, Condition):
        return _candidates_of(db, space, source, where)
    if where.join == "not":
        return None
    parts = [candidates(db, space, source, part) for part in where.parts]
    known = [part for part in parts if part is not None]
    if where.join == "or":
        return set[int | str]().union(*known) if len(known) == len(parts) else None
    return set.intersection(*known) if known else None


def _candidates_of(db: Reader, space: str, source: Labelled, condition: Condition) -> set[int | str] | None:
    done = state(db, space).done.get((source, condition.key))
    if done is None or condition.negated or condition.holds_if_missing:
        return None
    found = find(db, space, source, condition)
    if found is None:
        return None
    newer = () if source == "chat" else metadata(db, space, source, done, _newest(db, space, source))
    return found.sure | found.unsure | {name for name, _ in newer}


def _newest(db: Reader, space: str, source: Labelled) -> int:
    return int(getattr(index_state(db, space), source))


def is_behind(db: Reader, space: str, source: Labelled, keys: Collection[str]) -> bool:
    """Return whether enough was stored since the table was brought up to date for some keys."""
    if not keys:
        return False
    done = state(db, space).done
    if source == "chat":
        return any((source, key) not in done for key in keys)
    newest = _newest(db, space, source)
    return any(newest - done.get((source, key), 0) > NEAR for key in keys)


def catch_up(
    db: Database, space: str, sources: Iterable[str], where: Where, declared: Collection[str]
) -> None:
    """Note the values of the declared keys of a filter, a page of rows in each transaction.

    Of messages those of their chats count as well. Where the space cannot be written, what is not noted is
    read row by row.
    """
    keys = {one.key for one in conditions(where)}.intersection(declared)
    wanted = {*sources, *(["chat"] if "message" in sources else [])}
    try:
        for source in LABELLED:
            while source in wanted and is_behind(db, space, source, keys):
                _add_page(db, space, source, sorted(keys))
    except (Denied, Unavailable) as error:
        # Whether this user may read, the read that follows decides.
        _logger().info("The metadata of space %r could not be indexed: %s", space, error)


@retry_transaction
def _add_page(db: Database, space: str, source: Labelled, keys: Sequence[str]) -> None:
    # What is erased meanwhile cannot come back: the rows are read in the transaction that notes their values.
    with db.writing_to(space) as tx:
        done = {key: state(tx, space).done.get((source, key), 0) for key in keys}
        if source == "chat":
            after, until = 0, 1
            behind = [key for key in keys if not done[key]]
        else:
            after = min(done.values())
            until = min(after + _PAGE, _newest(tx, space, source))
            behind = [key for key in keys if done[key] < until]
        found = [
            {"space": space, "source": source, "key": key, "encoded": encoded, **named(name)}
            for name, values in metadata(tx, space, source, after, until)
            for key in behind
            if isinstance(name, str) or name > done[key]
            for encoded in entries(key, values)
        ]
        tx.many(ADD, found)
        tx.many(_SET_DONE, [{"space": space, "source": source, "key": key, "done": until} for key in behind])


@retry_transaction
def clear(db: Database, space: str) -> None:
    """Delete all values of a space: they are noted anew when they are needed."""
    with db.writing_to(space) as tx:
        clear_in(tx, space)


def check(db: Reader, space: str) -> Iterator[tuple[str, int, int]]:
    """Yield for each key: what it is of, how many values are noted, and how many differ from the metadata."""
    done = state(db, space).done
    there = {*done, *db.all(_KEYS, space=space)}
    for source in LABELLED:
        for key in sorted(key for of, key in there if of == source):
            noted = {tuple(row) for row in db.all(_ALL_OF_KEY, space=space, source=source, key=key)}
            until = (
                MAX_COUNT if source == "chat" else min(done.get((source, key), 0), _newest(db, space, source))
            )
            true = {
                (encoded, *named(name).values())
                for name, values in metadata(db, space, source, 0, until)
                for encoded in entries(key, values)
            }
            yield f"{key!r} of {source}s", len(noted), len(noted ^ true)


def _logger() -> logging.Logger:
    # Few have something to tell.
    import logging

    return logging.getLogger("holdfast")
