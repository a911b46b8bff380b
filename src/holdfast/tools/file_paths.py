"""Paths of memory files: one form for each, all of them below `/memories`, whatever is asked for."""

from __future__ import annotations

import re
import unicodedata

from holdfast.errors import InvalidInput

ROOT = "/memories"
LONGEST_PATH = 1_000  # bytes in UTF-8 of a path, and characters of one that an error repeats
LONGEST_NAME = 255  # bytes of a name between two slashes, as in most file systems
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")


class Refused(InvalidInput):
    """A command on memory files cannot be carried out; nothing was changed. Correct it and call again.

    `told` is what to tell the model that gave the command, word for word what the tool of the Anthropic SDK says.
    """

    def __init__(self, told: str, todo: str) -> None:
        super().__init__(told if told.endswith((".", "?", "!")) else f"{told}.", todo)
        self.told = told


def resolve(path: object) -> str:
    """Give the one form of a path: without ".", ".." and empty names, in NFC. It is `/memories` or begins with `/memories/`.

    >>> resolve("/memories//plans/../notes.md")
    '/memories/notes.md'

    Raises:
        Refused: it leaves `/memories`, is too long, or has a name that another program could read as another path.

    """
    if not isinstance(path, str):
        raise Refused(f"The path must be text, not {type(path).__name__}", "Pass a string.")
    if not (path == ROOT or path.startswith(f"{ROOT}/")):
        raise Refused(f"Path must start with {ROOT}, got: {shown(path)}", f"Begin it with {ROOT}/.")
    if len(path) > LONGEST_PATH:
        raise _too_long(path)
    names: list[str] = []
    for name in path[len(ROOT) :].split("/"):
        if name == ".." and not names:
            raise Refused(f"Path {shown(path)} would escape {ROOT} directory", f"Stay below {ROOT}.")
        if name == "..":
            names.pop()
        elif name not in ("", "."):
            names.append(_checked(name, path))
    resolved = "/".join((ROOT, *names))
    if len(resolved.encode("utf-8")) > LONGEST_PATH:
        raise _too_long(resolved)
    return resolved


def _checked(name: str, path: str) -> str:
    """Return a name in NFC if it is plain, or raise Refused."""
    plain = unicodedata.normalize("NFKC", name)
    why = ""
    if "/" in plain or "\\" in plain or not plain.strip("."):
        why = "a name that can be read as a path"
    elif _ENCODED.search(plain):
        why = "an encoded character"
    elif not name.isprintable():  # two paths could look like one
        why = "a character that cannot be seen"
    elif name != name.strip():
        why = "a name with white space around it"
    elif len(name.encode("utf-8")) > LONGEST_NAME:
        why = f"a name of more than {LONGEST_NAME} bytes"
    if why:
        raise Refused(f"Path {shown(path)} has {why}", "Use letters, digits, spaces, '-', '_' and '.'.")
    return unicodedata.normalize("NFC", name)


def _too_long(path: str) -> Refused:
    return Refused(
        f"The path has {len(path):,} characters; it may have {LONGEST_PATH:,} bytes", "Use a shorter one."
    )


def shown(text: str, besides: str = "") -> str:
    """Give what an error repeats of what it was given: not all of what is long, and escaped what cannot be printed.

    The characters `besides` stay as they are.
    """
    cut = text if len(text) <= LONGEST_PATH else f"{text[:LONGEST_PATH]}…"
    return "".join(
        one if one.isprintable() or one in besides else one.encode("unicode_escape").decode("ascii")
        for one in cut
    )


def is_below(path: str, folder: str) -> bool:
    """Say whether a path lies below another one."""
    return path.startswith(f"{folder}/")
