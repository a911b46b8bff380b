"""Folders whose files are imported as they are written."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast import Memory
from holdfast.errors import HoldfastError
from holdfast_cli.formats.file_parts import end_of_lines, part_of
from holdfast_cli.formats.import_report import ImportReport
from holdfast_cli.formats.importing import ProjectOf, import_sources
from holdfast_cli.formats.redaction import Rules
from holdfast_cli.formats.sources import DATABASE_ENDINGS, LINE_ENDINGS, Source, SourceFile, sources_at

_REST = 9  # times as long as its import took, a file is left alone after it
_UNREADABLE = 60.0  # seconds after which a file that cannot be read is tried again
_LOG = "-wal"  # the ending of what SQLite writes before the database

_State = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a look at a path: the report of its import, or the problem."""

    path: Path
    report: ImportReport
    problem: str = ""


@dataclass(slots=True)
class _File:
    """The state of a file: its watched folder, and its size and times when last looked at and imported."""

    root: Path
    looked: _State
    imported: _State | None = None
    is_whole: bool = False
    until: float = 0.0


@dataclass(slots=True)
class FolderWatch:
    """The files of some folders, each imported when it has changed.

    Only sizes and times are looked at, so a look at which nothing has changed reads no file. Whatever is
    remembered between looks is in memory: that a file was imported, and its messages, is in the database, so
    another watch goes on from there.

    Args:
        folders: the folders, with all folders in them.
        memory: the memory to add to.
        rules: returns what the user keeps out, before each import.
        clock: returns seconds.
        project_of: returns the project of the user that a file belongs to, "" for none.

    """

    folders: Sequence[Path]
    memory: Memory
    rules: Callable[[], Rules | None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    project_of: ProjectOf = lambda _: ""
    _files: dict[str, _File] = field(default_factory=dict, init=False)
    _told: dict[Path, set[tuple[str, int]]] = field(default_factory=dict, init=False)

    def look(self) -> Iterator[Seen]:
        """Import what has changed since the last look, and yield each file with something to tell of it.

        Of a file of lines, those that are whole are imported at once, and one that is not ended when the file
        has stayed the same for two looks; so are documents, which are written anew. A file that took long is
        left alone for nine times as long, and one that cannot be read for a minute.
        """
        present = {path: (root, state) for root in self.folders for path, state in _states(root)}
        for path in self._files.keys() - present.keys():
            del self._files[path]
            self._told.pop(Path(path), None)
        for path in sorted(path for path, (_, state) in present.items() if not self._is_known(path, state)):
            root, state = present[path]
            file = self._files.setdefault(path, _File(root, ()))
            is_settled, file.looked = file.looked == state, state
            if self._is_due(Path(path), file, is_settled=is_settled):
                yield from self._import(Path(path), file, is_settled=is_settled)

    def _is_known(self, path: str, state: _State) -> bool:
        file = self._files.get(path)
        return file is not None and file.is_whole and state == file.looked == file.imported

    def _is_due(self, path: Path, file: _File, *, is_settled: bool) -> bool:
        if file.until > self.clock():
            return False
        # What is read of a database is of one moment.
        is_read_at_once = path.suffix.lower() in (*LINE_ENDINGS, *DATABASE_ENDINGS)
        return is_settled or (is_read_at_once and file.imported != file.looked)

    def _import(self, path: Path, file: _File, *, is_settled: bool) -> Iterator[Seen]:
        start = self.clock()
        is_whole = is_settled or path.suffix.lower() not in LINE_ENDINGS
        try:
            files = sources_at(path, file.root)
            files = files if is_whole else (_whole_lines(path, source) for source in files)
            report = import_sources(self.memory, files, self.rules(), self.project_of)
        except HoldfastError as error:
            # The next look tries again.
            yield from self._tell(path, ImportReport(), f"{error.what} {error.todo}")
            return
        wait = _REST * (self.clock() - start)
        if any(0 in skip.lines for skip in report.problems):
            file.until = self.clock() + max(wait, _UNREADABLE)
        else:
            file.until, file.imported, file.is_whole = self.clock() + wait, file.looked, is_whole
        # Or it vanished while it was read.
        if path.exists():
            yield from self._tell(path, report, "")

    def _tell(self, path: Path, report: ImportReport, problem: str) -> Iterator[Seen]:
        """Yield the news of an import: additions, and items left out that were not reported before."""
        skips = {(skip.reason, skip.count) for skip in report.skipped if skip.problem or 0 in skip.lines}
        skips |= {(problem, 0)} if problem else set()
        is_news = skips - self._told.get(path, set())
        self._told[path] = skips
        if report.added or report.records or report.rows or is_news:
            yield Seen(path, report, problem)


def _whole_lines(path: Path, source: Source) -> Source:
    """Return a file of lines without one at its end that may be half-written."""
    if not isinstance(source, SourceFile):
        return source
    return replace(source, file=replace(source.file, opener=part_of(path, 0, end_of_lines(path)).opener))


def _states(root: Path | str) -> Iterator[tuple[str, _State]]:
    """Yield the files of a folder and its folders, with what differs when they have changed."""
    states: dict[str, _State] = {}
    folders: list[str] = []
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                # Or it is gone, or leads nowhere.
                with suppress(OSError):
                    at = entry.stat()
                    states[entry.path] = (at.st_size, at.st_mtime_ns, at.st_ino)
    except OSError:
        # It is gone, or may not be read.
        return
    for path, state in states.items():
        if not path.endswith(_LOG):
            yield path, state + states.get(path + _LOG, ())
    for folder in folders:
        yield from _states(folder)
