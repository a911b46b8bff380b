"""Prompt templates: texts with a name, a version, and places for what differs from call to call."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from holdfast.errors import InvalidInput, shown
from holdfast.types import check_name

_FILE = re.compile(r"(?P<name>[a-z_]+)\.v(?P<number>[1-9][0-9]*)\.md")
_OURS = re.compile(r"v[0-9]+")


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
        """Name and version, as in "observe v1": what is stored with all that the prompt led to."""
        return f"{self.name} {self.version}"

    @property
    def places(self) -> frozenset[str]:
        """The names of the parts that it needs."""
        return frozenset(Template(self.text).get_identifiers())

    def fill(self, **parts: str) -> str:
        """Return the text with each part in its places; a dollar sign in a part is left alone.

        Raises:
            InvalidInput: a place has no part, or a part no place.

        """
        if parts.keys() != self.places:
            raise _misplaced(self.label, self.places, frozenset(parts))
        return self.preface + Template(self.text).substitute(parts)


def load(name: str, version: str | None = None) -> PromptTemplate:
    """Return a prompt of the package: the newest one, or that of a version such as "v1".

    Any other version is the path of a file (with ".md" or a separator in it) that holds a prompt of the
    user's own, with the same places.

    Raises:
        InvalidInput: there is no such prompt, version or file, the file cannot be read, is named like a
        version of the
            package, or has other places.

    """
    texts = _packaged().get(name)
    # Not every caller has a type checker.
    value: object = version
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"Invalid prompt version {shown(value)}.", "Pass a version, or a path, as text.")
    if texts is None:
        raise InvalidInput(f"Unknown prompt {name!r}.", f"Use one of {', '.join(_packaged())}.")
    newest = next(reversed(texts))
    if version is None or version in texts:
        chosen = version or newest
        return PromptTemplate(name, chosen, texts[chosen])
    file = Path(version)
    if not (".md" in version or any(mark in version for mark in "/\\")) or not _is_file(file):
        raise InvalidInput(
            f"The prompt {name!r} has no version {version!r}.",
            f"Use one of {', '.join(texts)}, or the path of a file with a prompt of your own.",
        )
    return _own(name, file, PromptTemplate(name, newest, texts[newest]).places)


def versions(name: str) -> list[str]:
    """Return the versions of a prompt of the package, oldest first; none for an unknown name."""
    return list(_packaged().get(name, ()))


def _own(name: str, file: Path, places: frozenset[str]) -> PromptTemplate:
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
    if prompt.places != places:
        raise _misplaced(prompt.label, prompt.places, places)
    return prompt


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):
        # A name that is too long, or no name at all.
        return False


def _misplaced(label: str, places: frozenset[str], parts: frozenset[str]) -> InvalidInput:
    return InvalidInput(
        f"The prompt {label!r} has places for {_listed(places)}, not for {_listed(parts)}.",
        "Give each part one place at least, and each place a part.",
    )


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names)) or "nothing"


@cache
def _packaged() -> dict[str, dict[str, str]]:
    """Return the prompts of the package by name, then by version, the oldest first."""
    from importlib import resources

    files = (resources.files("holdfast.llm") / "prompts").iterdir()
    named = ((_FILE.fullmatch(file.name), file) for file in files)
    found = [(match["name"], int(match["number"]), file.read_text("utf-8")) for match, file in named if match]
    prompts: dict[str, dict[str, str]] = {}
    for name, number, text in sorted(found):
        prompts.setdefault(name, {})[f"v{number}"] = text
    return prompts
