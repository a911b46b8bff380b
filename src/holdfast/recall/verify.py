"""Proof that the promises hold: every message reachable, every number right, every row of the index true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.errors import Damaged
from holdfast.recall import segment as segments
from holdfast.recall.index import BEFORE_ALL, to_documents
from holdfast.recall.segment import BadSegment, Segment
from holdfast.store import log, sessions
from holdfast.store import segments as stored
from holdfast.store.rows import EPOCH, to_micros
from holdfast.types import Verification

if TYPE_CHECKING:
    from holdfast.store.database import Database

_BATCH = 4096


def verify(db: Database, space: str) -> Verification:
    """Check the log and the index of a space; see `Memory.verify`."""
    checked = {"sessions": 0, "messages": 0, "tool results": 0, "index segments": 0, "indexed messages": 0}
    problems = list(db.check())
    for session in sessions.read_all(db, space):
        checked["sessions"] += 1
        problems += _check_session(db, space, session, checked)
    problems += _check_numbers(db, space, checked["messages"])
    problems += _check_index(db, space, checked)
    return Verification(checked, tuple(problems))


def _check_session(
    db: Database, space: str, session: sessions.Session, checked: dict[str, int]
) -> Iterator[str]:
    """Read a session from its first message to its last, and compare it with what its row says."""
    seq, tokens = 0, 0
    times: list[int] = []
    calls: set[str] = set()
    while True:
        try:
            page = log.read(db, space, session.chat, after=seq, limit=_BATCH)
        except Damaged as error:
            yield f"chat {session.chat!r}: {error.what}"
            return
        for message in page:
            if message.seq != seq + 1:
                yield f"chat {session.chat!r}: message {seq + 1} is missing"
            seq = message.seq
            tokens += message.tokens
            times.append(to_micros(message.at or EPOCH))
            calls.update(call.id for call in message.calls)
            checked["messages"] += 1
            checked["tool results"] += len(message.answers)
            if not calls.issuperset(message.answers):
                yield f"chat {session.chat!r}: message {seq} answers a call that no earlier message made"
        if len(page) < _BATCH:
            break
    if (seq, tokens) != (session.length, session.tokens):
        yield (
            f"chat {session.chat!r}: its row says {session.length} messages and {session.tokens} tokens, "
            f"its log has {seq} and {tokens}"
        )
    elif times and (min(times), max(times)) != (session.oldest, session.newest):
        yield f"chat {session.chat!r}: its row has other times than its messages"


def _check_numbers(db: Database, space: str, messages: int) -> Iterator[str]:
    """Check that the document numbers are 1 … n, each once."""
    newest, _ = stored.state(db, space)
    count, first, last = stored.numbers(db, space)
    if (newest, count) != (messages, messages) or (messages and (first, last) != (1, messages)):
        yield (
            f"the space counts {newest} messages, its sessions have {messages}, "
            f"and {count} are numbered from {first} to {last}"
        )


def _check_index(db: Database, space: str, checked: dict[str, int]) -> Iterator[str]:
    """Make each stored segment anew from the log and compare the two."""
    covered = 0
    for row in stored.load(db, space, BEFORE_ALL):
        checked["index segments"] += 1
        if row.first != covered + 1:
            yield f"the index has no segment for the documents from {covered + 1}"
        covered = row.last
        if row.version != segments.VERSION:
            continue  # of another version of Holdfast: the next recall makes it anew
        name = f"the index segment of documents {row.first} to {row.last}"
        if row.checksum != segments.checksum(row.body):
            yield f"{name} has a wrong checksum"
            continue
        try:
            segment = Segment.decode(row.body)
        except BadSegment as error:
            yield f"{name} is damaged: {error}"
            continue
        if (segment.first, segment.last) != (row.first, row.last):
            yield f"{name} covers other documents than it says"
            continue
        rows = stored.documents(db, space, row.first - 1, segment.count)
        documents = to_documents(rows, row.first - 1, row.last)
        if not segment.same_as(segments.build(documents)):
            yield f"{name} says something else than the log: run `rebuild`"
        checked["indexed messages"] += len(rows)
