"""Prompt templates: texts with a name, a version, and places for the parts of a call."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from os.path import isfile
from pathlib import Path
from string import Template

from holdfast.errors import InvalidInput, shown
from holdfast.types import check_name

_FILE = re.compile(r"(?P<name>[a-z_]+)\.v(?P<number>[1-9][0-9]*)\.md")
# The prompts of summaries, by their depth; all others are those of learning.
SUMMARIES = ("leaf", "condensed", "arc")
_OURS = re.compile(r"v[0-9]+")
# Where the newest is not the one that is used: it is the thorough one.
_USUAL = {"session": "v1"}
# Begins a line that is shown only where its part is asked for.
_PART = re.compile(r"^\[(observe|facts|episode|profile|draft|known)\] ?(.*)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt with places: `$name` in its text is the place of a part, `$$` a dollar sign.

    `version` is "v1", "v2" … for one of the package, and the stem of the file for one of the user's own.
    `preface` stands before the text, and has no places.

    Raises:
        InvalidInput: a dollar sign in its text is neither.

    """

    name: str
    version: str
    text: str
    preface: str = ""

    def __post_init__(self) -> None:
        if not Template(self.text).is_valid():
            raise InvalidInput(
                f"The prompt {self.label!r} has a dollar sign that begins no place.", "Write it twice: $$."
            )

    @property
    def label(self) -> str:
        """Name and version, as in "observe v1"; stored with all results of the prompt."""
        return f"{self.name} {self.version}"

    @property
    def fingerprint(self) -> str:
        """The label, with a checksum of the text where it is the user's own: a file may change."""
        own = self.version not in versions(self.name)
        return f"{self.label} {zlib.crc32(self.text.encode()):08x}" if own else self.label

    @property
    def places(self) -> frozenset[str]:
        """The names of the parts that it needs."""
        return frozenset(Template(self.text).get_identifiers())

    def only(self, parts: Collection[str]) -> PromptTemplate:
        """Return the prompt with those lines alone that are for some parts, or for all."""
        shown = _PART.sub(lambda line: f"{line[2]}\n" if line[1] in parts else "", self.text)
        return replace(self, text=shown)

    def fill(self, **parts: str) -> str:
        """Return the text with each part in its places; a dollar sign in a part is left alone."""
        return self.preface + Template(self.text).substitute(parts)


def load(name: str, version: str | None = None) -> PromptTemplate:
    """Return a prompt of the package: the usual one, or that of a version such as "v1".

    Any other version is the path of a file (with ".md" or a separator in it) that holds a prompt of the
    user's own, with the same places.

    Raises:
        InvalidInput: there is no such version or file, the file cannot be read, is named like a version of
            the package, or has other places.

    """
    texts = _package_prompts()[name]
    # Not every caller has a type checker.
    value: object = version
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"Invalid prompt version {shown(value)}.", "Pass a version, or a path, as text.")
    usual = _USUAL.get(name, next(reversed(texts)))
    if version is None or version in texts:
        chosen = version or usual
        return PromptTemplate(name, chosen, texts[chosen])
    file = Path(version)
    # PTH113: a name that is too long, or no name at all, is no file, where `Path.is_file` raises an error.
    if not (".md" in version or any(mark in version for mark in "/\\")) or not isfile(file):  # noqa: PTH113
        raise InvalidInput(
            f"The prompt {name!r} has no version {version!r}.",
            f"Use one of {', '.join(texts)}, or the path of a file with a prompt of your own.",
        )
    return _own(name, file, PromptTemplate(name, usual, texts[usual]))


def check_versions(versions: object, names: Collection[str] = ()) -> dict[str, str]:
    """Return versions of prompts by their names, checked: of these prompts, or of those of learning.

    Raises:
        InvalidInput: they are no dict, or name an unknown prompt or version.

    """
    names = names or [name for name in _package_prompts() if name not in SUMMARIES]
    if not isinstance(versions, Mapping):
        known = ", ".join(names)
        raise InvalidInput(f"`prompts` is {shown(versions)}.", f"Pass a dict of versions by name: {known}.")
    for name, version in versions.items():
        if name not in names:
            raise InvalidInput(f"Unknown prompt {shown(name)}.", f"Use one of {', '.join(names)}.")
        load(name, version)
    return dict(versions)


def versions(name: str) -> list[str]:
    """Return the versions of a prompt of the package, oldest first; none for an unknown name."""
    return list(_package_prompts().get(name, ()))


def _own(name: str, file: Path, ours: PromptTemplate) -> PromptTemplate:
    if _OURS.fullmatch(file.stem):
        raise InvalidInput(
            f"The file {file.name!r} is named like a version of the package.",
            "Give it another name, so that the two can be told apart.",
        )
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"The prompt in {file.name!r} cannot be read.", "Pass a text file in UTF-8 that you may read."
        ) from error
    prompt = PromptTemplate(name, check_name(file.stem, "The name of a prompt's file"), text)
    # Those of a part alone may be left out.
    required = ours.only(()).places
    if not required <= (places := prompt.places) <= ours.places:
        parts = required | (places & ours.places)
        raise InvalidInput(
            f"The prompt {prompt.label!r} has places for {_list(places)}, not for {_list(parts)}.",
            f"{_todo('Add', parts - places)}{_todo('Remove', places - parts)}Each part needs a place.",
        )
    return prompt


def _todo(what: str, names: frozenset[str]) -> str:
    return f"{what} {_list(names)}. " if names else ""


def _list(names: frozenset[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names)) or "nothing"


@cache
def _package_prompts() -> dict[str, dict[str, str]]:
    """Return the prompts of the package by name, then by version, the oldest first."""
    from importlib import resources

    files = (resources.files("holdfast.llm") / "prompts").iterdir()
    named = ((_FILE.fullmatch(file.name), file) for file in files)
    texts = [(match["name"], int(match["number"]), file.read_text("utf-8")) for match, file in named if match]
    prompts: dict[str, dict[str, str]] = {}
    for name, number, text in sorted(texts):
        prompts.setdefault(name, {})[f"v{number}"] = text
    return prompts
