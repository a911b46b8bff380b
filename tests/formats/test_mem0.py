"""What mem0 stores: files that mem0 2.2.1 wrote, by `infer=False`."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from transcripts import take, write_json

MADE = Path(__file__).parents[1] / "data" / "imports" / "mem0"
TEXTS = {"I prefer tea to coffee.", "Noted: tea.", "My office is in Lisbon."}
OF_ADA = "of the user 'ada': import it with that --user"


def of(user: str) -> Memory:
    return Memory(":memory:", user=user)


def test_memories_come_from_an_export_once(memory: Memory) -> None:
    assert import_paths(memory, MADE / "get_all.json").records == 3
    report = import_paths(memory, MADE / "get_all.json")
    assert (report.records, report.records_present, report.problems) == (0, 3, ())
    assert {one.text for one in memory.records()} == TEXTS
    tea = next(one for one in memory.records() if one.text == "Noted: tea.")
    assert (tea.kind, tea.by, tea.source[:5]) == ("fact", "import", "mem0:")
    assert tea.meta["topic"] == "drinks"
    assert tea.meta["user_id"] == "ada"


def test_memories_of_others_are_left_out(tmp_path: Path) -> None:
    said = [("1", "ada", "I run every evening."), ("2", "bob", "I run every morning.")]
    both = [{"id": name, "user_id": user, "memory": text} for name, user, text in said]
    path = write_json(tmp_path / "mem0.json", both)
    with of("bob") as bob, of("carl") as carl, of("") as own:
        report = import_paths(bob, path)
        assert [one.text for one in bob.records()] == ["I run every morning."]
        assert [one.reason for one in report.skipped] == [OF_ADA]
        for file in (path, MADE / "get_all.json"):
            assert import_paths(carl, file).records == 0
        # Whoever has no name takes a file of one user, and none of a file of several.
        assert import_paths(own, path).records == 0
        assert import_paths(own, MADE / "get_all.json").records == 3


def test_a_history_says_what_is_deleted_and_not_whose_a_memory_is(tmp_path: Path) -> None:
    reasons = [reason for _, reason in take(MADE / "history.sqlite").left]
    assert reasons.count("a memory that was deleted in mem0") == 1
    assert len(reasons) == 5
    shutil.copy(MADE / "history.sqlite", tmp_path / "history.db")
    with closing(sqlite3.connect(tmp_path / "history.db")) as history:
        said = ("m1", "run_id=r%261&user_id=ada", "user", "Hello", None, "2026-01-02T03:04:05+00:00")
        history.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", said)
        history.commit()
    with of("ada") as ada, of("bob") as bob:
        report = import_paths(ada, tmp_path / "history.db")
        assert (report.added, report.records) == (1, 4)
        assert [message.content for message in ada.chat("mem0:r&1").history()] == ["Hello"]
        assert "My office is in Lisbon." in {one.text for one in ada.records()}
        report = import_paths(bob, tmp_path / "history.db")
        assert (report.added, report.records) == (0, 0)
