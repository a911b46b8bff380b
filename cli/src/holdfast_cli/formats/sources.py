"""The files with conversations under a path, and their formats, recognised by content."""

import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from holdfast.errors import HoldfastError, InvalidInput, Unavailable, UnknownFormat
from holdfast.port.texts import clean
from holdfast_cli.formats import (
    adk,
    agent_rows,
    aider,
    chat_markdown,
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    continue_dev,
    copilot,
    cursor,
    gemini,
    jsonl,
    langgraph,
    letta,
    librechat,
    mem0,
    notes,
    openai_sessions,
    opencode,
    openwebui,
    specstory,
    swe_agent,
    zip_files,
)
from holdfast_cli.formats.files import (
    IS_UTF16,
    MAX_LINE,
    NOT_UTF8,
    SAVE,
    File,
    fields,
    lines,
    text_problems,
    values,
)
from holdfast_cli.formats.foreign_sqlite import ForeignSQLite, is_sqlite, open_database
from holdfast_cli.formats.import_items import Item, Skip, read_objects
from holdfast_cli.formats.record_markdown import START as RECORDS
from holdfast_cli.formats.zip_files import READ_ERRORS

Test = Callable[[Mapping[str, object]], bool]
ReadObject = Callable[[File, int, Mapping[str, object]], Iterator[Item]]


class Format(NamedTuple):
    """A file format: its name, its reader, and a test of what it is recognised by.

    That is a line, or a value of a JSON document, the beginning of a text, or an SQLite database.
    """

    name: str
    read: Callable[[File], Iterator[Item]]
    is_line: Test | None = None
    is_value: Test | None = None
    is_text: Callable[[str], bool] | None = None
    is_database: Callable[[ForeignSQLite], bool] | None = None
    options: str = ""  # whatever else decides how a file is read


def _not_read(reason: str, *, problem: bool = True) -> Callable[[File], Iterator[Item]]:
    """Return the reader of a file that is recognised and not taken, and says why."""
    return lambda _: iter([Skip(0, reason, problem=problem)])


def _by_path(what: str) -> Callable[[File], Iterator[Item]]:
    """Return the reader of a file that is trusted, and so taken only where its own path is given."""
    return _not_read(f"an export of {what}: name the file itself", problem=False)


def _documents(name: str, is_one: Test, read: ReadObject) -> Format:
    """Return the format of files that have objects of JSON, each of which is read on its own."""

    def items(file: File) -> Iterator[Item]:
        own = partial(read, file)
        return read_objects(values(file), lambda n, it: own(n, it) if is_one(it) else None, "of another kind")

    return Format(name, items, is_value=is_one)


_CURSOR_STORE = (
    "the database of Cursor's command line is not read: import ~/.cursor/projects, which has the same"
)


NOTES = Format("notes", notes.read, is_text=lambda _: True)
"""Notes without front matter, which any Markdown is: read where it is asked for only."""
_JSONL = Format("JSONL", jsonl.read, is_line=jsonl.is_message)
FORMATS = (
    Format("Holdfast", _by_path("everything"), is_line=lambda row: row.get("holdfast") == "everything"),
    Format("records as Markdown", _by_path("records"), is_text=lambda text: text.startswith(RECORDS)),
    Format("Claude Code", claude_code.read, is_line=claude_code.is_line),
    Format("Codex", codex.read, is_line=codex.is_line),
    Format("Gemini CLI", gemini.read, is_line=gemini.is_chat),
    Format("Gemini CLI", gemini.read_events, is_line=gemini.is_event),
    Format("Cursor", cursor.read_database, is_database=lambda it: it.has(*cursor.MARK)),
    Format("Cursor", _not_read(_CURSOR_STORE), is_database=lambda it: {"blobs", "meta"} == it.tables.keys()),
    Format("Goose", agent_rows.read_goose_database, is_database=lambda it: it.has(*agent_rows.GOOSE)),
    Format("GitHub Copilot", copilot.read_log, is_line=copilot.is_log),
    Format("GitHub Copilot", copilot.read_events, is_line=copilot.is_event),
    Format("opencode", opencode.read_database, is_database=lambda it: it.has(*opencode.MARK)),
    Format("ADK", adk.read_database, is_database=lambda it: it.has(*adk.MARK)),
    Format("Cursor", cursor.read, is_line=cursor.is_line),
    Format("Cursor", cursor.read_export, is_text=cursor.is_export),
    Format("Goose", agent_rows.read_goose, is_line=agent_rows.is_goose, is_value=agent_rows.is_goose),
    Format("Cline", agent_rows.read_task, is_value=agent_rows.is_task),
    Format("aider", aider.read, is_text=aider.is_history),
    Format("SpecStory", specstory.read, is_text=specstory.is_session),
    Format("basic-memory", notes.read, is_text=notes.is_note),
    Format("Markdown", chat_markdown.read, is_text=lambda text: text.startswith(chat_markdown.START)),
    _JSONL,
    _documents("ChatGPT", chatgpt.is_conversation, chatgpt.read),
    _documents("Claude.ai", claude_ai.is_conversation, claude_ai.read),
    _documents("Claude.ai", claude_ai.is_knowledge, claude_ai.read_knowledge),
    _documents("GitHub Copilot", copilot.is_session, copilot.read),
    _documents("opencode", opencode.is_export, opencode.read),
    _documents("Open WebUI", openwebui.is_chat, openwebui.read),
    _documents("LibreChat", librechat.is_conversation, librechat.read),
    _documents("Continue", continue_dev.is_session, continue_dev.read),
    _documents("ADK", adk.is_session, adk.read),
    _documents("SWE-agent", swe_agent.is_trajectory, swe_agent.read),
    Format("Gemini CLI", gemini.read_document, is_value=gemini.is_chat),
    Format("Letta", letta.read, is_value=letta.is_agent_file),
    Format("mem0", mem0.read, is_line=mem0.is_memory, is_value=mem0.is_memory),
    Format("mem0 history", mem0.read_history, is_database=lambda it: it.has(*mem0.MARK)),
    Format("LangGraph", langgraph.read, is_database=lambda it: it.has(*langgraph.MARK)),
    Format("OpenAI Agents", openai_sessions.read, is_database=lambda it: it.has(*openai_sessions.MARK)),
    Format("JSON", jsonl.read_document, is_value=jsonl.is_message),
)

