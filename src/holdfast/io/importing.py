"""Importing conversations: whatever is new in files, folders and zips goes into a memory, once."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from holdfast import __version__
from holdfast.errors import Conflict, InvalidInput
from holdfast.io import everything
from holdfast.io.everything import is_everything
from holdfast.io.files import File
from holdfast.io.found import Found, Session, Skip
from holdfast.io.sources import READ_ERRORS, Ignored, Source, Unread, sources
from holdfast.store import imports, log
from holdfast.text.clean import clean

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.chat import Chat
    from holdfast.memory import Memory
    from holdfast.types import Message

Progress = Callable[[str, int], None]
"""Be told, after each batch, which file is being read and how many messages have been found in all."""

_NO_LINE = 0  # stands for a whole file
_CHUNK = 1 << 20
_BATCH = 500  # messages in one transaction
_LISTED = 10  # line numbers that a report names for one reason
_REASONS = 1000  # different reasons that a report keeps apart
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Say what of a file was left out and why: how many lines or messages, and where the first of them are.

    `lines` are line numbers of JSONL, positions in a JSON array, or 0 for the whole file. `problem` says that it should
    have been a message; what a format keeps beside its messages is none.
    """

    path: str
    reason: str
    count: int
    lines: tuple[int, ...]
    problem: bool

    @property
    def line(self) -> int:
        """Name the first line."""
        return self.lines[0]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Count what an import did: sessions seen, messages `added` and `present` already, and messages by format."""

    sessions: int
    added: int
    present: int
    skipped: tuple[Skipped, ...]
    formats: Mapping[str, int] = field(hash=False)
    seconds: float
    rows: Mapping[str, int] = field(default_factory=dict, hash=False)
    """What came of an export of everything, by its table."""
    renumbered: int = 0
    """How many versions of records of it have other numbers here, because there were some already."""
    unchanged: int = 0
    """How many files were not read, because they were imported as they are."""
    ignored: Mapping[str, int] = field(default_factory=dict, hash=False)
    """How many files were passed over because they hold something else, by how their names end."""

    @property
    def problems(self) -> tuple[Skipped, ...]:
        """List what should have been imported and was not."""
        return tuple(skipped for skipped in self.skipped if skipped.problem)


def import_paths(
    memory: Memory,
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    progress: Progress | None = None,
) -> ImportReport:
    """Add the conversations of files, folders and zips to a memory, each message once, however often it is imported.

    An export of everything that is named itself brings back all that it holds; it is believed, so import your own ones
    only. One within a folder or a zip is left out. The format of each file is recognised by what is in it. A message that
    cannot be read or stored is left out and reported with its file and line; the others are imported. One without a time
    takes that of the message before it in its session (at the head, of the next one that has a time; now, where none
    has). When this is interrupted, do it again: it goes on.

    Raises:
        InvalidInput: there is nothing at one of the paths; nothing was imported.
        UnknownFormat: a file that was named is in no known format; nothing was imported, unless it is a zip.
        NewerSchema: a newer Holdfast wrote an export of everything; it was not imported.

    """
    started = time.monotonic()
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    intake = _Intake(memory)
    whole = [path for path in given if is_everything(Path(path))]
    others = [sources(path) for path in given if path not in whole]
    for path in whole:
        intake.restore(everything.named(path))
    for source in chain.from_iterable(others):
        if isinstance(source, Ignored):
            intake.ignored[source.ending] += 1
        elif isinstance(source, Unread):
            intake.leave_out(source.path, source.skip)
        else:
            intake.take(source, progress)
    return ImportReport(
        len(intake.sessions),
        intake.added,
        intake.present,
        tuple(
            Skipped(path, reason, count, tuple(intake.lines[path, reason, problem]), problem)
            for (path, reason, problem), count in intake.skipped.items()
        ),
        dict(intake.formats),
        time.monotonic() - started,
        dict(intake.rows),
        intake.renumbered,
        intake.unchanged,
        dict(intake.ignored),
    )


class _Account(TypedDict):
    """What came of a file, as it is kept."""

    chats: Sequence[str]
    messages: int
    skipped: Sequence[tuple[str, bool, int, Sequence[int]]]


class _Intake:
    """Store what is found, a batch at a time, and keep count."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.sessions: set[str] = set()
        self.added = self.present = 0
        self.rows: Counter[str] = Counter()
        self.renumbered = 0
        self.unchanged = 0
        self.ignored: Counter[str] = Counter()
        self.formats: Counter[str] = Counter()
        self.skipped: Counter[tuple[str, str, bool]] = Counter()
        self.lines: dict[tuple[str, str, bool], list[int]] = defaultdict(list)

    def take(self, source: Source, progress: Progress | None) -> None:
        """Import one file; of one that was imported as it is only repeat what came of it."""
        opened = getattr(self.memory, "_open", None)  # a memory that keeps nothing has none open
        if opened is None:
            self._read(source, progress)
            return
        scope = self.memory.scope
        place, digest = _place(source.file, scope.agent), _digest(source.file)
        account = digest and imports.find(opened.database, scope.space, place, digest)
        if account:
            self._repeat(source, json.loads(account))
            if progress is not None:
                progress(source.path, self.formats.total())
            return
        one = _Intake(self.memory)
        before = self.formats.total()
        one._read(source, progress and (lambda path, found: progress(path, before + found)))
        came = one._account(source)
        self._repeat(source, came)
        self.added += one.added
        self.present -= one.added
        self.unchanged -= 1
        if digest and not any(_NO_LINE in lines and problem for (*_, problem), lines in one.lines.items()):
            imports.note(opened.database, scope.space, place, digest, json.dumps(came))

    def _account(self, source: Source) -> _Account:
        skipped = [
            (reason, problem, count, self.lines[path, reason, problem])
            for (path, reason, problem), count in self.skipped.items()
        ]
        return {"chats": sorted(self.sessions), "messages": self.formats[source.format], "skipped": skipped}

    def _repeat(self, source: Source, account: _Account) -> None:
        """Count what came of a file, whose messages are stored already."""
        self.unchanged += 1
        self.sessions.update(account["chats"])
        self.present += account["messages"]
        self.formats[source.format] += account["messages"]
        for reason, problem, count, lines in account["skipped"]:
            for line in lines:
                self.leave_out(source.path, Skip(line, reason, problem))
            self.leave_out(source.path, Skip(lines[-1], reason, problem), count - len(lines))

    def _read(self, source: Source, progress: Progress | None) -> None:
        waiting: dict[str, list[Found]] = defaultdict(list)
        held = 0
        for item in _timed(source):
            if isinstance(item, Skip):
                self.leave_out(source.path, item)
                continue
            waiting[item.session.id].append(item)
            held += 1
            if held == _BATCH:
                self._store(source, waiting, progress)
                held = 0
        self._store(source, waiting, progress)

    def restore(self, file: File) -> None:
        """Import an export of everything."""
        restored = everything.restore(self.memory, file)
        messages = (restored.added["messages"], restored.present["messages"])
        self.added += messages[0]
        self.present += messages[1]
        self.sessions |= restored.chats
        self.formats[everything.FORMAT] += sum(messages)
        self.rows += restored.added
        self.renumbered += restored.renumbered
        for line, reason in restored.left_out:
            self.leave_out(file.path, Skip(line, reason, problem=True))

    def leave_out(self, path: str, skip: Skip, more: int = 1) -> None:
        """Count something that is not imported."""
        if not more:
            return
        key = (path, skip.reason, skip.problem)
        if key not in self.skipped and len(self.skipped) >= _REASONS:
            key = (path, "for further reasons", skip.problem)
        self.skipped[key] += more
        if len(self.lines[key]) < _LISTED:
            self.lines[key].append(skip.line)

    def _store(self, source: Source, waiting: dict[str, list[Found]], progress: Progress | None) -> None:
        for batch in waiting.values():
            stored, added = self._store_session(source.path, batch)
            self.added += added
            self.present += stored - added
            self.formats[source.format] += stored
        waiting.clear()
        if progress is not None:
            progress(source.path, self.formats.total())

    def _store_session(self, path: str, batch: Sequence[Found]) -> tuple[int, int]:
        """Append messages of one session; return how many are stored now, and how many of them were not before."""
        session = batch[0].session
        try:
            memory = self.memory.scoped(agent=clean(session.agent)) if session.agent else self.memory
            chat = memory.chat(clean(session.id))
        except InvalidInput as error:
            for item in batch:
                self.leave_out(path, Skip(item.line, error.what, problem=True))
            return 0, 0
        before = chat.stats().messages
        stored = self._append(path, chat, batch)
        after = chat.stats().messages
        if after and not before:
            _describe(chat, session)
        if stored:
            self.sessions.add(chat.id)
        return stored, after - before

    def _append(self, path: str, chat: Chat, batch: Sequence[Found]) -> int:
        """Append what is not stored yet, and return how many are stored now."""
        fresh = _without_stored(chat, batch)  # by its id, before anything of it is looked at
        return len(batch) - len(fresh) + (self._append_new(path, chat, fresh) if fresh else 0)

    def _append_new(self, path: str, chat: Chat, batch: Sequence[Found]) -> int:
        """Append in one transaction; where a message cannot be stored, in halves, until it is alone."""
        try:
            chat.append([item.message for item in batch])
        except (InvalidInput, Conflict) as error:
            if len(batch) == 1:
                is_another = isinstance(error, Conflict)
                reason = "another message is stored under its id" if is_another else error.what
                self.leave_out(path, Skip(batch[0].line, reason, problem=True))
                return 0
            half = len(batch) // 2
            return self._append_new(path, chat, batch[:half]) + self._append_new(path, chat, batch[half:])
        return len(batch)


