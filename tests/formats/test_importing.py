from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import Memory
from holdfast_cli.formats.importing import ImportProgress, import_paths
from tables import each
from transcripts import claude, take, write_json, write_lines


def talk(count: int, **more: object) -> list[Any]:
    return [{"role": "user", "content": f"message {n}", **more} for n in range(count)]


def test_an_import_says_what_it_did_on_every_database(memory: Memory, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [*talk(3), "broken", "broken too"])
    summary = {"type": "summary", "leafUuid": "u1"}
    write_lines(tmp_path / "s1.jsonl", [claude("user", "u1", None, "hello"), summary])
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
    again = import_paths(memory, [tmp_path / "a.jsonl", tmp_path])
    assert (again.sessions, again.added, again.present, again.unchanged) == (2, 0, 7, 3)
    assert [m.content for m in memory.chat("a").history()] == ["message 0", "message 1", "message 2"]
    # Of a file that grew the new is added; what was left out is told again of one that did not.
    write_lines(tmp_path / "a.jsonl", [*talk(4), "broken", "broken too"])
    for counts in ((1, 3, 0), (0, 4, 1)):
        report = import_paths(memory, tmp_path / "a.jsonl")
        assert (report.added, report.present, report.unchanged) == counts
        assert [one.lines for one in report.skipped] == [(5, 6)]


def test_messages_that_cannot_be_stored_do_not_hold_up_the_others(memory: Memory, tmp_path: Path) -> None:
    lines = talk(700)
    lines[300] = {"role": "user", "content": "x", "id": "i" * 600}
    for place, text in ((301, "first"), (302, "second"), (699, "third")):
        lines[place] = {"role": "user", "content": text, "id": "same"}
    report = import_paths(memory, write_lines(tmp_path / "a.jsonl", lines))
    assert report.added == 697
    assert {(s.reason, s.lines) for s in report.problems} == {
        ("An id or a name in a message has 600 bytes in UTF-8.", (301,)),
        ("another message is stored under its id", (303, 700)),
    }
    stored = [m.content for m in memory.chat("a").history()]
    before, after = ([f"message {n}" for n in places] for places in (range(300), range(303, 699)))
    assert stored == [*before, "first", *after]


def test_a_message_whose_payload_was_rewritten_is_the_same_message(quick: Memory, tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"role": "user", "content": f"{n}", "id": f"m{n}"} for n in range(600)]
    import_paths(quick, write_lines(tmp_path / "a.jsonl", lines))
    rewritten = [{**line, "model": "new"} for line in lines]
    rewritten[550]["content"] = "other words"
    rewritten += [{"role": "user", "content": text, "id": f"m{n}"} for text, n in (("new", 600), ("0", 0))]
    report = import_paths(quick, write_lines(tmp_path / "a.jsonl", rewritten))
    assert (report.added, report.present) == (1, 600)
    assert [(s.reason, s.lines) for s in report.problems] == [
        ("another message is stored under its id", (551,))
    ]
    assert [m.raw for m in quick.chat("a").history()][:600] == lines


