"""Import of conversations from files, folders and zips, each message once."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import __version__
from holdfast.errors import Conflict, InvalidInput
from holdfast.io import everything
from holdfast.io.everything import database_of
from holdfast.io.files import File
from holdfast.io.import_items import ImportedChat, ImportedMessage, Item, Skip
from holdfast.io.sources import READ_ERRORS, Ignored, SourceFile, Unread, sources
from holdfast.store import imports, log, sessions
from holdfast.text.clean import clean

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.chat import Chat
    from holdfast.memory import Memory
    from holdfast.types import Message

Progress = Callable[[str, int], None]
"""Called after each batch with the path of the file and the number of messages found in all files so far."""

_NO_LINE = 0  # the line of a whole file
_CHUNK = 1 << 20
_BATCH = 500  # messages in one transaction
_LISTED = 10  # line numbers that a report lists for one reason
_REASONS = 1000  # reasons that a report lists
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Lines or messages of a file that were left out for a reason: their number, and the first of them.

    `lines` are line numbers of JSONL, positions in a JSON array, or 0 for the whole file. `problem` is True
    if they should have been messages, and False for what a format has beside its messages.
    """

    path: str
    reason: str
    count: int
    lines: tuple[int, ...]
    problem: bool


@dataclass(slots=True)
class ImportReport:
    """The result of an import: chats, messages `added` and already `present`, and messages by format."""

    sessions: int = 0
    added: int = 0
    present: int = 0
    skipped: tuple[Skipped, ...] = ()
    formats: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    rows: Counter[str] = field(default_factory=Counter)
    """The rows added from an export of everything, by table."""
    renumbered: int = 0
    """The number of its versions of records that have other numbers here, since there were some already."""
    unchanged: int = 0
    """The number of files that were not read, because they were imported before and have not changed."""
    ignored: Counter[str] = field(default_factory=Counter)
    """The number of files with something else, by the endings of their names."""

    @property
    def problems(self) -> tuple[Skipped, ...]:
        """The entries that should have been imported and were not."""
        return tuple(skipped for skipped in self.skipped if skipped.problem)


def import_paths(
    memory: Memory,
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    progress: Progress | None = None,
) -> ImportReport:
    """Add the conversations of files, folders and zips to a memory, each message once.

    The format of each file is recognised by its content. A message that cannot be read or stored is left out
    and reported with its file and line; the others are imported. A message without a time gets that of the
    one before it in its chat, at the beginning that of the next one with a time, and the present time if none
    has one. Repeat an interrupted import to complete it.

    The path of an export of everything restores all of it. It is trusted, so import only your own. One within
    a folder or a zip is left out.

    Raises:
        InvalidInput: there is nothing at one of the paths; nothing was imported.
        UnknownFormat: a path is a file in no known format; nothing was imported, unless it is a zip.
        NewerSchema: a newer Holdfast wrote an export of everything; it was not imported.

    """
    started = time.monotonic()
    named = list(map(Path, [paths] if isinstance(paths, str | os.PathLike) else paths))
    importer = _Importer(memory, progress or (lambda *_: None))
    exports = [path for path in named if everything.is_everything(path)]
    others = [sources(path) for path in named if path not in exports]
    for path in exports:
        importer.restore(File.at(path))
    for source in chain.from_iterable(others):
        if isinstance(source, Ignored):
            importer.report.ignored[source.ending] += 1
        elif isinstance(source, Unread):
            importer.skips.add(source.path, [source.skip])
        else:
            importer.take(source)
    report = importer.report
    report.skipped = importer.skips.all()
    report.seconds = time.monotonic() - started
    return report