LINE_ENDINGS = (".jsonl", ".ndjson")
DATABASE_ENDINGS = (".db", ".sqlite", ".sqlite3", ".vscdb")
_OTHER_ENDINGS = (".md", *DATABASE_ENDINGS)  # what has conversations only at times
_OUTPUTS = "tool-results"  # the folder of outputs beside a session of Claude Code, whatever they look like
_PACKED_ENDINGS = tuple(f"{ending}{packed}" for ending in LINE_ENDINGS for packed in (".zst", ".gz"))
_ENDINGS = (".json", ".af", ".traj", *LINE_ENDINGS, *_OTHER_ENDINGS, *_PACKED_ENDINGS)
_START = 4096  # bytes that show whether a file is a JSON array
_ZIP = b"PK\x03\x04"  # its first bytes
_HEAD = 50  # lines or values by which a format is recognised
_UNKNOWN = "in no format that is known here"
_EMPTY, _UTF16, _CUT = "empty", "in UTF-16", "a zip that is damaged or cut off"
_PACKED = "compressed: unpack it, with `zstd -d` or `gunzip`, and import what comes out"
_TABLE = "a table whose columns are not named"
_BROKEN = "It is damaged or cut off: export or copy it again."
_TODOS = {
    _EMPTY: "Export it again.",
    _PACKED: "Unpack it.",
    _TABLE: "Name them, as in `--map content=text,role=speaker`.",
    **dict.fromkeys((_UTF16, NOT_UTF8), "Save it as UTF-8."),
    **dict.fromkeys((_CUT, "not valid JSON", "cut off"), _BROKEN),
}
"""What to do about a file that is in no format, by the reason."""
_MAX_MEMBERS = 100_000


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file with conversations, and its format."""

    file: File
    format: Format

    def read(self) -> Iterator[Item]:
        """Yield its messages and what is left out; an error of the file comes last."""
        problem = None
        try:
            for problem in text_problems(self.file) if self.format.is_text else ():
                yield replace(problem, reason=f"{problem.reason}; nothing of the file was taken: {SAVE}")
            if problem is None:
                yield from self.format.read(self.file)
        except READ_ERRORS as error:
            yield Skip(0, _unreadable(error), problem=True)


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that is not read, and why."""

    path: str
    skip: Skip


@dataclass(frozen=True, slots=True)
class Ignored:
    """A file with something else, by the ending of its name."""

    ending: str


Source = SourceFile | Unread | Ignored