def test_a_session_with_an_impossible_name_is_reported(tmp_path: Path) -> None:
    names: list[dict[str, object]] = [{"chat": "x" * 600}, {"chat": "\x07"}, {"chat": "a", "agent": "\n"}]
    write_lines(tmp_path / "good.jsonl", talk(1))
    write_lines(tmp_path / "bad.jsonl", [one for name in [*names, {}] for one in talk(1, **name)])
    taken = take(tmp_path)
    assert (taken.report.added, [line for line, _ in taken.left]) == (2, [1, 2, 3])


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_names_that_are_not_text_are_mended(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl"))
    path.write_text('{"role": "user", "content": "Hi"}')
    assert take(tmp_path).by_chat == {"caf\ufffd": ["Hi"]}


def test_progress_is_told_within_files(quick: Memory, tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", talk(1200, meta={"of": "x" * 2_000}))
    write_lines(tmp_path / "b.jsonl", talk(3))
    (tmp_path / "read.me").write_text("Nothing to import.")
    told: list[ImportProgress] = []
    report = import_paths(quick, tmp_path, told.append)
    found = dict.fromkeys((Path(one.path).name, one.file, one.files) for one in told)
    assert list(found) == [("a.json", 1, 2), ("b.jsonl", 2, 2)]
    assert [one.share for one in told] == sorted(one.share for one in told)
    # Also while the first is read.
    assert len({one.share for one in told if one.file == 1}) > 2
    assert (told[-1].share, told[-1].messages) == (1.0, report.formats.total())


FROGS: list[object] = [{"role": f"frog {n}", "content": "quak"} for n in range(50)]
NO_ROW = "recognised as JSONL, but no row can be read, the first since: "
QUAK = "Unknown role 'frog 0'."
NOTE = {"type": "summary", "summary": "A boat", "leafUuid": "u9"}


def test_a_report_stays_small(tmp_path: Path) -> None:
    lines = [{"role": f"frog {n}", "content": "quak"} for n in range(1_050)]
    skipped = take(write_lines(tmp_path / "a.jsonl", [*lines, *talk(1)])).report.skipped
    assert (len(skipped), sum(one.count for one in skipped)) == (1_001, 1_050)
    assert skipped[-1].reason == "for further reasons"


@each(
    ("rows", "told"),
    [
        (["", *FROGS], [(f"{NO_ROW}{QUAK}", 50, 2)]),
        (["", *FROGS[:1] * 50], [(f"{NO_ROW}{QUAK}", 50, 2)]),
        (FROGS[:1], [(f"{NO_ROW}{QUAK}", 1, 1)]),
        # Where rows were read, or left out for what they are, each is told of by its own reason.
        ([NOTE, "{"], [("not valid JSON", 1, 2)]),
        ([*talk(1), *FROGS[:2]], [(QUAK, 1, 2), ("Unknown role 'frog 1'.", 1, 3)]),
    ],
)
def test_a_file_that_is_recognised_and_gives_nothing_is_named_once(
    tmp_path: Path, rows: list[object], told: list[tuple[str, int, int]]
) -> None:
    problems = take(write_lines(tmp_path / "a.jsonl", rows)).report.problems
    assert [(one.reason, one.count, one.lines[0]) for one in problems] == told
    document = take(write_json(tmp_path / "a.json", {"messages": FROGS}, indent=1))
    assert document.left == [(1, f"{NO_ROW}{QUAK}".replace("JSONL", "JSON"))]


def test_a_message_without_a_time_has_that_of_the_one_before(tmp_path: Path) -> None:
    lines = [*talk(706, chat="a"), *talk(1, chat="b")]
    for place, day in ((600, 5), (703, 6)):
        lines[place] |= {"at": f"2024-03-0{day}T09:00:00Z"}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with Memory(":memory:", clock=lambda: now) as memory:
        import_paths(memory, write_lines(tmp_path / "talk.jsonl", lines))
        days = [one.at.day for one in memory.chat("a").history() if one.at]
        assert days == [5] * 703 + [6] * 3
        assert [one.at for one in memory.chat("b").history()] == [now]


# What is there already


def write(path: Path, *texts: str) -> Path:
    lines = [
        json.dumps({"role": "user", "content": text, "id": f"m{n}", "chat": "runs"})
        for n, text in enumerate(texts)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


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


def test_a_title_that_is_written_later_is_taken_where_none_was_given(quick: Memory, tmp_path: Path) -> None:
    lines = [claude("user", "u1", None, "hello"), claude("assistant", "a1", "u1", "Hi.")]
    summary = {"type": "summary", "summary": "A greeting", "leafUuid": "a1"}
    for rows, title in ((lines, "hello"), ([*lines, summary], "A greeting")):
        import_paths(quick, write_lines(tmp_path / "s1.jsonl", rows))
        assert [chat.title for chat in quick.chats()] == [title]
    quick.chat("s1").rename("Mine")
    import_paths(quick, write_lines(tmp_path / "s1.jsonl", [*lines, summary | {"summary": "Other"}]))
    assert [chat.title for chat in quick.chats()] == ["Mine"]
