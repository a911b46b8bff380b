"""The `.holdfastignore` files: which paths the user keeps out of the memory, in the syntax of gitignore."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from glob import has_magic
from itertools import islice
from pathlib import Path

NAME = ".holdfastignore"

_MOST = 1 << 20  # bytes of a file of patterns
_DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_HOME = re.compile(r"^(?:~(?=[\\/]|$)|\$HOME\b|\$\{HOME\})")
_MATCHES = 200  # files that a pattern in a command is taken for
_REMEMBERED = 100_000  # paths of which the decision is kept
# An expression, and whether what it fits is covered.
_Pattern = tuple[re.Pattern[str], bool]
# In the expression of a pattern: a star, and what comes before the next one in the same name.
_STARS = re.compile(r"\[\^/\]\*((?:\\.|\[\^?\]?[^\]]{0,200}\](?!\*)|[^\[\\/()?+*|])+?)(?=\[\^/\]\*)")
# How expressions end that cover what is in a folder too, and how they end for the folder itself.
_ENDS = {"(?:(?P<ps_d>/)|$)": "/?$", "(?P<ps_d>/)": "/$", "/": "/."}
# Patterns by which a file covers all of its folder.
_ALL = frozenset(("/", "*", "/*", "**", "/**", "**/*", ".", "./"))


class IgnoreRules:
    """The patterns of a project: those in its folders, in those above it within the home, and the user's own.

    As in git, those of the folder nearest to a path decide, and nothing under a covered folder is let in
    again. Unlike git, it does not matter whether letters are capitals.
    """

    def __init__(self, root: Path, home: Path, own: Path) -> None:
        self._root, self._home = _plain(str(root)), _plain(str(home))
        self._roots = {self._root, _plain(os.path.realpath(root))}
        self._homes = {self._home, _plain(os.path.realpath(home))}
        self._own = _spec(own)
        self._specs: dict[str, list[_Pattern]] = {}
        self._asked_in: dict[str, Sequence[tuple[str, list[_Pattern]]]] = {}
        self._known: dict[str, bool] = {}

    def covers_root(self) -> bool:
        """Return whether nothing of the project is to be stored: its root is covered, or all in it."""
        if _covers_all(Path(self._root, NAME)):
            return True
        return any(self._is_covered(root) for root in self._roots if root != self._home)

    def covers(self, path: str, cwd: str, *, follow: bool) -> bool:
        """Return whether a path is covered, as written from a folder, and with `follow` where it leads."""
        if not path or len(path) > 4096 or "\x00" in path:
            return False
        forms = {path, path.replace("\\", "/")} if "\\" in path else {path}
        for form in forms:
            full = self._full(form, cwd)
            if self._is_covered(full):
                return True
            if follow and self._is_ours(full) and any(map(self._is_covered, _where_it_leads(full))):
                return True
        return False

    def _full(self, path: str, cwd: str) -> str:
        """Return a path from the root of the system, in its plain form."""
        path = _HOME.sub(lambda _: self._home, path.removeprefix("file://"), count=1)
        return _plain(path if _is_absolute(path) else f"{cwd or self._root}/{path}")

    def _is_ours(self, path: str) -> bool:
        return any(_is_within(path, top) for top in (*self._roots, *self._homes))

    def _is_covered(self, path: str) -> bool:
        """Return whether a path is covered, or a folder that it is in."""
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        for slash in (*re.finditer("/", path), None):
            part = path[: slash.start()] if slash else path
            if part not in self._known:
                self._known[part] = bool(part) and self._decide(part)
            if self._known[part]:
                return True
        return False

    def _decide(self, path: str) -> bool:
        """Return whether a path is covered, as a file or a folder, whatever it lies in."""
        return any(self._decide_of(form, posixpath.dirname(path)) for form in (path, f"{path}/"))

    def _decide_of(self, form: str, above: str) -> bool:
        for folder, spec in self._asked(above):
            relative = form[len(folder) :].lstrip("/").lower()
            for pattern, covers in spec:
                if pattern.search(relative):
                    return covers
        return False

    def _asked(self, folder: str) -> Sequence[tuple[str, list[_Pattern]]]:
        """Return the patterns that are asked for what is in a folder, those that decide first first."""
        if folder in self._asked_in:
            return self._asked_in[folder]
        asked = []
        current = folder
        while self._is_ours(current):
            if spec := self._spec_in(current):
                asked.append((current, spec))
            current = posixpath.dirname(current)
        if self._own:
            top = next((one for one in self._roots if _is_within(folder, one)), "")
            asked.append((top, self._own))
        if len(self._asked_in) > _REMEMBERED:
            self._asked_in.clear()
        self._asked_in[folder] = asked
        return asked

    def _spec_in(self, folder: str) -> list[_Pattern]:
        if folder not in self._specs:
            self._specs[folder] = _spec(Path(folder, NAME))
        return self._specs[folder]


def _spec(file: Path) -> list[_Pattern]:
    """Return the patterns of a file, in small letters, the last one first; none if there is no such file."""
    lines = _lines(file)
    if not lines:
        return []
    # Only where such a file is.
    from pathspec import GitIgnoreSpec

    patterns: list[_Pattern] = []
    for line in map(_bounded, lines):
        # As in git, a pattern that is none covers nothing.
        with suppress(ValueError):
            for one in GitIgnoreSpec.from_lines([line.lower()]).patterns:
                regex: re.Pattern[str] | None = getattr(one, "regex", None)
                if regex is not None and one.include is not None:
                    patterns.append((_exact(regex.pattern), one.include))
    return patterns[::-1]


def _exact(expression: str) -> re.Pattern[str]:
    """Return the expression of a pattern for the path itself: what is in a folder is decided on its own.

    A name with many stars would be compared with all ways to divide it: the first one will do.
    """
    expression = _STARS.sub(r"(?>[^/]*?\1)", expression)
    for end, exact in _ENDS.items():
        if expression.endswith(end):
            expression = expression.removesuffix(end) + exact
            break
    return re.compile(expression)


def _bounded(line: str) -> str:
    """Return a pattern with two `**` at most: one with more covers what the first two let it cover."""
    parts = line.split("**")
    if len(parts) <= 3:
        return line
    return "" if line.startswith("!") else "**".join((*parts[:2], ""))


def _lines(file: Path) -> list[str]:
    """Return the lines of a file of patterns; one that is there and cannot be read covers everything."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return ["*"]
        with file.open("rb") as stream:
            content = stream.read(_MOST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError):
        return ["*"]
    if len(content) > _MOST:
        return ["*"]
    return content.decode("utf-8-sig", "replace").splitlines()


def _covers_all(file: Path) -> bool:
    lines = [line.strip() for line in _lines(file)]
    return any(line in _ALL for line in lines) and not any(line.startswith("!") for line in lines)


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or _DRIVE.match(path) is not None


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _plain(path: str) -> str:
    """Return a path with slashes, without `.`, `..` and double slashes."""
    if _DRIVE.match(path):
        path = path.replace("\\", "/")
    path = posixpath.normpath(path)
    return f"/{path.lstrip('/')}" if path.startswith("/") else path


def _where_it_leads(path: str) -> list[str]:
    """Return where symbolic links lead from a path, or from the files that a pattern stands for."""
    found = [path]
    folder, name = posixpath.split(path)
    if not has_magic(folder) and has_magic(name):
        with suppress(OSError):
            names = [one.name for one in Path(folder).iterdir()]
            found += [f"{folder}/{one}" for one in islice(fnmatch.filter(names, name), _MATCHES)]
    return list({*found[1:], *map(_real, found)} - {path})


@lru_cache(maxsize=4096)
def _real(path: str) -> str:
    try:
        return _plain(os.path.realpath(path))
    except (OSError, ValueError):
        return path
