"""Erasure: the one exception to append-only. The words go from every table; a receipt without them stays."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidInput, Unavailable
from holdfast.store import imports, jobs, prompt_receipts, records, segments, summaries
from holdfast.store.checksums import resealed, seal
from holdfast.store.database import repeated
from holdfast.store.erasure_receipts import FILE
from holdfast.store.message_rows import from_micros
from holdfast.store.records import Writing
from holdfast.text.shorten import shorten_line
from holdfast.types import MAX_COUNT, Erasure, Range, Writer, check_name, check_range

if TYPE_CHECKING:
    from holdfast.store.database import Database, Purged, Row


class What(NamedTuple):
    """What is to be erased: one record, some messages of a chat, a whole chat, all of the space, or only remains."""

    chat: str | None = None
    messages: Range | None = None
    record: str | None = None
    files: bool = False  # nothing but what earlier erasures left in the files

    @property
    def kind(self) -> str:
        """Name it."""
        if self.files:
            return "files"
        if self.record is not None:
            return "record"
        return "user" if self.chat is None else "chat" if self.messages is None else "messages"


def what(
    *,
    chat: str | None,
    messages: int | Range | None,
    record: str | None,
    user: str | None,
    rewrite: bool,
) -> What:
    """Check what is to be erased.

    Raises:
        InvalidInput: not exactly one thing is named.

    """
    if rewrite and all(one is None for one in (chat, messages, record, user)):
        return What(files=True)
    if sum(one is not None for one in (chat, record, user)) != 1:
        raise InvalidInput(
            "It is not clear what to erase.",
            "Pass one of chat=, record= and user=; with chat=, also messages=; or rewrite=True alone.",
        )
    if messages is not None and chat is None:
        raise InvalidInput("Messages belong to a chat.", "Pass chat= as well.")
    if chat is not None:
        check_name(chat, "The id of a chat")
    if record is not None:
        check_name(record, "The id of a record")
    return What(chat, check_range(messages, chat or ""), record)


def erase(
    db: Database,
    space: str,
    target: What,
    writer: Writer,
    now: int,
    allow: Callable[[str], None],
    *,
    rewrite: bool,
) -> Erasure:
    """Erase in one transaction, purge the files or write them anew, and return the receipt.

    `allow` is called with the kind of each record that is to go, and raises if that must not be.

    Raises:
        InvalidInput: there is nothing of that name; nothing was erased.
        Unavailable: it is erased, but the files could not be purged as asked for: its receipt says of what, and why. The
            next erasure, of anything, tries again.

    """
    receipt = _erase(db, space, target, writer, now, allow)
    with db.reading() as connection:
        newest = connection.all("SELECT version FROM spaces WHERE space = :space", space=FILE)[0][0]
    purged = db.purge(rewrite=rewrite)
    _note_purge(db, space, receipt.id, purged, newest)
    receipt = replace(receipt, rewritten=purged.rewritten, remains=purged.remains)
    if not purged.done:
        left = "; ".join(f"{part}: {why}" for part, why in purged.remains.items())
        raise Unavailable(
            f"The words are erased from every table, but the files may still hold remains of them ({left}).",
            "Remove the cause and call `erase(rewrite=True)`; the receipt is in the error.",
            receipt=receipt,
        )
    return receipt


@repeated
def _note_purge(db: Database, space: str, receipt: str, purged: Purged, newest: int) -> None:
    """Add to a receipt what was written anew, and where that was all, that no earlier erasure left anything either."""
    with db.writing() as tx:
        tx.all(
            "UPDATE erasures SET rewritten = :rewritten, remains = :remains WHERE space = :space AND id = :id",
            space=space,
            id=receipt,
            rewritten=json.dumps(purged.rewritten),
            remains=json.dumps(purged.remains),
        )
        if purged.done:
            tx.all(
                "UPDATE spaces SET epoch = :newest WHERE space = :space AND epoch < :newest",
                space=FILE,
                newest=newest,
            )


@repeated
def _erase(
    db: Database, space: str, target: What, writer: Writer, now: int, allow: Callable[[str], None]
) -> Erasure:
    with records.writing(db, space, now) as changes:
        erasing = _Erasing(changes, os.urandom(32).hex(), allow)
        if target.files:
            return erasing.receipt(target, writer, now)
        if target.record is not None:
            erasing.records(
                "id = :id OR id IN (SELECT id FROM records WHERE space = :space AND replaces = :id)",
                id=target.record,
            )
        elif target.chat is not None:
            erasing.chat(target.chat, target.messages)
        else:
            erasing.everything()
        if not any(erasing.counts.values()):
            raise InvalidInput(
                "There is nothing of that name to erase.", "Look at `chats()`, `records()` and `changes()`."
            )
        erasing.unname_gone()
        segments.clear_in(changes.tx, space)
        imports.forget(changes.tx, space)
        jobs.take_away(changes.tx, space)
        return erasing.receipt(target, writer, now)


class _Erasing:
    """Take rows out of the tables of a space, and keep account of them."""

    def __init__(self, changes: Writing, key: str, allow: Callable[[str], None]) -> None:
        self._tx = changes.tx
        self._space = changes.space
        self._key = key
        self._allow = allow
        self._changes = changes
        # Loads OpenSSL, which hardly any program needs.
        import hmac

        self._digest = hmac.new(bytes.fromhex(key), digestmod="sha256")
        self._docs: list[int] = []
        self._versions: list[int] = []
        self._gone: set[str] = set()  # as `Message.shown` and receipts of prompts name it
        self.counts: dict[str, int] = {}

    def chat(self, chat: str, messages: Range | None) -> None:
        first, last = messages or (1, MAX_COUNT)
        self._keep_numbers()
        texts = self._messages(chat, first, last)
        if messages is None:
            self.records("chat = :chat", chat=chat)
            self._unsay(chat, first, last)
            self._unname(chat)
            for table, statement in _OF_CHAT.items():
                self._count(table, self._tx.all(statement, space=self._space, chat=chat))
        else:
            self.records(
                "chat = :chat AND first <= :last AND last >= :first", chat=chat, first=first, last=last
            )
            self._unsay(chat, first, last)
            prompt_receipts.erase(self._tx, self._space, chat, first, last)
            if texts:
                self._update_session(chat, texts)
                # Its episode told of them and is gone: it is written again, of what is left.
                self._tx.all(
                    "DELETE FROM watermarks WHERE space = :space AND chat = :chat AND kind IN ('episode', 'episode:rules')",
                    space=self._space,
                    chat=chat,
                )

    def _unsay(self, chat: str, first: int, last: int) -> None:
        """Take out the words in which messages repeated what others had said; how often it was said stays.

        Of a whole chat these are also the words of which nobody said in which messages.
        """
        least = 0 if (first, last) == (1, MAX_COUNT) else first
        rows = self._tx.all(
            "SELECT version, wordings FROM records WHERE space = :space AND wordings IS NOT NULL ORDER BY version",
            space=self._space,
        )
        for version, wordings in rows:
            said = json.loads(wordings)
            left = [one for one in said if one[2] != chat or one[3] > last or one[4] < least]
            if left != said:
                self._sum([(version, wordings)])
                self._count("wordings", said[len(left) :])
                with resealed(self._tx, "records", self._space, "version = :version", version=version):
                    self._tx.all(
                        "UPDATE records SET wordings = :left WHERE space = :space AND version = :version",
                        space=self._space,
                        version=version,
                        left=json.dumps(left) if left else None,
                    )

    def _unname(self, chat: str) -> None:
        """Take a chat from the sources of what was heard in others as well; how often it was heard stays."""
        whole = f"session:{chat}"
        cut = shorten_line(whole, 120)  # as extraction writes it
        rows = self._tx.all(
            "SELECT version, source, sources FROM records "
            "WHERE space = :space AND (source IN (:whole, :cut) OR sources IS NOT NULL)",
            space=self._space,
            whole=whole,
            cut=cut,
        )
        for version, source, sources in rows:
            heard = [source, *(json.loads(sources) if sources else ())]
            left = [name for name in heard if name not in (whole, cut)] or [""]
            if left == heard:
                continue
            with resealed(self._tx, "records", self._space, "version = :version", version=version):
                self._tx.all(
                    "UPDATE records SET source = :source, sources = :sources "
                    "WHERE space = :space AND version = :version",
                    space=self._space,
                    version=version,
                    source=left[0],
                    sources=json.dumps(left[1:]) if left[1:] else None,
                )

    def _keep_numbers(self) -> None:
        """See to it that no document number is used again, whatever becomes of the message that has it."""
        self._tx.all(
            """INSERT INTO spaces (space, epoch, docs)
            VALUES (:space, 0, (SELECT coalesce(max(doc), 0) FROM messages WHERE space = :space))
            ON CONFLICT (space) DO UPDATE SET
                docs = CASE WHEN excluded.docs > spaces.docs THEN excluded.docs ELSE spaces.docs END""",
            space=self._space,
        )

    def _messages(self, chat: str, first: int, last: int) -> list[str]:
        rows = self._tx.all(
            "DELETE FROM messages WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last "
            "RETURNING doc, seq, role, content, raw, calls, meta",
            space=self._space,
            chat=chat,
            first=first,
            last=last,
        )
        rows.sort()
        self._docs += [row[0] for row in rows]
        self._gone |= {f"{chat}#{row[1]}" for row in rows}
        self._sum(rows)
        self._tx.all(
            "DELETE FROM calls WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last",
            space=self._space,
            chat=chat,
            first=first,
            last=last,
        )
        self._tx.all(
            "DELETE FROM heard WHERE space = :space AND chat = :chat AND first <= :last AND last >= :first",
            space=self._space,
            chat=chat,
            first=first,
            last=last,
        )
        self._tx.all(
            "DELETE FROM verdicts WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last",
            space=self._space,
            chat=chat,
            first=first,
            last=last,
        )
        self.counts["messages"] = len(rows)
        gone = summaries.erase(self._tx, self._space, chat, rows[0][1] if rows else MAX_COUNT)
        self._sum(sorted(row[:2] for row in gone))
        self._gone |= {row[2] for row in gone}
        self._count("summaries", gone)
        return [row[3] for row in rows]

    def _update_session(self, chat: str, texts: Sequence[str]) -> None:
        """Let a session count what it still has; its title must not keep the words of a message that is gone."""
        keys = {"space": self._space, "chat": chat}
        rows = self._tx.all(
            "SELECT count(*), coalesce(sum(tokens), 0), min(at), max(at) FROM messages "
            "WHERE space = :space AND chat = :chat",
            **keys,
        )
        count, tokens, oldest, newest = rows[0]
        title = self._tx.all("SELECT title FROM sessions WHERE space = :space AND chat = :chat", **keys)[0][0]
        if title in {shorten_line(text, 80) for text in texts}:
            title = ""
        with resealed(self._tx, "sessions", self._space, "chat = :chat", chat=chat):
            self._tx.all(
                """UPDATE sessions SET erased = length - :count, tokens = :tokens, title = :title,
                    oldest = coalesce(:oldest, oldest), newest = coalesce(:newest, newest)
                WHERE space = :space AND chat = :chat""",
                count=count,
                tokens=tokens,
                oldest=oldest,
                newest=newest,
                title=title,
                **keys,
            )

    def records(self, condition: str, **values: str | int) -> None:
        """Take out versions of records, those made of their words, and what belongs to records of which none is left."""
        rows = self._delete(condition, **values)
        derived = self._derived(rows)
        for version in derived:
            rows += self._delete("version = :version", version=version)
        if rows:
            first = min(row[0] for row in rows)
            with resealed(self._tx, "records", self._space, _EXPLAINED, first=first):
                self._tx.all(_UNEXPLAIN, space=self._space, first=first)
        for kind in sorted({row[2] for row in rows}):
            self._allow(kind)
        self._versions += [row[0] for row in rows]
        self._tx.many(
            "DELETE FROM verdicts WHERE space = :space AND chat = '' AND seq = :version",
            [{"space": self._space, "version": row[0]} for row in rows],
        )
        self._sum(sorted(rows))
        self.counts["records"] = self.counts.get("records", 0) + len({row[1] for row in rows})
        self.counts["versions"] = self.counts.get("versions", 0) + len(rows)
        for identity in {row[1] for row in rows}:
            keys = {"space": self._space, "id": identity}
            self._count(
                "jobs",
                self._tx.all(
                    "DELETE FROM jobs WHERE space = :space AND (record = :id OR other = :id) RETURNING id",
                    **keys,
                ),
            )
            gone = max(row for row in rows if row[1] == identity)
            self._mend(identity, retracted=bool(gone[5]) and not derived.get(gone[0]))

    def _delete(self, condition: str, **values: str | int) -> list[Row]:
        return self._tx.all(
            f"DELETE FROM records WHERE space = :space AND ({condition}) RETURNING version, id, kind, text, meta, retracted, wordings",
            space=self._space,
            **values,
        )

    def _derived(self, gone: Sequence[Row]) -> dict[int, bool]:
        """Name the versions that reflection made of what is gone, and those by which a record went into one of them.

        Of the latter it is true that the record is there again without them. What the user wrote afterwards stays; a
        profile is made of the one before.
        """
        gone_from = {row[1]: row[0] for row in sorted(gone, reverse=True)}
        found: dict[int, bool] = {}
        rows = self._tx.all(_BY_REFLECTION, space=self._space, of='%"of":%', into='%"into":%')
        for version, identity, replaces, kind, meta in rows:
            # One in quarantine is made of the one that it is to replace.
            own = [identity, replaces] if kind == "profile" else []
            into = _named(meta, "into")
            if any(gone_from.get(one, version) < version for one in (*own, *into, *_named(meta, "of"))):
                found[version] = bool(into)
                if not into:  # it has words
                    gone_from[identity] = min(version, gone_from.get(identity, version))
        return found

    def _mend(self, identity: str, *, retracted: bool) -> None:
        """Join the versions of a record that are left, as if the others had never been; what was retracted stays so."""
        keys = {"space": self._space, "id": identity}
        left = self._tx.all(
            f"SELECT version, ended FROM records WHERE space = :space AND {records.OF_ID} ORDER BY version",
            **keys,
        )
        if not left:
            self._gone.add(identity)
            self._tx.all("DELETE FROM uses WHERE space = :space AND id = :id", **keys)
            self._tx.all("DELETE FROM heard WHERE space = :space AND record = :id", **keys)
            return
        followers = [*(version for version, _ in left[1:]), MAX_COUNT]
        for (version, ended), follower in zip(left, followers, strict=True):
            if ended != follower:
                self._tx.all(
                    "UPDATE records SET ended = :ended WHERE space = :space AND version = :version",
                    space=self._space,
                    version=version,
                    ended=follower,
                )
        newest = records.by_versions(self._tx, self._space, (left[-1][0],))[left[-1][0]]
        if retracted and not newest.retracted:
            self._changes.end(newest, why="it was retracted in what was erased")

    def everything(self) -> None:
        self._keep_numbers()
        self._messages_of_all()
        self.records("1 = 1")
        for table, statement in _OF_ALL.items():
            self._count(table, self._tx.all(statement, space=self._space))

    def _messages_of_all(self) -> None:
        chats = self._tx.all("SELECT chat FROM sessions WHERE space = :space", space=self._space)
        total = 0
        for (chat,) in chats:
            self._messages(chat, 1, MAX_COUNT)
            total += self.counts["messages"]
        self.counts["messages"] = total

    def unname_gone(self) -> None:
        """Take the names of what is gone from what prompts have shown; what was answered in view of it stays."""
        if not self._gone:
            return
        prompt_receipts.unname(self._tx, self._space, self._gone)
        rows = self._tx.all(
            "SELECT chat, seq, shown FROM messages WHERE space = :space AND shown IS NOT NULL",
            space=self._space,
        )
        for chat, seq, shown in rows:
            left = [name for name in json.loads(shown) if name not in self._gone]
            keys = {"chat": chat, "seq": seq}
            if len(left) == len(json.loads(shown)):
                continue
            with resealed(self._tx, "messages", self._space, "chat = :chat AND seq = :seq", **keys):
                self._tx.all(
                    "UPDATE messages SET shown = :left WHERE space = :space AND chat = :chat AND seq = :seq",
                    space=self._space,
                    left=json.dumps(left) if left else None,
                    **keys,
                )

    def _count(self, table: str, rows: Sequence[object]) -> None:
        self.counts[table] = self.counts.get(table, 0) + len(rows)

    def _sum(self, rows: Iterable[Sequence[object]]) -> None:
        for row in rows:
            self._digest.update(json.dumps(row).encode())

    def receipt(self, target: What, writer: Writer, now: int) -> Erasure:
        counts = {name: count for name, count in self.counts.items() if count}
        identity = f"era_{now:015x}{random.getrandbits(32):08x}"
        digest = self._digest.hexdigest()
        number = self._tx.all(
            "INSERT INTO spaces (space, epoch, version) VALUES (:space, 0, 1) "
            "ON CONFLICT (space) DO UPDATE SET version = spaces.version + 1 RETURNING version",
            space=FILE,
        )[0][0]
        row = {
            "space": self._space,
            "id": identity,
            "at": now,
            "writer": writer,
            "what": target.kind,
            "counts": json.dumps(counts),
            "docs": json.dumps(_ranges(self._docs)),
            "versions": json.dumps(_ranges(self._versions)),
            "digest": digest,
            "number": number,
        }
        self._tx.all(
            "INSERT INTO erasures (space, id, at, writer, what, counts, docs, versions, digest, number, checksum) "
            "VALUES (:space, :id, :at, :writer, :what, :counts, :docs, :versions, :digest, :number, :checksum)",
            **row,
            checksum=seal("erasures", row, self._tx.key),
        )
        return Erasure(identity, target.kind, counts, writer, from_micros(now), digest, self._key)


# In order, since what is made of a version is later than it.
_BY_REFLECTION = """
    SELECT version, id, replaces, kind, meta FROM records WHERE space = :space AND (author = 'reflect' OR writer = 'reflect')
    AND (kind = 'profile' OR meta LIKE :of OR meta LIKE :into) ORDER BY version"""
# The reasons of a model may repeat what it was shown.
_EXPLAINED = "version > :first AND writer = 'reflect' AND why <> ''"
_UNEXPLAIN = f"UPDATE records SET why = '' WHERE space = :space AND {_EXPLAINED}"
_FROM_NOWHERE = """
    SELECT r.version, r.chat FROM records r
    WHERE r.space = :space AND r.chat <> '' AND r.author = 'reflect' AND r.meta LIKE :learned AND r.meta NOT LIKE :of
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.space = r.space AND s.chat = r.chat) ORDER BY r.version"""
_OF_CHAT = {
    "sessions": "DELETE FROM sessions WHERE space = :space AND chat = :chat RETURNING 1",
    "pads": "DELETE FROM pads WHERE space = :space AND chat = :chat RETURNING 1",
    "snapshots": "DELETE FROM snapshots WHERE space = :space AND chat = :chat RETURNING 1",
    "receipts": "DELETE FROM receipts WHERE space = :space AND chat = :chat RETURNING 1",
    "runs": "DELETE FROM runs WHERE space = :space AND chat = :chat RETURNING 1",
    "jobs": "DELETE FROM jobs WHERE space = :space AND chat = :chat RETURNING 1",
    "watermarks": "DELETE FROM watermarks WHERE space = :space AND chat = :chat RETURNING 1",
    # What was spent was spent; only where is forgotten.
    "spend": "UPDATE spend SET chat = '', job = '' WHERE space = :space AND chat = :chat RETURNING 1",
}
_OF_ALL = {
    "sessions": "DELETE FROM sessions WHERE space = :space RETURNING 1",
    "pads": "DELETE FROM pads WHERE space = :space RETURNING 1",
    "snapshots": "DELETE FROM snapshots WHERE space = :space RETURNING 1",
    "receipts": "DELETE FROM receipts WHERE space = :space RETURNING 1",
    "runs": "DELETE FROM runs WHERE space = :space RETURNING 1",
    "jobs": "DELETE FROM jobs WHERE space = :space RETURNING 1",
    "watermarks": "DELETE FROM watermarks WHERE space = :space RETURNING 1",
    "spend": "DELETE FROM spend WHERE space = :space RETURNING 1",
    "uses": "DELETE FROM uses WHERE space = :space RETURNING 1",
}


def _named(meta: str | None, key: str) -> list[str]:
    """Give the ids of records that metadata has under a key, in whatever shape somebody wrote it."""
    value = json.loads(meta).get(key) if meta else None
    names = value if isinstance(value, list) else [value]
    return [name for name in names if isinstance(name, str)]


def _ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Write numbers as ranges [first, last]."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def learned_from_nowhere(db: Database, space: str) -> list[Row]:
    """Give the versions that were learned in the background from a chat that is not there, each with the id of the chat.

    What was made of other records is not meant: it may stand for what somebody wrote of any chat.
    """
    with db.reading() as connection:
        return connection.all(_FROM_NOWHERE, space=space, learned='%"learned":%', of='%"of":%')
