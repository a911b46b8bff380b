"""Saving what can be read of a damaged SQLite file into a new database."""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import Damaged
from holdfast.store.atomic_file import new_file
from holdfast.store.checksums import seal
from holdfast.store.database import open_database
from holdfast.store.erasure_receipts import FILE
from holdfast.store.log import call_key
from holdfast.store.space_rows import put
from holdfast.store.sqlite_pages import Cell, Found, Lost, Pages
from holdfast.store.tables import Column, Table, tables
from holdfast.text.references import write_reference
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database

_Row = dict[str, Any]
_DERIVED = (
    "segments",
    "calls",
    "imports",
)  # made again: an index by the next recall, the calls from the messages that made them, imports by the next one
_SAID = (
    "agent",
    "title",
    "archived",
    "born",
    "created",
    "channel",
    "meta",
    "checksum",
)  # of a session, not counted
_NAMED = 50  # pages, and chats, that are named one by one


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was saved, by table, and what was lost, in sentences."""

    rows: Mapping[str, int]
    lost: tuple[str, ...]


def salvage(damaged: Path, new: Path) -> Salvaged:
    """Write every row that can be read into a new database, and list what cannot; the damaged file is only read.

    What is in doubt keeps the checksum that it came with, so that `verify` names it. Killed in the middle, it leaves
    nothing of the new name, and begins anew the next time.

    Raises:
        InvalidInput: there is something at the path of the new one.
        Unavailable: it cannot be written.
        Damaged: nothing of it can be read.

    """
    with new_file(new.absolute()) as draft:
        saving = _Saving(Pages(damaged))
        draft.unlink()
        database = open_database(str(draft))
        try:
            saving.into(database)
        finally:
            database.close()
    return Salvaged(dict(saving.saved), tuple(saving.lost))


class _Saving:
    """The rows of a damaged file, and what is known to be missing among them."""

    def __init__(self, pages: Pages) -> None:
        self.saved: Counter[str] = Counter()
        self.lost: list[str] = []
        self._found: dict[str, dict[tuple[Any, ...], _Row]] = {name: {} for name in tables()}
        places: list[Lost] = []
        for one in pages.rows():
            if isinstance(one, Lost):
                places.append(one)
            elif (matched := _match(one)) is not None:
                table, row = matched
                key = tuple(row[name] for name in ("space", *table.key))
                self._found[table.name].setdefault(key, row)
        if not any(self._found.values()):
            raise Damaged("No row of Holdfast can be read in it.", "Check the path, or restore a backup.")
        if not pages.has_head:
            self.lost.append("the beginning of the file")
        if pages.unused() is None:
            self.lost.append("the list of unused pages: what was deleted lately may be among what was saved")
        self.lost += [f"page {place.page}: {place.why}" for place in places[:_NAMED]]
        if len(places) > _NAMED:
            self.lost.append(f"{len(places) - _NAMED} more pages or rows of pages")

    def into(self, database: Database) -> None:
        """Write the rows, and let what counts them count what is there."""
        with database.writing() as tx:
            for name, rows in self._found.items():
                if name not in _DERIVED:
                    for row in rows.values():
                        self.saved[name] += put(tx, name, row)
            by_space = defaultdict[str, list[_Row]](list)
            for row in self._found["messages"].values():
                by_space[row["space"]].append(row)
            named = {row["space"] for rows in self._found.values() for row in rows.values()}
            for space in sorted(named - {"*"}):
                self._mend(tx, space, by_space[space])

    def _mend(self, tx: Connection, space: str, messages: list[_Row]) -> None:
        """Let the sessions of a space and its numbers fit what is there; a receipt says which numbers are not."""
        chats = defaultdict[str, list[_Row]](list)
        for row in sorted(messages, key=lambda row: row["doc"]):
            chats[row["chat"]].append(row)
        sessions = {row["chat"]: row for row in self._found["sessions"].values() if row["space"] == space}
        missing = 0
        for chat in sorted({*chats, *sessions}):
            missing += self._count(tx, space, chat, chats[chat], sessions.get(chat))
            self._check_tree(tx, space, chat)
        for row in messages:
            _note_calls(tx, row)
        docs = _gaps(
            [row["doc"] for row in messages], self._newest(space, "docs", *_docs(self._found, space))
        )
        known = [row["version"] for row in self._found["records"].values() if row["space"] == space]
        newest = self._newest(space, "version", *known)
        versions = _gaps(known, newest)
        told = [row for row in self._found["erasures"].values() if row["space"] == space]
        docs, versions = _but(docs, told, "docs"), _but(versions, told, "versions")
        if (gone := sum(last - first + 1 for first, last in docs)) > missing:
            self.lost.append(f"{_whose(space)}: {gone - missing} messages of chats that are lost as a whole")
            missing = gone
        if versions:
            self.lost.append(f"{_whose(space)}: the versions {_listed(versions, _range)} of what is known")
        numbers = [row["number"] for row in self._found["summaries"].values() if row["space"] == space]
        top = {"version": newest, "docs": docs[-1][1] if docs else self._stated(space, "docs")}
        top["summaries"] = self._newest(space, "summaries", *numbers)
        tx.all("DELETE FROM spaces WHERE space = :space", space=space)
        put(tx, "spaces", {"space": space, "epoch": self._stated(space, "epoch") + 1, **top})
        if docs or versions or missing:
            _note_loss(tx, space, missing, docs, versions)

    def _stated(self, space: str, column: str) -> int:
        row = self._found["spaces"].get((space,))
        return int(row[column]) if row else 0

    def _newest(self, space: str, column: str, *others: int) -> int:
        return max(self._stated(space, column), *others, 0)

    def _count(
        self, tx: Connection, space: str, chat: str, messages: list[_Row], session: _Row | None
    ) -> int:
        """Write the row of a session anew, and return how many of its messages are lost."""
        seqs = [row["seq"] for row in messages]
        length = max([*seqs, session["length"] if session else 0])
        gone = _gaps(seqs, length)
        erased = session["erased"] if session else 0
        lost = sum(last - first + 1 for first, last in gone) - erased
        if session is None:
            self.lost.append(
                f"{_whose(space)}, chat {chat!r}: its title, its agent, its metadata, "
                f"and whether messages after {write_reference(chat, length)} were there"
            )
        if lost > 0:
            self.lost.append(
                f"{_whose(space)}: the messages {_listed(gone, partial(write_reference, chat))}"
                + (f", {erased} of which were erased" if erased else "")
            )
        first = messages[0]["doc"] if messages else 1
        named = session or {
            "agent": "",
            "title": "",
            "archived": 0,
            "born": first,
            "oldest": 0,
            "newest": 0,
            **dict.fromkeys(("created", "channel", "meta", "checksum")),
        }
        row = {
            "space": space,
            "chat": chat,
            "length": length,
            "erased": erased + max(0, lost),
            **{name: named[name] for name in _SAID},
            "tokens": sum(row["tokens"] for row in messages),
            "oldest": min((row["at"] for row in messages), default=named["oldest"]),
            "newest": max((row["at"] for row in messages), default=named["newest"]),
        }
        if session is None:
            row["checksum"] = seal("sessions", row, tx.key)
        tx.all("DELETE FROM sessions WHERE space = :space AND chat = :chat", space=space, chat=chat)
        put(tx, "sessions", row)
        self.saved["sessions"] += session is None
        return max(0, lost)

    def _check_tree(self, tx: Connection, space: str, chat: str) -> None:
        """Keep the summaries of a session if they still are trees over its messages; they can be made again."""
        nodes = [
            row for row in self._found["summaries"].values() if (row["space"], row["chat"]) == (space, chat)
        ]
        alive = [row for row in nodes if row["ended"] == MAX_COUNT]
        messages = [
            row for row in self._found["messages"].values() if (row["space"], row["chat"]) == (space, chat)
        ]
        if not _is_whole(alive, messages):
            tx.all("DELETE FROM summaries WHERE space = :space AND chat = :chat", space=space, chat=chat)
            self.saved["summaries"] -= len(nodes)
            self.lost.append(
                f"{_whose(space)}, chat {chat!r}: {len(nodes)} summaries, which do not fit any more; compact it anew"
            )
            alive = []
        frontier = [row for row in alive if not row["parent"]]
        tx.all(
            """UPDATE sessions SET covered = :covered, covered_messages = :messages, covered_tokens = :source,
                summary_tokens = :tokens
            WHERE space = :space AND chat = :chat""",
            space=space,
            chat=chat,
            covered=max((row["last"] for row in frontier), default=0),
            messages=sum(row["messages"] for row in frontier),
            source=sum(row["source_tokens"] for row in frontier),
            tokens=sum(row["tokens"] for row in frontier),
        )


def _match(found: Found) -> tuple[Table, _Row] | None:
    """Find the table that a row is of: the one whose columns have such values. Which one it was is said by the tree only."""
    for table in tables().values():
        if (table.name in _WITHOUT_ROWID) != found.is_index or table.name in _DERIVED:
            continue
        columns = _as_stored(table) if found.is_index else table.columns
        row = _fit(columns, found.values)
        if row is not None and (
            row["space"] == FILE or row["space"].count("/") == 1
        ):  # as `Scope.space` is written
            return table, row
    return None


_WITHOUT_ROWID = ("messages", "calls", "records", "pads")  # as `SQLite.dialect` makes them


def _as_stored(table: Table) -> tuple[Column, ...]:
    """Return the columns as a table without row numbers has them: those of its key first."""
    key = ("space", *table.key)
    named = {column.name: column for column in table.columns}
    return (*(named[name] for name in key), *(column for column in table.columns if column.name not in key))


def _fit(columns: tuple[Column, ...], values: list[Cell]) -> _Row | None:
    """Make a row of values if they are of the types of the columns; what was added later may be missing."""
    missing = columns[len(values) :]
    if len(values) > len(columns) or any(not one.nullable and one.default is None for one in missing):
        return None
    row: _Row = {column.name: column.default for column in missing}
    for column, value in zip(columns, values, strict=False):
        kind = {"TEXT": str, "BIGINT": int, "BYTEA": bytes}.get(column.type, float)
        if not (isinstance(value, kind) or (value is None and column.nullable)):
            return None
        row[column.name] = value
    return row


def _is_whole(nodes: list[_Row], messages: list[_Row]) -> bool:
    """Say whether summaries are trees, side by side, over messages that are all there."""
    parents = {row["id"]: row for row in nodes}
    seqs = {row["seq"] for row in messages}
    for row in nodes:
        inner = [one for one in nodes if one["parent"] == row["id"]]
        if row["parent"] and row["parent"] not in parents:
            return False
        if row["depth"] and not _is_joined(inner, row["first"], row["last"]):
            return False
        if sum(seq in seqs for seq in range(row["first"], row["last"] + 1)) != row["messages"]:
            return False
    frontier = [row for row in nodes if not row["parent"]]
    return _is_joined(frontier, 1, max((row["last"] for row in frontier), default=0))


def _is_joined(nodes: list[_Row], first: int, last: int) -> bool:
    for row in sorted(nodes, key=lambda row: int(row["first"])):
        if row["first"] != first or row["last"] < first:
            return False
        first = row["last"] + 1
    return first == last + 1


def _note_calls(tx: Connection, message: _Row) -> None:
    try:
        made = [str(call[0]) for call in json.loads(message["calls"] or "[]")]
    except (ValueError, TypeError, LookupError):
        return  # reading the message says so
    for call in made:
        tx.all(
            "INSERT INTO calls (space, chat, call, seq) VALUES (:space, :chat, :call, :seq) "
            "ON CONFLICT (space, chat, call) DO UPDATE SET seq = excluded.seq",
            space=message["space"],
            chat=message["chat"],
            call=call_key(call),
            seq=message["seq"],
        )


def _docs(found: Mapping[str, Mapping[tuple[Any, ...], _Row]], space: str) -> Iterator[int]:
    for name, column in (("messages", "doc"), ("records", "doc"), ("sessions", "born")):
        yield from (row[column] for row in found[name].values() if row["space"] == space)


def _gaps(numbers: list[int], last: int) -> list[tuple[int, int]]:
    """Return the ranges of 1 to `last` that are not among some numbers."""
    found, before = [], 0
    for number in [*sorted(set(numbers)), last + 1]:
        if number > before + 1:
            found.append((before + 1, number - 1))
        before = max(before, number)
    return found


def _but(gaps: list[tuple[int, int]], receipts: list[_Row], column: str) -> list[tuple[int, int]]:
    """Leave out of gaps what receipts of erasures tell of."""
    told = {
        number
        for row in receipts
        for first, last in json.loads(row[column])
        for number in range(first, last + 1)
    }
    left = [number for first, last in gaps for number in range(first, last + 1) if number not in told]
    found: list[tuple[int, int]] = []
    for number in left:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _note_loss(
    tx: Connection, space: str, messages: int, docs: list[tuple[int, int]], versions: list[tuple[int, int]]
) -> None:
    """Leave a receipt of what is lost, as an erasure does: `verify` then knows of it."""
    now = time.time_ns() // 1000
    counts = {"messages": messages, "versions": sum(last - first + 1 for first, last in versions)}
    row = {
        "space": space,
        "id": f"era_{now:015x}{os.urandom(4).hex()}",
        "at": now,
        "writer": "system",
        "what": "damage",
        "counts": json.dumps({name: number for name, number in counts.items() if number}),
        "docs": json.dumps(docs),
        "versions": json.dumps(versions),
        "digest": "",
        "number": 0,
    }
    put(tx, "erasures", {**row, "checksum": seal("erasures", row, tx.key)})


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def _listed(gaps: list[tuple[int, int]], name: Callable[[int, int], str]) -> str:
    shown = [name(*gap) for gap in gaps[:_NAMED]]
    return ", ".join(shown) + (", …" if len(gaps) > _NAMED else "")


def _whose(space: str) -> str:
    return f"space {space!r}"
