"""Files in zips, which are not trusted: nothing is written, and their sizes are limited."""

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import BufferedReader, RawIOBase
from pathlib import PurePath
from typing import cast

from holdfast.errors import Unavailable
from holdfast_cli.formats.files import MAX_ROW

_MAX_UNPACKED = 2 << 30  # bytes of one file in a zip
_MAX_TOGETHER = 16 << 30  # bytes of all files in a zip
_MAX_RATIO = 400  # compression of one file; transcripts have 3 to 30
_MAX_RATIO_TOGETHER = 100  # of all files to the zip, in which files can share compressed data
_SMALL = 16 << 20  # bytes below which compression is not limited
_MOST_READS = 16  # of one output beside a log
UNPACK = "unpack the zip and import the folder"
READ_ERRORS = (OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile, zlib.error, Unavailable)


def why_too_much(members: Iterable[zipfile.ZipInfo], packed: int) -> str:
    """Return the limit that the files of a zip exceed together, without those left out; "" for none."""
    size = sum(info.file_size for info in members if not why_not_unpacked(info))
    if size > _MAX_TOGETHER:
        return f"its files have {size:,} bytes, of at most {_MAX_TOGETHER:,}"
    if size > _SMALL and size > _MAX_RATIO_TOGETHER * packed:
        times = f"{size // packed:,} times its own size"
        return f"its files have {size:,} bytes, {times}, of at most {_MAX_RATIO_TOGETHER}"
    return ""


def why_not_unpacked(info: zipfile.ZipInfo) -> str:
    """Return why a file of a zip is left out; "" where it is not."""
    if info.flag_bits & 0x1:
        return "encrypted"
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return "compressed in an unusual way; pack the zip anew"
    if info.file_size > _MAX_UNPACKED:
        return f"larger than {_MAX_UNPACKED >> 30} GiB; {UNPACK}"
    if info.file_size > _SMALL and info.file_size > _MAX_RATIO * info.compress_size:
        return f"shrunk too much to be a transcript; {UNPACK}"
    return ""


def read_beside(
    archive: zipfile.ZipFile,
    outputs: Mapping[str, zipfile.ZipInfo],
    log: PurePath,
    reads: Counter[str],
    name: str,
) -> bytes | None:
    """Return an output beside a log in a zip. That many lines ask for the same one is a trap."""
    info = next((outputs[path] for top in log.parents[:3] if (path := str(top / name)) in outputs), None)
    if not info or info.file_size > MAX_ROW or why_not_unpacked(info) or reads[name] >= _MOST_READS:
        return None
    reads[name] += 1
    with suppress(*READ_ERRORS, ValueError, RuntimeError):
        return archive.read(info)
    return None


def unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> BufferedReader:
    """Open a file of a zip."""
    try:
        # It never returns more than `info.file_size`.
        return BufferedReader(cast("RawIOBase", archive.open(info)))
    except (ValueError, RuntimeError) as error:
        # The header of the member is invalid.
        raise zipfile.BadZipFile(str(error)) from error
