"""The reference says what the docstrings say, and everything public has one."""

from __future__ import annotations

import gc
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import griffe
import pytest

import holdfast

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "reference.py"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = script  # where its dataclass looks for its types
    spec.loader.exec_module(script)
    return script


@pytest.fixture(scope="module")
def packages(reference: ModuleType) -> griffe.ModulesCollection:
    gc.disable()  # to look for garbage takes half as long again, and there is none
    try:
        loaded = reference.load()
    finally:
        gc.enable()
    assert isinstance(loaded, griffe.ModulesCollection)
    return loaded


@pytest.fixture(scope="module")
def pages(
    reference: ModuleType, packages: griffe.ModulesCollection, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Write the pages as `make reference` does, into another folder, and return what is in it then."""
    folder = tmp_path_factory.mktemp("docs") / "reference"
    reference.write({"a.module.that.is.gone.md": ""}, folder)
    reference.write(reference.written(packages), folder)
    return {file.name: file.read_text("utf-8") for file in folder.iterdir()}


def headings(pages: dict[str, str]) -> set[str]:
    return {*re.findall(r"^##+ ([\w.]+)$", "\n".join(pages.values()), re.MULTILINE)}


def test_each_module_and_every_exported_name_has_a_page(reference: ModuleType, pages: dict[str, str]) -> None:
    assert pages.keys() == {"README.md", *(page.file for page in reference.PAGES)}
    assert {*holdfast.__all__} - headings(pages) == set()


def test_everything_public_is_documented(reference: ModuleType, packages: griffe.ModulesCollection) -> None:
    assert reference.undocumented(packages) == []


def test_what_the_guides_import_is_on_a_page(pages: dict[str, str]) -> None:
    shown = {*re.findall(r"^## (\w+)$", "\n".join(pages.values()), re.MULTILINE)}
    shown |= {name.removesuffix(".md").rpartition(".")[2] for name in pages}
    guides = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    said = "\n".join(guide.read_text("utf-8") for guide in guides)
    imported = re.findall(r"^ *from holdfast\S* import (?:\(([^)]*)\)|([^#\n]*))", said, re.MULTILINE)
    assert {name for names in imported for name in re.findall(r"\w+", " ".join(names))} - shown == set()


def test_the_pages_are_markdown_that_links_to_what_is_there(pages: dict[str, str]) -> None:
    for text in pages.values():
        assert text.count("```") % 2 == 0
        assert set(re.findall(r"\]\(([^)]+)\)", text)) <= pages.keys()
    assert pages["README.md"].count("](") == len(pages) - 1
