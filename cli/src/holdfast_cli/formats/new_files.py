"""Files that are written whole, or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def writing_whole(path: Path, *, private: bool) -> Iterator[TextIO]:
    """Open a draft beside a file, which takes the place of the file if all of it is written.

    Args:
        path: of the file, in a folder that is there.
        private: whether only its owner may read it.

    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.touch(mode=0o600 if private else 0o666, exist_ok=False)
        with draft.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
