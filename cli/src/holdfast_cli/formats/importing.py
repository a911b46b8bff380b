"""Import of conversations from files, folders and zips, each message once."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple, cast

from holdfast import Memory, __version__
from holdfast.errors import InvalidInput, NewerSchema, UnknownFormat, shown
from holdfast.port.imports import Imports
from holdfast.port.safekeeping import restore_rows
from holdfast.port.texts import clean
from holdfast_cli.formats import everything, tables
from holdfast_cli.formats.file_import import Account, FileImport
from holdfast_cli.formats.files import File
from holdfast_cli.formats.foreign_sqlite import fingerprint
from holdfast_cli.formats.import_items import Item, Skip
from holdfast_cli.formats.import_report import ImportReport, Skipped, Skips
from holdfast_cli.formats.json_values import hash_of
from holdfast_cli.formats.record_edits import apply_edits
from holdfast_cli.formats.record_markdown import EDITS, is_records
from holdfast_cli.formats.redaction import Rules
from holdfast_cli.formats.sources import NOTES, Format, Ignored, Source, SourceFile, Unread, sizes, sources
from holdfast_cli.formats.zip_files import READ_ERRORS


class ImportProgress(NamedTuple):
    """How far an import has come: the `path` of a file, and its number of all `files`.

    `share` is the share of the bytes of all files that was read, and `messages` counts those of all so far.
    """

    path: str
    file: int
    files: int
    share: float
    messages: int


Progress = Callable[[ImportProgress], None]
"""Called when a file is begun, and after each batch of its messages."""
ProjectOf = Callable[[SourceFile], str]
"""Returns the project of the user that a file belongs to, "" for none."""

_CHUNK = 1 << 20


def import_paths(
    memory: Memory,
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    rules: Rules | None = None,
    dry_run: bool = False,
    format: str = "",
    project_of: ProjectOf = lambda _: "",
) -> ImportReport:
    """Add the conversations of files, folders and zips to a memory, each message once.

    The format of each file is recognised by its content, its project by `project_of`. A message that cannot
    be read or stored is left out and reported with its file and line; of several paths, so is one that is
    refused. A message without a time gets that of its neighbour in the chat. Repeat an interrupted import to
    complete it. What a prompt marks as `<private>…</private>`, and what the `rules` of the user cover, is
    replaced by a placeholder before anything is stored, in the payload too.

    The path of an export of everything restores all of it, and that of edited records (`export_records`)
    takes the edits over as the user's, or with `dry_run` only reports them. Both are trusted; name your own.

    With `format="notes"` all Markdown files, and no others, are notes: their sections, observations and
    relations become records. Without it that are those with the front matter of basic-memory.

    Raises:
        InvalidInput: there is nothing at any of the paths, or the format is unknown; nothing was imported.
        UnknownFormat: the only path is a file in no known format; nothing was imported.
        NewerSchema, UnreleasedSchema: the only path is an export of everything with another schema.

    """
    files = _existing_paths(paths)
    if format not in ("", NOTES.name):
        raise InvalidInput(f"Unknown format {shown(format)}.", 'Use "notes", or leave it out.')
    if dry_run and (format or not all(map(is_records, files))):
        what = "Only the edits of an export of records as Markdown can be shown without being made."
        raise InvalidInput(what, "Leave out `dry_run`, or name such files alone.")
    if not format:
        files.sort(key=lambda path: (not everything.is_everything(path), not is_records(path)))
    importer = _Importer(memory, rules, _told(progress, files), project_of)
    if format:
        importer.take_each(files, lambda path: importer.take_sources(_notes(path)))
    else:
        importer.take_each(files, partial(importer.take_path, dry_run=dry_run))
    return importer.finish()


def import_tables(
    memory: Memory,
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    columns: Mapping[str, str],
    progress: Progress | None = None,
    *,
    encoding: str = "utf-8",
    rules: Rules | None = None,
) -> ImportReport:
    """Add the rows of CSV, JSONL and JSON files to a memory, as messages or as records, each once.

    A row that is none is left out and reported with its line. `columns` names the column of each field: of
    messages `content`, and as you like `role` (else "user"), `at`, `chat` (else one of the file's name),
    `name`, `id` and `title`; of records `text`, and as you like `kind` (else "fact"), `category`, `tags`,
    `target`, `since`, `until`, `source` and `id`. Of JSON, `a.b` is a field of an object, `^.a` one of
    the object around the row, and `rows` the place of the rows, such as "messages" or "chats.list.messages".
    A column that begins with "=" is what all rows have. With `meta` as "*" all other columns become metadata,
    else they are left out. A row without an `id` is known again by its words.

    Args:
        memory: the memory to add to.
        paths: files that end with .csv, .tsv, .jsonl, .ndjson or .json.
        columns: the column of each field.
        progress: see `Progress`.
        encoding: that of CSV files that do not begin with a mark of theirs.
        rules: what the user keeps private.

    Raises:
        InvalidInput: there is nothing at any of the paths, the only one is no such file or lacks a column, or
            the mapping names no words or an unknown field; nothing was imported.

    """
    files, table = _existing_paths(paths), tables.check_table(columns, encoding)
    importer = _Importer(memory, rules, _told(progress, files))
    importer.take_each(files, lambda path: importer.take(_table(path, table)))
    return importer.finish()


def check_path(paths: Iterable[str | os.PathLike[str]], columns: Mapping[str, str], encoding: str) -> None:
    """Raise why the only path is not imported, before a database is made for it.

    Raises:
        InvalidInput, UnknownFormat: as the import does.

    """
    files = _existing_paths(paths)
    if columns and len(files) == 1:
        tables.format_of(files[0], tables.check_table(columns, encoding))
    elif len(files) == 1 and not (everything.is_everything(files[0]) or is_records(files[0])):
        sources(files[0])


def _told(progress: Progress | None, paths: Iterable[Path]) -> Callable[[File, int], None]:
    """Return a function of a file and the messages so far, which tells how far the import of paths is."""
    if progress is None:
        return lambda *_: None
    bytes_of = dict(chain.from_iterable(map(sizes, paths)))
    starts = zip(bytes_of, accumulate(bytes_of.values(), initial=0), strict=False)
    places = {path: (number, start) for number, (path, start) in enumerate(starts, 1)}
    total = max(1, sum(bytes_of.values()))

    def tell(file: File, messages: int) -> None:
        # One that has come since is left out.
        if file.path in places:
            number, start = places[file.path]
            read = start + min(file.position, bytes_of[file.path])
            progress(ImportProgress(file.path, number, len(places), read / total, messages))

    return tell


def _table(path: Path, table: tables.Table) -> SourceFile:
    form = tables.format_of(path, table)
    return SourceFile(File.at(path), Format(form, partial(tables.read, table, form), options=table.options))


def _existing_paths(paths: object) -> list[Path]:
    """Return the paths as a list; at least one of them exists, be it as a link that leads nowhere."""
    try:
        files = list(map(Path, [paths] if isinstance(paths, str | os.PathLike) else cast("list[str]", paths)))
    except TypeError as error:
        raise InvalidInput(f"{shown(paths)} names no files.", "Name one path, or several.") from error
    if files and not any(map(os.path.lexists, files)):
        raise InvalidInput(f"There is no file or folder at {shown(str(files[0]))}.", "Check the path.")
    return files


def _notes(path: Path) -> Iterator[Source]:
    for source in sources(path, [NOTES]):
        ending = Path(source.file.path).suffix.lower() if isinstance(source, SourceFile) else ".md"
        yield source if ending == ".md" else Ignored(ending)


def import_sources(
    memory: Memory, files: Iterable[Source], rules: Rules | None, project_of: ProjectOf
) -> ImportReport:
    """Add the conversations of files that were found, each message once, as `import_paths` does."""
    importer = _Importer(memory, rules, project_of=project_of)
    importer.take_sources(files)
    return importer.finish()


def import_source(
    memory: Memory,
    source: SourceFile,
    *,
    rules: Rules | None = None,
    before: Iterable[Item] = (),
    is_whole: bool = False,
) -> tuple[ImportReport, bool]:
    """Add the conversations of one file whose format is known, each message once, as `import_paths` does.

    Whether the file was imported before is neither looked up nor noted. `before` are the items of the same
    file that were imported already: what is left out of them is recognised in the others. Of a file that
    `is_whole`, what hooks were told of a message is recognised by how often it was said.

    Returns:
        The report, and whether something was left out as the user wished.

    """
    importer = _Importer(memory, rules)
    file = FileImport(memory, source, lambda _: None, rules, before, is_whole=is_whole)
    importer.count(source, file.run(), file.added, file.records_added)
    return importer.finish(), file.is_redacted


@dataclass(slots=True)
class _Importer:
    """The import of some files."""

    memory: Memory
    rules: Rules | None
    progress: Callable[[File, int], None] = lambda *_: None
    project_of: ProjectOf = lambda _: ""
    report: ImportReport = field(default_factory=ImportReport)
    skips: Skips = field(default_factory=Skips)
    _chats: set[str] = field(default_factory=set)
    _started: float = field(default_factory=time.monotonic)

    def take_path(self, path: Path, *, dry_run: bool) -> None:
        """Import what is at a path."""
        if everything.is_everything(path):
            self.restore(path)
        elif is_records(path):
            self.edit(path, dry_run=dry_run)
        else:
            self.take_sources(sources(path))

    def take_each(self, paths: Sequence[Path], take: Callable[[Path], None]) -> None:
        """Import each path; of several paths, report one that is refused."""
        for path in paths:
            try:
                if not os.path.lexists(path):
                    raise InvalidInput(f"{str(path)!r} is no file or folder.", "Check the path.")
                take(path)
            except (InvalidInput, UnknownFormat, NewerSchema) as error:
                if len(paths) == 1:
                    raise
                reason = error.what.removeprefix(f"{str(path)!r} ").removeprefix("is ").rstrip(".")
                self.skips.add(clean(str(path)), [Skip(0, reason, problem=True)])

    def take_sources(self, files: Iterable[Source]) -> None:
        """Import the files among sources, and count the others."""
        for source in files:
            if isinstance(source, Ignored):
                self.report.ignored[source.ending] += 1
            elif isinstance(source, Unread):
                self.skips.add(source.path, [source.skip])
            else:
                self.take(source)

    def finish(self) -> ImportReport:
        """Return the report of all that was imported."""
        self.report.skipped = self.skips.all()
        self.report.seconds = time.monotonic() - self._started
        return self.report

    def take(self, source: SourceFile) -> None:
        """Import a file; one that was imported before and has not changed is only counted."""
        project, file, report = self.project_of(source), source.file, self.report
        memory = self.memory.scoped(project=project) if project else self.memory
        known_files, before = Imports(memory), report.formats.total()
        # Only its beginning was read until now.
        file.tells.clear()
        self.progress(file, before)
        # In a zip the path continues within it, so it is not one of the system.
        whole = os.path.abspath(file.path)  # noqa: PTH100
        file_id = hash_of([whole, file.name, memory.scope.agent], 16)
        digest = _digest(source) if known_files.stores else ""
        entry = digest and known_files.account(file_id, digest)
        added = records = 0
        if entry:
            account: Account = json.loads(entry)
            report.unchanged += 1
        else:
            taken = FileImport(memory, source, lambda read: self.progress(file, before + read), self.rules)
            account = taken.run()
            added, records = taken.added, taken.records_added
            # What is left out may be let in later, so such a file is read again.
            if digest and not taken.is_broken and not taken.is_redacted:
                known_files.note(file_id, digest, json.dumps(account))
        self.count(source, account, added, records)
        if project:
            report.projects[project] += added

    def count(self, source: SourceFile, account: Account, added: int, records: int) -> None:
        """Count what a file had, and the messages and records of it that are new."""
        self._count(source.format.name, account["chats"], added, account["messages"] - added)
        self.report.formats[source.format.name] += account["records"]
        self.report.records += records
        self.report.records_present += account["records"] - records
        for reason, problem, count, lines in account["skipped"]:
            self.skips.count(Skipped(source.file.path, reason, count, tuple(lines), problem))

    def restore(self, path: Path) -> None:
        """Import an export of everything."""
        file, bad = File.at(path), list[tuple[int, str]]()
        rows = everything.rows_of(self.memory.scope, file, bad, lambda: self.progress(file, 0))
        result = restore_rows(self.memory, rows, file.path, everything.schema_of(file))
        added, present = result.added["messages"], result.present["messages"]
        own = self.memory.scope.space
        chats = {chat if space == own else f"{space}|{chat}" for space, chat in result.chats}
        self._count(everything.FORMAT, chats, added, present)
        self.report.rows += result.added
        self.report.renumbered += result.renumbered
        self.skips.add(file.path, (Skip(*entry, problem=True) for entry in (*result.left_out, *bad)))

    def edit(self, path: Path, *, dry_run: bool) -> None:
        """Take over, or only report, the edits of records in a file."""
        changes, report = apply_edits(self.memory, path, dry_run=dry_run), self.report
        report.edits += changes.edits
        report.records += 0 if dry_run else len(changes.edits) - len(changes.conflicts)
        report.records_present += changes.unchanged
        report.formats[EDITS] += len(changes.edits) + changes.unchanged
        name = File.at(path).path
        self.skips.add(name, (Skip(edit.line, edit.why, problem=True) for edit in changes.conflicts))
        self.skips.add(name, (Skip(line, what, problem=line > 0) for line, what in changes.wrong))

    def _count(self, format: str, chats: Iterable[str], added: int, present: int) -> None:
        self._chats.update(chats)
        self.report.sessions = len(self._chats)
        self.report.added += added
        self.report.present += present
        self.report.formats[format] += added + present


def _digest(source: SourceFile) -> str:
    """Return a hash of the content and of what reads it; "" if the file cannot be read."""
    how = f"{__version__}\0{source.format.name}\0{source.format.options}"
    digest = blake2b(how.encode("utf-8", "replace"), digest_size=16)
    try:
        if source.format.is_database and source.file.location:
            # What is new in one stands in its log, and it may be larger than all that is read of it.
            digest.update(fingerprint(source.file.location))
            return digest.hexdigest()
        with source.file.open() as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except READ_ERRORS:
        return ""
    return digest.hexdigest()
