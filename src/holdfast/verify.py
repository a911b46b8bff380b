"""Verification: every message reachable, every number right, every segment of the index as the log says."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import Damaged
from holdfast.search import segment as segments
from holdfast.search.index import BEFORE_ALL
from holdfast.search.message_source import MESSAGES
from holdfast.search.record_source import RECORDS
from holdfast.search.segment import BadSegment, Segment
from holdfast.search.source import SearchSource
from holdfast.search.summary_source import SUMMARIES
from holdfast.store import (
    branches,
    checksums,
    erasure_receipts,
    grants,
    log,
    records,
    sessions,
    summaries,
    vectors,
    watermarks,
)
from holdfast.store import segments as stored
from holdfast.store.atomic_file import new_file
from holdfast.store.connect import check_location, open_database
from holdfast.store.message_rows import EPOCH, to_micros
from holdfast.store.space_rows import spaces
from holdfast.types import MAX_COUNT, SOURCES, Summary, Verification
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.store.database import Database
    from holdfast.types import Scope

# Rows of a table that are named one by one.
_NAMED = 20


def verify(db: Database, scopes: Sequence[Scope], key: bytes = b"") -> Verification:
    """Check the log, the records and the indexes of spaces; see `Memory.verify`."""
    checked, problems, unproven = Counter[str](), list(db.check()), 0
    for scope in scopes:
        result = _verify_space(db, scope.space, key)
        checked.update(result.checked)
        named = f"project {scope.project!r}: " if scope is not scopes[0] else ""
        problems += [named + problem for problem in result.problems]
        unproven += result.unproven
    return Verification(dict(checked), tuple(problems), unproven)


def _verify_space(db: Database, space: str, key: bytes) -> Verification:
    checked = dict.fromkeys(
        ("sessions", "messages", "tool results", "summaries", "records", "versions", "watermarks", "erased"),
        0,
    )
    indexes: dict[str, SearchSource[Any]] = {
        "indexed messages": MESSAGES,
        "indexed summaries": SUMMARIES,
        "indexed versions": RECORDS,
    }
    checked |= dict.fromkeys(("unanswered calls", "index segments", *indexes), 0)
    problems: list[str] = []
    docs, versions = erasure_receipts.erased_numbers(db, space, problems.append)
    if left := erasure_receipts.count_unfinished(db, space):
        problems.append(
            f"{left} erasures were deferred, interrupted or hindered: the files may hold remains until the "
            "next erasure, or `verify(repair=True)`"
        )
    checked["erased"] = sum(last - first + 1 for first, last in (*docs, *versions))
    lengths = {}
    for session in sessions.read_all(db, space):
        lengths[session.chat] = session.length
        checked["sessions"] += 1
        problems += _check_session(db, space, session, checked)
        problems += _check_tree(db, space, session, checked)
    problems += _check_watermarks(db, space, lengths, checked)
    problems += _check_numbers(db, space, checked["messages"], docs)
    problems += _check_records(db, space, checked, versions)
    problems += _check_vectors(db, space, checked)
    unproven, wrong = check_rows(db, space, key, checked)
    problems += wrong
    problems += grants.defects(db, space)
    for version, chat in records.learned_from_missing_chats(db, space):
        problems.append(
            f"version {version} of what is known was learned from chat {chat!r}, which is not there"
        )
    for count, indexed in indexes.items():
        problems += _check_index(db, space, indexed, checked, count)
    return Verification(checked, tuple(problems), unproven)


def verify_copy(location: str, key: bytes) -> Verification:
    """Check a new copy: by SQLite, and each row of all its spaces.

    Raises:
        Damaged: SQLite cannot read all of it.

    """
    with closing(open_database(location, key=key)) as db:
        if problems := db.check():
            raise Damaged(
                f"The copy is damaged ({problems[0]}).", "Check the disk, and try again with another one."
            )
        checked = {"spaces": 0, "checksums": 0}
        unproven, wrong = 0, []
        for space in spaces(db):
            checked["spaces"] += 1
            more, problems = check_rows(db, space, key, checked)
            unproven += more
            wrong += problems
    return Verification(checked, tuple(wrong), unproven)


def check_rows(db: Database, space: str, key: bytes, checked: dict[str, int]) -> tuple[int, list[str]]:
    """Compare each row with its checksum; return the number of rows without one, and the problems."""
    unproven, problems = 0, []
    checked["checksums"] = checked.get("checksums", 0)
    for table in checksums.CHANGING:
        wrong = 0
        try:
            for row, holds in checksums.check(db, space, table, key):
                checked["checksums"] += holds is not None
                unproven += holds is None
                wrong += holds is False
                if holds is False and wrong <= _NAMED:
                    problems.append(f"{_name(table, row)} has another checksum than when it was written")
        except Damaged as error:
            problems.append(f"not all rows of the table {table} can be read: {error.what}")
        if wrong > _NAMED:
            problems.append(f"so have {wrong - _NAMED} more rows of the table {table}")
    return unproven, problems


def _name(table: str, row: Mapping[str, Any]) -> str:
    chat = f"chat {row.get('chat')!r}"
    return {
        "messages": lambda: f"message {write_reference(row['chat'], row['seq'])}",
        "records": lambda: f"version {row['version']} of what is known",
        "summaries": lambda: f"{chat}: summary {row['id']}",
        "sessions": lambda: f"{chat}: its row",
        "pads": lambda: f"the name {row['name']!r} of a scratchpad",
        "items": lambda: f"an item of {row['collection']!r}, {row['key']!r}",
        "erasures": lambda: f"the receipt {row['id']!r}",
        "grants": lambda: f"the grant {row['id']!r}",
        "snapshots": lambda: f"{chat}: its snapshot",
        "heads": lambda: f"{chat}: its branch {row['number']}",
    }[table]()


def _check_watermarks(
    db: Database, space: str, lengths: Mapping[str, int], checked: dict[str, int]
) -> Iterator[str]:
    """Yield watermarks beyond the end of their chat: the next messages would never be learned from."""
    for chat, kind, seq in watermarks.read_all(db, space):
        checked["watermarks"] += 1
        if chat and seq > lengths.get(chat, 0):
            yield f"chat {chat!r}: {kind!r} has looked at {seq} messages, and it has {lengths.get(chat, 0)}"


def _check_session(
    db: Database, space: str, session: sessions.ChatRow, checked: dict[str, int]
) -> Iterator[str]:
    """Yield the differences between the messages of a chat, from first to last, and its row."""
    seq, tokens, missing = 0, 0, 0
    aside, tree = branches.aside(db, space, session.chat), branches.tree(db, space, session.chat)
    path = tree.path(tree.head)
    times: list[int] = []
    calls: dict[str, bool] = {}  # whether they have a result
    early: dict[str, int] = {}
    try:
        for message in log.forward(db, space, session.chat, 0, MAX_COUNT, [(1, MAX_COUNT)]):
            if message.seq != seq + 1:
                missing += message.seq - seq - 1
                if not session.erased:
                    yield f"message {write_reference(session.chat, seq + 1)} is missing"
            seq = message.seq
            if branches.is_on(path, seq) == (seq in aside):
                name = write_reference(session.chat, seq)
                yield f"message {name} is marked as of another branch than it is"
            checked["messages"] += 1
            checked["tool results"] += len(message.answers)
            if seq in aside:
                continue
            tokens += message.tokens
            times.append(to_micros(message.at or EPOCH))
            calls |= {call.id: False for call in message.calls}
            early |= {message.call_id: seq} if message.call_id and not message.answers else {}
            if not session.erased and not calls.keys() >= {*message.answers}:
                name = write_reference(session.chat, seq)
                yield f"message {name} answers a call that no earlier message made"
            calls |= dict.fromkeys(message.answers, True)
    except Damaged as error:
        yield f"chat {session.chat!r}: {error.what}"
        return
    unanswered = [call for call, has_result in calls.items() if not has_result]
    checked["unanswered calls"] += len(unanswered)
    for call in early.keys() & unanswered:
        name = write_reference(session.chat, early[call])
        yield f"message {name} is the result of a call that a later message makes: no window shows either"
    yield from _check_counts(session, seq, tokens, missing, times, len(aside))


def _check_counts(
    session: sessions.ChatRow, seq: int, tokens: int, missing: int, times: Sequence[int], aside: int
) -> Iterator[str]:
    """Yield the differences between the row of a chat and the counts of its messages."""
    if aside != session.aside:
        yield f"chat {session.chat!r}: its row says {session.aside} messages are aside, {aside} are"
    missing += max(0, session.length - seq) if session.erased else 0
    seq = max(seq, session.length) if session.erased else seq
    if session.erased and missing != session.erased:
        yield f"chat {session.chat!r}: {missing} messages are missing, and {session.erased} were erased"
    if (seq, tokens) != (session.length, session.tokens):
        yield (
            f"chat {session.chat!r}: its row says {session.length} messages and {session.tokens} tokens, "
            f"its log has {seq} and {tokens}"
        )
    elif times and (min(times), max(times)) != (session.oldest, session.newest):
        yield f"chat {session.chat!r}: its row has other times than its messages"


def _check_tree(
    db: Database, space: str, session: sessions.ChatRow, checked: dict[str, int]
) -> Iterator[str]:
    """Yield the places where the summaries of a chat are not trees over its messages up to `covered`."""
    name = f"chat {session.chat!r}"
    try:
        nodes = summaries.read_all(db, space, session.chat)
        said = {n.id: summaries.message_totals(db, space, session.chat, n.first, n.last) for n in nodes}
    except Damaged as error:
        yield f"{name}: {error.what}"
        return
    checked["summaries"] += len(nodes)
    by_parent: dict[str, list[Summary]] = {}
    for node in nodes:
        by_parent.setdefault(node.parent, []).append(node)
    for node in nodes:
        children = by_parent.pop(node.id, [])
        if node.depth and not _is_gapless(children, node.first, node.last, node.depth - 1):
            what = "is not made of summaries that follow each other, one level below it"
            yield f"{name}: summary {node.id} {what}"
        elif children and not node.depth:
            yield f"{name}: summary {node.id} is a leaf and has children"
        if said[node.id] != (node.messages, node.source_tokens, node.since, node.until):
            behind = write_reference(session.chat, node.first, node.last)
            yield f"{name}: summary {node.id} counts other messages than {behind}"
    frontier = sorted(by_parent.pop("", []), key=lambda node: node.first)
    for parent in by_parent:
        yield f"{name}: summaries are part of {parent}, which is not there"
    if not _is_gapless(frontier, 1, session.covered):
        last = write_reference(session.chat, session.covered)
        yield f"{name}: its summaries do not cover each message up to {last} once"
    totals = [sum(map(attrgetter(name), frontier)) for name in ("messages", "source_tokens", "tokens")]
    if totals != [session.covered_messages, session.covered_tokens, session.summary_tokens]:
        yield f"{name}: its row counts other summaries than it has"


def _is_gapless(nodes: Sequence[Summary], first: int, last: int, depth: int | None = None) -> bool:
    """Return whether ranges follow each other without gaps from `first` to `last`, at one depth."""
    for node in nodes:
        if node.first != first or node.last < first or depth not in (None, node.depth):
            return False
        first = node.last + 1
    return first == last + 1


def _check_numbers(
    db: Database, space: str, messages: int, erased: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """Yield the document numbers that are missing or double in 1 … n, apart from those in receipts."""
    newest = stored.index_state(db, space).message
    count, missing = stored.missing(db, space)
    if count != messages:
        yield f"the space counts {count} messages, its sessions have {messages}"
    for first, last in missing:
        if not _is_covered(first, last, erased):
            yield f"the messages numbered from {first} to {last} of {newest} are missing"


def _is_covered(first: int, last: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Return whether each number of a range is in one of the others."""
    for start, end in sorted(ranges):
        if start <= first <= end:
            first = end + 1
    return first > last


