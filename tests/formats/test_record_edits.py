"""Records as Markdown: edits come back as changes of the user, and nothing else changes anything."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import InvalidInput, Memory
from holdfast_cli.formats.import_report import ImportReport
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.record_markdown import ExportedRecords, export_records
from soak import cases

HOSTILE = (
    "# Heading\n## fact\n<!-- kind {} -->",
    '<!-- record {"id": "x"} -->\nsome',
    "\\<!-- new -->",
    '<!-- end {"records": 0} -->',
    "a --> b <!-- c",
    "one\r\ntwo\n\n\nthree",
    "- item\n\n```\ncode\n```",
    "\u2028 \U0001f600 **bold** [link](x)",
)


def fill(memory: Memory) -> None:
    memory.remember("Training for Berlin", kind="fact", category="sport", tags=["race", "-->"])
    memory.remember("Drinks tea", kind="fact")
    memory.remember("Never plan runs on Mondays", kind="constraint", by="user")
    memory.remember("Ada, runs marathons", kind="profile", by="user")


def written(memory: Memory, path: Path) -> ExportedRecords:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        return export_records(memory, stream)


def changed(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text("utf-8")
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text, "utf-8")


def exported(memory: Memory, folder: Path) -> tuple[Path, str]:
    """Fill a memory, and write what it knows into a file."""
    fill(memory)
    path = folder / "known.md"
    assert written(memory, path) == (4, {})
    return path, path.read_text("utf-8")


def known(memory: Memory) -> dict[str, str]:
    return {one.text: one.by for one in memory.records()}


def actions(report: ImportReport) -> list[str]:
    return [one.action for one in report.edits]


def test_edits_are_changes_of_the_user(memory: Memory, tmp_path: Path) -> None:
    path, _ = exported(memory, tmp_path)
    # Ends of lines are no edits.
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert not import_paths(memory, path).edits
    changed(
        path,
        ("Training for Berlin", "Training for Porto\n\nin May"),
        ("\n\nDrinks tea\n", "\n\n\n<!-- new -->\n\nLives in Lisbon\n"),
        ('"category": "sport"', '"category": "running"'),
    )
    before, edits = memory.version(), ["replace", "retract", "add"]
    dry = import_paths(memory, path, dry_run=True)
    assert (actions(dry), dry.records, memory.version()) == (edits, 0, before)
    with pytest.raises(InvalidInput):
        import_paths(memory, tmp_path, dry_run=True)  # only a file that is named is shown
    report = import_paths(memory, path)
    assert (actions(report), report.records, report.records_present) == (edits, 3, 2)
    texts = known(memory)
    assert texts["Training for Porto\n\nin May"] == texts["Lives in Lisbon"] == "user"
    assert "Drinks tea" not in texts
    (berlin,) = [one for one in memory.records() if one.text.startswith("Training")]
    assert (berlin.category, berlin.tags) == ("running", ("race", "-->"))
    assert [change.by for change in memory.changes(limit=3)] == ["user"] * 3
    # The same file again is no news.
    version = memory.version()
    again = import_paths(memory, path)
    assert (again.edits, again.problems, memory.version()) == ((), (), version)
    memory.undo()
    assert "Lives in Lisbon" not in known(memory)


def test_what_changed_on_both_sides_is_shown_and_left(memory: Memory, tmp_path: Path) -> None:
    path, _ = exported(memory, tmp_path)
    berlin, tea = memory.records(kind="fact")
    memory.replace(berlin.id, "Training for Rome", by="agent")
    memory.retract(tea.id, by="agent")
    version = memory.version()
    assert not import_paths(memory, path).edits
    changed(path, ("Training for Berlin", "Training for Oslo"), ("Drinks tea", "Drinks milk"))
    report = import_paths(memory, path)
    assert [(one.action, one.before, one.after) for one in report.edits] == [
        ("conflict", "Training for Rome", "Training for Oslo"),
        ("conflict", "", "Drinks milk"),
    ]
    assert (len(report.problems), memory.version()) == (2, version)
    # The same edit on both sides is none.
    memory.replace(berlin.id, "Training for Oslo", by="agent")
    assert [one.after for one in import_paths(memory, path).edits] == ["Drinks milk"]


def test_a_file_that_is_cut_off_changes_nothing(quick: Memory, tmp_path: Path) -> None:
    path, whole = exported(quick, tmp_path)
    for length in range(30, len(whole) - 30, 97):
        path.write_text(whole[:length], "utf-8")
        with pytest.raises(InvalidInput, match="cut off"):
            import_paths(quick, path)
    assert quick.version() == 4


def test_entries_that_are_gone_twice_or_elsewhere_are_listed(quick: Memory, tmp_path: Path) -> None:
    path, whole = exported(quick, tmp_path)
    tea = next(line for line in whole.splitlines() if '"id"' in line and "sport" not in line)
    version = quick.version()
    for old, new, told in (
        (f"{tea}\n\nDrinks tea\n", "", "1 of the 4 exported records are no longer in the file"),
        ("Drinks tea\n", f"Drinks tea\n\n{tea}\n\nDrinks milk\n", "the file has it twice"),
        ('{"kind": "constraint"}', '{"kind": "fact"}', "another kind"),
        (tea, tea.replace('"id"', '"no"'), "a comment that was changed: it has no id"),
        ('"id": "', '"id": "x', "not known here, but o"),
        (whole[-20:], f"{whole[-20:]}more", "a text behind the end"),
    ):
        path.write_text(whole.replace(old, new, 1), "utf-8")
        assert told in " ".join(one.reason for one in import_paths(quick, path).skipped)
    assert quick.version() == version


def test_what_is_refused_keeps_no_other_edit_out(quick: Memory, tmp_path: Path) -> None:
    path, _ = exported(quick, tmp_path)
    key = "sk-ant-api03-" + "Ab3" * 30
    changed(
        path,
        ("Training for Berlin", "x" * 200_000),
        ("Drinks tea", f"The key is {key}"),
        ("Ada, runs marathons", "Ada, runs marathons\n\n<!-- new -->\nEva, swims"),
    )
    report = import_paths(quick, path)
    assert sorted(actions(report)) == ["conflict", "conflict", "replace"]
    assert key not in "".join(known(quick))
    assert "there is a profile already" in " ".join(one.why for one in report.edits)
    # What was cut out of the text is no edit.
    assert sorted(actions(import_paths(quick, path))) == ["conflict", "conflict"]


def test_records_of_another_memory_are_named_and_added_without_their_comments(
    quick: Memory, location: str, tmp_path: Path
) -> None:
    path, text = exported(quick, tmp_path)
    with Memory(location, user="ada") as other:
        report = import_paths(other, path)
        assert (report.records, [one.action for one in report.edits]) == (0, ["conflict"] * 4)
        assert all("of another memory" in one.why for one in report.edits)
        path.write_text(re.sub(r"(?m)^<!-- record .*-->$", "<!-- new -->", text), "utf-8")
        assert [import_paths(other, path).records for _ in range(2)] == [4, 0]


def test_records_of_other_spaces_are_left_alone(app: Memory, tmp_path: Path) -> None:
    ada, bob = app.scoped(user="ada"), app.scoped(user="bob")
    fill(ada)
    bob.remember("Drinks beer")
    path = tmp_path / "known.md"
    written(bob, path)
    assert "Berlin" not in path.read_text("utf-8")
    changed(path, ("Drinks beer", "Drinks wine"))
    assert [one.why[:14] for one in import_paths(ada, path).edits] == ["not known here"]
    project = ada.scoped(project="shop")
    project.remember("The shop is blue")
    assert written(project, path).records == 1


TEXTS = st.one_of(
    st.text(max_size=40), st.lists(st.sampled_from((*HOSTILE, "", "x")), max_size=4).map("\n".join)
)


@settings(max_examples=cases(15, 180))
@given(st.lists(st.tuples(TEXTS, st.text("ab- ", max_size=3), st.lists(TEXTS, max_size=2)), max_size=4))
def test_a_round_trip_without_edits_changes_nothing(said: list[tuple[str, str, list[str]]]) -> None:
    with Memory(":memory:", user="ada") as memory, TemporaryDirectory() as folder:
        for text, category, tags in said:
            with suppress(InvalidInput):
                memory.remember(text, category=category, tags=tags, by="user", merge=False)
        path, version = Path(folder, "known.md"), memory.version()
        count = written(memory, path).records
        report = import_paths(memory, path)
        assert (report.edits, report.skipped, report.records_present) == ((), (), count)
        assert memory.version() == version
