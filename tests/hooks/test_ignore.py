"""Which paths `.holdfastignore` covers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.hooks.ignore import IgnoreRules


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "shop" / "src").mkdir(parents=True)
    return tmp_path / "home"


def rules(home: Path, *patterns: str, own: str = "") -> IgnoreRules:
    root = home / "shop"
    if patterns:
        (root / ".holdfastignore").write_text("\n".join(patterns))
    (home.parent / "ignore").write_text(own)
    return IgnoreRules(root, home, home.parent / "ignore")


def covered(found: IgnoreRules, home: Path, *paths: str) -> list[str]:
    return [path for path in paths if found.covers(path, str(home / "shop"), follow=True)]


def test_without_such_a_file_nothing_is_covered(home: Path) -> None:
    found = rules(home)
    assert covered(found, home, "a.env", "/etc/passwd", "~/x", "", "\x00", "a" * 9999) == []
    assert not found.covers_root()


def test_patterns_are_those_of_git(home: Path) -> None:
    found = rules(
        home, "*.env", "!ok.env", "secrets/", "/top.txt", "docs/**/x.md", "# a comment", "bad[", "\\"
    )
    paths = ["a.env", "src/a.env", "ok.env", "secrets/a", "src/secrets/b/c", "top.txt", "src/top.txt"]
    assert covered(found, home, *paths) == ["a.env", "src/a.env", "secrets/a", "src/secrets/b/c", "top.txt"]
    assert covered(found, home, "docs/x.md", "docs/a/b/x.md", "secrets/ok.env", "# a comment") == [
        "docs/x.md",
        "docs/a/b/x.md",
        "secrets/ok.env",
    ]


def test_however_a_path_is_written(home: Path) -> None:
    found = rules(home, "secrets/", "*.env")
    (home / "shop" / "link").symlink_to("secrets/key.txt")
    (home / "linked").symlink_to("shop")
    ways = [
        "secrets",
        "./secrets/x",
        "src/../secrets/x",
        "src//..//secrets//x",
        str(home / "shop" / "secrets" / "x"),
        f"file://{home}/shop/secrets/x",
        "~/shop/secrets/x",
        "$HOME/shop/secrets/x",
        "${HOME}/shop/a.env",
        str(home / "linked" / "secrets" / "x"),
        "link",
        "secrets\\x",
        "SECRETS/x",
        "src/A.ENV",
        "secrets/*",
    ]
    assert covered(found, home, *ways) == ways
    others = ["../secrets/x", "/secrets/x", "~/secrets/x", "src/../../secrets/x", "secrets.txt", "env"]
    assert covered(found, home, *others) == []


def test_paths_of_windows(home: Path) -> None:
    found = IgnoreRules(Path("C:/shop"), Path("C:/Users/ada"), home / "own")
    (home / "own").write_text("*.env\nshop/keys/\n")
    found = IgnoreRules(Path("C:/shop"), Path("C:/Users/ada"), home / "own")
    assert found.covers("C:\\shop\\src\\a.env", "C:\\shop", follow=True)
    assert found.covers("src\\a.env", "C:\\shop", follow=True)
    assert found.covers("src\\..\\B.ENV", "C:\\shop", follow=True)
    assert not found.covers("C:\\shop\\src\\a.py", "C:\\shop", follow=True)


def test_a_pattern_with_stars_covers_the_files_that_a_shell_finds(home: Path) -> None:
    found = rules(home, "*.env")
    (home / "shop" / "a.env").touch()
    (home / "shop" / "src" / "b.py").touch()
    assert covered(found, home, "a*", "?.*", "src/*", "*.py") == ["a*", "?.*"]


def test_nested_files_and_those_above(home: Path) -> None:
    (home / "shop" / "src" / ".holdfastignore").write_text("!a.env\n/b.txt\n")
    (home / ".holdfastignore").write_text("*.key\n")
    found = rules(home, "*.env")
    paths = ["a.env", "src/a.env", "src/c.env", "src/b.txt", "b.txt", "src/x.key", "~/other/y.key"]
    assert covered(found, home, *paths) == ["a.env", "src/c.env", "src/b.txt", "src/x.key", "~/other/y.key"]


def test_the_users_own_patterns_hold_everywhere_and_a_project_may_decide_otherwise(home: Path) -> None:
    found = rules(home, "!ok.pem", own="*.pem\n.ssh/\n/build/\n")
    paths = ["x.pem", "ok.pem", "/etc/x.pem", "~/.ssh/id", "build/x", "src/build/x"]
    assert covered(found, home, *paths) == ["x.pem", "/etc/x.pem", "~/.ssh/id", "build/x"]


@pytest.mark.parametrize("pattern", ["/", "*", "**", "/*", "  *  ", "*.py\n*"])
def test_a_project_may_be_covered_whole(home: Path, pattern: str) -> None:
    assert rules(home, pattern).covers_root()


@pytest.mark.parametrize(("own", "above"), [("shop/", ""), ("", "shop"), ("", "sh*/")])
def test_a_project_may_be_covered_from_above(home: Path, own: str, above: str) -> None:
    (home / ".holdfastignore").write_text(above)
    assert rules(home, own=own).covers_root()
    assert not IgnoreRules(home / "other", home, home.parent / "ignore").covers_root()


def test_a_project_of_which_a_part_is_let_in_is_not_covered_whole(home: Path) -> None:
    found = rules(home, "/*", "!/src")
    assert not found.covers_root()
    assert covered(found, home, "a", "src/a") == ["a"]


def test_a_file_that_is_none_or_too_large_covers_everything(home: Path) -> None:
    os.mkfifo(home / "shop" / ".holdfastignore")
    assert rules(home).covers_root()
    (home / "shop" / ".holdfastignore").unlink()
    assert rules(home, "x\n" * 600_000).covers_root()


def test_hostile_patterns_and_paths_are_compared_in_time(home: Path) -> None:
    found = rules(home, "a*" * 40 + "b", "x?*" * 30 + "y", "**/a/" * 30 + "b", "[a-z]*" * 30 + "1")
    names = ["a" * 255, "x" * 255, "a/" * 2000, "z" * 250 + "/" + "a" * 250]
    assert covered(found, home, *names) == [names[2]]
    assert covered(found, home, "a" * 60 + "b") == ["a" * 60 + "b"]


NAME = st.sampled_from(["a", "b", "c.env", "d.txt", "x y"])
PATTERN = st.sampled_from(
    "a,b,*.env,!c.env,a/,/a,/a/b,a/*,a/**,**/b,b/**/c.env,!a/b,d.*,[ab],?,!b,x y,x\\ y,a*/c.env,*,!a/".split(
        ","
    )
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PATTERN, max_size=5), st.lists(PATTERN, max_size=3), st.lists(NAME, min_size=1, max_size=3))
def test_what_git_ignores_is_covered(
    home: Path, patterns: list[str], nested: list[str], names: list[str]
) -> None:
    """As git itself decides; of a name that may be a file or a folder, either."""
    root = home / "git"
    (root / "a").mkdir(parents=True, exist_ok=True)
    if not (root / ".git").exists():
        subprocess.run(["git", "init", "-q", root], check=True)
    for folder, lines in ((root, patterns), (root / "a", nested)):
        for name in (".gitignore", ".holdfastignore"):
            (folder / name).write_text("\n".join(lines))
    found = IgnoreRules(root, home / "none", home / "none")
    path = "/".join(names)
    asked = subprocess.run(
        ["git", "-C", root, "check-ignore", "--no-index", "-q", path], check=False, capture_output=True
    )
    if asked.returncode == 0:
        assert found.covers(path, str(root), follow=False)
    elif not any(line.endswith(("/", "/**", "/*")) for line in (*patterns, *nested)):
        assert not found.covers(path, str(root), follow=False)