def sources(path: str | os.PathLike[str], formats: Sequence[Format] = FORMATS) -> Iterator[Source]:
    """Yield the files to import: the file, or those of a zip, or of a folder and its folders, by ending.

    A chat without an id has the name of its file, within a folder or zip its path.

    Raises:
        InvalidInput: there is nothing at the path, it cannot be read, or it is a zip bomb.
        UnknownFormat: the file is in no known format.

    """
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path, formats)
        if not path.is_file():
            raise InvalidInput(f"{str(path)!r} is no file or folder.", "Check the path.")
        if zipfile.is_zipfile(path):
            return _whole_zip(path, formats)
        file = File.at(path)
        format = recognise(file, formats)
        if format is None:
            raise _unknown(path, _why_unknown(file), formats)
    except (OSError, Unavailable) as error:
        what = f"{str(path)!r} cannot be read ({_one_line(error)})."
        raise InvalidInput(what, "Check the path and its rights.") from error
    return iter([SourceFile(file, format)])


def _start_of(file: File) -> bytes:
    with file.open() as stream:
        return stream.read(_START)


def recognise(file: File, formats: Sequence[Format]) -> Format | None:
    """Return the format of a file by its first lines or values; None if it is in none."""
    start = _start_of(file)
    if is_sqlite(start):
        with open_database(file) as database:
            return next((form for form in formats if form.is_database and form.is_database(database)), None)
    if start.startswith(_ZIP):
        # Where it was cut, what is in it may be in plain view.
        return None
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    text = start.decode(errors="replace")
    if match := next((form for form in formats if form.is_text and form.is_text(text)), None):
        return match
    by_line = [(form, form.is_line) for form in formats if form.is_line]
    by_value = [(form, form.is_value) for form in formats if form.is_value]
    if start.startswith(b"["):
        return _first_match(by_value, values(file))
    head = list(islice(lines(file, MAX_LINE), _HEAD))
    match = _first_match(by_line, head) or _first_match(by_value, head)
    if not head or isinstance(head[0], Skip):
        # The first line is not a whole object: a document over many lines, or damaged.
        return _first_match(by_value, values(file)) or match
    alone = len(head) == 1 and not file.path.lower().endswith(LINE_ENDINGS)
    return _first_match(by_value, head) if alone and match is _JSONL else match


def _first_match(
    tests: Iterable[tuple[Format, Test]], items: Iterable[tuple[int, object] | Skip]
) -> Format | None:
    heads = (item[1] for item in islice(items, _HEAD) if not isinstance(item, Skip))
    objects = (value for value in heads if isinstance(value, dict))
    return next((format for value in objects for format, test in tests if test(value)), None)


def _why_unknown(file: File) -> str:
    """Return the reason why a file is in no format, as far as its beginning shows it."""
    start = _start_of(file)
    text = start.removeprefix(b"\xef\xbb\xbf").strip()
    first = next(values(file), None) if text.startswith((b"{", b"[")) else None
    damage = first.reason.partition(";")[0] if isinstance(first, Skip) else _UNKNOWN
    is_table = file.path.lower().endswith((".csv", ".tsv"))
    is_packed = start.startswith((b"\x28\xb5\x2f\xfd", b"\x1f\x8b"))
    reasons = {
        _EMPTY: not text,
        _TABLE: is_table,
        _UTF16: IS_UTF16(start),
        _CUT: start.startswith(_ZIP),
        _PACKED: is_packed,
    }
    return next((reason for reason, is_so in reasons.items() if is_so), damage)


def _unknown(path: Path, reason: str, formats: Sequence[Format]) -> UnknownFormat:
    names = ", ".join(dict.fromkeys(form.name for form in formats))
    todo = _TODOS.get(reason, f"Convert it to one of these: {names}.")
    return UnknownFormat(f"{str(path)!r} is {reason}.", todo)


def _one_line(error: Exception) -> str:
    text = error.what.rstrip(".") if isinstance(error, HoldfastError) else str(error)
    return clean(" ".join(text.split())[:200])


def _unreadable(error: Exception) -> str:
    """Return the reason why a file cannot be read; errors of databases say it in full."""
    return _one_line(error) if isinstance(error, HoldfastError) else f"cannot be read: {_one_line(error)}"


def _problem(path: str, reason: str) -> Unread:
    return Unread(path, Skip(0, reason, problem=True))


