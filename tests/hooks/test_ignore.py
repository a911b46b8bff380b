"""Which paths `.holdfastignore` covers."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast_cli.hooks.ignore import IgnoreRules
from soak import cases
from tables import each


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


def test_however_a_path_is_written(home: Path) -> None:
    found = rules(home, "secrets/", "*.env")
    (home / "shop" / "link").symlink_to("secrets/key.txt")
    (home / "linked").symlink_to("shop")
    ways = "secrets|./secrets/x|src/../secrets/x|src//..//secrets//x|~/shop/secrets/x|$HOME/shop/secrets/x|"
    ways += "${HOME}/shop/a.env|link|secrets\\x|SECRETS/x|src/A.ENV|secrets/*|"
    ways += f"{home}/shop/secrets/x|file://{home}/shop/secrets/x|{home}/linked/secrets/x|"
    ways += "|".join(f"{here}/secrets/a" for here in ("$PWD", "${PWD}", "$(pwd)", "`pwd`"))
    assert covered(found, home, *ways.split("|")) == ways.split("|")
    others = ["../secrets/x", "/secrets/x", "~/secrets/x", "src/../../secrets/x", "secrets.txt", "env"]
    assert covered(found, home, *others) == []
    # Capitals are small letters.
    assert covered(rules(home, "/secrets/", "in[[:upper:]]"), home, "$PWDX/secrets/a", "inA", "ina") == [
        "inA",
        "ina",
    ]


def test_paths_of_windows(home: Path) -> None:
    found = IgnoreRules(Path("C:/shop"), Path("C:/Users/ada"), home / "own")
    (home / "own").write_text("*.env\nshop/keys/\n")
    found = IgnoreRules(Path("C:/shop"), Path("C:/Users/ada"), home / "own")
    assert found.covers("C:\\shop\\src\\a.env", "C:\\shop", follow=True)
    assert found.covers("src\\a.env", "C:\\shop", follow=True)
    assert found.covers("src\\..\\B.ENV", "C:\\shop", follow=True)
    assert not found.covers("C:\\shop\\src\\a.py", "C:\\shop", follow=True)


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
    for own, above in (("shop/", ""), ("", "shop"), ("", "sh*/")):
        (home / "shop" / ".holdfastignore").unlink(missing_ok=True)
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


def test_patterns_of_a_shell_in_folders(home: Path) -> None:
    found = rules(home, "secrets/", "*.env")
    (home / "shop" / "secrets").mkdir()
    for name in ("secrets/a", "prod.env", "src/b.py"):
        (home / "shop" / name).touch()
    (home / "shop" / "src" / "link").symlink_to("../secrets")
    ways = "sec*/* secret?/a s*/a */a sr?/lin[!x]/a prod.en[v] prod.en[^x] s[[:lower:]]*/a p* ?*.*".split()
    assert covered(found, home, *ways) == ways
    others = ["s*/b.py", "*/c", "sec*/c", "src/*.py", "**/b.py", "prod.en[x]", "[", "[[", "a[0]", "x[[:no:]]"]
    assert covered(found, home, *others) == []


@pytest.mark.slow
def test_hostile_sets_and_patterns_of_a_shell_are_read_in_time(home: Path) -> None:
    began = time.process_time()
    for line in ("[" * 500_000, "[[:" * 300_000, "[[:a" * 200_000 + "]", "[a-\\" * 200_000, "*[ab]" * 10_000):
        covered(rules(home, line), home, "a" * 4000, "[" * 200)
    found = rules(home, "*[a-b]*[[:alpha:]]" * 30 + "1")
    for depth in range(8):
        (home / "shop" / "src" / f"loop{depth}").symlink_to(".")
    assert covered(found, home, "a" * 255, "src/" + "*/" * 1000 + "x", "a*" * 60 + "b", "[" * 4000) == []
    assert time.process_time() - began < 20


NAME = st.sampled_from(["a", "b", "c.env", "d.txt", "x y", "7", "a]"])
PATTERN = st.sampled_from(
    "a,b,*.env,!c.env,a/,/a,/a/b,a/*,a/**,**/b,b/**/c.env,!a/b,d.*,[ab],?,!b,x y,x\\ y,a*/c.env,*,!a/,/*,"
    "!/a/,!*/,!/b/,!*.env,***/b,[[:digit:]],[^[:digit:]],[![:alpha:]x],?[[:punct:]],a[]],a[\\]],[z-a],!/a/b/,"
    "[[:nope:]],[[:alpha:]].[[:lower:]]*,*[[:space:]]*,![[:xdigit:]]/,[^[:upper:]].env".split(",")
)


def ignored(root: Path, *paths: str) -> set[str]:
    """Return the paths that git itself ignores."""
    asked = ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"]
    said = subprocess.run(asked, check=False, input="\0".join(paths).encode(), capture_output=True).stdout
    return set(said.decode().split("\0")) - {""}


def repository(home: Path, *patterns: str) -> Path:
    root = home / "git"
    if not root.exists():
        subprocess.run(["git", "init", "-q", root], check=True)
    for name in (".gitignore", ".holdfastignore"):
        (root / name).write_text("\n".join(patterns))
    return root


CHARACTERS = "az09f~ !-@[\\]^`\x07\x7f\t;"
CLASSES = "alnum alpha blank cntrl digit graph lower print punct space xdigit".split()


@pytest.mark.filterwarnings("error")
@each(
    ("patterns", "paths"),
    [
        *(
            ([f"in[[:{one}:]]", f"out[^[:{one}:]]"], [f"{to}{c}" for to in ("in", "out") for c in CHARACTERS])
            for one in CLASSES
        ),
        (
            ["*.env", "!ok.env", "secrets/", "/top.txt", "docs/**/x.md", "# a comment", "bad[", "\\"],
            "a.env|src/a.env|ok.env|secrets/a|src/secrets/b/c|top.txt|src/top.txt|docs/x.md|docs/a/b/x.md|"
            "secrets/ok.env|# a comment".split("|"),
        ),
        (
            ["key[[:digit:]].txt", "a[\\]]b", "[z-a].x", "b[[:none:]]", "c[d-", "e[!x]f", "[[]", "[a--]"],
            ["key7.txt", "a]b", "z.x", "b:", "c[d-", "keyx.txt", "e/f", "eyf", "[", "a"],
        ),
        (["[&&;;||]", "*[[:lower:]]*[!-.]*q", "***/a", "/b/****/c"], ["&", ";", "|", "zzb.q", "z1!q"]),
        (["***/a", "/b/****/c"], ["a", "x/y/a", "b/c", "b/x/y/c", "x/b/c"]),
        # What lies above a path is a folder, even where it is not there.
        (["/*", "!/src/", "/src/*", "!/src/lib/"], ["src/lib/a.py", "a.py", "src/app.py", "lib/a.py"]),
        (["*", "!*/", "!*.py"], ["src/a.py", "b.py", "gone/c/d.py", "src/a.env"]),
    ],
)
def test_patterns_are_those_of_git(home: Path, patterns: list[str], paths: list[str]) -> None:
    root = repository(home, *patterns)
    found = IgnoreRules(root, home, home / "own")
    assert {path for path in paths if found.covers(path, str(root), follow=False)} == ignored(root, *paths)


@settings(max_examples=cases(25, 300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PATTERN, max_size=5), st.lists(PATTERN, max_size=3), st.lists(NAME, min_size=1, max_size=3))
def test_what_git_ignores_is_covered(
    home: Path, patterns: list[str], nested: list[str], names: list[str]
) -> None:
    """As git itself decides: of a folder on the disk, and of a name that may be of a file too, either."""
    root, path = repository(home, *patterns), "/".join(names)
    (root / "a").mkdir(exist_ok=True)
    for name in (".gitignore", ".holdfastignore"):
        (root / "a" / name).write_text("\n".join(nested))
    as_file = path != "a" and path in ignored(root, path)
    (root / path).mkdir(parents=True, exist_ok=True)
    as_folder = path in ignored(root, path)
    assert IgnoreRules(root, home, home / "own").covers(path, str(root), follow=False) == as_folder
    for folder in (root / path, *(root / path).parents):
        if folder not in (root, root / "a", *root.parents):
            folder.rmdir()
    expected = as_folder if path == "a" else as_file or as_folder
    assert IgnoreRules(root, home, home / "own").covers(path, str(root), follow=False) == expected
    assert IgnoreRules(root, home, home / "own").covers(f"{path}/", str(root), follow=False) == as_folder
