"""Import of a transcript's tail: what was added since the last time, however long the transcript is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Unavailable
from holdfast.hooks import journal
from holdfast.hooks.session_state import tail_path
from holdfast.io.claude_code import LogNode, LogStart, read_after, revives, scan_after
from holdfast.io.file_parts import end_of_lines, part_of
from holdfast.io.files import File
from holdfast.io.import_items import ImportedMessage, Item
from holdfast.io.importing import import_found, import_source
from holdfast.io.sources import Format, SourceFile, sources

if TYPE_CHECKING:
    from holdfast.io.redaction import Rules
    from holdfast.memory import Memory

Rewrite = Callable[[ImportedMessage], Item]
"""What is done to each message before it is stored; a `Skip` leaves it out."""

_PROOF = 4096  # bytes before the end of what was imported, by which it is recognised
_CHUNK = 1 << 20


class TimeIsOver(Exception):
    """The time for an import is over. Nothing is lost: the next one does what is left."""


class Imported(NamedTuple):
    """What an import has added: messages, and the problems of lines that should have been messages."""

    added: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Known:
    """What is remembered of a transcript: up to which byte it was imported, a hash, and its lines so far.

    `redacted` says whether something was left out of it as the user wished: its words may come again.
    """

    end: int = 0
    proof: str = ""
    log: LogStart = field(default_factory=LogStart)
    redacted: bool = False


def import_tail(
    memory: Memory,
    transcript: Path,
    *,
    location: str = "",
    rewrite: Rewrite = lambda item: item,
    check_time: Callable[[], None] = lambda: None,
    rules: Rules | None = None,
) -> Imported:
    """Import what was added to a transcript of Claude Code since the last import, its whole lines.

    The same as an import of the whole file at this moment, by `rules`, each message once. One that was
    replaced or cut is read from its beginning. What is remembered holds for the database at `location`.
    `rewrite` is called with each message before it is stored, and `check_time` before that.

    Raises:
        TimeIsOver: `check_time` has raised it.
        Unavailable: the transcript cannot be read.

    """
    remembered = tail_path(location, memory.scope.space, str(transcript))
    with _alone(remembered) as mine:
        known = _remembered(remembered) if mine else _Known()
        if known.end and not (_is_same(transcript, known) and _has_any(memory)):
            known = _Known()
            remembered.unlink(missing_ok=True)
        end = end_of_lines(transcript, known.end) if mine else 0
        if end <= known.end:
            return Imported()
        file = part_of(transcript, known.end, end)
        log = scan_after(file, known.log)
        if revives(known.log, log):  # what was left out then is to be read now
            known, file = _Known(), part_of(transcript, 0, end)
            remembered.unlink(missing_ok=True)
        source, before = _source(file, known.log, log, rewrite, check_time), _before(transcript, known)
        report, redacted = import_source(memory, source, rules=rules, before=before)
        if any(0 in one.lines for one in report.problems):
            raise Unavailable("The transcript could not be read to its end.", "The next stop tries again.")
        _remember(remembered, known, _Known(end, _proof(transcript, end), log, redacted or known.redacted))
        return Imported(report.added, tuple(one.reason for one in report.problems))


def import_whole(
    memory: Memory,
    transcript: Path,
    *,
    location: str = "",
    rewrite: Rewrite = lambda item: item,
    rules: Rules | None = None,
) -> Imported:
    """Import a transcript of any client from its beginning, each message once, unless nothing was added.

    Raises:
        InvalidInput, UnknownFormat: the transcript cannot be read.

    """
    with _alone(tail_path(location, memory.scope.space, str(transcript))) as mine:
        found = [one for one in sources(transcript) if isinstance(one, SourceFile)] if mine else []
        report = import_found(memory, [_rewritten(one, rewrite) for one in found], rules=rules)
    return Imported(report.added, tuple(one.reason for one in report.problems))


def _rewritten(source: SourceFile, rewrite: Rewrite) -> SourceFile:
    def read(file: File) -> Iterator[Item]:
        for item in source.format.read(file):
            yield rewrite(item) if isinstance(item, ImportedMessage) else item

    return replace(source, format=source.format._replace(read=read))


def _source(
    file: File, start: LogStart, log: LogStart, rewrite: Rewrite, check_time: Callable[[], None]
) -> SourceFile:
    def read(file: File) -> Iterator[Item]:
        for item in read_after(file, start, log):
            check_time()
            yield rewrite(item) if isinstance(item, ImportedMessage) else item

    return SourceFile(file, Format("Claude Code", read))


def _before(transcript: Path, known: _Known) -> Iterable[Item]:
    """Return what was imported already, if something was left out of it."""
    return read_after(part_of(transcript, 0, known.end), LogStart(), known.log) if known.redacted else ()


def _has_any(memory: Memory) -> bool:
    """Return whether a memory has ever stored anything: the database may have been removed since."""
    return bool(memory.chats(archived=None, limit=1) or memory.version())


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


def _is_same(path: Path, known: _Known) -> bool:
    return _proof(path, known.end) == known.proof != ""


# What is remembered


def _remembered(path: Path) -> _Known:
    """Read what is remembered of a transcript; a part that does not follow on the one before ends it."""
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
    """Add what was imported to what is remembered; where that fails, the next import finds it stored."""
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
