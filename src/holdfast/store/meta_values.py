"""Values of metadata under declared keys: a derived table, made when a filter first needs it.

An append writes nothing here. What was stored since the table was last brought up to date is read row by row;
the metadata of chats, which change, are noted here with each change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from holdfast.store.database import batched, decoding, one_of
from holdfast.store.meta_encoding import Ranges, entries, ranges_of
from holdfast.text.json_text import load_object
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Reader, Row, Value
    from holdfast.types.where import Condition

Labelled = Literal["message", "record", "chat"]
LABELLED: tuple[Labelled, ...] = ("message", "record", "chat")
# Rows read at once.
_PAGE = 4_096
_ROWS: Mapping[Labelled, str] = {
    "message": """
        SELECT doc, '' AS chat, meta FROM messages
        WHERE space = :space AND doc > :after AND doc <= :until AND meta IS NOT NULL ORDER BY doc""",
    "record": """
        SELECT version, '' AS chat, meta FROM records
        WHERE space = :space AND version > :after AND version <= :until AND meta IS NOT NULL
        ORDER BY version""",
    "chat": "SELECT 0, chat, meta FROM sessions WHERE space = :space AND meta IS NOT NULL ORDER BY chat",
}
_NUMBERED: Mapping[Labelled, tuple[str, str]] = {
    "message": ("doc", "SELECT doc, meta FROM messages WHERE space = :space AND meta IS NOT NULL AND "),
    "record": ("version", "SELECT version, meta FROM records WHERE space = :space AND meta IS NOT NULL AND "),
}
_STATE = """
    SELECT source, key, done, (SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space)
    FROM meta_keys WHERE space = :space UNION ALL
    SELECT '', '', 0, (SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space)"""
_COUNT_CHANGE = """
    INSERT INTO meta_keys (space, source, key, done) VALUES (:space, 'chat', '', 1)
    ON CONFLICT (space, source, key) DO UPDATE SET done = meta_keys.done + 1"""
_CHAT_KEYS = "SELECT key FROM meta_keys WHERE space = :space AND source = 'chat' AND key <> ''"
ADD = """
    INSERT INTO meta_values (space, source, key, encoded, number, chat)
    VALUES (:space, :source, :key, :encoded, :number, :chat)
    ON CONFLICT (space, source, key, encoded, number, chat) DO NOTHING"""
_REMOVE = """
    DELETE FROM meta_values WHERE space = :space AND source = :source AND key = :key AND encoded = :encoded
    AND number = :number AND chat = :chat"""
_FIND = "SELECT number, chat FROM meta_values WHERE space = :space AND source = :source AND key = :key AND "
_METADATA_OF_CHATS = "SELECT chat, meta FROM sessions WHERE space = :space AND meta IS NOT NULL AND "


class MetaState(NamedTuple):
    """The epoch of a space, how often metadata of its chats changed, and up to where each key is done."""

    epoch: int
    changes: int
    done: Mapping[tuple[str, str], int]


class NotedValues(NamedTuple):
    """The documents or chats that the table has for a condition, and those whose own metadata decide."""

    sure: set[int | str]
    unsure: set[int | str]


def state(db: Reader, space: str) -> MetaState:
    """Return what is known of the metadata of a space."""
    rows = db.all(_STATE, space=space)
    done = {(source, key): int(upto) for source, key, upto, _ in rows if source}
    return MetaState(int(rows[0][3]), done.pop(("chat", ""), 0), done)


def metadata(
    db: Reader, space: str, source: Labelled, after: int = 0, until: int = MAX_COUNT
) -> Iterator[tuple[int | str, dict[str, object]]]:
    """Iterate over the metadata of the documents after a number up to another one, or of all chats.

    Each is named by its number, a chat by its id; what has no metadata is left out.

    Raises:
        Damaged: some cannot be decoded.

    """
    while after < until:
        # By numbers on both sides, so that an index is used on a database that has no statistics yet.
        end = until if source == "chat" else min(until, after + _PAGE)
        span = {} if source == "chat" else {"after": after, "until": end}
        for number, chat, text in db.all(_ROWS[source], space=space, **span):
            yield number or chat, _decoded(text)
        after = end


def metadata_of(
    db: Reader, space: str, source: Labelled, names: Iterable[int | str]
) -> Iterator[tuple[int | str, dict[str, object]]]:
    """Iterate over the metadata of some documents, by their numbers, or of some chats."""
    column, statement = ("chat", _METADATA_OF_CHATS) if source == "chat" else _NUMBERED[source]
    some = sorted(names, key=str)
    for part in batched(some):
        condition, values = one_of(column, part)
        for name, text in db.all(statement + condition, space=space, **values):
            yield name, _decoded(text)


def _decoded(text: str) -> dict[str, object]:
    with decoding("Metadata"):
        return load_object(text)


def find(
    db: Reader, space: str, source: Labelled, condition: Condition, after: int = 0, until: int = MAX_COUNT
) -> NotedValues | None:
    """Return for which documents or chats a test holds, `negated` aside; None if values do not tell."""
    ranges = ranges_of(condition)
    if ranges is None:
        return None
    keys: dict[str, Value] = {"space": space, "source": source, "key": condition.key}
    keys |= {"after": after if source != "chat" else -1, "until": until}
    sure = {number or chat for number, chat in _in_ranges(db, ranges._replace(unsure=()), keys)}
    unsure = {number or chat for number, chat in _in_ranges(db, Ranges(ranges.unsure, None), keys)}
    return NotedValues(sure, unsure - sure)


def _in_ranges(db: Reader, ranges: Ranges, keys: dict[str, Value]) -> Iterator[Row]:
    numbers = " AND number > :after AND number <= :until"
    for part in batched(ranges.single):
        condition, values = one_of("encoded", part)
        yield from db.all(_FIND + condition + numbers, **keys, **values)
    if ranges.span:
        first, last = ranges.span
        span = "encoded >= :first AND encoded < :last"
        yield from db.all(_FIND + span + numbers, **keys, first=first, last=last)


def named(name: int | str) -> dict[str, Value]:
    """Return the columns that name a document, by its number, or a chat, by its id."""
    return {"number": 0, "chat": name} if isinstance(name, str) else {"number": name, "chat": ""}


def note_change(
    tx: Connection, space: str, chat: str, before: Mapping[str, object], after: Mapping[str, object]
) -> None:
    """Note a change of the metadata of a chat, in the transaction that stores it."""
    tx.all(_COUNT_CHANGE, space=space)
    for (key,) in tx.all(_CHAT_KEYS, space=space):
        keys = {"space": space, "source": "chat", "key": key, **named(chat)}
        old, new = set(entries(key, before)), set(entries(key, after))
        tx.many(_REMOVE, [{**keys, "encoded": encoded} for encoded in old - new])
        tx.many(ADD, [{**keys, "encoded": encoded} for encoded in new - old])


def clear_in(tx: Connection, space: str) -> None:
    """Delete all values of a space, within a transaction that has locked it: they are noted anew when needed.

    So an erased value stands nowhere.
    """
    tx.all("DELETE FROM meta_values WHERE space = :space", space=space)
    tx.all("DELETE FROM meta_keys WHERE space = :space AND key <> ''", space=space)
    tx.all(_COUNT_CHANGE, space=space)
