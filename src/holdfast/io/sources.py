"""Finding the conversations under a path, and telling their formats by what is in them."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, RawIOBase
from itertools import islice
from pathlib import Path
from typing import IO, cast

from holdfast.errors import InvalidInput, UnknownFormat
from holdfast.io import chatgpt, claude_code, jsonl, locomo, realmem
from holdfast.io.files import File, lines, values
from holdfast.io.found import Found, Skip
from holdfast.text.clean import clean

Test = Callable[[Mapping[str, object]], bool]

_CLAUDE_CODE, _JSONL, _CHATGPT, _JSON, _LOCOMO, _REALMEM = FORMATS = (
    "Claude Code",
    "JSONL",
    "ChatGPT",
    "JSON",
    "LoCoMo",
    "RealMem",
)
_READERS: dict[str, Callable[[File], Iterator[Found | Skip]]] = {
    _CLAUDE_CODE: claude_code.read,
    _JSONL: jsonl.read,
    _CHATGPT: chatgpt.read,
    _JSON: jsonl.read_document,
    _LOCOMO: locomo.read,
    _REALMEM: realmem.read,
}
_LINES: dict[str, Test] = {
    _CLAUDE_CODE: claude_code.is_line,
    _JSONL: lambda value: jsonl.is_message(value) or jsonl.is_session(value),
}
_VALUES: dict[str, Test] = {
    _CHATGPT: chatgpt.is_conversation,
    _REALMEM: realmem.is_person,
    _LOCOMO: locomo.is_conversation,
    _JSON: _LINES[_JSONL],
}

_LINE_ENDINGS = (".jsonl", ".ndjson")
_ENDINGS = (".json", *_LINE_ENDINGS)
_START = 4096  # bytes, to see whether a file is a JSON array
_HEAD = 50  # lines or values that are looked at before a file counts as unknown
_UNPACK = "unpack the zip and import the folder"
_UNKNOWN = "in no format that is known here"
_MAX_UNPACKED = 2 << 30  # bytes of one file in a zip
_MAX_TOGETHER = 16 << 30  # bytes of all files in a zip
_MAX_RATIO = 400  # real transcripts shrink 3 to 30 times
_MAX_RATIO_TOGETHER = 100  # of all files to the zip itself, whose files may share what they are unpacked from
_SMALL = 16 << 20  # bytes that may shrink to anything
_MAX_MEMBERS = 100_000
READ_ERRORS = (OSError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class Source:
    """Hold a file with conversations, and the format it is in."""

    path: str
    format: str
    file: File

    def read(self) -> Iterator[Found | Skip]:
        """Read its messages, and what is left out; when the file cannot be read to its end, that is left out last."""
        try:
            yield from _READERS[self.format](self.file)
        except READ_ERRORS as error:
            yield Skip(0, f"cannot be read: {_one_line(error)}", problem=True)


@dataclass(frozen=True, slots=True)
class Unread:
    """Name a file that is passed over, and why."""

    path: str
    skip: Skip


@dataclass(frozen=True, slots=True)
class Ignored:
    """Stand for a file that holds something else, by how its name ends."""

    ending: str


def sources(path: str | os.PathLike[str]) -> Iterator[Source | Unread | Ignored]:
    """Find what can be imported: a file, the JSON files of a zip, or those of a folder and all folders in it.

    Sessions without an id of their own are named after their file, and in a folder or zip after the way to it.

    Raises:
        InvalidInput: there is nothing at the path, it cannot be read, or it is a zip of far more than it seems to be.
        UnknownFormat: it is a file in no known format.

    """
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path)
        if not path.is_file():
            raise InvalidInput(f"There is no file or folder at {str(path)!r}.", "Check the path.")
        if zipfile.is_zipfile(path):
            return _whole_zip(path)
        file = File(clean(str(path)), clean(path.stem), partial(_open, path))
        kind = recognise(file)
    except OSError as error:
        raise InvalidInput(
            f"{str(path)!r} cannot be read ({_one_line(error)}).", "Check the path and its rights."
        ) from error
    if kind is None:
        raise _unknown(path)
    return iter([Source(file.path, kind, file)])


def recognise(file: File) -> str | None:
    """Tell the format of a file by its first lines or values, or None when it is none that is known."""
    with file.open() as stream:
        start = stream.read(_START).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        return _first_kind(_VALUES, values(file))
    head = list(islice(lines(file), _HEAD))
    by_line = _first_kind(_LINES, head) or _first_kind(_VALUES, head)
    if not head or isinstance(
        head[0], Skip
    ):  # the first line is no whole object: a document over many lines, or damage
        return _first_kind(_VALUES, values(file)) or by_line
    alone = len(head) == 1 and not file.path.lower().endswith(_LINE_ENDINGS)
    return _first_kind(_VALUES, head) if alone and by_line == _JSONL else by_line


def _first_kind(kinds: Mapping[str, Test], items: Iterable[tuple[int, object] | Skip]) -> str | None:
    for item in islice(items, _HEAD):
        value = None if isinstance(item, Skip) else item[1]
        for kind, test in kinds.items():
            if isinstance(value, dict) and test(value):
                return kind
    return None


def _unknown(path: Path) -> UnknownFormat:
    return UnknownFormat(
        f"{str(path)!r} is {_UNKNOWN}.", f"Convert it to one of these: {', '.join(FORMATS)}."
    )


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _one_line(error: Exception) -> str:
    return clean(" ".join(str(error).split())[:200])


def _folder(root: Path) -> Iterator[Source | Unread | Ignored]:
    denied: list[OSError] = []
    for folder, inner, names in os.walk(root, onerror=denied.append):
        inner.sort()
        for path in (Path(folder, name) for name in sorted(names)):
            ending = path.suffix.lower()
            way = path.relative_to(root).with_suffix("").as_posix()
            if not path.is_file():
                continue  # pipes and devices are not for reading
            if ending not in {*_ENDINGS, ".zip"}:
                yield Ignored(clean(ending))  # a folder of logs holds much else
                continue
            if ending == ".zip":
                try:
                    yield from _zip(path, f"{way}/")
                except InvalidInput as refused:
                    yield Unread(clean(str(path)), Skip(0, refused.what.rstrip("."), problem=True))
            else:
                yield _look(File(clean(str(path)), clean(way), partial(_open, path)))
    for error in denied:
        yield Unread(clean(str(error.filename)), Skip(0, f"cannot be read: {_one_line(error)}", problem=True))


def _look(file: File) -> Source | Unread:
    try:
        kind = recognise(file)
    except READ_ERRORS as error:
        return Unread(file.path, Skip(0, f"cannot be read: {_one_line(error)}", problem=True))
    return Source(file.path, kind, file) if kind else Unread(file.path, Skip(0, _UNKNOWN))


def _whole_zip(path: Path) -> Iterator[Source | Unread | Ignored]:
    empty = True
    for source in _zip(path, ""):
        empty = empty and not isinstance(source, Source)
        yield source
    if empty:
        raise _unknown(path)


def _zip(path: Path, way: str) -> Iterator[Source | Unread | Ignored]:
    """Look into a zip, where nothing is believed: its names are never written to, its sizes are limits.

    Raises:
        InvalidInput: what is in it would take more room than any export of conversations; nothing was unpacked.

    """
    label = clean(str(path))
    try:
        archive = zipfile.ZipFile(path)
    except (*READ_ERRORS, ValueError, NotImplementedError) as error:
        yield Unread(label, Skip(0, f"cannot be read: {_one_line(error)}", problem=True))
        return
    with archive:
        files = [info for info in archive.infolist() if not info.is_dir()]
        members = [info for info in files if info.filename.lower().endswith(_ENDINGS)]
        for info in files:
            if not info.filename.lower().endswith(_ENDINGS):
                yield Ignored(clean(Path(info.filename).suffix.lower()))
        if reason := _why_too_much(members[:_MAX_MEMBERS], path.stat().st_size):
            raise InvalidInput(f"{label!r} is not unpacked: {reason}.", f"If it is no trap, {_UNPACK}.")
        for info in sorted(members[:_MAX_MEMBERS], key=lambda info: info.filename):
            name = clean(info.filename)
            reason = _why_not_unpacked(info)
            if reason:
                yield Unread(f"{label}/{name}", Skip(0, reason, problem=True))
            else:
                stem = name.rpartition(".")[0]
                yield _look(File(f"{label}/{name}", f"{way}{stem}", partial(_unpack, archive, info)))
        if len(members) > _MAX_MEMBERS:
            yield Unread(
                label, Skip(0, f"more than {_MAX_MEMBERS:,} files; the others were not read", problem=True)
            )


def _why_too_much(members: Iterable[zipfile.ZipInfo], packed: int) -> str:
    """Say which limit all files of a zip exceed together, those left out that exceed one alone."""
    size = sum(info.file_size for info in members if not _why_not_unpacked(info))
    if size > _MAX_TOGETHER:
        return f"its files have {size:,} bytes, of at most {_MAX_TOGETHER:,}"
    if size > _SMALL and size > _MAX_RATIO_TOGETHER * packed:
        return f"its files have {size:,} bytes, {size // packed:,} times its own size, of at most {_MAX_RATIO_TOGETHER}"
    return ""


def _why_not_unpacked(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & 0x1:
        return "encrypted"
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return "compressed in an unusual way; pack the zip anew"
    if info.file_size > _MAX_UNPACKED:
        return f"larger than {_MAX_UNPACKED >> 30} GiB; {_UNPACK}"
    if info.file_size > _SMALL and info.file_size > _MAX_RATIO * info.compress_size:
        return f"shrunk too much to be a transcript; {_UNPACK}"
    return ""


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> BufferedReader:
    try:
        return BufferedReader(cast("RawIOBase", archive.open(info)))  # never gives more than info.file_size
    except (
        ValueError,
        RuntimeError,
    ) as error:  # how zipfile reports a member's own header that makes no sense
        raise zipfile.BadZipFile(str(error)) from error
