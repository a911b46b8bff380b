"""The paths that calls of tools, their output and prompts name."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

# Names of arguments, without the marks between their words, as the tools of coding agents have them.
_PATHS = frozenset(
    "path paths file files filename filenames filepath filepaths notebookpath targetfile absolutepath "
    "relativepath relativeworkspacepath uri dir directory dirpath folder workdir cwd glob include".split()
)
_COMMANDS = frozenset("command commands cmd script argv".split())
_SEARCHES = frozenset("pattern query regex glob include searchterm".split())
_LONGEST = 1024  # characters of a path
_DEPTH = 6  # of arguments within arguments
_DRIVE = r"(?:[A-Za-z]:(?=[\\/]))?"
_TOKEN = re.compile(rf"{_DRIVE}(?:\\.|[^\s\"'`|&;<>()={{}}\[\],:\\]|\\(?!\s))++")
# What a shell takes for one word when there are no quotes: with sets of characters, and where it is.
_WORD = re.compile(rf"{_DRIVE}(?:\\.|\$\(pwd\)|`pwd`|\$\{{\w{{1,40}}\}}|[^\s`|&;<>()={{}},:\\]|\\(?!\s))++")
_QUOTED = re.compile(r"\"([^\"\n]{1,1024})\"|'([^'\n]{1,1024})'")
_PATCHED = re.compile(
    r"^\*\*\* (?:Add|Update|Delete) File: ([^\n]{1,1024})$|^\*\*\* Move to: ([^\n]{1,1024})$", re.MULTILINE
)
_CONTEXT = re.compile(r"-\d{1,9}-")
# What a line of output begins with where it is about a file: a header, or its name before its words.
_LINE = re.compile(
    rf"""^[ \t]{{0,8}}
    (?:==>\s | \+\+\+\s(?:b/)? | ---\s(?:a/)? | diff\s--git\sa/ | \*\*\*\s\w{{1,10}}\sFile:\s | File:\s |
        \#{{1,6}}\s)?
    ({_DRIVE}[^\s\"'`|&;<>()={{}}\[\],:]++)(?=:|-\d|[ \t]*(?:<==)?\r?$)""",
    re.MULTILINE | re.VERBOSE,
)


def paths_in_call(arguments: Mapping[str, object] | str) -> set[str]:
    """Return the paths that the arguments of a call name; of a command, maybe other words too."""
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    is_object = isinstance(arguments, Mapping)
    return set(_in_arguments(arguments, "", _DEPTH) if is_object else _in_command(str(arguments)))


def is_about_one_file(arguments: Mapping[str, object] | str) -> bool:
    """Return whether a call names its file, so that its output is of no other one."""
    if isinstance(arguments, str):
        return False
    keys = {_plain(key) for key in arguments}
    return bool(keys & _PATHS) and not keys & (_COMMANDS | _SEARCHES)


def is_path_key(key: object) -> bool:
    """Return whether an argument of this name is a path."""
    return _plain(key) in _PATHS


def paths_in_output(text: str) -> set[str]:
    """Return the paths that an output names: words with a slash, or before the text of a line."""
    tokens = {token for token in _TOKEN.findall(text) if "/" in token or "\\" in token}
    tokens.update(line[1] for line in _LINE.finditer(text))
    # What stands around a match has the number of its line behind the name.
    tokens.update([token[: number.start()] for token in tokens if (number := _CONTEXT.search(token))])
    paths = {token.rstrip(".,!?").lstrip("@*") for token in tokens}
    return {path for path in paths if 0 < len(path) <= _LONGEST}


def _in_arguments(value: object, key: str, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping) and depth:
        for name, item in value.items():
            yield from _in_arguments(item, _plain(name), depth - 1)
    elif isinstance(value, list) and depth:
        if key in _COMMANDS:
            yield from _in_command(" ".join(word for word in value if isinstance(word, str)))
        for item in value:
            yield from _in_arguments(item, key, depth - 1)
    elif isinstance(value, str):
        if key in _COMMANDS:
            yield from _in_command(value)
        elif "*** " in value and (pairs := _PATCHED.findall(value)):
            yield from (path.strip() for pair in pairs for path in pair if path)
        elif (
            len(value) <= _LONGEST and "\n" not in value and (key in _PATHS or "/" in value or "\\" in value)
        ):
            yield value


def _in_command(text: str) -> Iterator[str]:
    for quote in _QUOTED.finditer(text):
        yield quote[1] or quote[2]
    # Without quotes, as a shell joins what they divide; to most shells two stars are one.
    plain = re.sub(r"[\"']", "", text).replace("**", "*")
    for token in (*_TOKEN.findall(text), *_WORD.findall(plain)):
        if len(token) <= _LONGEST:
            yield token
            if "\\" in token:
                yield re.sub(r"\\(.)", r"\1", token)
    yield from (path.strip() for pair in _PATCHED.findall(text) for path in pair if path)


def _plain(key: object) -> str:
    return str(key).casefold().replace("_", "").replace("-", "")[:40]