def sizes(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the path of each file that `sources` looks into, as `File` has it, and its bytes.

    What cannot be looked at is left out; whoever reads it says so.
    """
    is_folder = path.is_dir()
    for file in _files(path, lambda _: None) if is_folder else [path]:
        label = clean(str(file))
        with suppress(*READ_ERRORS, ValueError, NotImplementedError):
            if not file.is_file():
                continue
            if file.suffix.lower() == ".zip" if is_folder else zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    members = archive.infolist()
                inside = (info for info in members if not info.is_dir() and _may_have_chats(info.filename))
                yield from sorted((f"{label}/{clean(info.filename)}", info.file_size) for info in inside)
            elif not is_folder or _may_have_chats(label):
                yield label, file.stat().st_size


def _files(root: Path, onerror: Callable[[OSError], None]) -> Iterator[Path]:
    for folder, inner, names in os.walk(root, onerror=onerror):
        inner.sort()
        yield from (Path(folder, name) for name in sorted(names))


def _folder(root: Path, formats: Sequence[Format]) -> Iterator[Source]:
    errors: list[OSError] = []
    for path in _files(root, errors.append):
        yield from sources_at(path, root, formats)
    for error in errors:
        yield _problem(clean(str(error.filename)), f"cannot be read: {_one_line(error)}")


def sources_at(path: Path, root: Path, formats: Sequence[Format] = FORMATS) -> Iterator[Source]:
    """Yield the sources at a path within a folder; nothing for a pipe or a device."""
    if not path.is_file():
        return
    ending = path.suffix.lower()
    name = path.relative_to(root).with_suffix("").as_posix()
    if ending == ".zip":
        try:
            yield from _zip(path, f"{name}/", formats)
        except (InvalidInput, UnknownFormat) as error:
            yield _problem(clean(str(path)), error.what.removeprefix(f"{str(path)!r} is ").rstrip("."))
    elif _may_have_chats(str(path)):
        yield _look(File.at(path, name), formats)
    else:
        yield Ignored(clean(ending))


def _may_have_chats(path: str) -> bool:
    return path.lower().endswith(_ENDINGS) and Path(path).parent.name != _OUTPUTS


def _look(file: File, formats: Sequence[Format]) -> Source:
    try:
        if format := recognise(file, formats):
            return SourceFile(file, format)
        ending, reason = Path(file.path).suffix.lower(), _why_unknown(file)
        begun = fields(_start_of(file).removeprefix(b"\xef\xbb\xbf").lstrip().decode(errors="replace"))
    except READ_ERRORS as error:
        return _problem(file.path, _unreadable(error))
    is_other = ending in _OTHER_ENDINGS and reason != _UTF16
    is_session = any(test(begun) for form in formats for test in (form.is_line, form.is_value) if test)
    is_problem = reason in (_PACKED, _CUT) or (is_session and reason != _UNKNOWN)
    return Ignored(ending) if is_other else Unread(file.path, Skip(0, reason, problem=is_problem))


def _whole_zip(path: Path, formats: Sequence[Format]) -> Iterator[Source]:
    empty = True
    for source in _zip(path, "", formats):
        empty = empty and not isinstance(source, SourceFile)
        yield source
    if empty:
        raise _unknown(path, _UNKNOWN, formats)


def _zip(path: Path, folder: str, formats: Sequence[Format]) -> Iterator[Source]:
    """Yield the files of a zip, which is not trusted: nothing is written, and its sizes are limited.

    Raises:
        InvalidInput: its files exceed the limits; nothing was unpacked.
        UnknownFormat: it is damaged.

    """
    label = clean(str(path))
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        yield _problem(label, _unreadable(error))
        return
    except (*READ_ERRORS, ValueError, NotImplementedError) as error:
        raise _unknown(path, _CUT, formats) from error
    with archive:
        files = [info for info in archive.infolist() if not info.is_dir()]
        members = [info for info in files if _may_have_chats(info.filename)]
        for info in files:
            if not _may_have_chats(info.filename):
                yield Ignored(clean(Path(info.filename).suffix.lower()))
        outputs = {out.filename: out for out in files if PurePosixPath(out.filename).parent.name == _OUTPUTS}
        read = [*members[:_MAX_MEMBERS], *outputs.values()]
        if reason := zip_files.why_too_much(read, path.stat().st_size):
            todo = f"If it is no trap, {zip_files.UNPACK}."
            raise InvalidInput(f"{label!r} is not unpacked: {reason}.", todo)
        for info in sorted(members[:_MAX_MEMBERS], key=lambda info: info.filename):
            name = clean(info.filename)
            if reason := zip_files.why_not_unpacked(info):
                yield _problem(f"{label}/{name}", reason)
            else:
                stem = name.rpartition(".")[0]
                file = File(f"{label}/{name}", f"{folder}{stem}", partial(zip_files.unpack, archive, info))
                beside = partial(
                    zip_files.read_beside, archive, outputs, PurePosixPath(info.filename), Counter[str]()
                )
                yield _look(replace(file, beside=beside), formats)
        if len(members) > _MAX_MEMBERS:
            yield _problem(label, f"more than {_MAX_MEMBERS:,} files; the others were not read")
