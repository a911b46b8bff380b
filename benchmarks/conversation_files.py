"""The files that benchmarks read: all that `holdfast import` reads, LoCoMo and RealMem."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks import locomo, realmem
from holdfast.io.import_items import ImportedMessage
from holdfast.io.sources import FORMATS, Format, SourceFile, sources

ALL_FORMATS = (*FORMATS, locomo.FORMAT, realmem.FORMAT)


def files_in(paths: Iterable[Path], *formats: Format) -> list[SourceFile]:
    """Return the files with conversations under some paths that are in one of the formats."""
    found = (source for path in paths for source in sources(path, ALL_FORMATS))
    return [source for source in found if isinstance(source, SourceFile) and source.format in formats]


def messages_in(file: SourceFile) -> list[ImportedMessage]:
    """Return the messages of a file."""
    return [item for item in file.read() if isinstance(item, ImportedMessage)]
