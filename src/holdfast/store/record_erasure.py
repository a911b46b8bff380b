"""Erasure of records, of those derived by reflection, and of mentions of an erased chat."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.kinds import FEEDBACK
from holdfast.store import records, vectors
from holdfast.store.checksums import resealing
from holdfast.store.database import decoding
from holdfast.text.shorten import shorten_line
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Row, Value
    from holdfast.store.erasure_receipts import ErasureAccount
    from holdfast.store.record_changes import Writing

# In order, since a derived version is later than its sources. Feedback is about a record, whoever wrote it.
_BY_REFLECTION = f"""
    SELECT version, id, replaces, kind, meta FROM records
    WHERE space = :space AND (author = 'reflect' OR writer = 'reflect' OR kind = '{FEEDBACK}')
    AND (kind = 'profile' OR meta LIKE :of OR meta LIKE :into) ORDER BY version"""
# The reasons of a model may repeat words that it was shown.
_EXPLAINED = "version > :first AND writer = 'reflect' AND why <> ''"
_DELETE_REASONS = f"UPDATE records SET why = '' WHERE space = :space AND {_EXPLAINED}"
_DELETE_VERDICTS = "DELETE FROM verdicts WHERE space = :space AND chat = '' AND seq = :version"
_DELETE_JOBS = "DELETE FROM jobs WHERE space = :space AND (record = :id OR other = :id) RETURNING id"
_DELETE_USES = "DELETE FROM uses WHERE space = :space AND id = :id"
_DELETE_LEARNED = "DELETE FROM heard WHERE space = :space AND record = :id"
_LEFT = f"SELECT version, ended FROM records WHERE space = :space AND {records.OF_ID} ORDER BY version"
_SET_END = "UPDATE records SET ended = :ended WHERE space = :space AND version = :version"
_WORDINGS = """
    SELECT version, wordings FROM records WHERE space = :space AND wordings IS NOT NULL ORDER BY version"""
_SET_WORDINGS = "UPDATE records SET wordings = :left WHERE space = :space AND version = :version"
_SOURCES = """
    SELECT version, source, sources FROM records
    WHERE space = :space AND (source IN (:whole, :cut) OR sources IS NOT NULL)"""
_SET_SOURCES = """
    UPDATE records SET source = :source, sources = :sources WHERE space = :space AND version = :version"""


class RecordEraser:
    """Erases versions of records within the transaction of an erasure."""

    def __init__(self, changes: Writing, account: ErasureAccount, allow: Callable[[str], None]) -> None:
        self._changes = changes
        self._tx = changes.tx
        self._space = changes.space
        self._account = account
        self._allow = allow

    def erase(self, condition: str, **values: Value) -> None:
        """Erase versions of records, those derived from them, and the rows that belong to erased records."""
        rows = self._delete(condition, **values)
        derived = self._find_derived(rows)
        for version in derived:
            rows += self._delete("version = :version", version=version)
        if rows:
            first = min(row[0] for row in rows)
            with resealing(self._tx, "records", self._space, _EXPLAINED, first=first):
                self._tx.all(_DELETE_REASONS, space=self._space, first=first)
        for kind in sorted({row[2] for row in rows}):
            self._allow(kind)
        versions = [row[0] for row in rows]
        self._tx.many(_DELETE_VERDICTS, [{"space": self._space, "version": version} for version in versions])
        self._account.count("vectors", vectors.erase(self._tx, self._space, "record", versions))
        self._account.versions += versions
        self._account.digest(sorted(rows))
        identities = {row[1] for row in rows}
        self._account.count("records", list(identities))
        self._account.count("versions", rows)
        for identity in identities:
            self._account.count("jobs", self._tx.all(_DELETE_JOBS, space=self._space, id=identity))
            gone = max(row for row in rows if row[1] == identity)
            self._rejoin(identity, retracted=bool(gone[5]) and not derived.get(gone[0]))

    def _delete(self, condition: str, **values: Value) -> list[Row]:
        sql = f"""DELETE FROM records WHERE space = :space AND ({condition})
            RETURNING version, id, kind, text, meta, retracted, wordings"""
        return self._tx.all(sql, space=self._space, **values)

    def _find_derived(self, gone: Sequence[Row]) -> dict[int, bool]:
        """Return the versions that reflection derived from erased ones, and those by which it merged them.

        The value of a merge is True: without it, its record exists again. Later words of the user stay; a
        profile is derived from the one before.
        """
        gone_from = {row[1]: row[0] for row in sorted(gone, reverse=True)}
        derived: dict[int, bool] = {}
        rows = self._tx.all(_BY_REFLECTION, space=self._space, of='%"of":%', into='%"into":%')
        for version, identity, replaces, kind, meta in rows:
            # A profile in quarantine is derived from the one that it is to replace.
            own = [identity, replaces] if kind == "profile" else []
            into = _ids_in(meta, "into")
            if any(gone_from.get(id, version) < version for id in (*own, *into, *_ids_in(meta, "of"))):
                derived[version] = bool(into)
                # A merge has no words of its own.
                if not into:
                    gone_from[identity] = min(version, gone_from.get(identity, version))
        return derived

    def _rejoin(self, identity: str, *, retracted: bool) -> None:
        """Join the remaining versions of a record; a retracted record stays retracted."""
        keys = {"space": self._space, "id": identity}
        left = self._tx.all(_LEFT, **keys)
        if not left:
            self._account.names.add(identity)
            self._tx.all(_DELETE_USES, **keys)
            self._tx.all(_DELETE_LEARNED, **keys)
            return
        followers = [*(version for version, _ in left[1:]), MAX_COUNT]
        for (version, ended), follower in zip(left, followers, strict=True):
            if ended != follower:
                self._tx.all(_SET_END, space=self._space, version=version, ended=follower)
        newest = records.by_versions(self._tx, self._space, (left[-1][0],))[left[-1][0]]
        if retracted and not newest.retracted:
            self._changes.end(newest, why="it was retracted in what was erased")
        elif left[-1][1] != MAX_COUNT and not newest.retracted:
            vectors.bring_back(self._tx, self._space, "record", [newest.version])

    def remove_wordings(self, chat: str, first: int, last: int) -> None:
        """Remove the wordings in which messages repeated records of other chats; the counts of evidence stay.

        The wordings of a whole chat include those without messages.
        """
        least = 0 if (first, last) == (1, MAX_COUNT) else first
        for version, wordings in self._tx.all(_WORDINGS, space=self._space):
            with decoding(f"Version {version} of what is known"):
                before = json.loads(wordings)
                left = [entry for entry in before if entry[2] != chat or entry[3] > last or entry[4] < least]
            if left != before:
                self._account.digest([(version, wordings)])
                self._account.count("wordings", before[len(left) :])
                self._update(_SET_WORDINGS, version, left=json.dumps(left) if left else None)

    def remove_source(self, chat: str) -> None:
        """Remove a chat from the sources of records learned in others too; the counts of evidence stay."""
        whole = f"session:{chat}"
        # As extraction writes it.
        cut = shorten_line(whole, 120)
        for version, source, sources in self._tx.all(_SOURCES, space=self._space, whole=whole, cut=cut):
            with decoding(f"Version {version} of what is known"):
                names = [source, *(json.loads(sources) if sources else ())]
            left = [name for name in names if name not in (whole, cut)] or [""]
            if left != names:
                rest = json.dumps(left[1:]) if left[1:] else None
                self._update(_SET_SOURCES, version, source=left[0], sources=rest)

    def _update(self, sql: str, version: int, **values: Value) -> None:
        with resealing(self._tx, "records", self._space, "version = :version", version=version):
            self._tx.all(sql, space=self._space, version=version, **values)


def _ids_in(meta: str | None, key: str) -> list[str]:
    """Return the ids of records under a key of metadata: one, several, or none."""
    with decoding("The metadata of a record"):
        value = dict(json.loads(meta)).get(key) if meta else None
    names = value if isinstance(value, list) else [value]
    return [name for name in names if isinstance(name, str)]
