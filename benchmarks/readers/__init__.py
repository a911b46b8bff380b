"""The readers of data sets, one file each, and the files among some paths that they know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.datasets import Corpus, Reader, parsed
from benchmarks.readers import (
    agent_sessions,
    beam,
    locomo,
    longmemeval,
    memsim,
    own,
    realmem,
    realtalk,
)
from holdfast.errors import InvalidInput

READERS = tuple(
    module.READER for module in (locomo, realmem, agent_sessions, longmemeval, realtalk, beam, memsim, own)
)


class Found(NamedTuple):
    """A file of a data set, and its reader; the file is parsed when it is read."""

    reader: Reader
    path: Path

    def corpora(self) -> Iterator[Corpus]:
        """Yield what the file has."""
        return self.reader.read(self.path, parsed(self.path))


def found_in(
    paths: Iterable[Path],
    progress: Callable[[str], None] = lambda _: None,
    readers: Iterable[Reader] = READERS,
) -> list[Found]:
    """Return the files of data sets among some paths and in their folders, in the order of the readers.

    What no reader knows is passed over, as there are other files in a folder; `progress` is told.

    Raises:
        InvalidInput: there is nothing at a path, or a file that is named cannot be read.

    """
    order = tuple(readers)
    found = []
    for path in paths:
        if not path.exists():
            raise InvalidInput(f"There is no file or folder at {str(path)!r}.", "Check the path.")
        for file in sorted(path.rglob("*.json*")) if path.is_dir() else [path]:
            try:
                value = parsed(file)
            except InvalidInput as error:
                if file == path:
                    raise
                progress(error.what)
                continue
            found += [Found(reader, file) for reader in order if reader.knows(value)][:1]
    return sorted(found, key=lambda one: order.index(one.reader))
