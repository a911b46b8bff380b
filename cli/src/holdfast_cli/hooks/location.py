"""Where the database is, by options and the environment: the same for the command line and for hooks."""

import os
import re
import sys
from pathlib import Path
from typing import Literal

from holdfast.errors import InvalidInput

DATABASE = "HOLDFAST_DB"
KEY = "HOLDFAST_KEY"  # an environment is read by fewer than a command line


# The variable, and the folder below the home, of the XDG base directories.
_FOLDERS = {
    "config": ("XDG_CONFIG_HOME", ".config"),
    "data": ("XDG_DATA_HOME", ".local/share"),
    "state": ("XDG_STATE_HOME", ".local/state"),
}


def user_folder(sort: Literal["config", "data", "state"]) -> Path:
    """Return the folder for configuration, data or state of the user: that of `platformdirs`.

    In the usual cases on Linux it is told without that package: a hook would wait 10 ms for it.
    """
    variable, usual = _FOLDERS[sort]
    base, home = os.environ.get(variable), os.environ.get("HOME", "")
    if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ:
        if base is not None and base.startswith("/") and base == base.strip():
            return Path(base, "holdfast")
        if base is None and home.startswith("/"):
            return Path(home, usual, "holdfast")
    # Not where it is needless.
    from platformdirs import PlatformDirs

    return Path(getattr(PlatformDirs("holdfast", appauthor=False), f"user_{sort}_dir"))


def default_path() -> Path:
    """Return the path of the database that is used where none is named."""
    return user_folder("data") / "memory.db"


def location_of(option: str) -> str:
    """Return the path or URL of the database that an option, or else the environment, names."""
    option = option or os.environ.get(DATABASE, "")
    if not option:
        return str(default_path())
    # `Path.expanduser` raises for an unknown user.
    return option if "://" in option else os.path.expanduser(option)  # noqa: PTH111


def is_there(location: str) -> bool:
    """Return whether there is a database; of one on a server, the server will say."""
    if "://" in location:
        return True
    path = Path(location)
    return path.exists() and not (path.is_file() and path.stat().st_size == 0)


def without_password(location: str) -> str:
    """Return a URL as it may be shown."""
    shown = re.sub(r"://([^:@/]*):.*@", r"://\1:***@", location)
    return re.sub(r"(?<=[?&]password=)[^&]*", "***", shown)


def checksum_key() -> bytes | None:
    """Return the key of the checksums, None if the environment has none.

    Raises:
        InvalidInput: it is not written in hexadecimal digits.

    """
    text = os.environ.get(KEY, "")
    try:
        return bytes.fromhex(text) if text else None
    except ValueError as error:
        raise InvalidInput(
            f"${KEY} is not written in hexadecimal digits.", "Write 16 to 64 bytes as pairs of them."
        ) from error
