"""What a chat worked with: the files that it touched most, and the commands that worked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence

from holdfast.compaction.work_steps import FAILED, RAN, merged, steps_of
from holdfast.learning.speeches import Speech
from holdfast.messages.passages import grave
from holdfast.messages.tool_uses import tool_uses
from holdfast.types import Message

MOST_FILES = 8

_LONGEST_PATH = 120  # characters
_LOOKED_AT = 200  # paths, the most often touched of a session
_SHOWN_PARTS = 3  # of an absolute path, from its end
_EDITED, _READ, _MENTIONED = 8, 2, 1  # the weight of each touch of a file
_MOST_WORDS = 5  # of a name in a path
_EXTENSIONS = frozenset(
    "py pyi ipynb go mod js jsx mjs cjs ts tsx rs java kt kts c h cc cpp hpp cs fs rb php swift m scala clj "
    "ex exs erl hs ml lua r jl dart zig sh bash zsh fish ps1 bat sql html htm css scss sass less vue svelte "
    "json jsonl yaml yml toml ini cfg conf env lock xml md mdx rst adoc txt csv tsv proto graphql tf tmpl "
    "j2 gradle cmake tex service".split()
)
_FILE_NAMES = frozenset(
    "makefile dockerfile jenkinsfile procfile gemfile rakefile license .gitignore .env".split()
)
_PRODUCTS = frozenset("node.js next.js vue.js react.js express.js nuxt.js three.js d3.js asp.net".split())
_PASSING = re.compile(r"^(?:/private)?/(?:tmp|var/folders)/|/(?:node_modules|tool-results|\.git|\.claude)/")
_MOST_COMMANDS = 3
# A program and its arguments in a few words, without quotes and paths of the machine.
_COMMAND = re.compile(r"[^\s\"'`$]{1,60}(?: (?![/~])[^\s\"'`$]{1,60}){1,7}")
_URL = re.compile(r"\b[a-z][a-z0-9+]{1,11}://[^\s\"'`<>]*", re.IGNORECASE)
_RUN = re.compile(r"[\w./\\~@+-]++")
_SEPARATOR = re.compile(r"[\\/]+")
_PATH_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\da-zA-Z_]+")


def key_files(speeches: Sequence[Speech], but: Container[int]) -> tuple[str, ...]:
    """Return the files that a chat touched most; one that is written in several ways is one."""
    touched: Counter[str] = Counter()
    for message, prose in speeches:
        is_believed = message.seq not in but
        for use in tool_uses((message,)):
            told = (path for text in use.texts for path in _paths(text))
            named = (*use.paths, *told) if is_believed else filter(_is_plain, use.paths)
            for path in dict.fromkeys(path for path in named if _is_file(path)):
                touched[path] += _EDITED if use.edits else _READ
        for path in dict.fromkeys(_paths(prose)) if is_believed else ():
            touched[path] += _MENTIONED
    weights: Counter[str] = Counter()
    names: dict[str, str] = {}
    for path, whole in _wholes(dict(touched.most_common(_LOOKED_AT))).items():
        weights[whole] += touched[path]
        if not _is_absolute(path) and len(_parts(path)) > len(_parts(names.get(whole, ""))):
            names[whole] = path
    shown = dict.fromkeys(_short(names.get(whole, whole)) for whole, _ in weights.most_common())
    return tuple(shown)[:MOST_FILES]


def _is_plain(path: str) -> bool:
    """Return whether a path is no way to write a sentence: its names have few words, and are no order."""
    names = [" ".join(_PATH_WORD.findall(name)) for name in _SEPARATOR.split(path)]
    return (
        _RUN.fullmatch(path) is not None
        and all(name.count(" ") < _MOST_WORDS for name in names)
        and not grave(" ".join(names))
    )


def _paths(text: str) -> Iterator[str]:
    """Yield what looks like the path of a file in a text, without addresses."""
    for run in _RUN.findall(_URL.sub(" ", text)):
        path = run.rstrip(".-@+").lstrip("@+")
        if _is_file(path):
            yield path


def _is_file(path: str) -> bool:
    if not 2 < len(path) <= _LONGEST_PATH or path.startswith(("//", "-")) or _PASSING.search(path):
        return False
    name = _SEPARATOR.split(path)[-1].lower()
    stem, dot, extension = name.rpartition(".")
    return name not in _PRODUCTS and (name in _FILE_NAMES or bool(stem and dot and extension in _EXTENSIONS))


def _wholes(touched: Mapping[str, int]) -> dict[str, str]:
    """Return for each path the longest that ends with it, of several the one that was touched most."""
    parts = {path: _parts(path) for path in touched}
    same_name: dict[str, list[str]] = {}
    for path in touched:
        same_name.setdefault(parts[path][-1], []).append(path)
    return {
        path: max(
            (one for one in same_name[own[-1]] if parts[one][-len(own) :] == own),
            key=lambda one: (len(parts[one]) > len(own), touched[one], len(parts[one])),
        )
        for path, own in parts.items()
    }


def _parts(path: str) -> list[str]:
    return [part for part in _SEPARATOR.split(path) if part not in {"", ".", ".."}]


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "~", "\\")) or path[1:2] == ":"


def _short(path: str) -> str:
    """Return the end of an absolute path: the folders that all files of a chat share say nothing."""
    parts = _parts(path)
    if _is_absolute(path) and len(parts) > _SHOWN_PARTS:
        return "/".join(parts[-_SHOWN_PARTS:])
    return path.removeprefix("./")


def worked_commands(messages: Sequence[Message]) -> list[str]:
    """Return the commands that a chat ran most often, twice at least, and that worked when they ran last."""
    done = merged(steps_of(messages))
    times, failed = Counter[str](), Counter[str]()
    for one in done:
        times[one.what] += one.times if one.verb in (RAN, FAILED) else 0
        failed[one.what] = max(failed[one.what], one.number if one.verb == FAILED else 0)
    worked = [one.what for one in done if one.verb == RAN and one.number > failed[one.what]]
    again = [what for what in worked if times[what] > 1 and _COMMAND.fullmatch(what)]
    return sorted(again, key=lambda what: -times[what])[:_MOST_COMMANDS]
