"""Everything of a space, table by table, as rows that go out and come back: nothing is listed here by hand.

What is derived (`segments`) or tells of this database (`imports`), and what is another one's in another database (the space, the checksum, the epoch of the
index, the number that a receipt has in its database), stays.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidInput
from holdfast.store.checksums import CHANGING, PAGE, page_after, rows_of, seal
from holdfast.store.log import NEWEST_DOC
from holdfast.store.tables import Table, tables
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Value

_Row = dict[str, Any]
_DERIVED = ("segments", "imports")
_OF_THE_PLACE = {"space", "checksum"}
_OF_ITS_DATABASE = {"spaces": {"epoch"}, "erasures": {"number"}}
_FILLED = {
    "epoch": 0,
    "number": 0,
}  # what these are in another database: nothing to do for an index, or for a file
_ORDER = {"messages": ("doc",)}  # as they were said: a number is given to each as it comes
_LARGEST = 1 << 63


def carried(table: Table) -> list[str]:
    """Return the columns of a table that go with its rows."""
    left = _OF_THE_PLACE | _OF_ITS_DATABASE.get(table.name, set())
    return [name for name in table.names if name not in left]


def spaces(db: Database) -> Iterator[str]:
    """Find the names of all spaces, and nothing else of them."""
    last = ""
    nearest = " UNION ALL ".join(
        f"SELECT min(space) AS space FROM {table} WHERE space > :after" for table in tables()
    )
    while True:
        with db.reading() as connection:
            found = connection.all(f"SELECT min(space) FROM ({nearest}) AS found", after=last)[0][0]
        if found is None:
            return
        last = found
        yield last


def read(db: Database, space: str) -> Iterator[tuple[str, _Row]]:
    """Read all rows of a space that are not derived; within `one_read` they are those of one moment."""
    for name, table in tables().items():
        if name in _DERIVED:
            continue
        shape = table._replace(key=_ORDER.get(name, table.key) or ("space",))
        columns = carried(table)
        last: dict[str, Value] = {}
        while True:
            with db.reading() as connection:
                rows = rows_of(connection, shape, space, page_after(shape, last), limit=PAGE, **last)
            yield from ((name, {column: row[column] for column in columns}) for row in rows)
            if len(rows) < PAGE:
                break
            last = {f"after_{column}": rows[-1][column] for column in shape.key}


def put(tx: Connection, table: str, row: Mapping[str, Any]) -> bool:
    """Insert a whole row; say whether none of its key was there."""
    return bool(
        tx.all(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)}) "
            "ON CONFLICT DO NOTHING RETURNING 1",
            **row,
        )
    )


@dataclass
class Restored:
    """What came back: rows that were added and rows that were there, by table; lines that were left out, by reason."""

    added: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    left_out: list[tuple[int, str]] = field(default_factory=list)
    chats: set[str] = field(default_factory=set)
    renumbered: int = 0  # versions of records


def restore(db: Database, space: str, lines: Iterable[tuple[int, str, Mapping[str, object]]]) -> Restored:
    """Store rows of a space, each with its line and its table, in one transaction.

    Into an empty space they come as they were. In one that is not empty what is there stays as it is: messages, versions
    and summaries get the next numbers; a chat that is there as well gets the messages that it lacks, if it is the same.
    """
    with db.writing() as tx:
        tx.lock(space)
        restoring = (_Same if _is_empty(tx, space) else _Beside)(tx, space)
        for line, table, row in lines:
            try:
                restoring.take(line, table, _checked(table, row))
            except InvalidInput as error:
                restoring.done.left_out.append((line, error.what))
        restoring.finish()
    return restoring.done


def _is_empty(tx: Connection, space: str) -> bool:
    """Look for rows, but for what an index or a recall leaves in the row of the space itself."""
    counters = tx.all("SELECT version + docs + summaries FROM spaces WHERE space = :space", space=space)
    return not any(row[0] for row in counters) and not any(
        tx.all(f"SELECT 1 FROM {name} WHERE space = :space LIMIT 1", space=space)
        for name in tables()
        if name not in (*_DERIVED, "spaces")
    )


def _checked(name: str, row: Mapping[str, object]) -> _Row:
    """Make a row of what a file says: a table and columns that are known, values of their types."""
    if name in _DERIVED or name not in tables():
        raise InvalidInput(f"There is no table {name!r} here.", "Leave it out.")
    table = tables()[name]
    known = carried(table)
    if unknown := sorted(row.keys() - set(known)):
        raise InvalidInput(f"The table {name!r} has no column {unknown[0]!r}.", "Leave it out.")
    found: _Row = {}
    for column in table.columns:
        if column.name in known:
            value = row.get(column.name, column.default)
            fits = isinstance(value, str) if column.type == "TEXT" else _is_number(value)
            if not (fits or (value is None and column.nullable)):
                raise InvalidInput(
                    f"The column {column.name!r} of the table {name!r} holds something else.", "Correct it."
                )
            found[column.name] = value
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST


class _Same:
    """Rows that come into an empty space as they were."""

    def __init__(self, tx: Connection, space: str) -> None:
        self.tx = tx
        self.space = space
        self.done = Restored()

    def take(self, line: int, table: str, row: _Row) -> None:  # noqa: ARG002 - the line is for those who leave out
        """Store a row."""
        if table == "spaces":
            self.tx.all("DELETE FROM spaces WHERE space = :space", space=self.space)
        self.add(table, row)

    def add(self, table: str, row: _Row) -> bool:
        """Store a row whose key is not there, with its checksum."""
        whole = {"space": self.space, **row}
        whole |= {name: _FILLED[name] for name in _OF_ITS_DATABASE.get(table, ())}
        if table in CHANGING:
            whole["checksum"] = seal(table, whole, self.tx.key)
        added = put(self.tx, table, whole)
        (self.done.added if added else self.done.present)[table] += 1
        if table == "sessions":
            self.done.chats.add(row["chat"])
        return added

    def finish(self) -> None:
        """Store what had to wait for all others."""


class _Beside(_Same):
    """Rows that come to others: they get new numbers, and what is there stays."""

    def __init__(self, tx: Connection, space: str) -> None:
        super().__init__(tx, space)
        counted = tx.all("SELECT version, summaries FROM spaces WHERE space = :space", space=space)
        self._version, self._summaries = counted[0] if counted else (0, 0)
        self._doc = int(tx.all(NEWEST_DOC, space=space)[0][0])
        self._lengths: dict[str, int] = dict(
            tx.all("SELECT chat, length FROM sessions WHERE space = :space", space=space)
        )
        self._known = {
            row[0] for row in tx.all("SELECT DISTINCT id FROM records WHERE space = :space", space=space)
        }
        self._first_version, self._first_doc = self._version, self._doc
        self._first_summary = self._summaries
        self._new: dict[str, _Row] = {}  # sessions, whose first message has a number when it has come
        self._grown: set[str] = set()
        self._others: set[str] = set()  # chats that are another one here
        self._docs: list[int] = []
        self._records: list[_Row] = []
        self._versions: list[int] = []
        self._later: list[tuple[int, str, _Row]] = []

    def take(self, line: int, table: str, row: _Row) -> None:
        """Store a row, or leave it out, or let it wait for the numbers that it names."""
        if table == "spaces":
            return
        if table == "sessions":
            if row["chat"] not in self._lengths:
                self._new[row["chat"]] = row
            else:
                self.done.present[table] += 1
                self.done.chats.add(row["chat"])
        elif table == "messages":
            self._message(line, row)
        elif table == "records":
            if row["id"] in self._known:
                self.done.present[table] += 1
            else:
                self._records.append(row)
                self._versions.append(row["version"])
        else:
            self._later.append((line, table, row))

    def _message(self, line: int, row: _Row) -> None:
        chat, length = row["chat"], self._lengths.get(row["chat"], 0)
        if chat in self._others:
            return
        if row["seq"] <= length:
            found = self.tx.all(
                "SELECT id, role, content FROM messages WHERE space = :space AND chat = :chat AND seq = :seq",
                space=self.space,
                chat=chat,
                seq=row["seq"],
            )
            if found == [(row["id"], row["role"], row["content"])]:
                self.done.present["messages"] += 1
            elif found:
                self._others.add(chat)
                self.done.left_out.append((line, f"chat {chat!r} is another one here"))
            else:
                self.done.left_out.append((line, f"it was erased here, in chat {chat!r}"))
            return
        self._docs.append(row["doc"])
        self._doc += 1
        # An id of ours begins with the number that its message had; from now on it is one that was given.
        if self.add("messages", {**row, "doc": self._doc, "given": 1}) and chat not in self._new:
            self._grown.add(chat)

    def finish(self) -> None:
        """Store what names numbers, when they are known."""
        for row in self._new.values():
            self.add("sessions", {**row, "born": self._first_doc + bisect_left(self._docs, row["born"]) + 1})
        for chat in self._grown:
            self._count_anew(chat)
        for row in self._records:
            self._record(row)
        for line, table, row in self._later:
            self._place(line, table, row)
        self.done.renumbered = len(self._records)
        if self._records or self._summaries:
            self.tx.all(_NOTE, space=self.space, version=self._version, summaries=self._summaries)

    def _count_anew(self, chat: str) -> None:
        """Let a session count the messages that it got."""
        names = ("length", "tokens", "oldest", "newest")
        counted = self.tx.all(_COUNTED, space=self.space, chat=chat)[0]
        self.tx.all(_COUNT, space=self.space, chat=chat, **dict(zip(names, map(int, counted), strict=True)))

    def _at(self, version: int, find: Callable[[list[int], int], int] = bisect_right) -> int:
        """Return the version here that stands for one of theirs: the newest that was written up to it."""
        return int(self._first_version + find(self._versions, version))

    def _record(self, row: _Row) -> None:
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
        if row["chat"] in self._others:  # these messages are not those that it was learned from
            row |= {"chat": "", "first": 0, "last": 0}
        self.add("records", row)

    def _place(self, line: int, table: str, row: _Row) -> None:
        chat = row.get("chat", "")
        if chat in self._others:
            self.done.left_out.append((line, f"of the table {table}: its chat {chat!r} is another one here"))
            return
        if table == "summaries":
            self._summary(line, row)
            return
        if table == "receipts" and row["seq"] and not self._has_message(chat, row["seq"]):
            self.done.left_out.append((line, f"its answer was erased here, in chat {chat!r}"))
            return
        if table in ("snapshots", "receipts"):
            row["version"] = self._at(row["version"])
        elif table == "watermarks" and not chat:
            row["seq"] = self._at(row["seq"])
        elif table == "verdicts" and not chat:  # of a version of a record
            if self._at(row["seq"], bisect_left) == self._at(row["seq"]):
                self.done.present[table] += 1  # which was there
                return
            row["seq"] = self._at(row["seq"])
        elif table == "erasures":
            row |= {"docs": "[]", "versions": "[]"}  # the numbers here have no gaps
        if not self.add(table, row) and table == "pads" and not self._is_same(table, row):
            self.done.left_out.append(
                (line, f"the name {row['name']!r} of a scratchpad has another value here")
            )

    def _has_message(self, chat: str, seq: int) -> bool:
        return bool(
            self.tx.all(
                "SELECT 1 FROM messages WHERE space = :space AND chat = :chat AND seq = :seq",
                space=self.space,
                chat=chat,
                seq=seq,
            )
        )

    def _summary(self, line: int, row: _Row) -> None:
        if row["chat"] in self._lengths:  # it has a tree of its own, over all that it had
            known = self.tx.all(
                "SELECT 1 FROM summaries WHERE space = :space AND id = :id LIMIT 1",
                space=self.space,
                id=row["id"],
            )
            if known:
                self.done.present["summaries"] += 1
            else:
                self.done.left_out.append(
                    (line, f"of the table summaries: chat {row['chat']!r} was there; compact it")
                )
            return
        row["number"] += self._first_summary
        row["ended"] += 0 if row["ended"] == MAX_COUNT else self._first_summary
        self.add("summaries", row)
        self._summaries = max(self._summaries, row["number"])

    def _is_same(self, table: str, row: _Row) -> bool:
        shape = tables()[table]
        same = " AND ".join(f"{name} = :{name}" for name in shape.key)
        found = rows_of(self.tx, shape, self.space, same, **{name: row[name] for name in shape.key})
        return all(found[0][name] == row[name] for name in row) if found else False


_COUNTED = """
    SELECT max(seq) AS length, sum(tokens) AS tokens, min(at) AS oldest, max(at) AS newest
    FROM messages WHERE space = :space AND chat = :chat"""
_COUNT = """
    UPDATE sessions SET length = :length, tokens = :tokens, oldest = :oldest, newest = :newest
    WHERE space = :space AND chat = :chat"""
_NOTE = """
    INSERT INTO spaces (space, epoch, version, summaries) VALUES (:space, 0, :version, :summaries)
    ON CONFLICT (space) DO UPDATE SET version = excluded.version, summaries = excluded.summaries"""
