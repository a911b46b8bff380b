from __future__ import annotations

import json
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast_cli.formats import import_report
from holdfast_cli.formats.importing import import_paths
from tables import each
from transcripts import claude, write_json, write_lines


def talk(count: int, **more: object) -> list[object]:
    return [{"role": "user", "content": f"message {n}", **more} for n in range(count)]


def test_an_import_says_what_it_did_on_every_database(memory: Memory, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [*talk(3), "broken", "broken too"])
    write_lines(
        tmp_path / "s1.jsonl", [claude("user", "u1", None, "hello"), {"type": "summary", "leafUuid": "u1"}]
    )
    write_json(tmp_path / "other.json", {"version": 1})
    report = import_paths(memory, tmp_path)
    assert (report.sessions, report.added, report.present) == (2, 4, 0)
    assert report.formats == {"JSONL": 3, "Claude Code": 1}
    assert report.seconds > 0
    assert [(Path(s.path).name, s.reason, s.count, s.lines, s.problem) for s in report.skipped] == [
        ("a.jsonl", "not valid JSON", 2, (4, 5), True),
        ("other.json", "in no format that is known here", 1, (0,), False),
        ("s1.jsonl", "not conversation: summary", 1, (2,), False),
    ]
    assert [s.lines[0] for s in report.problems] == [4]

    again = import_paths(memory, [tmp_path / "a.jsonl", tmp_path])
    assert (again.sessions, again.added, again.present) == (2, 0, 7)
    assert [m.content for m in memory.chat("a").history()] == ["message 0", "message 1", "message 2"]


def test_messages_that_cannot_be_stored_do_not_hold_up_the_others(memory: Memory, tmp_path: Path) -> None:
    lines = talk(700)
    lines[300] = {"role": "user", "content": "x", "id": "i" * 600}
    lines[301] = {"role": "user", "content": "first", "id": "same"}
    lines[302] = {"role": "user", "content": "second", "id": "same"}
    lines[699] = {"role": "user", "content": "third", "id": "same"}
    report = import_paths(memory, write_lines(tmp_path / "a.jsonl", lines))
    assert report.added == 697
    assert {(s.reason, s.lines) for s in report.problems} == {
        ("An id or a name in a message has 600 bytes in UTF-8.", (301,)),
        ("another message is stored under its id", (303, 700)),
    }
    stored = [m.content for m in memory.chat("a").history()]
    assert stored == [f"message {n}" for n in range(300)] + ["first"] + [
        f"message {n}" for n in range(303, 699)
    ]


def test_a_message_whose_payload_was_rewritten_is_the_same_message(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"role": "user", "content": f"{n}", "id": f"m{n}"} for n in range(600)]
    with Memory(":memory:") as memory:
        import_paths(memory, write_lines(tmp_path / "a.jsonl", lines))
        rewritten = [{**line, "model": "new"} for line in lines]
        rewritten[550]["content"] = "other words"
        rewritten += [
            {"role": "user", "content": "new", "id": "m600"},
            {"role": "user", "content": "0", "id": "m0"},
        ]
        report = import_paths(memory, write_lines(tmp_path / "a.jsonl", rewritten))
        assert (report.added, report.present) == (1, 600)
        assert [(s.reason, s.lines) for s in report.problems] == [
            ("another message is stored under its id", (551,))
        ]
        assert [m.raw for m in memory.chat("a").history()][:600] == lines


