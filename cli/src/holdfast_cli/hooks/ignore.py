"""The `.holdfastignore` files: which paths the user keeps out of the memory, in the syntax of gitignore."""

import fnmatch
import os
import posixpath
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from glob import has_magic
from itertools import islice
from pathlib import Path

NAME = ".holdfastignore"

_MOST = 1 << 20  # bytes of a file of patterns
_DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_HOME = re.compile(r"^(?:~(?=[\\/]|$)|\$HOME\b|\$\{HOME\})")
# What a shell puts the folder that it is in for, and how paths end that are folders.
_HERE = re.compile(r"^(?:\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`)")
_FOLDER = re.compile(r"(?:^|/)\.{0,2}\Z")
_MATCHES = 1000  # files that a pattern in a command is taken for
_LISTED = 200  # folders that are listed for it, and names in each of them
_REMEMBERED = 100_000  # paths of which the decision is kept
# An expression, and whether what it fits is covered.
_Pattern = tuple[re.Pattern[str], bool]
# In the expression of a pattern: a star, and what comes before the next one in the same name.
_STARS = re.compile(r"\[\^/\]\*((?:\\.|\[\^/\](?!\*)|[^\[\\/()?+*|])+?)(?=\[\^/\]\*)")
# A set of characters in a pattern: whether all others are meant, what is in it, and whether it ends.
_SET = re.compile(r"\\.|\[([!^]?)(\]?(?:\\.|\[:[^\]]{0,20}:\]|[^\]\\])*+)(\]?)")
# In a set: a class of POSIX, or a character and the last one of a range.
_IN_SET = re.compile(r"\[:([^\]]{0,20}):\]|\\?(.)(?:-\\?(.))?")
_CLASSES = dict(
    pair.split("=")
    for pair in r"alnum=0-9a-z alpha=a-z blank=\x20\t cntrl=\x00-\x1f\x7f digit=0-9 graph=!-~ lower=a-z "
    r"print=\x20-~ punct=!-/:-@\[-`{-~ space=\x20\t-\r upper=A-Z xdigit=0-9a-f".split()
)
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
        self._specs_in: dict[str, Sequence[tuple[str, list[_Pattern]]]] = {}
        self._known: dict[str, bool] = {}

    def covers_root(self) -> bool:
        """Return whether nothing of the project is to be stored: its root is covered, or all in it."""
        if _covers_all(Path(self._root, NAME)):
            return True
        return any(self._is_covered(f"{root}/") for root in self._roots if root != self._home)

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
        """Return a path from the root of the system, in its plain form, with a slash behind a folder."""
        path = _HERE.sub(".", _HOME.sub(lambda _: self._home, path.removeprefix("file://"), count=1))
        is_absolute = path.startswith("/") or _DRIVE.match(path)
        full = _plain(path if is_absolute else f"{cwd or self._root}/{path}")
        return f"{full.rstrip('/')}/" if _FOLDER.search(path) else full

    def _is_ours(self, path: str) -> bool:
        return any(_is_within(path, top) for top in (*self._roots, *self._homes))

    def _is_covered(self, path: str) -> bool:
        """Return whether a path is covered, or a folder that it is in."""
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        for slash in (*re.finditer("/", path), None):
            part = path[: slash.end()] if slash else path
            if part not in self._known:
                self._known[part] = self._decide(part)
            if self._known[part]:
                return True
        return False

    def _decide(self, path: str) -> bool:
        """Return whether a path is covered, whatever it lies in: as a folder, or as a file if it may be."""
        as_folder = self._decide_of(f"{path.rstrip('/')}/")
        if as_folder or path.endswith("/"):
            return as_folder
        return self._decide_of(path) and not (self._is_ours(path) and posixpath.isdir(path))

    def _decide_of(self, form: str) -> bool:
        for folder, spec in self._specs_for(posixpath.dirname(form.rstrip("/"))):
            relative = form[len(folder) :].lstrip("/").lower()
            for pattern, covers in spec:
                if pattern.search(relative):
                    return covers
        return False

    def _specs_for(self, folder: str) -> Sequence[tuple[str, list[_Pattern]]]:
        """Return the patterns for the paths in a folder, in the order in which they decide."""
        top = next((root for root in self._roots if _is_within(folder, root)), "")
        return (*self._specs_above(folder), (top, self._own)) if self._own else self._specs_above(folder)

    def _specs_above(self, folder: str) -> Sequence[tuple[str, list[_Pattern]]]:
        """Return the patterns of a folder and of the folders above it; each is read once."""
        if len(self._specs_in) > _REMEMBERED:
            self._specs_in.clear()
        folders = []
        while folder not in self._specs_in and self._is_ours(folder):
            folders.append(folder)
            folder = posixpath.dirname(folder)
        specs = self._specs_in.get(folder, ())
        for place in reversed(folders):
            spec = _spec(Path(place, NAME))
            specs = self._specs_in[place] = ((place, spec), *specs) if spec else specs
        return specs


