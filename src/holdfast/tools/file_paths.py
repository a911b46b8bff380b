"""Paths of memory files: one normal form for each, below `/memories`."""

from __future__ import annotations

import re
import unicodedata

from holdfast.errors import InvalidInput

ROOT = "/memories"
LONGEST_PATH = 1_000  # bytes in UTF-8, and characters of a path in an error
LONGEST_NAME = 255  # bytes of a name between slashes, as in most file systems
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")


class FileCommandError(InvalidInput):
    """A command on memory files is invalid; nothing was changed. Correct it and call again.

    `answer` is for the model, with the words of the Anthropic SDK.
    """

    def __init__(self, answer: str, todo: str) -> None:
        super().__init__(answer if answer.endswith((".", "?", "!")) else f"{answer}.", todo)
        self.answer = answer


def resolve(path: object) -> str:
    """Return the normal form of a path: without ".", ".." and empty names, in NFC, in `/memories`.

    >>> resolve("/memories//plans/../notes.md")
    '/memories/notes.md'

    Raises:
        FileCommandError: it leaves `/memories`, is too long, or has an ambiguous name.

    """
    if not isinstance(path, str):
        raise FileCommandError(f"The path must be text, not {type(path).__name__}", "Pass a string.")
    if not (path == ROOT or path.startswith(f"{ROOT}/")):
        raise FileCommandError(
            f"Path must start with {ROOT}, got: {printable(path)}", f"Begin it with {ROOT}/."
        )
    if len(path) > LONGEST_PATH:
        raise _too_long(path)
    names: list[str] = []
    for name in path[len(ROOT) :].split("/"):
        if name == ".." and not names:
            raise FileCommandError(
                f"Path {printable(path)} would escape {ROOT} directory", f"Stay below {ROOT}."
            )
        if name == "..":
            names.pop()
        elif name not in ("", "."):
            names.append(_checked(name, path))
    resolved = "/".join((ROOT, *names))
    if len(resolved.encode("utf-8")) > LONGEST_PATH:
        raise _too_long(resolved)
    return resolved


def _checked(name: str, path: str) -> str:
    """Return a name in NFC if it is unambiguous, or raise FileCommandError."""
    plain = unicodedata.normalize("NFKC", name)
    problems = (
        ("/" in plain or "\\" in plain or not plain.strip("."), "a name that can be read as a path"),
        (_ENCODED.search(plain), "an encoded character"),
        # Two paths could look like one.
        (not name.isprintable(), "a character that cannot be seen"),
        (name != name.strip(), "a name with white space around it"),
        (
            len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME,
            f"a name of more than {LONGEST_NAME} bytes",
        ),
    )
    for is_wrong, why in problems:
        if is_wrong:
            todo = "Use letters, digits, spaces, '-', '_' and '.'."
            raise FileCommandError(f"Path {printable(path)} has {why}", todo)
    return unicodedata.normalize("NFC", name)


def _too_long(path: str) -> FileCommandError:
    return FileCommandError(
        f"The path has {len(path):,} characters; it may have {LONGEST_PATH:,} bytes", "Use a shorter one."
    )


def printable(text: str, keep: str = "") -> str:
    """Return a text for an error: cut where it is long, escaped where not printable and not in `keep`."""
    cut = text if len(text) <= LONGEST_PATH else f"{text[:LONGEST_PATH]}…"
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode("ascii")
        for one in cut
    )


def is_below(path: str, folder: str) -> bool:
    """Return whether a path lies below another one."""
    return path.startswith(f"{folder}/")
