"""The settings of a git repository, read as git does as far as its remotes go; nothing is run."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

_MOST = 256 << 10  # bytes of a file
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]{1,100})(?:\s+"((?:[^"\\\n]|\\.){0,2000})")?\s*\]')
_VARIABLE = re.compile(r"([A-Za-z][A-Za-z0-9-]{0,100})\s*(?:=\s*(.*))?", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


def read_regular(path: Path, most: int) -> bytes:
    """Return the first bytes of a regular file; none of anything else, such as a pipe, nor waits for it."""
    try:
        # One that is replaced by a pipe after a look at it must not hang.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            return os.read(handle, most) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
        finally:
            os.close(handle)
    except (OSError, ValueError):
        return b""


def read_small(path: Path) -> str:
    """Return the text of a small regular file; "" for anything else."""
    return read_regular(path, _MOST).decode("utf-8", "surrogateescape")


class GitConfig:
    """The variables of a repository: section, subsection, name and value of each."""

    def __init__(self, folder: Path) -> None:
        self._own = list(_entries(folder / "config"))

    def value(self, section: str, name: str) -> str:
        """Return the last value of a variable; "" without one."""
        values = [value for part, _, key, value in self._own if (part, key) == (section, name)]
        return values[-1] if values else ""

    def remote(self) -> str:
        """Return the URL of the remote `origin`, else of the first one by name, else "".

        As it is written: what a user rewrites by `insteadOf` is not looked up.
        """
        urls: dict[str, str] = {}
        for section, name, key, value in self._own:
            if section == "remote" and key == "url":
                # Of several URLs git fetches from the first.
                urls.setdefault(name, value)
        return urls.get("origin") or (urls[min(urls)] if urls else "")


def _entries(file: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield section, subsection, variable and value; a line that is none is passed over."""
    section = subsection = ""
    for line in _lines(read_small(file)):
        rest = line.strip()
        if header := _SECTION.match(rest):
            section, subsection = header[1].casefold(), re.sub(r"\\(.)", r"\1", header[2] or "")
            if not header[2] and "." in section:
                # The old form: [remote.origin].
                section, _, subsection = section.partition(".")
            rest = rest[header.end() :].strip()
        if rest[:1] not in ("#", ";", "") and (pair := _VARIABLE.fullmatch(rest)):
            yield section, subsection, pair[1].casefold(), _value(pair[2] or "")


def _lines(text: str) -> Iterator[str]:
    """Yield lines; one that ends with a backslash is joined with the next."""
    head = ""
    for line in text.removeprefix("\ufeff").splitlines():
        if line.endswith("\\") and not line.endswith("\\\\"):
            head += line[:-1]
            continue
        yield head + line
        head = ""
    if head:
        yield head


def _value(text: str) -> str:
    """Return a value without quotes, escapes and comments."""
    parts: list[str] = []
    in_quotes, at, end = False, 0, 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            at += 1
            parts.append(_ESCAPES.get(text[at], text[at]))
            end = len(parts)
        elif char == '"':
            in_quotes = not in_quotes
            end = len(parts)
        elif char in "#;" and not in_quotes:
            break
        else:
            parts.append(char)
            end = len(parts) if in_quotes or not char.isspace() else end
        at += 1
    return "".join(parts[:end])
