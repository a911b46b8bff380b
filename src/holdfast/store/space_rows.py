"""All rows of a space, table by table, for export and import; the tables are those of the schema.

Left out are what is derived (`segments`, verdicts of our own guard), tables about this database only
(`imports`, `moves`, `grants`), and columns that differ in another database (the space, checksums, the epoch
of the index, the number of an erasure receipt).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput
from holdfast.store import agenda, branches, table_rows
from holdfast.store.checksums import CHANGING, seal
from holdfast.store.log import NEWEST_DOC
from holdfast.store.schema import TableSchema, tables
from holdfast.store.sessions import spaces_below
from holdfast.store.summaries import ASIDE
from holdfast.store.verdicts import OWN
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader
    from holdfast.store.table_rows import TableRow

_DERIVED = ("segments", "imports", "moves", "grants", "agenda")
# Their numbers are those of documents elsewhere: in a space with others, the next job makes vectors.
_MADE_AGAIN = ("vectors", "vector_sets")
_NOT_EXPORTED = {"space", "checksum"}
# Columns that begin at 0 in another database.
_LOCAL = {"spaces": ("epoch", "labels"), "erasures": ("number",)}
# In the order of the log, because each message gets the next number.
_ORDER = {"messages": ("doc",)}
# Tables whose rows are overwritten in place; each with the name of a differing row, and its column.
_OVERWRITTEN = {"pads": ("the name {!r} of a scratchpad", "name"), "items": ("the item {!r}", "key")}
_COUNT_MESSAGES = """
    UPDATE sessions SET (length, tokens, oldest, newest) = (
        SELECT max(seq), sum(tokens), min(at), max(at) FROM messages
        WHERE space = :space AND chat = :chat)
    WHERE space = :space AND chat = :chat"""
_SET_NUMBERS = """
    INSERT INTO spaces (space, epoch, version, summaries, heads)
    VALUES (:space, 0, :version, :summaries, :heads)
    ON CONFLICT (space) DO UPDATE SET
        version = excluded.version, summaries = excluded.summaries, heads = excluded.heads"""
_MESSAGE = "SELECT id, role, content FROM messages WHERE space = :space AND chat = :chat AND seq = :seq"
_HEAD = "SELECT 1 FROM heads WHERE space = :space AND chat = :chat AND length = :length AND at = :at"
_SUMMARY = "SELECT 1 FROM summaries WHERE space = :space AND id = :id LIMIT 1"


def exported_columns(table: TableSchema) -> list[str]:
    """Return the columns of a table that are exported."""
    left_out = _NOT_EXPORTED.union(_LOCAL.get(table.name, ()))
    return [name for name in table.names if name not in left_out]


def spaces(db: Reader) -> Iterator[str]:
    """Iterate over the names of all spaces."""
    return spaces_below(db, "", tables())


def read(db: Reader, space: str) -> Iterator[tuple[str, TableRow]]:
    """Iterate over all exported rows of a space, each with its table; consistent within `one_read`."""
    for name, table in tables().items():
        if name not in _DERIVED:
            columns = exported_columns(table)
            for row in table_rows.iterate(db, name, space, _ORDER.get(name)):
                if name != "verdicts" or not row["guard"].startswith(OWN):
                    yield name, {column: _as_text(row[column]) for column in columns}


def _as_text(value: object) -> object:
    """Return a value as JSON has it: bytes in base64."""
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _as_bytes(value: object) -> object:
    """Return the bytes of a base64 text; any other value as it is, to be refused."""
    try:
        return b64decode(value, validate=True) if isinstance(value, str) else value
    except ValueError:
        return value


@dataclass
class RestoreReport:
    """The counts of added and present rows, by table, and the lines that were left out, with the reasons."""

    added: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    left_out: list[tuple[int, str]] = field(default_factory=list)
    # Each with its space.
    chats: set[tuple[str, str]] = field(default_factory=set)
    # Versions of records.
    renumbered: int = 0


def restore(
    db: Database, space: str, lines: Iterable[tuple[int, str, str, Mapping[str, object]]]
) -> RestoreReport:
    """Store rows, each with its line, space and table, in one transaction; `space` is the first one.

    Into an empty space they are stored unchanged. In one that is not empty, existing rows stay: messages,
    versions and summaries get the next numbers; an existing chat gets the messages that it lacks, if it is
    the same.
    """
    report = RestoreReport()
    restoring: dict[str, _Restore] = {}
    with db.writing_to(space) as tx:
        for line, place, table, row in lines:
            if place not in restoring:
                tx.lock(place)
                restoring[place] = (_Restore if _is_empty(tx, place) else _Merge)(tx, place, report)
            try:
                restoring[place].take(line, table, _check_row(table, row))
            except InvalidInput as error:
                report.left_out.append((line, error.what))
        for place, restorer in restoring.items():
            restorer.finish()
            agenda.touch(tx, place)
            # The rows of chats were written without counting the changes of their metadata.
            if restorer.is_labelled:
                table_rows.count_up(tx, place, "labels")
    return report


def _is_empty(tx: Connection, space: str) -> bool:
    """Return whether a space has no rows, but for the epoch of an index."""
    counters = tx.all("SELECT version + docs + summaries FROM spaces WHERE space = :space", space=space)
    return not any(row[0] for row in counters) and not any(
        tx.all(f"SELECT 1 FROM {name} WHERE space = :space LIMIT 1", space=space)
        for name in tables()
        if name not in (*_DERIVED, "spaces")
    )


def _check_row(name: str, row: Mapping[str, object]) -> TableRow:
    """Check the names and the types of a row of a file, and return it with all columns."""
    if name in _DERIVED or name not in tables():
        raise InvalidInput(f"There is no table {name!r} here.", "Leave it out.")
    table = tables()[name]
    known = exported_columns(table)
    if unknown := sorted(row.keys() - set(known)):
        raise InvalidInput(f"The table {name!r} has no column {unknown[0]!r}.", "Leave it out.")
    checked: TableRow = {}
    for column in table.columns:
        if column.name in known:
            value = row.get(column.name, column.default)
            if column.python_type is bytes:
                value = _as_bytes(value)
            if not column.fits(value):
                what = f"The column {column.name!r} of the table {name!r} has a value of another type."
                raise InvalidInput(what, "Correct it.")
            checked[column.name] = value
    return checked


class _Restore:
    """Restores rows into an empty space, unchanged."""

    def __init__(self, tx: Connection, space: str, report: RestoreReport) -> None:
        self.tx = tx
        self.space = space
        self.report = report
        # Whether a chat has metadata.
        self.is_labelled = False

    # The line is for `_Merge`.
    def take(self, line: int, table: str, row: TableRow) -> None:  # noqa: ARG002
        if table == "spaces":
            self.tx.all("DELETE FROM spaces WHERE space = :space", space=self.space)
        self.add(table, row)

    def add(self, table: str, row: TableRow) -> bool:
        """Store a row with its checksum, unless its key exists, and return whether that was done."""
        whole = {"space": self.space, **row, **dict.fromkeys(_LOCAL.get(table, ()), 0)}
        if table in CHANGING:
            whole["checksum"] = seal(table, whole, self.tx.key)
        added = table_rows.insert(self.tx, table, whole)
        (self.report.added if added else self.report.present)[table] += 1
        if table == "sessions":
            self.report.chats.add((self.space, row["chat"]))
            self.is_labelled |= row["meta"] is not None
        return added

    def finish(self) -> None:
        """Store the rows that had to wait for all others."""


class _Merge(_Restore):
    """Restores rows into a space that is not empty: they get new numbers, and existing rows stay."""

    def __init__(self, tx: Connection, space: str, report: RestoreReport) -> None:
        super().__init__(tx, space, report)
        counted = tx.all("SELECT version, summaries, heads FROM spaces WHERE space = :space", space=space)
        self._version, self._summaries, self._heads = counted[0] if counted else (0, 0, 0)
        self._doc = int(tx.all(NEWEST_DOC, space=space)[0][0])
        self._first_version, self._first_doc = self._version, self._doc
        self._first_summary, self._first_head = self._summaries, self._heads
        lengths = tx.all("SELECT chat, length FROM sessions WHERE space = :space", space=space)
        self._lengths: dict[str, int] = dict(lengths)
        present = tx.all("SELECT DISTINCT id FROM records WHERE space = :space", space=space)
        self._present_records = {row[0] for row in present}
        # New chats: their rows wait until their first messages have numbers.
        self._new: dict[str, TableRow] = {}
        # Chats that got messages, and those whose id belongs to another chat here.
        self._grown: set[str] = set()
        self._others: set[str] = set()
        # The numbers in the file of added messages and versions.
        self._docs: list[int] = []
        self._versions: list[int] = []
        self._records: list[TableRow] = []
        self._later: list[tuple[int, str, TableRow]] = []

    def take(self, line: int, table: str, row: TableRow) -> None:
        """Store a row, leave it out, or keep it until its numbers are known."""
        if table == "sessions" and row["chat"] in self._lengths:
            self.report.present[table] += 1
            self.report.chats.add((self.space, row["chat"]))
        elif table == "sessions":
            self._new[row["chat"]] = row
        elif table == "messages":
            self._add_message(line, row)
        elif table == "records" and row["id"] in self._present_records:
            self.report.present[table] += 1
        elif table == "records":
            self._records.append(row)
            self._versions.append(row["version"])
        elif table in _MADE_AGAIN:
            self.report.present[table] += 1
        elif table != "spaces":
            self._later.append((line, table, row))

    def _leave_out(self, line: int, why: str) -> None:
        self.report.left_out.append((line, why))

    def _add_message(self, line: int, row: TableRow) -> None:
        chat = row["chat"]
        if chat in self._others:
            return
        if row["seq"] <= self._lengths.get(chat, 0):
            rows = self.tx.all(_MESSAGE, space=self.space, chat=chat, seq=row["seq"])
            if rows == [(row["id"], row["role"], row["content"])]:
                self.report.present["messages"] += 1
            elif rows:
                self._others.add(chat)
                self._leave_out(line, f"chat {chat!r} is another one here")
            else:
                self._leave_out(line, f"it was erased here, in chat {chat!r}")
            return
        self._docs.append(row["doc"])
        self._doc += 1
        # A generated id begins with the old number of its message; from now on it counts as given.
        if self.add("messages", {**row, "doc": self._doc, "given": 1}) and chat not in self._new:
            self._grown.add(chat)

    def finish(self) -> None:
        """Store the rows that name numbers, which are known now."""
        for row in self._new.values():
            self.add("sessions", {**row, "born": self._first_doc + bisect_left(self._docs, row["born"]) + 1})
        for chat in self._grown:
            self.tx.all(_COUNT_MESSAGES, space=self.space, chat=chat)
        for row in self._records:
            self._add_record(row)
        for line, table, row in self._later:
            self._renumber(line, table, row)
        for chat in self._grown:
            branches.settle(self.tx, self.space, chat)
        self.report.renumbered += len(self._records)
        if self._records or self._summaries or self._heads:
            numbers = {"version": self._version, "summaries": self._summaries, "heads": self._heads}
            self.tx.all(_SET_NUMBERS, space=self.space, **numbers)

    def _at(self, version: int, find: Callable[[list[int], int], int] = bisect_right) -> int:
        """Return the version here for a version of the file: the newest that was written up to it."""
        return int(self._first_version + find(self._versions, version))

    def _add_record(self, row: TableRow) -> None:
        self._version = self._at(row["version"])
        ended = row["ended"]
        row |= {
            "version": self._version,
            "ended": ended if ended == MAX_COUNT else self._at(ended, bisect_left) + 1,
            "born": self._at(row["born"], bisect_left) + 1,
            "batch": self._at(row["batch"], bisect_left) + 1,
            "undone": self._at(row["undone"], bisect_left) + 1 if row["undone"] else 0,
            "doc": self._first_doc + bisect_right(self._docs, row["doc"]),
        }
        # The messages here are not those that it was learned from.
        if row["chat"] in self._others:
            row |= {"chat": "", "first": 0, "last": 0}
        self.add("records", row)

    def _renumber(self, line: int, table: str, row: TableRow) -> None:
        """Store a row with the numbers of this database in place of those of the file."""
        chat = row.get("chat", "")
        if chat in self._others:
            self._leave_out(line, f"of the table {table}: its chat {chat!r} is another one here")
        elif table == "summaries":
            self._add_summary(line, row)
        elif table == "heads":
            self._add_head(row)
        elif table == "receipts" and row["seq"] and not self._has_message(chat, row["seq"]):
            self._leave_out(line, f"its answer was erased here, in chat {chat!r}")
        elif table == "verdicts" and not chat and self._at(row["seq"], bisect_left) == self._at(row["seq"]):
            # Of a version of a record that was here.
            self.report.present[table] += 1
        else:
            if table in ("snapshots", "receipts"):
                row["version"] = self._at(row["version"])
            elif table in ("watermarks", "verdicts") and not chat:
                row["seq"] = self._at(row["seq"])
            elif table == "erasures":
                # The numbers here have no gaps.
                row |= {"docs": "[]", "versions": "[]"}
            if not self.add(table, row) and table in _OVERWRITTEN and not self._is_same(table, row):
                named, column = _OVERWRITTEN[table]
                self._leave_out(line, f"{named.format(row[column])} has another value here")

    def _has_message(self, chat: str, seq: int) -> bool:
        return bool(self.tx.all(_MESSAGE, space=self.space, chat=chat, seq=seq))

    def _add_head(self, row: TableRow) -> None:
        """Store where a chat went on, if that was after all messages that are here."""
        chat, length, at = row["chat"], row["length"], row["at"]
        is_here = self.tx.all(_HEAD, space=self.space, chat=chat, length=length, at=at)
        if is_here or length < self._lengths.get(chat, 0):
            self.report.present["heads"] += 1
            return
        number, undone = self._first_head + row["number"], row["undone"] and self._first_head + row["undone"]
        self.add("heads", {**row, "number": number, "undone": undone, "version": self._at(row["version"])})
        self._heads = max(self._heads, number)
        self._grown.add(chat)

    def _add_summary(self, line: int, row: TableRow) -> None:
        if row["chat"] in self._lengths:
            # It has a tree of its own, over all messages that it had.
            if self.tx.all(_SUMMARY, space=self.space, id=row["id"]):
                self.report.present["summaries"] += 1
            else:
                self._leave_out(line, f"of the table summaries: chat {row['chat']!r} was there; compact it")
            return
        row["number"] += self._first_summary
        row["ended"] += 0 if row["ended"] >= ASIDE else self._first_summary
        self.add("summaries", row)
        self._summaries = max(self._summaries, row["number"])

    def _is_same(self, table: str, row: TableRow) -> bool:
        rows = table_rows.select_key(self.tx, tables()[table], self.space, row)
        return all(rows[0][name] == row[name] for name in row) if rows else False