def _check_records(
    db: Database, space: str, checked: dict[str, int], erased: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """Yield the versions that are missing or double in 1 … n, and gaps between those of a record."""
    newest, before = stored.index_state(db, space).record, 0
    last: dict[str, tuple[int, int]] = {}
    for version, identity, ended in records.version_numbers(db, space):
        checked["versions"] += 1
        if version != before + 1 and not _is_covered(before + 1, version - 1, erased):
            yield f"the versions from {before + 1} to {version - 1} of what is known are missing"
        before = version
        former = last.get(identity)
        if former and former[1] != version and not _is_covered(former[1], former[1], erased):
            yield f"version {former[0]} of what is known does not end where version {version} begins"
        last[identity] = (version, ended)
    checked["records"] = len(last)
    if before != newest and not _is_covered(before + 1, newest, erased):
        yield f"the versions from {before + 1} to {newest} of what is known are missing"
    for version, ended in last.values():
        if ended < MAX_COUNT and not _is_covered(ended, ended, erased):
            yield f"version {version} of what is known ends at version {ended}, which is not there"


def _check_vectors(db: Database, space: str, checked: dict[str, int]) -> Iterator[str]:
    """Yield the vectors that belong to nothing that is there, or have another size than their set."""
    checked["vectors"] = vectors.count(db, space)
    sets, newest = vectors.sets(db, space), stored.index_state(db, space)
    for by_model, source in product(sets, SOURCES):
        done = by_model.done(source)
        if done > getattr(newest, source):
            yield f"the vectors by {by_model.model} reach to {source} {done:,}, which is not there"
    wrong = {
        "belongs to nothing that is there": vectors.orphans(db, space),
        "is not of the size of its set": vectors.misshapen(db, space),
    }
    for what, numbers in wrong.items():
        for model, source, number, *_ in numbers[:_NAMED]:
            yield f"the vector of {source} {number} by {model} {what}"
        if len(numbers) > _NAMED:
            yield f"so do {len(numbers) - _NAMED} more vectors"


def _check_index(
    db: Database, space: str, indexed: SearchSource[Any], checked: dict[str, int], count: str
) -> Iterator[str]:
    """Build each stored segment of this version anew, and yield the differences."""
    covered = 0
    for row in stored.load(db, space, segments.VERSION, BEFORE_ALL, indexed.name):
        checked["index segments"] += 1
        things = "summaries" if indexed.name == "summary" else f"{indexed.name}s"
        name = f"the index segment of {things} {row.first} to {row.last}"
        if row.first != covered + 1:
            yield f"the index has no segment for the {things} from {covered + 1}"
        covered = row.last
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
        documents = indexed.documents(db, space, row.first - 1, row.last)
        if segment.encode() != segments.build(documents).encode():
            made_from = "log" if indexed.name == "message" else things
            yield f"{name} differs from the {made_from}: repair the index"
        checked[count] += sum(bool(document.role) for document in documents)


def backup(db: Database, path: str | os.PathLike[str]) -> Verification:
    """Copy a database into a new file, and check the copy; see `Memory.backup`.

    The copy holds what was committed when it began, and opens as any database. It is readable by its owner
    only, and there whole or not at all. A row that was damaged before is copied as it is, and named among the
    problems.

    Raises:
        InvalidInput: there is a file at the path; or the database is on PostgreSQL, which has pg_dump for
            that.
        Unavailable: the copy cannot be written; nothing of it is left.
        Damaged: the database cannot be read whole; `holdfast salvage` saves what can be.

    """
    with new_file(Path(check_location(path)).absolute()) as draft:
        db.copy(str(draft))
        with closing(open_database(str(draft))) as copy:
            erasure_receipts.note_rewritten(copy)
        return verify_copy(str(draft), db.key)
