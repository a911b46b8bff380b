"""The project of a folder: one name for all forms of a remote, for worktrees and clones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_cli.hooks.project import PROJECT, project_of, remote_name

TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in (PROJECT, "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    return home


def git(folder: Path, *words: object) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]
    subprocess.run([*command, *map(str, words)], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


FORMS = """git@github.com:ada/shop.git github.com:ada/shop ssh://git@github.com/ada/shop.git
    ssh://git@github.com:22/Ada/shop ssh://git@ssh.github.com:443/ada/shop.git https://github.com/ada/shop
    https://github.com/ada/shop.git/ git://GitHub.com/ada/shop https://{0}@github.com/ada/shop
    https://ada:{0}@github.com/ada/shop.git https://github.com/ada/shop?access_token={0}
    https://github.com/ada/shop#{0} {0}@github.com:ada/shop.git ada:{0}@github.com:ada/shop.git"""


def test_all_forms_of_a_remote_are_one_project(tmp_path: Path) -> None:
    folder = repository(tmp_path / "a", "none")
    for url in FORMS.format(TOKEN).split():
        git(folder, "remote", "set-url", "origin", url)
        assert project_of(folder).name == "github.com/ada/shop", url


@given(
    st.text(min_size=1, max_size=20).map(lambda text: f"S3cr{text}Zq9"),
    st.sampled_from(
        ["https://ada:{}@example.org/a/b", "https://{}@example.org/a/b", "ada:{}@example.org:a/b"]
    ),
)
def test_what_stands_before_the_host_is_never_in_a_name(secret: str, form: str) -> None:
    name = remote_name(form.format(secret), Path("/"))
    assert "S3cr" not in name
    assert "Zq9" not in name


def test_worktrees_and_clones_are_one_project(tmp_path: Path) -> None:
    first = repository(tmp_path / "a", "https://example.org/x/shop.git")
    bare = repository(tmp_path / "bare")
    for one in (first, bare):
        git(one, "worktree", "add", "-q", tmp_path / f"tree-{one.name}")
    clone = repository(tmp_path / "c", "ssh://git@example.org/x/shop")
    (first / "src" / "deep").mkdir(parents=True)
    found = [project_of(one) for one in (first, tmp_path / "tree-a", clone, first / "src" / "deep")]
    assert {one.name for one in found} == {"example.org/x/shop"}
    assert [one.root for one in found] == [first, tmp_path / "tree-a", clone, first]
    # Without a remote as well.
    assert project_of(tmp_path / "tree-bare").name == project_of(bare).name == str(bare)


def test_a_submodule_is_its_own_project(tmp_path: Path) -> None:
    library = repository(tmp_path / "library")
    outer = repository(tmp_path / "outer", "https://example.org/x/outer")
    git(outer, "submodule", "--quiet", "add", library, "inner")
    assert project_of(outer / "inner").name == str(library)
    assert project_of(outer / "inner").root == outer / "inner"


def test_a_folder_without_git_is_a_project_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    assert project_of(folder).name == project_of(tmp_path / "link").name == str(folder)
    # What no path can have, as a transcript may, is left out.
    assert project_of(f"{folder}\0\ud800").name == str(folder)


def test_a_git_file_that_another_folder_does_not_know_of_leads_nowhere(tmp_path: Path) -> None:
    secret = repository(tmp_path / "secret", "https://example.org/x/secret")
    git(secret, "worktree", "add", "-q", tmp_path / "tree")
    forged = tmp_path / "forged"
    forged.mkdir()
    for target in (secret / ".git", secret / ".git" / "worktrees" / "tree"):
        (forged / ".git").write_text(f"gitdir: {target}\n")
        assert project_of(forged).name == str(forged)


@pytest.mark.parametrize(
    "text", ["", "gitdir:", "gitdir: /dev/zero", "gitdir: \0x", "x" * 100, "gitdir: ../.."]
)
def test_hostile_git_files_are_no_repository(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    assert project_of(tmp_path).name == str(tmp_path)


CONFIGS = (
    "[remote",
    '[remote "origin"]\nurl',
    '[remote "origin"]\nurl = "' + "a" * 1_000_000,
    "\\\n" * 100_000,
    '[include]\npath = config\n[remote "origin"]\nurl = \n',
    "\0" * 5000,
)


def test_a_hostile_configuration_names_no_remote(tmp_path: Path) -> None:
    folder = repository(tmp_path / "a")
    for config in CONFIGS:
        (folder / ".git" / "config").write_text(config)
        name = project_of(folder).name
        assert len(name.encode()) <= 128
        assert name.isprintable()
    # A pipe is not waited for.
    (folder / ".git" / "config").unlink()
    os.mkfifo(folder / ".git" / "config")
    assert project_of(folder).name == str(folder)


@given(st.text(max_size=400))
def test_any_url_yields_a_name_that_a_line_can_hold(url: str) -> None:
    from holdfast_cli.hooks.project import _safe

    name = _safe(remote_name(url, Path("/")) or "x")
    assert 0 < len(name.encode()) <= 140
    assert not any(ord(char) < 32 or 126 < ord(char) < 160 for char in name)


def test_a_token_in_the_path_of_a_remote_is_no_part_of_the_name(tmp_path: Path) -> None:
    name = project_of(repository(tmp_path / "a", f"https://example.org/{TOKEN}/shop")).name
    assert TOKEN not in name
    assert name.startswith("example.org/")