class _Skips:
    """What was left out, by file and reason."""

    def __init__(self) -> None:
        self._by_reason: dict[tuple[str, str, bool], Skipped] = {}

    def add(self, path: str, skips: Iterable[Skip]) -> None:
        for skip in skips:
            self.count(Skipped(path, skip.reason, 1, (skip.line,), skip.problem))

    def count(self, more: Skipped) -> None:
        """Add lines to those of the same file and reason."""
        key = (more.path, more.reason, more.problem)
        if key not in self._by_reason and len(self._by_reason) >= _REASONS:
            key = (more.path, "for further reasons", more.problem)
        known = self._by_reason.get(key) or Skipped(more.path, key[1], 0, (), more.problem)
        lines = (*known.lines, *more.lines)[:_LISTED]
        self._by_reason[key] = replace(known, count=known.count + more.count, lines=lines)

    def all(self) -> tuple[Skipped, ...]:
        return tuple(self._by_reason.values())


class _Importer:
    """The import of some files."""

    def __init__(self, memory: Memory, progress: Progress) -> None:
        self._memory = memory
        self._database = database_of(memory)
        self._progress = progress
        self._chats: set[str] = set()
        self.report = ImportReport()
        self.skips = _Skips()

    def take(self, source: SourceFile) -> None:
        """Import a file; one that was imported before and has not changed is only counted."""
        scope, path, report = self._memory.scope, source.file.path, self.report
        found = report.formats.total()
        file_id = _file_id(source.file, scope.agent)
        digest = _digest(source.file) if self._database else ""
        known = digest and self._database and imports.find(self._database, scope.space, file_id, digest)
        added = 0
        if known:
            account = json.loads(known)
            report.unchanged += 1
            self._progress(path, found + account["messages"])
        else:
            file = _FileImport(self._memory, source, lambda read: self._progress(path, found + read))
            account, added = file.run(), file.added
            if digest and self._database and not file.is_broken:
                imports.note(self._database, scope.space, file_id, digest, json.dumps(account))
        self._count(source.format.name, account["chats"], added, account["messages"] - added)
        for reason, problem, count, lines in account["skipped"]:
            self.skips.count(Skipped(path, reason, count, tuple(lines), problem))

    def restore(self, file: File) -> None:
        """Import an export of everything."""
        restored = everything.restore(self._memory, file)
        added, present = restored.added["messages"], restored.present["messages"]
        self._count(everything.FORMAT, restored.chats, added, present)
        self.report.rows += restored.added
        self.report.renumbered += restored.renumbered
        self.skips.add(file.path, (Skip(*one, problem=True) for one in restored.left_out))

    def _count(self, format: str, chats: Iterable[str], added: int, present: int) -> None:
        self._chats.update(chats)
        self.report.sessions = len(self._chats)
        self.report.added += added
        self.report.present += present
        self.report.formats[format] += added + present


class _FileImport:
    """The import of one file, a batch at a time."""

    def __init__(self, memory: Memory, source: SourceFile, progress: Callable[[int], None]) -> None:
        self._memory = memory
        self._source = source
        self._progress = progress
        self._chats: set[str] = set()
        self._stored = self.added = 0
        self._skips = _Skips()

    @property
    def is_broken(self) -> bool:
        """Whether the file could not be read to its end."""
        return any(one.problem and _NO_LINE in one.lines for one in self._skips.all())

    def run(self) -> dict[str, Any]:
        """Import it, and return the counts as JSON values, to be stored with its digest."""
        messages = self._messages()
        more = True
        while more:
            batch = list(islice(messages, _BATCH))
            by_chat: dict[str, list[ImportedMessage]] = defaultdict(list)
            for item in batch:
                by_chat[item.chat.id].append(item)
            for items in by_chat.values():
                self._store(items)
            self._progress(self._stored)
            more = len(batch) == _BATCH
        skipped = [(one.reason, one.problem, one.count, one.lines) for one in self._skips.all()]
        return {"chats": sorted(self._chats), "messages": self._stored, "skipped": skipped}

    def _messages(self) -> Iterator[ImportedMessage]:
        for item in _dated(self._source):
            if isinstance(item, Skip):
                self._skip([item])
            else:
                yield item

    def _skip(self, skips: Iterable[Skip]) -> None:
        self._skips.add(self._source.file.path, skips)

    def _store(self, items: Sequence[ImportedMessage]) -> None:
        """Append messages of one chat that are not stored yet."""
        origin = items[0].chat
        try:
            memory = self._memory.scoped(agent=clean(origin.agent)) if origin.agent else self._memory
            chat = memory.chat(clean(origin.id))
        except InvalidInput as error:
            self._skip(Skip(item.line, error.what, problem=True) for item in items)
            return
        before = chat.stats().messages
        fresh = _without_stored(memory, chat, items)
        stored = len(items) - len(fresh) + self._append(chat, fresh)
        after = chat.stats().messages
        if after and not before:
            _describe(memory, chat, origin)
        if stored:
            self._chats.add(chat.id)
        self._stored += stored
        self.added += after - before

    def _append(self, chat: Chat, items: Sequence[ImportedMessage]) -> int:
        """Append in one transaction, after an error in halves, and return the number of messages stored."""
        if not items:
            return 0
        try:
            chat.append([item.message for item in items])
        except (InvalidInput, Conflict) as error:
            if len(items) > 1:
                half = len(items) // 2
                return self._append(chat, items[:half]) + self._append(chat, items[half:])
            is_another = isinstance(error, Conflict)
            reason = "another message is stored under its id" if is_another else error.what
            self._skip([Skip(items[0].line, reason, problem=True)])
            return 0
        return len(items)


