"""Import of a transcript's tail: the lines added since the last time, however long the transcript is."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from holdfast import Memory
from holdfast.errors import Unavailable
from holdfast_cli.formats.claude_code import LogNode, LogStart, read_after, revives, scan_after, waiting
from holdfast_cli.formats.file_parts import end_of_lines, part_of
from holdfast_cli.formats.files import File
from holdfast_cli.formats.import_items import ImportedMessage, Item
from holdfast_cli.formats.importing import import_source
from holdfast_cli.formats.redaction import Rules
from holdfast_cli.formats.sources import FORMATS, Format, SourceFile, recognise
from holdfast_cli.hooks import journal
from holdfast_cli.hooks.session_state import tail_path

Rewrite = Callable[[ImportedMessage], Item]
"""A change of each message before it is stored; a `Skip` leaves it out."""

_PROOF = 4096  # bytes before the end of what was imported, by which it is recognised


class TimeIsOver(Exception):
    """The time for an import is over. Nothing is lost: the next one does what is left."""


class Imported(NamedTuple):
    """The result of an import: messages added, and the problems of lines that should have been messages."""

    added: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Known:
    """The state of a transcript's import: its end in bytes, a hash before that, and the lines so far.

    `redacted` says whether something was left out of it as the user wished: its words may come again.
    """

    end: int = 0
    proof: str = ""
    log: LogStart = field(default_factory=LogStart)
    redacted: bool = False


class _Part(NamedTuple):
    """The part of a transcript to import: its new items, and those before them if they matter.

    `known` is what was known before, `log` the beginning of the log up to the end of the part.
    """

    end: int
    known: _Known
    log: LogStart
    source: SourceFile
    before: Iterable[Item]


def import_tail(
    memory: Memory,
    transcript: Path,
    *,
    appended: bool = True,
    location: str = "",
    rewrite: Rewrite = lambda item: item,
    check_time: Callable[[], None] = lambda: None,
    rules: Rules | None = None,
) -> Imported:
    """Import what was added to a transcript since the last import, its whole lines.

    The same as an import of the whole file at this moment, by `rules`, each message once, except that
    results which begin a session wait for their calls until something is said; what was erased since does
    not come back. One that was replaced or cut is read from its beginning. What is remembered
    holds for the database at `location`. `rewrite` is called with each message before it is stored, and
    `check_time` before that. A transcript that is `appended` to is one of Claude Code; others are in any
    format, and read whole.

    Raises:
        TimeIsOver: `check_time` has raised it.
        Unavailable: the transcript cannot be read.

    """
    state_path = tail_path(location, memory.scope.space, str(transcript))
    with _alone(state_path) as mine:
        part = _part(memory, transcript, state_path, appended=appended) if mine else None
        if part is None:
            return Imported()
        source, is_whole = _with_rewrite(part.source, rewrite, check_time), not part.known.end
        report, redacted = import_source(memory, source, rules=rules, before=part.before, is_whole=is_whole)
        if any(0 in problem.lines for problem in report.problems):
            raise Unavailable("The transcript could not be read to its end.", "The next stop tries again.")
        proof = _proof(transcript, part.end)
        now = _Known(part.end, proof, part.log, redacted or part.known.redacted)
        _remember(state_path, part.known, now)
        return Imported(report.added, tuple(problem.reason for problem in report.problems))


def _part(memory: Memory, transcript: Path, state_path: Path, *, appended: bool) -> _Part | None:
    """Return the part of a transcript to import, None if there is none."""
    before = _load_known(state_path)
    # A pipe has no bytes to prove it, and would be waited for.
    is_same = before.end > 0 and _proof(transcript, before.end) == before.proof != ""
    # The database may have been removed since.
    known = before if is_same and (memory.chats(archived=None, limit=1) or memory.version()) else _Known()
    end = end_of_lines(transcript, known.end)
    if end <= known.end:
        return None
    part = (_after if appended else _of_lines)(transcript, known, end)
    if part.end == known.end:
        return None
    if before.end and not part.known.end:
        state_path.unlink(missing_ok=True)
    return part


def _after(transcript: Path, known: _Known, end: int) -> _Part:
    """Return the new part of a transcript of Claude Code."""
    file = part_of(transcript, known.end, end)
    log = scan_after(file, known.log)
    while waiting(known.log, log):
        end = end_of_lines(transcript, known.end, end - 1)
        file = part_of(transcript, known.end, end)
        log = scan_after(file, known.log)
    if revives(known.log, log):  # what was left out then is to be read now
        known, file = _Known(), part_of(transcript, 0, end)
    # What was imported already, if something was left out of it.
    start = part_of(transcript, 0, known.end)
    before = read_after(start, LogStart(), known.log) if known.redacted else ()
    source = SourceFile(file, Format("Claude Code", lambda part: read_after(part, known.log, log)))
    return _Part(end, known, log, source, before)


def _of_lines(transcript: Path, known: _Known, end: int) -> _Part:
    """Return the new part of a transcript whose lines may take back earlier ones.

    Raises:
        Unavailable: it is in no known format.

    """
    file, first = part_of(transcript, 0, end), known.log.lines
    format = recognise(file, FORMATS)
    if format is None:
        what = "The transcript is in no format that is known here."
        raise Unavailable(what, "Install a newer Holdfast, if the client is newer.")
    read = format.read
    with file.open() as stream:
        log = LogStart(lines=sum(1 for _ in stream))
    before = (item for item in read(file) if item.line <= first) if known.redacted else ()
    new = format._replace(read=lambda part: (item for item in read(part) if item.line > first))
    return _Part(end, known, log, SourceFile(file, new), before)


def _with_rewrite(source: SourceFile, rewrite: Rewrite, check_time: Callable[[], None]) -> SourceFile:
    def read_items(file: File) -> Iterator[Item]:
        for item in source.format.read(file):
            check_time()
            yield rewrite(item) if isinstance(item, ImportedMessage) else item

    return replace(source, format=source.format._replace(read=read_items))


# The bytes


def _proof(path: Path, end: int) -> str:
    """Return a hash of the bytes before a position; "" if there are not as many."""
    try:
        with path.open("rb") as file:
            first = max(0, end - _PROOF)
            file.seek(first)
            data = file.read(end - first)
    except OSError:
        return ""
    return blake2b(data, digest_size=16).hexdigest() if len(data) == end - first else ""


# What is remembered


def _load_known(path: Path) -> _Known:
    """Read the state of a transcript's import; a line that does not continue the one before is skipped."""
    known = _Known()
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return known
    for line in lines:
        try:
            part = json.loads(line)
            if part["start"] != known.end or part["first"] != known.log.lines:
                continue
            nodes = tuple(LogNode(*node) for node in part["nodes"])
            log = LogStart((*known.log.nodes, *nodes), **part["log"])
            known = _Known(int(part["end"]), str(part["proof"]), log, part.get("redacted", True) is True)
        except (ValueError, TypeError, KeyError, RecursionError):
            # Of a process that was killed while it wrote.
            continue
    return known


