"""The files that a client shows its model in every session: what they say is known, and not learned again."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast import Memory
from holdfast.port.imports import Imports
from holdfast_cli.formats.private_tags import without_private
from holdfast_cli.hooks.git_config import read_regular
from holdfast_cli.hooks.privacy import Privacy
from holdfast_cli.hooks.project import main_folder

# Of a project, and of each folder that a session is in or below; of the user, below the home.
_OF_PROJECT = "CLAUDE.md CLAUDE.local.md .claude/CLAUDE.md AGENTS.md AGENTS.override.md GEMINI.md".split()
_OF_USER = (".claude/CLAUDE.md", ".codex/AGENTS.md", ".codex/AGENTS.override.md", ".gemini/GEMINI.md")
_INDEX = "MEMORY.md"
_LARGEST = 256 << 10  # bytes of a file; more is not read
_MOST_FILES = 40
_TOGETHER = 512 << 10  # bytes
_HOPS = 4  # imports within imports, as Claude Code follows them
# A line may be one long word: what is looked for begins after a space.
_IMPORT = re.compile(r"(?:^|(?<=\s))@([^\s`]{1,400})", re.MULTILINE)
_CODE = re.compile(r"^[ \t]{0,3}(```|~~~).*?(?:^[ \t]{0,3}\1|\Z)|`[^`\n]{1,400}`", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class KnownText:
    """A file of instructions or notes: where it is, and what it says."""

    path: Path
    text: str


def known_texts(root: Path, home: Path, folder: Path | None = None) -> list[KnownText]:
    """Return the texts of the files that clients show in a folder of a project, by default its root.

    These are the instructions there and in the folders above, those of the user, what these import (`@path`),
    and the notes that Claude Code keeps itself, for all worktrees of a repository beside the main one's.

    Only regular files are read, of bounded size, and of the project only those that lie within it; of a
    folder above it only those that lie there.
    """
    root, home, folder = (Path(os.path.realpath(path)) for path in (root, home, folder or root))
    reader = _Reader(home)
    # A session that went elsewhere still has the instructions of its project. Clients read none of `/`.
    start = folder if folder.is_relative_to(root) else root
    for place in [start, *start.parents][: min(len(start.parts) - 1, _MOST_FILES)]:
        for name in _OF_PROJECT:
            reader.read(place / name, root if place.is_relative_to(root) else place)
    for name in _OF_USER:
        reader.read(home / name, home)
    for top in dict.fromkeys((root, home)):
        for path in _markdown(top / ".claude" / "rules"):
            reader.read(path, top)
    for notes in dict.fromkeys(_notes(base, home) for base in (root, main_folder(root))):
        for path in _markdown(notes):
            reader.read(path, notes, hops=0)
    return reader.texts


def note_known(memory: Memory, root: Path, home: Path, privacy: Privacy, folder: Path | None = None) -> int:
    """Store the known texts of a project in a memory, so that they are not learned; return their number.

    Files that the user ignores are left out, and what is marked as private in the others.
    """
    texts = {
        str(file.path): without_private(file.text)
        for file in known_texts(root, home, folder)
        if not privacy.covers(str(file.path), str(root), follow=True)
    }
    Imports(memory).note_known_texts(list(texts.values()))
    return len(texts)


class _Reader:
    """Reads files, each once, and what they import."""

    def __init__(self, home: Path) -> None:
        self.texts: list[KnownText] = []
        self._home = home
        self._seen: set[Path] = set()
        self._left = _TOGETHER

    def read(self, path: Path, top: Path, hops: int = _HOPS) -> None:
        """Read a file that lies in a folder, by its real path."""
        real = Path(os.path.realpath(path))
        if len(self._seen) >= _MOST_FILES or real in self._seen or not real.is_relative_to(top):
            return
        content = read_regular(real, _LARGEST + 1)
        text = content.decode("utf-8-sig", "replace")
        if not content or len(content) > _LARGEST or len(text) > self._left:
            return
        self._seen.add(real)
        self._left -= len(text)
        if text.strip():
            self.texts.append(KnownText(real, text))
        if hops:
            for link in (word.rstrip(".,;:)") for word in _IMPORT.findall(_CODE.sub(" ", text))):
                target = self._home / link[2:] if link.startswith("~/") else real.parent / link
                self.read(target, top, hops - 1)


def _notes(root: Path, home: Path) -> Path:
    """Return the folder of Claude Code's notes of a project, which it names after the path of the root."""
    base = os.environ.get("CLAUDE_CONFIG_DIR")
    top = Path(base) if base else home / ".claude"
    return Path(os.path.realpath(top / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(root)) / "memory"))


def _markdown(folder: Path) -> Iterator[Path]:
    """Yield the Markdown files of a folder, `MEMORY.md` first."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".md"))
    except OSError:
        return
    yield from (folder / name for name in sorted(names, key=lambda name: name != _INDEX)[:_MOST_FILES])
