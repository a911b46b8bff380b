"""Notes in Markdown as records: basic-memory's by their front matter, plain ones where they are asked for."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import InvalidInput, Memory
from holdfast.errors import UnknownFormat
from holdfast_cli.formats.importing import import_paths
from soak import cases
from tables import each

COFFEE = """---
title: Coffee Brewing
type: note
permalink: coffee-brewing
tags:
- coffee
- '#brewing'
created: 2026-01-02
---

# Coffee Brewing

How I make it.

## Observations
- [method] Pour over is clearer #filter (from trying both)
- [method] French press is fuller
- [ ] buy a kettle
- [x] buy a mill
- [a link](https://example.com) is none

## Relations
- pairs_well_with [[Chocolate]]
- [[Water]] (soft)

## In depth ##

```
# no heading
- [method] no observation
```
"""


def take(memory: Memory, path: Path, text: str, format: str = "notes") -> tuple[int, int, int]:
    path.write_text(text, "utf-8")
    report = import_paths(memory, path, format=format)
    return report.records, report.records_present, len(report.problems)


def test_a_note_of_basic_memory_becomes_records(memory: Memory, tmp_path: Path) -> None:
    assert take(memory, tmp_path / "c.md", COFFEE, "") == (7, 0, 0)
    facts = {one.text: one for one in memory.records(kind="fact")}
    assert set(facts) == {
        "Coffee Brewing: Pour over is clearer #filter (from trying both)",
        "Coffee Brewing: French press is fuller",
        "Coffee Brewing: pairs_well_with Chocolate",
        "Coffee Brewing: relates_to Water (soft)",
    }
    pour = facts["Coffee Brewing: Pour over is clearer #filter (from trying both)"]
    assert (pour.category, pour.tags, pour.by) == ("method", ("coffee", "brewing", "filter"), "import")
    assert pour.source.startswith("notes:coffee-brewing#")
    assert pour.meta == {
        "note": "Coffee Brewing", "type": "note", "permalink": "coffee-brewing", "created": "2026-01-02",
    }  # fmt: skip
    assert facts["Coffee Brewing: pairs_well_with Chocolate"].meta["target"] == "Chocolate"
    assert [one.text.partition("\n")[0] for one in memory.records(kind="finding")] == [
        "Coffee Brewing",
        "Coffee Brewing › Observations",
        "Coffee Brewing › In depth",
    ]
    assert memory.recall("which brewing is clearer?")[0].id == pour.id


def test_a_note_again_and_changed(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "c.md"
    first = take(memory, path, COFFEE, "")
    assert take(memory, path, COFFEE, "notes") == (0, first[0], 0)
    changed = COFFEE.replace("French press is fuller", "French press is muddy").replace("I make", "we make")
    assert take(memory, path, changed, "") == (2, first[0] - 2, 0)
    texts = {one.text for one in memory.records()}
    assert "Coffee Brewing: French press is muddy" in texts
    assert "Coffee Brewing: French press is fuller" not in texts
    # Moved to another place the note is the same one, by its permalink.
    (tmp_path / "deep").mkdir()
    assert take(memory, tmp_path / "deep" / "d.md", changed, "") == (0, first[0], 0)


def test_plain_notes_are_read_only_where_they_are_asked_for(quick: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    readme = "Before.\n\n# Install\n\nRun it.\n\n## Windows\n\nDo not.\n\n# Install\n\nOnce more.\n"
    (folder / "README.md").write_text(readme)
    (folder / "talk.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    report = import_paths(quick, folder)
    assert (report.records, report.added, report.ignored) == (0, 1, {".md": 1})
    with pytest.raises(UnknownFormat):
        import_paths(quick, folder / "README.md")
    report = import_paths(quick, folder, format="notes")
    assert (report.records, report.added, report.ignored) == (4, 0, {".jsonl": 1})
    assert [one.text for one in quick.records()] == [
        "Install\n\nBefore.",
        "Install\n\nRun it.",
        "Install › Windows\n\nDo not.",
        "Install\n\nOnce more.",
    ]
    with pytest.raises(InvalidInput, match="Unknown format"):
        import_paths(quick, folder, format="yaml")


@pytest.mark.parametrize(
    ("head", "meta", "odd"),
    [
        ("a: [x, 'y, z', \"w\"]\nb: 'q: 1'\n", {"a": ["x", "y, z", "w"], "b": "q: 1"}, 0),
        ("c:\n  - 1\n- 'two'\n", {"c": ["1", "two"]}, 0),
        ("a: {x: 1}\nb: &anchor v\n", {"a": "{x: 1}", "b": "&anchor v"}, 2),
        ("a:\n  x: 1\n  y: 2\n", {"a": "x: 1\n  y: 2"}, 2),
        ("a: !!python/object/apply:os.system [echo]\n", {"a": "!!python/object/apply:os.system [echo]"}, 1),
        ("a: |\n  long\n  text\n", {"a": "|\n  long\n  text"}, 3),
        ("# a comment\n\nb: 1\nnonsense\n", {"b": "1\nnonsense"}, 1),
    ],
)  # fmt: skip
def test_front_matter(quick: Memory, tmp_path: Path, head: str, meta: dict[str, object], odd: int) -> None:
    (tmp_path / "n.md").write_text(f"---\ntitle: T\n{head}---\nBody.\n")
    report = import_paths(quick, tmp_path / "n.md", format="notes")
    (record,) = quick.records()
    assert (record.text, dict(record.meta)) == ("T\n\nBody.", {"note": "T", **meta})
    assert sum(one.count for one in report.skipped) == odd
    assert not report.problems


@each(
    ("body", "texts", "shown"),
    [
        ("![[plan.png]]", [], 1),
        ("![[plan.png|300]]\n\n> [!note]\n> ![[other note#^part]]\n", [], 1),
        ("![[plan.png]]\n\n# Rooms\n\n![[r.png]]\n\nThree.", ["T › Rooms\n\n![[r.png]]\n\nThree."], 1),
        ("See ![[plan.png]]", ["T\n\nSee ![[plan.png]]"], 0),
        ("- see ![[plan.png]]\n- see [[Plan]]", ["T: see Plan", "T\n\n- see ![[plan.png]]"], 0),
        ("1. ![[x]]\n2) ![[y.png]]\n> 3. ![[z]]\n", [], 1),
        ("[![a](b.png)](c)\n![[x]], ==![[y]]==.\n![a](b_(1).png)", [], 1),
        ("1. ![[x]] 👍", ["T\n\n1. ![[x]] 👍"], 0),
    ],
)  # fmt: skip
def test_files_that_a_note_shows_are_no_records(
    tmp_path: Path, body: str, texts: list[str], shown: int
) -> None:
    with Memory(":memory:") as memory:
        (tmp_path / "n.md").write_text(f"---\ntitle: T\n---\n{body}\n")
        report = import_paths(memory, tmp_path / "n.md", format="notes")
        assert sorted(one.text for one in memory.records()) == sorted(texts)
        reasons = [one.count for one in report.skipped if one.reason == "a file that is shown, without words"]
        assert sum(reasons) == shown


def test_long_sections_are_parted_and_large_files_left_out(quick: Memory, tmp_path: Path) -> None:
    paragraphs = "\n\n".join(f"Paragraph {n} " + "x" * 700 for n in range(30))
    assert take(quick, tmp_path / "long.md", f"# L\n{paragraphs}\n{'y' * 20_000}")[0] > 3
    assert max(len(one.text) for one in quick.records()) < 8_100
    assert sum(one.text.count("Paragraph") for one in quick.records()) == 30
    assert take(quick, tmp_path / "large.md", "x" * (17 << 20)) == (0, 0, 1)


PIECES = st.sampled_from(
    ["---", "a: 1", "- x", "# H", "## H", "- [c] t #g", "- r [[T]]", "```", "  b:", "a: [", "\x00", ""]
)


@settings(max_examples=cases(15, 180))
@given(st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=14).map("\n".join))
def test_any_note_is_imported_once(text: str) -> None:
    with Memory(":memory:", user="ada") as memory, TemporaryDirectory() as folder:
        path = Path(folder, "n.md")
        path.write_bytes(text.encode("utf-8", "replace"))
        first = import_paths(memory, path, format="notes")
        again = import_paths(memory, [path, path], format="notes")
        assert (again.records, again.records_present) == (0, 2 * first.records)