def _spec(file: Path) -> list[_Pattern]:
    """Return the patterns of a file, in small letters, the last one first; none if there is no such file."""
    return [(_compile(line, _of_git), not line.startswith("!")) for line in reversed(_lines(file))]


def _compile(line: str, translate: Callable[[str], str]) -> re.Pattern[str]:
    """Return a pattern as an expression for small letters; as in git, one that is none covers nothing.

    Sets of characters are read here, as git reads them: `translate` gets NUL, which is in no path, for each.
    """
    sets: list[str] = []

    def convert(match: re.Match[str]) -> str:
        if match[0].startswith("\\"):
            return match[0]
        inside = "".join(
            f"{re.escape(low)}-{re.escape(max(low, high))}" if low else _CLASSES[name]
            for name, low, high in dict.fromkeys(_IN_SET.findall(match[2]))
        )
        # Of small letters, none is lost where all but capitals are meant.
        flag = "" if match[1] and not line.startswith("!") else "i"
        sets.append(f"(?{flag}:(?!/)[{'^' if match[1] else ''}{inside}])" if match[3] else "(?!)")
        return "\0"

    try:
        expression = translate(_SET.sub(convert, line.partition("\0")[0]).lower())
    except (ValueError, KeyError):
        return re.compile("(?!)")
    following = iter(sets)
    return re.compile(re.sub("\0", lambda _: next(following), expression))


def _of_git(line: str) -> str:
    """Return the expression of a pattern for the path itself: what is in a folder is decided on its own.

    A name with many stars would be compared with all ways to divide it: the first one will do.
    """
    # Only where there is a file of patterns.
    from pathspec import GitIgnoreSpec

    (pattern,) = GitIgnoreSpec.from_lines([_limit_stars(re.sub(r"\*{3,}", "**", line))]).patterns
    regex: re.Pattern[str] | None = getattr(pattern, "regex", None)
    if regex is None:
        return "(?!)"
    expression = _STARS.sub(r"(?>[^/]*?\1)", regex.pattern)
    end = next((end for end in _ENDS if expression.endswith(end)), "")
    return expression.removesuffix(end) + _ENDS.get(end, "")


def _limit_stars(line: str) -> str:
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


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _plain(path: str) -> str:
    """Return a path with slashes, without `.`, `..` and double slashes."""
    if _DRIVE.match(path):
        path = path.replace("\\", "/")
    path = posixpath.normpath(path)
    return f"/{path.lstrip('/')}" if path.startswith("/") else path


def _where_it_leads(path: str) -> list[str]:
    """Return the targets of symbolic links from a path, or from the files that match a pattern."""
    # Tools that search in all folders leave some out.
    matches = _matches(path) if has_magic(path) and "/**/" not in path else []
    return list({*matches, *map(_real, (path, *matches))} - {path})


def _matches(path: str) -> list[str]:
    """Return the files that a pattern of a shell stands for, a number of them at most."""
    first, *names = path.split("/")
    paths, room = [first], _LISTED
    for name in names:
        folders, paths = paths, [child for folder in paths if os.path.lexists(child := f"{folder}/{name}")]
        if has_magic(name):
            pattern = _compile(name, fnmatch.translate)
            for folder in folders[:room]:
                with suppress(OSError):
                    fitting = (
                        str(file) for file in Path(f"{folder}/").iterdir() if pattern.match(file.name.lower())
                    )
                    paths += map(_plain, islice(fitting, _LISTED))
            room = max(room - len(folders), 0)
    return paths[:_MATCHES]


@lru_cache(maxsize=4096)
def _real(path: str) -> str:
    try:
        return _plain(os.path.realpath(path)) + "/" * path.endswith("/")
    except (OSError, ValueError):
        return path
