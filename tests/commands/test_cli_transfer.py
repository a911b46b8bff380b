from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import Cli, usage, with_database, with_sample

from holdfast import Memory

LINES = [
    {"role": "user", "content": "Where is the key?", "id": "1"},
    {"role": "assistant", "content": "Under the mat.", "id": "2"},
]


cli, sample = pytest.fixture(with_database), pytest.fixture(with_sample)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "monday.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    return path


def test_import_and_import_again(cli: Cli, transcript: Path) -> None:
    text = cli.text("import", transcript)
    assert text.startswith("Imported 2 new messages of 1 chat (JSONL)")
    assert f"Into {cli.db}." in text
    assert "Next: holdfast recall" in text
    assert cli.json("recall", "key")["hits"][0]["chat"] == "monday"
    with transcript.open("a") as file:
        file.write('{"role": "user"\nnonsense\n')
    answer = cli.json("import", transcript, code=1)
    assert set(answer) == {
        *("sessions", "added", "present", "skipped", "formats", "seconds", "database"),
        *("records", "records_present", "rows", "renumbered", "unchanged", "ignored", "edits", "projects"),
    }
    assert (answer["sessions"], answer["added"], answer["present"]) == (1, 0, 2)
    assert answer["skipped"] == [
        {"path": str(transcript), "reason": "not valid JSON", "count": 2, "lines": [3, 4], "problem": True}
    ]
    cli.run("import", transcript, "--user", "ada", "--agent", "coach", code=1)
    assert cli.json("chats", "--user", "ada")["chats"][0]["agent"] == "coach"
    assert cli.json("chats")["chats"][0]["agent"] == ""


def test_without_a_path_there_must_be_sessions_of_claude_code(cli: Cli) -> None:
    assert "name the files or folders to import" in usage(cli.complaint("import", code=2))
    assert not cli.db.exists()


def test_a_file_in_no_known_format_leaves_no_database_behind(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    path.write_text('{"name": "a program"}')
    assert "in no format that is known here" in cli.complaint("import", path, code=1)
    assert "has no field 'text'" in cli.complaint("import", path, "--map", "content=text", code=1)
    assert not cli.db.exists()


@pytest.mark.parametrize("format", [None, "markdown"])
def test_an_export_reads_back_equal(sample: Cli, tmp_path: Path, format: str | None) -> None:
    file = tmp_path / "out.md"
    words = ("export", "--format", format) if format else ("export",)
    assert f"Exported 120 messages to {file}." in sample.run(*words, "-o", file).stderr
    sample.run("import", file, "--db", tmp_path / "copy.db")
    with Memory(sample.db) as memory, Memory(tmp_path / "copy.db") as copy:
        assert copy.chats() == memory.chats()
        for chat in [] if format else memory.chats():
            assert copy.chat(chat.id).history() == memory.chat(chat.id).history()
    assert sample.json("import", file)["present"] == 120
    done = sample.run(*words, "--chat", "flat-move")
    assert "Exported 15 messages to stdout." in done.stderr
    assert done.stdout


def test_export_of_some_chats(sample: Cli) -> None:
    lines = sample.run("export", "--chat", "flat-move", "--chat", "talk-prep").stdout.splitlines()
    assert {json.loads(line)["chat"] for line in lines} == {"flat-move", "talk-prep"}
    document = sample.json("export", "--chat", "flat-move")
    assert [message["role"] for message in document][:2] == ["user", "assistant"]
    assert sample.json("export", "--user", "bob") == []
    for words in ((), ("--format", "openai")):
        assert sample.run("export", "--agent", "nobody", *words).stdout == ""


def test_export_to_a_file_that_is_there(sample: Cli, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text("precious")
    assert "add --force" in sample.complaint("export", "--output", file, "--chat", "flat-move")
    sample.complaint("export", "--output", file, "--force", "--chat", "nobody")
    assert file.read_text() == "precious"
    assert list(tmp_path.glob(".out*")) == []
    answer = sample.json("export", "--output", file, "--force", "--chat", "flat-move")
    assert answer.pop("left_out")
    assert answer == {"messages": 15, "file": str(file)}
    assert len(file.read_text().splitlines()) == 15
    assert "no file" in sample.complaint("export", "--output", tmp_path, "--force")
    nowhere = tmp_path / "nowhere"
    assert f"There is no folder {nowhere}." in sample.complaint("export", "--output", nowhere / "x")


def test_records_are_edited_in_a_file(cli: Cli, tmp_path: Path) -> None:
    cli.run("remember", "Training for Berlin")
    cli.run("remember", "Drinks tea")
    file = tmp_path / "known.md"
    assert f"Exported 2 records to {file}." in cli.run("export", "--records", "-o", file).stderr
    file.write_text(file.read_text().replace("Berlin", "Porto").replace("tea", "milk"))
    shown = cli.text("import", "--dry-run", file)
    assert "nothing to import" not in shown
    assert "2 to replace:" in shown
    assert "- Training for Berlin\n    + Training for Porto" in shown
    assert {one["text"] for one in cli.json("records")["records"]} == {"Training for Berlin", "Drinks tea"}
    tea = next(one for one in cli.json("records")["records"] if "tea" in one["text"])
    cli.run("replace", tea["id"], "Drinks coffee")
    answer = cli.json("import", file, code=1)
    assert [one["action"] for one in answer["edits"]] == ["replace", "conflict"]
    shown = cli.text("import", file, code=1)
    assert "- Drinks coffee\n    + Drinks milk" in shown
    assert "changed here and in the file since the export" in shown
    assert cli.json("export", "--records", "-o", file, "--force")["records"] == 2
    assert "→ Leave out `dry_run`" in cli.complaint("import", "--dry-run", tmp_path)
    for words in (["--records", "--chat", "c"], ["--records", "--json"]):
        cli.complaint("export", *words)


def test_tables_by_a_mapping(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "talk.csv"
    file.write_text("text,who,mood\nhi,user,glad\nho,clown,sad\n")
    text = cli.text("import", file, "--map", "content=text,role=who", "--map", "meta=*", code=1)
    assert "Imported 1 new message of 1 chat (CSV)" in text
    assert f"1 × Unknown role 'clown'.\n      {file}:3" in text
    assert cli.json("import", file, "--map", "content=text,role=who", code=1)["present"] == 1
    assert cli.json("import", file, "--map", "text=text,category=mood")["records"] == 2
    for words in (["--map", "content"], ["--map", "content=text,content=who"], ["--map", "content=none"]):
        cli.complaint("import", file, *words)
    assert "Leave out --dry-run" in cli.complaint("import", file, "--map", "content=text", "--dry-run")
    assert "Unknown encoding" in cli.complaint("import", file, "--map", "content=text", "--encoding", "x")
