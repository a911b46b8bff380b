"""Parts of files that grow while they are read."""

import io
import stat
from dataclasses import replace
from functools import partial
from pathlib import Path

from holdfast.errors import Unavailable
from holdfast_cli.formats.files import File

_CHUNK = 1 << 20


class _Range(io.RawIOBase):
    """The bytes of a file up to a position, as a stream."""

    def __init__(self, file: io.FileIO, end: int) -> None:
        self._file, self._end = file, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        room = memoryview(buffer)[: max(0, self._end - self._file.tell())]  # type: ignore[arg-type]  # a buffer
        return self._file.readinto(room) or 0

    def close(self) -> None:
        self._file.close()
        super().close()


def part_of(path: Path, start: int, end: int) -> File:
    """Return the file that has the bytes from one position to another, without those that are added later."""
    return replace(File.at(path), opener=partial(_between, path, start, end))


def _between(path: Path, start: int, end: int) -> io.BufferedReader:
    file = io.FileIO(path)
    file.seek(start)
    return io.BufferedReader(_Range(file, end), _CHUNK)


def end_of_lines(path: Path, start: int = 0, before: int | None = None) -> int:
    """Return the end of the last whole line of a file, or of its part before a byte; else `start`.

    Raises:
        Unavailable: the file may not be read.

    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return start
        with path.open("rb") as file:
            end = status.st_size if before is None else before
            while end > start:
                first = max(start, end - _CHUNK)
                file.seek(first)
                last = file.read(end - first).rfind(b"\n")
                if last >= 0:
                    return first + last + 1
                end = first
    except FileNotFoundError:
        return start
    except OSError as error:
        raise Unavailable(f"The transcript cannot be read: {error.strerror}.", "Check the rights.") from error
    return start
