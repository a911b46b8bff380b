"""Folders that are watched: what is imported at which look, and what a look costs."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import Memory, Unavailable
from holdfast_cli.formats.redaction import Rules
from holdfast_cli.formats.watching import FolderWatch
from transcripts import codex, write_lines


def said(text: str, identity: str = "") -> str:
    return json.dumps({"role": "user", "content": text, "id": identity or text}) + "\n"


class Folder:
    """A folder that is watched into a memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.memory = Memory(":memory:")
        self.watch = FolderWatch([path], self.memory, clock=lambda: 0.0)

    def look(self) -> list[tuple[str, int, list[str]]]:
        """Return the name of each file told of, the messages added, and what was left out."""
        found = []
        for seen in self.watch.look():
            reasons = [one.reason for one in seen.report.skipped]
            found.append((seen.path.name, seen.report.added, [*reasons, *filter(None, [seen.problem])]))
        return found

    def contents(self, chat: str) -> list[str]:
        return [message.content for message in self.memory.chat(chat).history()]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    (tmp_path / "in").mkdir()
    folder = Folder(tmp_path / "in")
    with folder.memory:
        yield folder


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_lines_are_imported_as_they_come(folder: Folder) -> None:
    path = folder.path / "deep" / "talk.jsonl"
    assert folder.look() == []
    path.parent.mkdir()
    path.write_text(said("one"))
    assert folder.look() == [("talk.jsonl", 1, [])]
    assert folder.look() == folder.look() == []
    append(path, said("two") + said("three"))
    assert folder.look() == [("talk.jsonl", 2, [])]
    assert folder.contents("deep/talk") == ["one", "two", "three"]


def test_a_look_at_which_nothing_is_new_opens_no_file(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.path / "talk.jsonl").write_text(said("one"))
    (folder.path / "notes.txt").write_text("x")
    # A document is read when it has stayed the same.
    document = json.dumps([json.loads(said("two"))])
    (folder.path / "doc.json").write_text(document[:20])
    assert folder.look() == [("talk.jsonl", 1, [])]
    (folder.path / "doc.json").write_text(document)
    assert [folder.look(), folder.look(), folder.look()] == [[], [("doc.json", 1, [])], []]
    opened: list[object] = []
    monkeypatch.setattr("io.open", lambda *args, **_: opened.append(args))
    monkeypatch.setattr(Path, "open", lambda *args, **_: opened.append(args))
    assert folder.look() == []
    assert opened == []


def test_a_half_written_line_waits_until_it_is_whole_or_nobody_goes_on(folder: Folder) -> None:
    path = folder.path / "talk.jsonl"
    whole = said("two")
    path.write_text(said("one") + whole[:20])
    assert folder.look() == [("talk.jsonl", 1, [])]
    append(path, whole[20:])
    assert folder.look() == [("talk.jsonl", 1, [])]
    append(path, said("three").rstrip("\n"))
    assert folder.look() == []
    assert folder.look() == [("talk.jsonl", 1, [])]
    append(path, "\n" + said("four")[:9])
    assert folder.look() == []
    assert folder.look() == [("talk.jsonl", 0, ["not valid JSON"])]
    assert folder.look() == []


def test_files_that_are_cut_replaced_or_removed_do_no_harm(folder: Folder) -> None:
    path = folder.path / "talk.jsonl"
    path.write_text(said("one") + said("two"))
    assert folder.look() == [("talk.jsonl", 2, [])]
    path.write_text(said("one"))
    assert folder.look() == []
    append(path, said("three"))
    assert folder.look() == [("talk.jsonl", 1, [])]
    path.rename(folder.path / "talk.1.jsonl")
    path.write_text(said("four"))
    assert sorted(folder.look()) == [("talk.1.jsonl", 3 - 1, []), ("talk.jsonl", 1, [])]
    path.unlink()
    assert folder.look() == []
    path.write_text(said("five"))
    assert folder.look() == [("talk.jsonl", 1, [])]
    assert folder.contents("talk") == ["one", "two", "three", "four", "five"]


def test_a_database_is_read_whenever_it_was_written(folder: Folder) -> None:
    with closing(sqlite3.connect(folder.path / "state.vscdb", isolation_level=None)) as editor:
        editor.execute("PRAGMA journal_mode = wal")
        editor.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        for number in (1, 2):
            within = [{"bubbleId": str(n), "type": 1, "text": f"say {n}"} for n in range(number)]
            value = json.dumps({"conversation": within})
            editor.execute("INSERT INTO cursorDiskKV VALUES ('composerData:c', ?)", (value,))
            assert folder.look() == [("state.vscdb", 1, [])]
            assert folder.look() == []


def test_what_is_left_out_is_told_once(folder: Folder) -> None:
    path = folder.path / "talk.jsonl"
    path.write_text(said("one") + "[1]\n")
    (folder.path / "other.jsonl").write_text('{"a": 1}\n')
    assert folder.look() == [
        ("other.jsonl", 0, ["in no format that is known here"]),
        ("talk.jsonl", 1, ["not a JSON object"]),
    ]
    append(path, '{"role": "user"}\n')
    (folder.path / "all.jsonl").write_text('{"holdfast": "everything", "schema": 1}\n')
    everything, (name, added, reasons) = folder.look()
    assert everything == ("all.jsonl", 0, ["an export of everything: name the file itself"])
    assert (name, added, len(reasons)) == ("talk.jsonl", 0, 2)


def test_a_memory_that_is_away_is_told_of_once_and_tried_again(quick: Memory, tmp_path: Path) -> None:
    away = True

    def rules() -> Rules | None:
        if away:
            raise Unavailable("The list of pauses is damaged.", "Repair it.")
        return None

    path = tmp_path / "talk.jsonl"
    path.write_text(said("one"))
    watch = FolderWatch([tmp_path], quick, rules)
    (seen,) = watch.look()
    assert seen.problem == "The list of pauses is damaged. Repair it."
    assert list(watch.look()) == []
    away = False
    (seen,) = watch.look()
    assert (seen.report.added, seen.problem) == (1, "")


def test_links_and_pipes_lead_nowhere(folder: Folder) -> None:
    os.mkfifo(folder.path / "pipe.jsonl")
    (folder.path / "loop").symlink_to(folder.path)
    (folder.path / "gone.jsonl").symlink_to(folder.path / "nothing")
    write_lines(folder.path / "rollout.jsonl", [codex("session_meta", id="s", cwd="/x")])
    assert folder.look() == []
    assert folder.memory.chats() == []
