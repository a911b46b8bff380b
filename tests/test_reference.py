"""The reference has a page for each module that the guides import from."""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
APART = {"holdfast.integrations.crewai", "holdfast.integrations.strands"}


def test_each_module_that_a_guide_imports_has_a_page() -> None:
    command = ["make", "--no-print-directory", "--dry-run", "reference"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    pages = {*re.findall(r" (holdfast[\w.]*)", done.stdout.splitlines()[-1])}
    assert [page for page in pages if find_spec(page) is None] == []
    guides = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    said = "\n".join(guide.read_text("utf-8") for guide in guides)
    imported = {*re.findall(r"^ *from (holdfast\S*) import ", said, re.MULTILINE)} - APART
    assert imported > {"holdfast", "holdfast.prompt.window"}
    assert {name for name in imported if not any(page.startswith(name) for page in pages)} == set()
