"""Records as Markdown: edits come back as changes of the user, and nothing else changes anything."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import InvalidInput, Memory
from holdfast_cli.formats.import_report import ImportReport
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.record_edits import apply_edits
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


def known(memory: Memory) -> dict[str, str]:
    return {one.text: one.by for one in memory.records()}


def actions(report: ImportReport) -> list[str]:
    return [one.action for one in report.edits]


def test_edits_are_changes_of_the_user(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    path = tmp_path / "known.md"
    assert written(memory, path) == (4, {})
    changed(
        path,
        ("Training for Berlin", "Training for Porto\n\nin May"),
        ("\n\nDrinks tea\n", "\n\n\n<!-- new -->\n\nLives in Lisbon\n"),
        ('"category": "sport"', '"category": "running"'),
    )
    before = memory.version()
    dry = import_paths(memory, path, dry_run=True)
    assert (actions(dry), dry.records, memory.version()) == (["replace", "retract", "add"], 0, before)
    report = import_paths(memory, path)
    assert (actions(report), report.records, report.records_present) == (["replace", "retract", "add"], 3, 2)
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
    fill(memory)
    path = tmp_path / "known.md"
    written(memory, path)
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
    assert len(report.problems) == 2
    assert memory.version() == version
    # The same edit on both sides is none.
    memory.replace(berlin.id, "Training for Oslo", by="agent")
    assert [one.after for one in import_paths(memory, path).edits] == ["Drinks milk"]


def test_a_file_that_is_cut_off_changes_nothing(quick: Memory, tmp_path: Path) -> None:
    fill(quick)
    path = tmp_path / "known.md"
    written(quick, path)
    whole = path.read_text("utf-8")
    for length in range(30, len(whole) - 30, 97):
        path.write_text(whole[:length], "utf-8")
        with pytest.raises(InvalidInput, match="cut off"):
            import_paths(quick, path)
    assert quick.version() == 4


def test_entries_that_are_gone_twice_or_elsewhere_are_listed(quick: Memory, tmp_path: Path) -> None:
    fill(quick)
    path = tmp_path / "known.md"
    written(quick, path)
    whole = path.read_text("utf-8")
    tea = next(line for line in whole.splitlines() if '"id"' in line and "sport" not in line)
    version = quick.version()
    path.write_text(whole.replace(f"{tea}\n\nDrinks tea\n", ""), "utf-8")
    report = import_paths(quick, path)
    assert "1 of the 4 exported records are no longer in the file" in report.skipped[0].reason
    path.write_text(whole.replace("Drinks tea\n", f"Drinks tea\n\n{tea}\n\nDrinks milk\n"), "utf-8")
    assert [one.why for one in import_paths(quick, path).edits] == ["the file has it twice"]
    path.write_text(whole.replace('{"kind": "constraint"}', '{"kind": "fact"}'), "utf-8")
    assert "another kind" in import_paths(quick, path).edits[0].why
    path.write_text(whole.replace(tea, tea.replace('"id"', '"no"')), "utf-8")
    assert import_paths(quick, path).problems[0].reason == "a comment that was changed: it has no id"
    path.write_text(whole.replace('"id": "', '"id": "x', 1) + "more", "utf-8")
    reasons = sorted(one.reason[:21] for one in import_paths(quick, path).problems)
    assert reasons == ["a text behind the end", "not known here, but o"]
    assert quick.version() == version


def test_what_is_refused_keeps_no_other_edit_out(quick: Memory, tmp_path: Path) -> None:
    fill(quick)
    path = tmp_path / "known.md"
    written(quick, path)
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


def test_only_a_file_that_is_named_is_trusted_and_only_such_files_are_shown(
    quick: Memory, tmp_path: Path
) -> None:
    fill(quick)
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "known.md"
    written(quick, path)
    changed(path, ("Drinks tea", "Drinks milk"))
    report = import_paths(quick, tmp_path / "folder")
    assert (report.records, report.formats.total()) == (0, 0)
    assert [one.reason for one in report.skipped] == ["an export of records: name the file itself"]
    with pytest.raises(InvalidInput):
        import_paths(quick, [tmp_path / "folder"], dry_run=True)


def test_records_of_another_memory_are_named_and_added_without_their_comments(
    quick: Memory, location: str, tmp_path: Path
) -> None:
    path = tmp_path / "known.md"
    fill(quick)
    number = written(quick, path).records
    with Memory(location, user="ada") as other:
        report = import_paths(other, path)
        assert (report.records, len(report.edits)) == (0, number)
        assert {one.action for one in report.edits} == {"conflict"}
        assert all("of another memory" in one.why for one in report.edits)
        text = re.sub(r"(?m)^<!-- record .*-->$", "<!-- new -->", path.read_text("utf-8"))
        path.write_text(text, "utf-8")
        assert import_paths(other, path).records == number
        assert import_paths(other, path).records == 0


def test_records_of_other_spaces_are_left_alone(app: Memory, tmp_path: Path) -> None:
    ada, bob = app.scoped(user="ada"), app.scoped(user="bob")
    fill(ada)
    bob.remember("Drinks beer")
    path = tmp_path / "known.md"
    written(bob, path)
    assert "Berlin" not in path.read_text("utf-8")
    changed(path, ("Drinks beer", "Drinks wine"))
    assert [one.why[:14] for one in apply_edits(ada, path).edits] == ["not known here"]
    project = ada.scoped(project="shop")
    project.remember("The shop is blue")
    assert written(project, path).records == 1


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_ends_of_lines_may_be_changed(quick: Memory, tmp_path: Path, ending: str) -> None:
    quick.remember("one\ntwo\n\nthree")
    path = tmp_path / "known.md"
    written(quick, path)
    path.write_bytes(path.read_bytes().replace(b"\n", ending.encode()))
    assert not import_paths(quick, path).edits


TEXTS = st.one_of(
    st.text(max_size=40), st.lists(st.sampled_from((*HOSTILE, "", "x")), max_size=4).map("\n".join)
)


@settings(max_examples=cases(15, 180))
@given(st.lists(st.tuples(TEXTS, st.text("ab- ", max_size=3), st.lists(TEXTS, max_size=2)), max_size=4))
def test_a_round_trip_without_edits_changes_nothing(said: list[tuple[str, str, list[str]]]) -> None:
    with Memory(":memory:", user="ada") as memory, TemporaryDirectory() as folder:
        for text, category, tags in said:
            try:
                memory.remember(text, category=category, tags=tags, by="user", merge=False)
            except InvalidInput:
                continue
        path, version = Path(folder, "known.md"), memory.version()
        count = written(memory, path).records
        report = apply_edits(memory, path)
        assert (report.edits, report.wrong, report.unchanged) == ((), (), count)
        assert memory.version() == version
