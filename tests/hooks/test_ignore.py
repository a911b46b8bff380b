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


@pytest.mark.parametrize(
    ("name", "of_it"),
    {
        "alnum": "a7",
        "alpha": "az",
        "blank": " ",
        "cntrl": "\x07\x7f",
        "digit": "09",
        "graph": "a7~",
        "lower": "az",
        "print": "a ~",
        "punct": "!-@[\\]^`~",
        "space": " \t",
        "upper": "aZ",
        "xdigit": "0fA",
    }.items(),
)
def test_classes_of_posix(home: Path, name: str, of_it: str) -> None:
    """Each of the characters in a class, and all others by its opposite; capitals are small letters."""
    all_of_them = "aZz09f~ !-@[\\]^`\x07\x7f\t;"
    found = rules(home, f"in[[:{name}:]]", f"out[^[:{name}:]]")
    assert all(found.covers(f"in{one}", "", follow=False) for one in of_it)
    out = [one for one in all_of_them if not found.covers(f"in{one}", "", follow=False)]
    assert not set(out) & set(of_it)
    assert all(found.covers(f"out{one}", "", follow=False) for one in out)
    if name != "upper":
        assert not any(found.covers(f"out{one}", "", follow=False) for one in of_it)


@pytest.mark.filterwarnings("error")
def test_sets_are_those_of_git(home: Path) -> None:
    found = rules(
        home, "key[[:digit:]].txt", "*.p[[:alpha:]]m", "a[\\]]b", "[z-a].x", "b[[:none:]]", "c[d-", "e[!x]f"
    )
    paths = ["key7.txt", "src/key.PEM", "x.pem", "a]b", "z.x", "b:", "c[d-", "keyx.txt", "e/f", "eyf"]
    expected = ["key7.txt", "src/key.PEM", "x.pem", "a]b", "z.x", "eyf"]
    assert [path for path in paths if found.covers(path, "", follow=False)] == expected
    found = rules(home, "[[]", "[a--]", "[&&;;||]", "*[[:upper:]]*[!-.]*q")
    paths = ["[", "a", "&", ";", "|", "zZb.q", "z1!q"]
    assert covered(found, home, *paths) == paths


def test_three_stars_are_two(home: Path) -> None:
    found = rules(home, "***/a", "/b/****/c")
    assert covered(found, home, "a", "x/y/a", "b/c", "b/x/y/c", "x/b/c") == ["a", "x/y/a", "b/c", "b/x/y/c"]


def test_a_folder_may_be_let_in(home: Path) -> None:
    """What lies above a path is a folder; a path itself is one if it is on the disk or ends like one."""
    found = rules(home, "/*", "!/src/", "!/gone/", "/src/*", "!/src/lib/")
    (home / "shop" / "src" / "lib").mkdir()
    paths = ["src/lib/a.py", "src/lib", "src", "src/", "gone/", "gone/.", "."]
    assert covered(found, home, *paths) == []
    others = ["a.py", "src/app.py", "gone", "lib/a.py"]
    assert covered(found, home, *others) == others
    found = rules(home, "*", "!*/", "!*.py")
    assert covered(found, home, "src/a.py", "b.py", "gone/c/d.py", "src", "src/a.env") == ["src/a.env"]


def test_patterns_of_a_shell_in_folders(home: Path) -> None:
    found = rules(home, "secrets/", "*.env")
    (home / "shop" / "secrets").mkdir()
    for name in ("secrets/a", "prod.env", "src/b.py"):
        (home / "shop" / name).touch()
    (home / "shop" / "src" / "link").symlink_to("../secrets")
    ways = "sec*/* secret?/a s*/a */a sr?/lin[!x]/a prod.en[v] prod.en[^x] s[[:lower:]]*/a".split()
    assert covered(found, home, *ways) == ways
    others = ["s*/b.py", "*/c", "sec*/c", "src/*.py", "**/b.py", "prod.en[x]", "[", "[[", "a[0]", "x[[:no:]]"]
    assert covered(found, home, *others) == []


def test_the_folder_of_a_shell(home: Path) -> None:
    found = rules(home, "/secrets/")
    ways = [f"{here}/secrets/a" for here in ("$PWD", "${PWD}", "$(pwd)", "`pwd`", "$HOME/shop")]
    assert covered(found, home, *ways, "$PWDX/secrets/a") == ways


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


def is_ignored(root: Path, path: str) -> bool:
    asked = ["git", "-C", str(root), "check-ignore", "--no-index", "-q", path]
    return subprocess.run(asked, check=False, capture_output=True).returncode == 0


@settings(max_examples=cases(25, 300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PATTERN, max_size=5), st.lists(PATTERN, max_size=3), st.lists(NAME, min_size=1, max_size=3))
def test_what_git_ignores_is_covered(
    home: Path, patterns: list[str], nested: list[str], names: list[str]
) -> None:
    """As git itself decides: of a folder on the disk, and of a name that may be of a file too, either."""
    root = home / "git"
    if not root.exists():
        subprocess.run(["git", "init", "-q", root], check=True)
    path = "/".join(names)
    for folder, lines in ((root, patterns), (root / "a", nested)):
        folder.mkdir(exist_ok=True)
        for name in (".gitignore", ".holdfastignore"):
            (folder / name).write_text("\n".join(lines))
    as_file = path != "a" and is_ignored(root, path)
    (root / path).mkdir(parents=True, exist_ok=True)
    as_folder = is_ignored(root, path)
    assert IgnoreRules(root, home, home / "own").covers(path, str(root), follow=False) == as_folder
    for folder in (root / path, *(root / path).parents):
        if folder not in (root, root / "a", *root.parents):
            folder.rmdir()
    expected = as_folder if path == "a" else as_file or as_folder
    assert IgnoreRules(root, home, home / "own").covers(path, str(root), follow=False) == expected
    assert IgnoreRules(root, home, home / "own").covers(f"{path}/", str(root), follow=False) == as_folder
