"""The documents say what is true: examples run as they are written, and what they name is there."""

from __future__ import annotations

import ast
import asyncio
import code
import inspect
import logging
import re
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

import holdfast
from benchmarks.__main__ import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = [
    README,
    *(
        path.read_text("utf-8")
        for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md")
        for path in ROOT.glob(name)
    ),
]


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)


def run(source: str, names: dict[str, object]) -> None:
    """Run a program that may await at its top level, as a notebook does."""
    program = compile(source, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def main() -> None:
        result = eval(program, names)
        if inspect.isawaitable(result):
            await result

    asyncio.run(main())


def test_the_program_of_the_readme_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    program, more = blocks("README.md")
    run(program, names)
    printed = re.search(r"It prints:\n\n```\n(.*?)```", README, re.DOTALL)
    assert printed
    assert capsys.readouterr().out == printed[1]
    run(more, names)
    memory = names["memory"]
    assert isinstance(memory, holdfast.Memory)
    with memory:
        assert memory.verify().ok


@pytest.fixture(autouse=True)
def level_given_back(caplog: pytest.LogCaptureFixture) -> None:
    """Let no other test see the level of the log that a page sets."""
    caplog.set_level(logging.NOTSET, "holdfast")


HOW_TOS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in ROOT.glob("docs/*.md")
    if "```python" in path.read_text("utf-8")
)
# The pages of frameworks that cannot be installed beside the others, with the module of each.
APART = {"docs/crewai.md": "crewai", "docs/strands.md": "strands"}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOW_TOS)
def test_a_how_to_runs_as_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in APART:
        if not find_spec(APART[name]):
            pytest.skip(f"needs {APART[name]}, apart from the rest: `make frameworks` runs it")
        warnings.simplefilter("ignore")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(name):
        run(block, names)
    for value in names.values():
        if isinstance(value, holdfast.Memory):
            value.close()
    with holdfast.Memory("agent.db", user="ada", agent="coach") as memory:
        assert memory.verify().ok
        if name == "docs/learning.md":
            assert {record.kind for record in memory.records()} >= {"episode", "finding"}


def test_the_tutorial_can_be_pasted_into_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = code.InteractiveConsole({"__name__": "__main__"})
    pasted = "\n".join([*blocks("docs/tutorial.md"), "memory.close()"])  # with an empty line after each block
    for line in pasted.splitlines():
        shell.push(line)
    assert capsys.readouterr().err == ""


def test_the_commands_that_the_documents_name_are_there() -> None:
    help_text = subprocess.run(
        [sys.executable, "-m", "holdfast", "--help"], capture_output=True, text=True, check=True
    ).stdout
    named = {
        name for text in DOCUMENTS for name in re.findall(r"holdfast ([a-z]+)", text) if name != "import"
    }
    named = {name for name in named if re.search(rf"`?holdfast {name}[ `\n]", "".join(DOCUMENTS))}
    assert {"recall", "compact"} <= named
    assert {name for name in named if name not in help_text} == set()


def test_the_measurements_that_the_documents_name_are_there() -> None:
    named = {name for text in DOCUMENTS for name in re.findall(r"python -m benchmarks\s+([a-z-]+)", text)}
    callbacks = [command.callback for command in app.registered_commands]
    assert {one.__name__.replace("_", "-") for one in callbacks if one} == named


def test_make_lists_its_targets_and_among_them_those_that_the_documents_name() -> None:
    told = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"^make ([a-z]+) +\S", told, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert phony is not None
    assert listed == phony[1].split()
    named = {
        name
        for text in DOCUMENTS
        for name in re.findall(r"^make ([a-z]+)|`make ([a-z]+)", text, re.MULTILINE)
    }
    assert {"demo", "test", "bench", "dist"} <= set(map("".join, named)) <= set(listed)


def prose(document: str) -> str:
    return re.sub(r"^```.*?^```", "", document, flags=re.DOTALL | re.MULTILINE)


def anchors(document: str) -> set[str]:
    """Name the headings of a document as links do: small letters, hyphens for spaces, no other signs."""
    headings = re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(document: Path, link: str) -> bool:
    name, _, heading = link.partition("#")
    target = document.parent / name if name else document
    return target.exists() and (not heading or heading in anchors(target.read_text("utf-8")))


def test_relative_links_lead_somewhere() -> None:
    links = [
        (path, link)
        for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
        for link in re.findall(r"\]\(([^)\s:]+)\)", prose(path.read_text("utf-8")))
    ]
    assert len(links) > 50
    dead = [f"{path.relative_to(ROOT)}: {link}" for path, link in links if not leads_somewhere(path, link)]
    assert dead == []
