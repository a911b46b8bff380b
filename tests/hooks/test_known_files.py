"""What clients show their models anyway is known: not learned again."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.store import imports
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.hooks.known_files import known_texts, note_known
from holdfast_cli.hooks.privacy import Privacy
from transcripts import claude, write_lines

KNOWN = "We decided to use PostgreSQL 17 for the ledger, because it has the partitions that we need."
NEWS = "We decided to keep the exports of the ledger in Porto, because the auditors ask for that."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home with a project in it."""
    home = tmp_path / "home"
    (home / "shop").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("HOLDFAST_STATE", str(home / "state"))
    for name in ("CLAUDE_CONFIG_DIR", "HOLDFAST_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    return home


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def notes(home: Path, project: str = "shop") -> Path:
    """Name the folder in which Claude Code keeps its notes of the project."""
    return home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(home / project)) / "memory"


def found(home: Path, folder: str = "shop", root: str = "shop") -> list[str]:
    return [one.text for one in known_texts(home / root, home, home / folder)]


def test_the_files_of_a_project_and_of_the_user(home: Path) -> None:
    shop = home / "shop"
    names = "CLAUDE.md CLAUDE.local.md .claude/CLAUDE.md AGENTS.md GEMINI.md .claude/rules/a.md".split()
    paths = [shop / name for name in names]
    paths += [home / name for name in (".claude/CLAUDE.md", ".codex/AGENTS.md", ".gemini/GEMINI.md")]
    paths += [notes(home) / "MEMORY.md", notes(home) / "builds.md"]
    for path in paths:
        write(path, f"says {path}")
    write(shop / "README.md", "not shown")
    write(shop / "src" / "CLAUDE.md", "not shown")
    assert sorted(found(home)) == sorted(f"says {path}" for path in paths)


def test_the_files_from_the_folder_of_a_session_upwards(home: Path) -> None:
    shop = home / "shop"
    names = ["CLAUDE.md", "shop/pkg/CLAUDE.md", "shop/pkg/AGENTS.md", "shop/CLAUDE.local.md"]
    for name in names:
        write(home / name, f"says {name}")
    for name in ("shop/pkg/deep/CLAUDE.md", "shop/other/CLAUDE.md", "elsewhere/CLAUDE.md"):
        write(home / name, "not shown")
    write(home / "elsewhere" / "secret.txt", "secret")
    (home.parent / "CLAUDE.md").symlink_to("/etc/hostname")
    (shop / "pkg" / "GEMINI.md").symlink_to(home / "elsewhere" / "secret.txt")
    assert sorted(found(home, "shop/pkg")) == sorted(f"says {name}" for name in names)
    # A session that went elsewhere does not bring the files of that folder with it.
    assert sorted(found(home, "elsewhere")) == ["says CLAUDE.md", "says shop/CLAUDE.local.md"]


def test_worktrees_share_the_notes_of_their_repository(home: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(home / "shop")]
    for words in (["init", "-q"], ["commit", "-qm", "x", "--allow-empty"], ["worktree", "add", "../tree"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    write(notes(home) / "MEMORY.md", "of the repository")
    write(notes(home, "tree") / "MEMORY.md", "of the worktree")
    assert sorted(found(home, "tree", "tree")) == ["of the repository", "of the worktree"]
    assert found(home) == ["of the repository"]


def test_what_is_imported_is_known_too(home: Path) -> None:
    shop = home / "shop"
    write(
        shop / "CLAUDE.md",
        "See @docs/rules.md, and @~/outside.md, @../outside.md. `@code.md`\n```\n@code.md\n```\n",
    )
    write(shop / "docs" / "rules.md", "rules @more.md @../CLAUDE.md @missing.md @.")
    write(shop / "docs" / "more.md", "more")
    write(shop / "code.md", "code")
    write(home / "outside.md", "outside")
    assert [text.split()[0] for text in found(home)] == ["See", "rules", "more"]


def test_hostile_files_are_passed_over(home: Path) -> None:
    shop = home / "shop"
    write(home / "secret.txt", "secret")
    (shop / "AGENTS.md").symlink_to(home / "secret.txt")
    os.mkfifo(shop / "CLAUDE.local.md")
    (shop / "GEMINI.md").mkdir()
    write(shop / "huge.md", "x" * (300 << 10))
    links = " ".join(f"@m{number}.md" for number in range(500))
    write(shop / "CLAUDE.md", f"@huge.md @CLAUDE.local.md {links} {'@' * 100_000}")
    for number in range(500):
        write(shop / f"m{number}.md", f"@m{number + 1}.md {'y' * (40 << 10)}")
    read = found(home)
    assert not any("secret" in text for text in read)
    assert 1 < len(read) <= 40
    assert sum(map(len, read)) <= 512 << 10
    write(shop / "CLAUDE.md", "`" * 100_000 + "~~~\n" * 30_000)
    assert len(found(home)) == 1


@pytest.mark.parametrize("speaker", ["assistant", "user"])
def test_what_instructions_say_is_not_learned_again(memory: Memory, home: Path, speaker: str) -> None:
    """By a real import and what is learned of it; without the file, the same sentence is learned."""
    said = [
        ("user", "What about the ledger? Where are its data, and where are the exports?"),
        (speaker, f"{KNOWN} {NEWS}"),
        ("user", "Good. And who asked for that in the first place?"),
        ("assistant", "The auditors did, last spring."),
        ("user", "And what did we say about the ledger itself?"),
        ("assistant", KNOWN),
    ]
    lines = [claude(who, f"m{n}", f"m{n - 1}" if n else None, words) for n, (who, words) in enumerate(said)]
    path = write_lines(home / "s1.jsonl", lines)
    file = write(home / "shop" / "CLAUDE.md", f"# The shop\n\n* {KNOWN}\n")
    learned = []
    for known in (1, 0):
        assert note_known(memory, home / "shop", home, Privacy.read()) == known
        import_paths(memory, path, rules=Privacy.read())
        memory.chat("s1").end()
        memory.learning.work()
        kinds = {one.kind == "episode": one.text for one in memory.records()}
        learned.append((kinds[True], kinds[False], " ".join(one.text for one in memory.records())))
        memory.erase(chat="s1")
        file.unlink(missing_ok=True)
    (episode, fact, texts), (_, _, without) = learned
    assert "auditors" in episode
    assert "auditors" in fact
    assert "PostgreSQL" not in texts
    assert "PostgreSQL" in without


def test_of_known_files_nothing_private_is_stored(memory: Memory, home: Path) -> None:
    write(home / "shop" / "CLAUDE.md", "Tea. <private>zanzibar</private>")
    write(home / "shop" / "CLAUDE.local.md", "zanzibar")
    write(home / "shop" / ".holdfastignore", "*.local.md")
    assert note_known(memory, home / "shop", home, Privacy.read()) == 1
    database = memory._runtime.database
    (text,) = imports.known_texts(database, memory.scope.space)
    assert text.startswith("Tea. [private")
    assert "zanzibar" not in text
