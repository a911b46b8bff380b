"""The metadata of messages, records and chats for filters, and a counter of its changes.

Metadata of messages and records changes by erasure only; changes of the metadata of chats are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from holdfast.store.database import decoding
from holdfast.text.json_text import load_object

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Reader

Labelled = Literal["message", "record"]
# Numbers whose rows are read at once.
_PAGE = 4_096
_ROWS: Mapping[Labelled, str] = {
    "message": """
        SELECT doc, meta FROM messages
        WHERE space = :space AND doc > :after AND doc <= :until AND meta IS NOT NULL ORDER BY doc""",
    "record": """
        SELECT version, meta FROM records
        WHERE space = :space AND version > :after AND version <= :until AND meta IS NOT NULL
        ORDER BY version""",
}
_OF_CHATS = "SELECT chat, meta FROM sessions WHERE space = :space AND meta IS NOT NULL"
_STATE = "SELECT coalesce(max(epoch), 0), coalesce(max(labels), 0) FROM spaces WHERE space = :space"
_COUNT_CHANGE = """
    INSERT INTO spaces (space, epoch, labels) VALUES (:space, 0, 1)
    ON CONFLICT (space) DO UPDATE SET labels = spaces.labels + 1"""


class MetadataState(NamedTuple):
    """The epoch of a space, and how often the metadata of its chats changed."""

    epoch: int
    changes: int


def state(db: Reader, space: str) -> MetadataState:
    """Return a state of a space that differs after each change of its metadata."""
    return MetadataState(*db.all(_STATE, space=space)[0])


def count_change(tx: Connection, space: str) -> None:
    """Count a change of the metadata of chats, in the transaction that stores it."""
    tx.all(_COUNT_CHANGE, space=space)


def of_documents(
    db: Reader, space: str, source: Labelled, after: int, until: int
) -> Iterator[tuple[int, dict[str, object]]]:
    """Iterate over the metadata of the documents after a number up to another one, where they have any.

    Raises:
        Damaged: some cannot be decoded.

    """
    while after < until:
        # By numbers on both sides, so that an index is used on a database that has no statistics yet.
        end = min(until, after + _PAGE)
        for number, text in db.all(_ROWS[source], space=space, after=after, until=end):
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
