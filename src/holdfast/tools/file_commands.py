"""Commands on memory files: paths in one normal form, and answers with the words of the Anthropic SDK.

Pure functions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from holdfast.errors import InvalidInput
from holdfast.types import is_whole

ROOT = "/memories"
LONGEST_PATH = 1_000  # bytes in UTF-8, and characters of a path in an error
LONGEST_NAME = 255  # bytes of a name between slashes, as in most file systems
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")
_WIDTH = 6  # of line numbers
_DEPTH = 2  # levels of a folder that are listed
_AROUND = 2  # lines shown before and after a replacement
_MOST_LINES = 100  # line numbers in an error
_UNITS = "BKMG"
_BITS = 64  # of a number in an error: Python does not convert every number to text


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
            names.append(_check_name(name, path))
    resolved = "/".join((ROOT, *names))
    if len(resolved.encode("utf-8")) > LONGEST_PATH:
        raise _too_long(resolved)
    return resolved


def _check_name(name: str, path: str) -> str:
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
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii")
        for char in cut
    )


def is_below(path: str, folder: str) -> bool:
    """Return whether a path lies below another one."""
    return path.startswith(f"{folder}/")


def number_file(path: str, content: str, view_range: object = None) -> str:
    """Return a file with line numbers, or its lines of a range, both ends included; -1 is the last.

    Raises:
        FileCommandError: the range is not two whole numbers.

    """
    lines = content.split("\n")
    first, last = _range(view_range, len(lines))
    return f"Here's the content of {path} with line numbers:\n" + _number(lines[first - 1 : last], first)


def _range(view_range: object, count: int) -> tuple[int, int]:
    if view_range is None or view_range == []:
        return 1, count
    if not (
        isinstance(view_range, Sequence) and len(view_range) == 2 and all(is_whole(end) for end in view_range)
    ):
        raise FileCommandError(
            "Invalid `view_range` parameter. It should be the numbers of the first and the last line.",
            "Pass [first, last]; -1 is the last line.",
        )
    first, last = view_range
    return max(1, first), count if last == -1 else max(0, last)


def _number(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def listing(folder: str, sizes: Mapping[str, int]) -> str:
    """Return the list of files in a folder and its folders; `sizes` are the bytes of files by path."""
    sizes_below: dict[tuple[str, ...], int] = {}
    for path, size in sizes.items():
        names = path.removeprefix(f"{folder}/").split("/")
        for depth in range(1, min(len(names), _DEPTH) + 1):
            place = tuple(names[:depth])
            if any(name.startswith(".") for name in place):
                break
            # The empty name sorts a folder before its files.
            key = place if depth == len(names) else (*place, "")
            sizes_below[key] = sizes_below.get(key, 0) + size
    lines = [f"{in_units(sum(sizes.values()))}\t{folder}"]
    lines += [f"{in_units(sizes_below[place])}\t{folder}/{'/'.join(place)}" for place in sorted(sizes_below)]
    header = f"Here're the files and directories up to 2 levels deep in {folder}, excluding hidden items:"
    return "\n".join((header, *lines))


def in_units(size: int) -> str:
    """Return a number of bytes as `ls -h` writes it.

    >>> in_units(1536)
    '1.5K'
    """
    power = min((max(size, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    amount = size / 1024**power
    return f"{amount:.0f}{_UNITS[power]}" if amount.is_integer() else f"{amount:.1f}{_UNITS[power]}"


def replace_text(path: str, content: str, old: str, new: str) -> str:
    """Return content with a text, which must occur once, replaced.

    Raises:
        FileCommandError: it occurs more often, or not at all.

    """
    count = content.count(old) if old else 0
    if count == 0:
        raise FileCommandError(
            f"No replacement was performed, old_str `{_part(old)}` did not appear verbatim in {path}.",
            "View the file, and pass a part of it.",
        )
    if count > 1:
        raise FileCommandError(
            f"No replacement was performed. Multiple occurrences of old_str `{_part(old)}` in lines: "
            f"{_lines_with(content, old)}. Please ensure it is unique",
            "Pass more of the text around it.",
        )
    return content.replace(old, new)


def _part(text: str) -> str:
    return printable(text, keep="\n\r\t")


def _lines_with(content: str, part: str) -> str:
    """Return the numbers of the lines in which a text begins; occurrences can overlap."""
    numbers: list[int] = []
    line, counted = 1, 0
    position = content.find(part)
    while position != -1 and len(numbers) < _MOST_LINES:
        line += content.count("\n", counted, position)
        counted = position
        numbers.append(line)
        position = content.find(part, position + 1)
    return ", ".join(map(str, numbers)) + (", …" if position != -1 else "")


def snippet(content: str, position: int) -> str:
    """Return the lines around a replacement at a position of a file."""
    lines = content.split("\n")
    changed = content.count("\n", 0, position)
    first = max(0, changed - _AROUND)
    return (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        + _number(lines[first : changed + _AROUND + 1], first + 1)
    )


def insert_text(content: str, line: int, text: str) -> str:
    """Return content with a text after a line, 0 for the beginning; the last line ends with a line break.

    Raises:
        FileCommandError: there is no such line.

    """
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not is_whole(line) or not 0 <= line <= len(lines):
        given = line if is_whole(line) and line.bit_length() <= _BITS else type(line).__name__
        raise FileCommandError(
            f"Invalid `insert_line` parameter: {given}. It should be within the range [0, {len(lines)}].",
            "View the file, and pass the number of a line.",
        )
    lines.insert(line, text.rstrip("\n"))
    joined = "\n".join(lines)
    return joined if joined.endswith("\n") else f"{joined}\n"