def _place(file: File, agent: str) -> str:
    """Name a file by where it is, and the agent that it is imported for."""
    return _hash(json.dumps([os.path.abspath(file.path), file.name, agent]).encode())  # noqa: PTH100 - of a zip, a path within


def _digest(file: File) -> str:
    """Name what is in a file, and who reads it; "" where it cannot be read, which its reader says."""
    hashed = blake2b(__version__.encode(), digest_size=16)
    try:
        with file.open() as stream:
            while chunk := stream.read(_CHUNK):
                hashed.update(chunk)
    except READ_ERRORS:
        return ""
    return hashed.hexdigest()


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _timed(source: Source) -> Iterator[Found | Skip]:
    """Read a file, and date what has no time: as the message before it in its session, at the head as the next one."""
    known: dict[str, datetime | None] = {}
    for item in source.read():
        if not isinstance(item, Found):
            yield item
            continue
        at, session = item.message.at, item.session.id
        if at is None and session not in known:
            known = _first_times(source) | known
        known[session] = at or known.get(session)
        yield item if at else replace(item, message=replace(item.message, at=known[session]))


def _first_times(source: Source) -> dict[str, datetime | None]:
    """Read the first time of each session of a file, None for those without any."""
    first: dict[str, datetime | None] = {}
    for item in source.read():
        if isinstance(item, Found) and first.get(item.session.id) is None:
            first[item.session.id] = item.message.at
    return first


def _without_stored(chat: Chat, batch: Sequence[Found]) -> Sequence[Found]:
    """Leave out what is stored word for word with another payload: programs rewrite what stands around their messages."""
    memory = chat._memory  # noqa: SLF001 - a part of it
    opened = getattr(memory, "_open", None)
    if opened is None:
        return batch
    ids = sorted({item.message.id for item in batch if item.message.id})
    present = log.by_ids(opened.database, memory.scope.space, chat.id, ids)
    stored = {message.id: _words(message) for message in present}
    return [item for item in batch if stored.get(item.message.id) != _words(item.message)]


def _words(message: Message) -> tuple[object, ...]:
    return message.role, message.name, message.content, message.calls, message.call_id


def _describe(chat: Chat, session: Session) -> None:
    """Give a new chat the title and the place that its session had; later, both are the user's to change."""
    title = " ".join(_CONTROL.sub(" ", clean(session.title)).split())
    if title:
        chat.rename(title[:500])
    if session.archived:
        chat.archive()
    if session.label:
        chat._relabel(session.label)  # noqa: SLF001 - when it was created is for nobody else to say
