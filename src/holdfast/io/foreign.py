"""Files that are databases of other programs, opened for a reader."""

from __future__ import annotations

from contextlib import AbstractContextManager

from holdfast.errors import Unavailable
from holdfast.io.files import File
from holdfast.store.foreign_sqlite import ForeignSQLite, open_foreign


def opened(file: File) -> AbstractContextManager[ForeignSQLite]:
    """Return the database that a file is.

    Raises:
        Unavailable: it is in a zip, or cannot be read.

    """
    if file.location is None:
        what = "A database is not read in a zip; unpack the zip and import the folder."
        raise Unavailable(what, "Unpack it.")
    return open_foreign(file.location)
