"""The metadata of messages, records and chats for filters, and a counter of its changes.

Metadata of messages and records changes by erasure only; changes of the metadata of chats are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from holdfast.store.database import decoding
from holdfast.store.schema import DOCUMENTS
from holdfast.text.json_text import load_object

if TYPE_CHECKING:
    from holdfast.store.database import Reader

Labelled = Literal["message", "record"]
# Numbers whose rows are read at once.
_PAGE = 4_096
_OF_CHATS = "SELECT chat, meta FROM sessions WHERE space = :space AND meta IS NOT NULL"
_STATE = "SELECT coalesce(max(epoch), 0), coalesce(max(labels), 0) FROM spaces WHERE space = :space"


class MetadataState(NamedTuple):
    """The epoch of a space, and how often the metadata of its chats changed."""

    epoch: int
    changes: int


def state(db: Reader, space: str) -> MetadataState:
    """Return a state of a space that differs after each change of its metadata."""
    return MetadataState(*db.all(_STATE, space=space)[0])


def of_documents(
    db: Reader, space: str, source: Labelled, after: int, until: int
) -> Iterator[tuple[int, dict[str, object]]]:
    """Iterate over the metadata of the documents after a number up to another one, where they have any.

    Raises:
        Damaged: some cannot be decoded.

    """
    table, column = DOCUMENTS[source]
    # By numbers on both sides, so that an index is used on a database that has no statistics yet.
    sql = f"""
        SELECT {column}, meta FROM {table}
        WHERE space = :space AND {column} > :after AND {column} <= :until AND meta IS NOT NULL
        ORDER BY {column}"""
    while after < until:
        end = min(until, after + _PAGE)
        for number, text in db.all(sql, space=space, after=after, until=end):
            yield number, _decode(text)
        after = end


def of_chats(db: Reader, space: str) -> dict[str, dict[str, object]]:
    """Return the metadata of the chats that have any.

    Raises:
        Damaged: some cannot be decoded.

    """
    return {chat: _decode(text) for chat, text in db.all(_OF_CHATS, space=space)}


def _decode(text: str) -> dict[str, object]:
    with decoding("Metadata"):
        return load_object(text)