def _remember(path: Path, before: _Known, now: _Known) -> None:
    """Add an import to the state of a transcript; where that fails, the next import finds it stored."""
    log = asdict(replace(now.log, nodes=()))
    del log["nodes"]
    if now.redacted:
        # A title may repeat what was left out.
        log["custom_title"] = log["title"] = ""
    new = [astuple(node) for node in now.log.nodes[len(before.log.nodes) :]]
    part: dict[str, object] = {"start": before.end, "first": before.log.lines, "end": now.end}
    part |= {"proof": now.proof, "redacted": now.redacted}
    text = f"\n{json.dumps({**part, 'log': log, 'nodes': new})}\n"
    with suppress(OSError):
        journal.append(path, text)


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Import one transcript in one process at a time; yield False if another one waits to do so already.

    It will read what was written until then. Without locks of files, what is stored tells what is new.
    """
    try:
        import fcntl
    except ImportError:
        yield True
        return
    with ExitStack() as files:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            queue = files.enter_context(path.with_suffix(".next").open("ab"))
            lock = files.enter_context(path.with_suffix(".lock").open("ab"))
        except OSError:
            # The folder is read-only: the words matter more than doing it once.
            yield True
            return
        try:
            fcntl.flock(queue, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        fcntl.flock(lock, fcntl.LOCK_EX)
        fcntl.flock(queue, fcntl.LOCK_UN)
        yield True
