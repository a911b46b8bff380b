"""The two packages: what a wheel has and needs, and what Python says where one is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import holdfast
from holdfast import MissingExtra

CHECKOUT = Path(__file__).parents[1]
ROOT, CLI = CHECKOUT / "src" / "holdfast", CHECKOUT / "cli" / "src" / "holdfast_cli"
LIBRARY = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
APPLICATION = tomllib.loads((CHECKOUT / "cli" / "pyproject.toml").read_text("utf-8"))


def test_a_wheel_has_its_package_a_version_and_what_it_needs() -> None:
    wheels = [of["tool"]["hatch"]["build"]["targets"]["wheel"] for of in (LIBRARY, APPLICATION)]
    assert [wheel["packages"] for wheel in wheels] == [["src/holdfast"], ["src/holdfast_cli"]]
    assert [(package / "py.typed").exists() for package in (ROOT, CLI)] == [True, True]
    version, project = holdfast.__version__, LIBRARY["project"]
    assert APPLICATION["project"]["version"] == version
    assert f"holdfast=={version}" in APPLICATION["project"]["dependencies"]
    assert project["optional-dependencies"]["cli"] == [f"holdfast-cli=={version}"]
    assert [needed.partition(">")[0] for needed in project["dependencies"]] == ["numpy", "PyStemmer"]


def test_without_the_command_line_python_says_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "holdfast_cli.py").write_text("raise ModuleNotFoundError(name='holdfast_cli')", "utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "chats"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT.parent)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"Error: {MissingExtra.of('cli', ' ./cli')}\n"


def test_how_to_install_an_extra_is_said_in_one_place() -> None:
    extras = LIBRARY["project"]["optional-dependencies"].keys() - {"bench", "peers", "dev", "claude"}
    assert {extra for extra in extras if f"pip install '.[{extra}]'" in MissingExtra.of(extra).todo} == extras
    files = (*ROOT.rglob("*.py"), *CLI.rglob("*.py"))
    saying = [file for file in files if "in a checkout of Holdfast: pip" in file.read_text("utf-8")]
    assert saying == [ROOT / "errors.py"]