def test_a_session_with_an_impossible_name_is_reported(tmp_path: Path) -> None:
    lines = [
        {"chat": "x" * 600, "role": "user", "content": "1"},
        {"chat": "\x07", "role": "user", "content": "2"},
    ]
    write_lines(tmp_path / "good.jsonl", talk(1))
    lines.append({"chat": "a", "agent": "\n", "role": "user", "content": "3"})
    write_lines(tmp_path / "bad.jsonl", [*lines, *talk(1)])
    with Memory(":memory:") as memory:
        report = import_paths(memory, tmp_path)
        assert report.added == 2
        assert sorted(s.lines[0] for s in report.problems) == [1, 2, 3]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_names_that_are_not_text_are_mended(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl"))
    path.write_text('{"role": "user", "content": "Hi"}')
    with Memory(":memory:") as memory:
        report = import_paths(memory, tmp_path)
        assert report.added == 1
        (chat,) = memory.chats()
        assert chat.id == "caf\ufffd"


def test_progress_is_told(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", talk(1200))
    write_lines(tmp_path / "b.jsonl", talk(3))
    told: list[tuple[str, int]] = []
    with Memory(":memory:") as memory:
        import_paths(memory, tmp_path, lambda path, count: told.append((Path(path).name, count)))
    assert told == [("a.jsonl", 500), ("a.jsonl", 1000), ("a.jsonl", 1200), ("b.jsonl", 1203)]


def test_a_report_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_report, "_REASONS", 10)
    lines = [{"role": f"frog {n}", "content": "quak"} for n in range(50)]
    with Memory(":memory:") as memory:
        report = import_paths(memory, write_lines(tmp_path / "a.jsonl", [*lines, *talk(1)]))
    assert len(report.skipped) == 11
    assert sum(s.count for s in report.skipped) == 50
    assert report.skipped[-1].reason == "for further reasons"


def test_a_file_that_is_recognised_and_gives_nothing_is_named_once(tmp_path: Path) -> None:
    lines = [{"role": f"frog {n}", "content": "quak"} for n in range(50)]
    path = write_json(tmp_path / "a.json", {"messages": lines}, indent=1)
    with Memory(":memory:") as memory:
        for file, format in ((path, "JSON"), (write_lines(tmp_path / "b.jsonl", ["", *lines]), "JSONL")):
            (problem,) = import_paths(memory, file).problems
            row = 1 if format == "JSON" else 2
            assert (problem.count, problem.lines) == (50, (row,))
            reason = (
                f"recognised as {format}, but no row can be read, the first since: Unknown role 'frog 0'."
            )
            assert problem.reason == reason
        # One reason for all rows is told in the same way, but not where rows were read and left out.
        note = {"type": "summary", "summary": "A boat", "leafUuid": "u9"}
        for rows, number, line in ((["", *lines[:1] * 50], 50, 2), (lines[:1], 1, 1), ([note, "{"], 1, 2)):
            (problem,) = import_paths(memory, write_lines(tmp_path / "c.jsonl", rows)).problems
            assert problem.reason.startswith("recognised as JSONL, but no row can be read") == (
                rows[0] != note
            )
            assert (problem.count, problem.lines[0]) == (number, line)
        # Where something can be read, each row is told of by its own reason.
        write_json(path, {"messages": [*talk(1), *lines[:2]]}, indent=1)
        assert [(one.lines, one.count) for one in import_paths(memory, path).problems] == [
            ((2,), 1),
            ((3,), 1),
        ]


def test_an_agent_of_the_memory_gets_what_names_none(tmp_path: Path) -> None:
    with Memory(":memory:", agent="coach") as memory:
        import_paths(memory, str(write_lines(tmp_path / "a.jsonl", talk(1))))
        assert [chat.agent for chat in memory.chats()] == ["coach"]


def test_a_message_without_a_time_has_that_of_the_one_before(tmp_path: Path) -> None:
    lines = [
        {"role": "user", "content": "one", "chat": "a"},
        {"role": "user", "content": "two", "chat": "b"},
        {"role": "user", "content": "three", "chat": "a"},
        {"role": "user", "content": "four", "chat": "a", "at": "2024-03-05T09:00:00Z"},
        {"role": "user", "content": "five", "chat": "a"},
        {"role": "user", "content": "six", "chat": "a", "at": "2024-03-06T09:00:00Z"},
        {"role": "user", "content": "seven", "chat": "a"},
    ]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with Memory(":memory:", clock=lambda: now) as memory:
        import_paths(memory, write_lines(tmp_path / "talk.jsonl", lines))
        days = [(one.at.month, one.at.day) for one in memory.chat("a").history() if one.at]
        assert days == [(3, 5), (3, 5), (3, 5), (3, 5), (3, 6), (3, 6)]
        assert [one.at for one in memory.chat("b").history()] == [now]


def test_messages_without_times_are_dated_across_batches(tmp_path: Path) -> None:
    lines: list[object] = [{"role": "user", "content": f"message {n}"} for n in range(1200)]
    lines[700] = {"role": "user", "content": "dated", "at": "2024-03-05T09:00:00Z"}
    with Memory(":memory:") as memory:
        import_paths(memory, write_lines(tmp_path / "talk.jsonl", lines))
        times = {one.at for one in memory.chat("talk").history()}
    assert times == {datetime(2024, 3, 5, 9, tzinfo=UTC)}


# What is there already


def write(path: Path, *texts: str) -> Path:
    lines = [
        json.dumps({"role": "user", "content": text, "id": f"m{n}", "chat": "runs"})
        for n, text in enumerate(texts)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_file_that_is_as_it_was_is_not_read_again(memory: Memory, tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", "A run on Monday", "A run on Tuesday")
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write("no json\n" * 20)
    first = import_paths(memory, tmp_path)
    again = import_paths(memory, tmp_path)
    assert (first.added, first.present, first.unchanged) == (2, 0, 0)
    assert (again.added, again.present, again.unchanged) == (0, 2, 1)
    assert (again.sessions, again.formats, again.skipped) == (first.sessions, first.formats, first.skipped)
    assert len(memory.chat("runs").history()) == 2


def test_of_a_file_that_grew_the_new_is_added(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", "A run on Monday")
    import_paths(memory, path)
    report = import_paths(memory, write(path, "A run on Monday", "A run on Tuesday"))
    assert (report.added, report.present, report.unchanged) == (1, 1, 0)
    assert import_paths(memory, path).unchanged == 1
    assert [one.content for one in memory.chat("runs").history()] == ["A run on Monday", "A run on Tuesday"]


def test_what_was_erased_may_be_imported_again(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", "A run on Monday", "A run on Tuesday")
    import_paths(memory, path)
    memory.erase(chat="runs")
    assert import_paths(memory, path).added == 2
    memory.erase(user="ada")
    assert import_paths(memory, path).added == 2
    memory.erase(chat="runs", messages=1)
    report = import_paths(memory, path)
    assert (report.added, report.present, report.unchanged) == (1, 1, 0)


def test_a_file_is_read_for_each_user_and_agent(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", "A run on Monday")
    import_paths(memory, path)
    assert import_paths(memory.scoped(user="bob"), path).added == 1
    assert import_paths(memory.scoped(agent="coach"), path).unchanged == 0
    copy = write(tmp_path / "other.jsonl", "A run on Monday")
    assert import_paths(memory, copy).unchanged == 0


def test_what_is_no_json_is_counted_by_its_ending(quick: Memory, tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", "A run on Monday")
    for name in ("a.txt", "b.TXT", "c.md", "Makefile"):
        (tmp_path / name).write_text("hello")
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
        archive.writestr("images/cat.png", b"")
        archive.writestr("log.jsonl", (tmp_path / "log.jsonl").read_bytes())
    assert import_paths(quick, tmp_path).ignored == {".txt": 2, ".md": 1, "": 1, ".png": 1}


def test_two_imports_at_once_count_what_each_of_them_stored(shared_location: str, tmp_path: Path) -> None:
    lines = [{"role": "user", "content": f"{n}", "id": str(n), "chat": "c"} for n in range(7)]
    path = write_lines(tmp_path / "talk.jsonl", lines)
    others: list[int] = []

    def count(text: str) -> int:
        # Called between the look at what is stored and the append.
        if not others:
            others.append(0)
            with Memory(shared_location, user="ada") as other:
                others[0] = import_paths(other, path).added
        return len(text)

    with Memory(shared_location, user="ada", count_tokens=count) as memory:
        report = import_paths(memory, path)
        assert len(memory.chat("c").history()) == 7
    assert (others, report.added, report.present, report.sessions) == ([7], 0, 7, 1)


def said_in(form: str, number: int) -> str:
    """Write the n-th message of a chat as a format has it, and what stands before the first one."""
    words, second = f"Message {number} about the boat trip.", f"2026-01-06T09:15:{number:02}Z"
    speaker = ("User", "Agent")[number % 2]
    if form == "Goose":
        head = {"working_dir": "/w", "description": "Boats", "message_count": 1}
        role = ("user", "assistant")[number % 2]
        row = {"role": role, "created": 1_780_000_000 + number, "content": [{"type": "text", "text": words}]}
        return "".join(f"{json.dumps(one)}\n" for one in ([head, row] if number == 0 else [row]))
    if form == "SpecStory":
        start = "" if number else "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n"
        return f"{start}_**{speaker} ({second})**_\n\n{words}\n\n---\n\n"
    start = "" if number else "# Boats\n_Exported on 6/16/2025 at 12:55:28 GMT+3 from Cursor (1.0.0)_\n\n"
    return f"{start}---\n\n**{speaker.replace('Agent', 'Cursor')}**\n\n{words}\n\n"


@each("form", ["Goose", "SpecStory", "Cursor"])
def test_a_chat_called_after_its_file_goes_on_under_another_name(tmp_path: Path, form: str) -> None:
    ending = ".jsonl" if form == "Goose" else ".md"
    with Memory(":memory:") as memory:
        for name, count in (("june", 4), ("july", 6), ("august", 6)):
            path = tmp_path / f"{name}{ending}"
            path.write_text("".join(said_in(form, number) for number in range(count)))
            report = import_paths(memory, path)
            assert report.formats == {form: count}
        assert [(chat.id, chat.messages) for chat in memory.chats()] == [("june", 6)]


def test_a_title_that_is_written_later_is_taken_where_none_was_given(tmp_path: Path) -> None:
    lines = [claude("user", "u1", None, "hello"), claude("assistant", "a1", "u1", "Hi.")]
    summary = {"type": "summary", "summary": "A greeting", "leafUuid": "a1"}
    with Memory(":memory:") as memory:
        for rows, title in ((lines, "hello"), ([*lines, summary], "A greeting")):
            import_paths(memory, write_lines(tmp_path / "s1.jsonl", rows))
            assert [chat.title for chat in memory.chats()] == [title]
        memory.chat("s1").rename("Mine")
        import_paths(memory, write_lines(tmp_path / "s1.jsonl", [*lines, summary | {"summary": "Other"}]))
        assert [chat.title for chat in memory.chats()] == ["Mine"]