def _file_id(file: File, agent: str) -> str:
    """Return the id of a file for one agent: a hash of its path."""
    # In a zip the path continues within it, so it is not one of the system.
    path = os.path.abspath(file.path)  # noqa: PTH100
    return blake2b(json.dumps([path, file.name, agent]).encode(), digest_size=16).hexdigest()


def _digest(file: File) -> str:
    """Return a hash of the content and of our version; "" if the file cannot be read."""
    digest = blake2b(__version__.encode(), digest_size=16)
    try:
        with file.open() as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except READ_ERRORS:
        return ""
    return digest.hexdigest()


def _dated(source: SourceFile) -> Iterator[Item]:
    """Yield the items of a file; a message without a time gets that of its neighbour in the chat."""
    times: dict[str, datetime | None] = {}
    for item in source.read():
        if isinstance(item, Skip):
            yield item
            continue
        at, chat = item.message.at, item.chat.id
        if at is None and chat not in times:
            times = _first_times(source) | times
        times[chat] = at or times.get(chat)
        yield item if at else replace(item, message=replace(item.message, at=times[chat]))


def _first_times(source: SourceFile) -> dict[str, datetime | None]:
    """Return the first time of each chat of a file, None if it has none."""
    first: dict[str, datetime | None] = {}
    for item in source.read():
        if isinstance(item, ImportedMessage) and first.get(item.chat.id) is None:
            first[item.chat.id] = item.message.at
    return first


def _without_stored(
    memory: Memory, chat: Chat, items: Sequence[ImportedMessage]
) -> Sequence[ImportedMessage]:
    """Return the items whose text is not stored yet; programs rewrite the payloads of the same messages."""
    database = database_of(memory)
    if database is None:
        return items
    ids = sorted({item.message.id for item in items if item.message.id})
    present = log.by_ids(database, memory.scope.space, chat.id, ids)
    stored = {message.id: _words(message) for message in present}
    return [item for item in items if stored.get(item.message.id) != _words(item.message)]


def _words(message: Message) -> tuple[object, ...]:
    return message.role, message.name, message.content, message.calls, message.call_id


def _describe(memory: Memory, chat: Chat, origin: ImportedChat) -> None:
    """Set title, archive flag and label of a new chat; an import never changes those of an existing one."""
    title = " ".join(_CONTROL.sub(" ", clean(origin.title)).split())
    if title:
        chat.rename(title[:500])
    if origin.archived:
        chat.archive()
    if origin.label and (database := database_of(memory)):
        sessions.relabel(database, memory.scope.space, chat.id, origin.label)
