"""Saving the readable rows of a damaged SQLite file into a new database."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import Damaged
from holdfast.store import branches, erasure_receipts, summaries, vectors
from holdfast.store.atomic_file import new_file
from holdfast.store.checksums import seal
from holdfast.store.connect import open_database
from holdfast.store.erasure_receipts import DATABASE
from holdfast.store.log import call_key
from holdfast.store.schema import Column, TableSchema, tables
from holdfast.store.sqlite import WITHOUT_ROWID
from holdfast.store.sqlite_pages import Cell, Pages, RawRow, UnreadablePage
from holdfast.store.table_rows import TableRow, insert, put
from holdfast.types import MAX_COUNT, Range
from holdfast.types.references import write_reference
from holdfast.types.scope import is_space

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database

# Rebuilt: the index by the next recall, calls from their messages, imports by the next import.
_DERIVED = ("segments", "calls", "imports", "agenda")
# The row of a lost chat, but for the columns that its messages determine.
_UNKNOWN: TableRow = {"agent": "", "title": ""}
_UNKNOWN |= dict.fromkeys(("archived", "oldest", "newest"), 0)
_UNKNOWN |= dict.fromkeys(("created", "channel", "meta", "joined"))
# The number of pages, or of ranges, that are named one by one.
_NAMED = 50


@dataclass(frozen=True, slots=True)
class SalvageReport:
    """The number of saved rows, by table, and sentences about the losses."""

    rows: Mapping[str, int]
    lost: tuple[str, ...]


def salvage(damaged: Path, new: Path) -> SalvageReport:
    """Write every readable row into a new database, and list the losses.

    The damaged file is only read. Rows in doubt keep their checksums, so that `verify` names them. Killed in
    the middle, it leaves nothing of the new name, and starts again the next time.

    Raises:
        InvalidInput: the path of the new one exists.
        Unavailable: it cannot be written.
        Damaged: nothing of it can be read.

    """
    with new_file(new.absolute()) as draft:
        saving = _Salvage(Pages(damaged))
        draft.unlink()
        database = open_database(str(draft))
        try:
            saving.write(database)
            if saving.is_rid_of_erased:
                erasure_receipts.note_rewritten(database)
        finally:
            database.close()
    return SalvageReport(dict(saving.saved), tuple(saving.lost))


class _Salvage:
    """The rows of a damaged file, and the losses that are known."""

    def __init__(self, pages: Pages) -> None:
        self.saved: Counter[str] = Counter()
        self.lost: list[str] = []
        self._rows: dict[str, dict[tuple[Any, ...], TableRow]] = {name: {} for name in tables()}
        unreadable: list[UnreadablePage] = []
        for entry in pages.rows():
            if isinstance(entry, UnreadablePage):
                unreadable.append(entry)
            elif (matched := _match(entry)) is not None:
                table, row = matched
                key = tuple(row[name] for name in ("space", *table.key))
                self._rows[table.name].setdefault(key, row)
        if not any(self._rows.values()):
            raise Damaged("No row of Holdfast can be read in it.", "Check the path, or restore a backup.")
        if not pages.has_head:
            self.lost.append("the beginning of the file")
        self.is_rid_of_erased = pages.unused() is not None
        if not self.is_rid_of_erased:
            self.lost.append("the list of unused pages: what was deleted lately may be among what was saved")
        self.lost += [f"page {entry.page}: {entry.why}" for entry in unreadable[:_NAMED]]
        if len(unreadable) > _NAMED:
            self.lost.append(f"{len(unreadable) - _NAMED} more pages or rows of pages")

    def write(self, database: Database) -> None:
        """Write the rows, and correct the rows that count others."""
        with database.writing() as tx:
            for name, rows in self._rows.items():
                if name not in _DERIVED:
                    for row in rows.values():
                        self.saved[name] += insert(tx, name, row)
            for space in sorted({row["space"] for rows in self._rows.values() for row in rows.values()}):
                if space != DATABASE:
                    self._repair(tx, space)

    def _of(self, table: str, space: str) -> list[TableRow]:
        return [row for row in self._rows[table].values() if row["space"] == space]

    def _repair(self, tx: Connection, space: str) -> None:
        """Correct the chats and the numbers of a space, and store a receipt of the missing rows."""
        messages = sorted(self._of("messages", space), key=lambda row: int(row["doc"]))
        chats = defaultdict[str, list[TableRow]](list)
        for row in messages:
            chats[row["chat"]].append(row)
            _add_calls(tx, row)
        sessions = {row["chat"]: row for row in self._of("sessions", space)}
        missing = 0
        for chat in sorted({*chats, *sessions}):
            missing += self._recount(tx, space, chat, chats[chat], sessions.get(chat))
            self._check_tree(tx, space, chat, [row for row in chats[chat] if not row["aside"]])
            branches.settle(tx, space, chat)
            if any(row["aside"] for row in chats[chat]) and not branches.tree(tx, space, chat).parents:
                self.lost.append(f"space {space!r}, chat {chat!r}: its branches, which are one now")
        if orphans := vectors.remove_orphans(tx, space):
            self.saved["vectors"] -= orphans
        erased = self._of("erasures", space)
        docs = _gaps([row["doc"] for row in messages], self._newest(space, "docs", *self._docs(space)))
        docs = self._without_erased(docs, erased, "docs")
        present = [row["version"] for row in self._of("records", space)]
        newest = self._newest(space, "version", *present)
        versions = self._without_erased(_gaps(present, newest), erased, "versions")
        if (gone := _size(docs)) > missing:
            self.lost.append(f"space {space!r}: {gone - missing} messages of chats that are lost as a whole")
            missing = gone
        if versions:
            self.lost.append(f"space {space!r}: the versions {_list_names(versions, _range)} of records")
        numbers = [row["number"] for row in self._of("summaries", space)]
        top = {"version": newest, "docs": docs[-1][1] if docs else self._counter(space, "docs")}
        top |= {"summaries": self._newest(space, "summaries", *numbers)}
        top |= {"heads": self._newest(space, "heads", *(row["number"] for row in self._of("heads", space)))}
        tx.all("DELETE FROM spaces WHERE space = :space", space=space)
        insert(tx, "spaces", {"space": space, "epoch": self._counter(space, "epoch") + 1, **top})
        if docs or versions or missing:
            _add_receipt(tx, space, missing, docs, versions)

    def _without_erased(self, gaps: list[Range], receipts: list[TableRow], column: str) -> list[Range]:
        """Return gaps without the numbers that receipts of erasures list."""
        for row in receipts:
            try:
                erased = erasure_receipts.read_ranges(row["id"], row[column])
            except Damaged as error:
                self.lost.append(f"space {row['space']!r}: {error.what.rstrip('.')}")
                continue
            for first, last in erased:
                parts = [part for a, b in gaps for part in ((a, min(b, first - 1)), (max(a, last + 1), b))]
                gaps = [part for part in parts if part[0] <= part[1]]
        return gaps

    def _docs(self, space: str) -> Iterator[int]:
        for name, column in (("messages", "doc"), ("records", "doc"), ("sessions", "born")):
            yield from (row[column] for row in self._of(name, space))

    def _counter(self, space: str, column: str) -> int:
        row = self._rows["spaces"].get((space,))
        return int(row[column]) if row else 0

    def _newest(self, space: str, column: str, *others: int) -> int:
        return max(self._counter(space, column), *others, 0)

    def _recount(
        self, tx: Connection, space: str, chat: str, messages: list[TableRow], session: TableRow | None
    ) -> int:
        """Rewrite the row of a chat, and return the number of its lost messages."""
        seqs = [row["seq"] for row in messages]
        length = max([*seqs, session["length"] if session else 0])
        gone, erased = _gaps(seqs, length), session["erased"] if session else 0
        lost = max(0, _size(gone) - erased)
        if session is None:
            self.lost.append(
                f"space {space!r}, chat {chat!r}: its title, its agent, its metadata, "
                f"and whether messages after {write_reference(chat, length)} were there"
            )
        if lost:
            names = _list_names(gone, partial(write_reference, chat))
            of_them = f", {erased} of which were erased" if erased else ""
            self.lost.append(f"space {space!r}: the messages {names}{of_them}")
        row = session or {
            **_UNKNOWN,
            "space": space,
            "chat": chat,
            "born": (messages or [{"doc": 1}])[0]["doc"],
        }
        times = [message["at"] for message in messages]
        row |= {"length": length, "erased": erased + lost, "aside": 0}
        # The next call counts those of the current branch.
        row["tokens"] = sum(message["tokens"] for message in messages)
        row |= {"oldest": min(times, default=row["oldest"]), "newest": max(times, default=row["newest"])}
        if session is None:
            row["checksum"] = seal("sessions", row, tx.key)
        tx.all("DELETE FROM sessions WHERE space = :space AND chat = :chat", space=space, chat=chat)
        insert(tx, "sessions", row)
        self.saved["sessions"] += session is None
        return lost

    def _check_tree(self, tx: Connection, space: str, chat: str, messages: list[TableRow]) -> None:
        """Delete the summaries of a chat unless they still are trees over its messages."""
        nodes = [row for row in self._of("summaries", space) if row["chat"] == chat]
        alive = [row for row in nodes if row["ended"] == MAX_COUNT]
        if not _is_whole(alive, messages):
            tx.all("DELETE FROM summaries WHERE space = :space AND chat = :chat", space=space, chat=chat)
            self.saved["summaries"] -= len(nodes)
            what = f"{len(nodes)} summaries, which do not fit any more; compact it again"
            self.lost.append(f"space {space!r}, chat {chat!r}: {what}")
        summaries.count_in_chat(tx, space, chat)


def _match(raw: RawRow) -> tuple[TableSchema, TableRow] | None:
    """Return the table whose columns fit the values of a row, and the row; its page names no table."""
    for table in tables().values():
        if (table.name in WITHOUT_ROWID) != raw.is_index or table.name in _DERIVED:
            continue
        row = _fit(_stored_columns(table) if raw.is_index else table.columns, raw.values)
        if row is not None and (row["space"] == DATABASE or is_space(row["space"])):
            return table, row
    return None


def _stored_columns(table: TableSchema) -> tuple[Column, ...]:
    """Return the columns in the order of a table without row numbers: those of its key first."""
    key = ("space", *table.key)
    named = {column.name: column for column in table.columns}
    return (*(named[name] for name in key), *(column for column in table.columns if column.name not in key))


def _fit(columns: tuple[Column, ...], values: list[Cell]) -> TableRow | None:
    """Return the row of values, None if their types do not fit; the last columns may be missing."""
    cells = [*values, *(column.default for column in columns[len(values) :])]
    if len(values) > len(columns) or not all(map(Column.fits, columns, cells)):
        return None
    return {column.name: cell for column, cell in zip(columns, cells, strict=True)}


def _is_whole(nodes: list[TableRow], messages: list[TableRow]) -> bool:
    """Return whether summaries are trees, side by side, over messages that all exist."""
    parents = {row["id"]: row for row in nodes}
    seqs = {row["seq"] for row in messages}
    for row in nodes:
        inner = [child for child in nodes if child["parent"] == row["id"]]
        if row["parent"] and row["parent"] not in parents:
            return False
        if row["depth"] and not _is_joined(inner, row["first"], row["last"]):
            return False
        if sum(seq in seqs for seq in range(row["first"], row["last"] + 1)) != row["messages"]:
            return False
    frontier = [row for row in nodes if not row["parent"]]
    return _is_joined(frontier, 1, max((row["last"] for row in frontier), default=0))


def _is_joined(nodes: list[TableRow], first: int, last: int) -> bool:
    for row in sorted(nodes, key=lambda row: int(row["first"])):
        if row["first"] != first or row["last"] < first:
            return False
        first = row["last"] + 1
    return first == last + 1


def _add_calls(tx: Connection, message: TableRow) -> None:
    try:
        calls = [call_key(str(call[0])) for call in json.loads(message["calls"] or "[]")]
    except (ValueError, TypeError, LookupError):
        # Reading the message reports it.
        return
    for call in calls:
        put(tx, "calls", {name: message[name] for name in ("space", "chat", "seq")} | {"call": call})


def _gaps(numbers: list[int], last: int) -> list[Range]:
    """Return the ranges of missing numbers from 1 to `last`."""
    gaps, before = [], 0
    for number in [*sorted(set(numbers)), last + 1]:
        if number > before + 1:
            gaps.append((before + 1, number - 1))
        before = max(before, number)
    return gaps


def _size(ranges: list[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def _add_receipt(tx: Connection, space: str, messages: int, docs: list[Range], versions: list[Range]) -> None:
    """Store a receipt of lost rows, like that of an erasure, for `verify`."""
    lost = {"messages": messages, "versions": _size(versions)}
    counts = json.dumps({name: number for name, number in lost.items() if number})
    row = {"writer": "system", "what": "damage", "counts": counts, "digest": "", "number": 0}
    erasure_receipts.insert(tx, space, time.time_ns() // 1000, row, docs, versions)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def _list_names(gaps: list[Range], name: Callable[[int, int], str]) -> str:
    shown = [name(*gap) for gap in gaps[:_NAMED]]
    return ", ".join(shown) + (", …" if len(gaps) > _NAMED else "")
