"""The records of the fake provider: an append-only list, of which each version can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from threading import RLock

from holdfast.errors import Denied, InvalidInput
from holdfast.types import Change, Record, Writer

SINGLE = ("profile", "soul")  # kinds of which each agent has one


class Ledger:
    """The records of one user; each row is a version of one of them."""

    def __init__(self, lock: RLock) -> None:
        self.lock = lock
        self._rows: list[Record] = []

    @property
    def version(self) -> int:
        """Return the number of the newest version."""
        return len(self._rows)

    def read(self, agent: str, version: int | None = None) -> list[Record]:
        """List the records of an agent, all for "", at a version or now, the oldest first."""
        with self.lock:
            newest = {row.id: row for row in self._rows[:version]}
        return [
            row for row in newest.values() if not row.retracted and (not agent or row.agent in (agent, ""))
        ]

    def write(self, record: Record) -> Record:
        """Store a version of a record: a new one if it has no id, and the one there is of a single kind.

        Raises:
            Denied: a constraint, by anyone but the user.

        """
        if record.kind == "constraint" and record.by != "user":
            raise Denied("Only the user confirms a constraint.", "Ask the user.")
        with self.lock:
            version = self.version + 1
            id_ = record.id or self._single(record) or f"r{version}"
            stored = replace(record, id=id_, version=version, at=(now := datetime.now(UTC)), created=now)
            self._rows.append(stored)
            return stored

    def change(self, id: str, agent: str, change: Callable[[Record], Record]) -> Record:
        """Store a new version of a record that there is.

        Raises:
            InvalidInput: there is no such record.
            Denied: as `write`.

        """
        with self.lock:
            for record in self.read(agent):
                if record.id == id:
                    return self.write(change(record))
        raise InvalidInput("There is no such record.", "Pass the id of one that `records` lists.")

    def rollback(self, what: str, agent: str, version: int, by: Writer) -> list[Record]:
        """Write again what a record, or the records of a kind, said at a version, and return the records.

        Raises:
            InvalidInput: there is no such record or version.
            Denied: as `write`.

        """
        with self.lock:
            self.check(version)
            then = [one for one in self.read(agent, version) if what in (one.id, one.kind)]
            if not then and not any(what in (row.id, row.kind) for row in self._rows):
                raise InvalidInput("There is no such record.", "Pass the id of one that `changes` lists.")
            kept = {one.id for one in then}
            gone = [one for one in self.read(agent) if what in (one.id, one.kind) and one.id not in kept]
            again = [*then, *(replace(one, retracted=True) for one in gone)]
            return [self.write(replace(one, by=by)) for one in again]

    def check(self, version: int) -> None:
        """Raise InvalidInput if there is no such version."""
        if not 0 <= version <= self.version:
            raise InvalidInput(f"There is no version {version}.", f"The newest is {self.version}.")

    def changes(self, agent: str) -> list[Change]:
        """List what changed, the newest first."""
        with self.lock:
            rows = list(self._rows)
        before: dict[str, str | None] = {}
        found = []
        for row in rows:
            after = None if row.retracted else row.text
            found.append(_change(row, before.get(row.id), after))
            before[row.id] = after
        return [one for one, row in zip(reversed(found), reversed(rows), strict=True) if _is_seen(row, agent)]

    def _single(self, record: Record) -> str:
        """Return the id of the one record of its kind that it replaces, "" if there is none."""
        if record.kind not in SINGLE:
            return ""
        own = (row.id for row in self._rows if (row.kind, row.agent) == (record.kind, record.agent))
        return next(own, "")


def _is_seen(row: Record, agent: str) -> bool:
    return not agent or row.agent in (agent, "")


def _change(row: Record, before: str | None, after: str | None) -> Change:
    action = "add" if before is None else "retract" if after is None else "replace"
    at = row.at or datetime.now(UTC)
    about = (row.version, action, row.kind, row.id, before, after)
    return Change(*about, row.by, row.chat, at, "", row.version, agent=row.agent)


class Known:
    """The records at a version, or now."""

    def __init__(self, ledger: Ledger, agent: str, version: int | None = None) -> None:
        self._ledger = ledger
        self._agent = agent
        self._version = version

    def version(self) -> int:
        """Return the number of the version."""
        return self._ledger.version if self._version is None else self._version

    def records(self, *, kind: str | None = None) -> list[Record]:
        """List records, the oldest first."""
        found = self._ledger.read(self._agent, self._version)
        return [one for one in found if kind in (None, one.kind)]

    def get(self, what: str) -> Record | None:
        """Return a record by its id, the profile or soul by its kind, or None."""
        if what in SINGLE:
            found = {one.agent: one for one in self.records(kind=what)}
            return found.get(self._agent, found.get(""))
        return next((one for one in self.records() if one.id == what), None)
