from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from tables import each
from transcripts import Json, result, take, write_json, write_lines

TALK: list[object] = [
    {"role": "user", "content": "Hi", "timestamp": "2026-07-06T21:57:38Z"},
    {"role": "assistant", "content": "Hello", "model": "m"},
    {"role": "user", "content": "Hi"},
]


def test_a_line_can_hold_a_session_or_name_its_own(tmp_path: Path) -> None:
    lines = [
        {"id": "one", "title": "First", "messages": TALK},
        {"session_id": "two", "messages": TALK[:1]},
        {"conversation_id": "three", "messages": TALK[:1]},
        {"messages": TALK[:1]},
        {"id": 5, "messages": [{"role": "user"}, "text", {"role": "user", "content": "ok"}]},
        {"session_id": "two", "role": "user", "content": "1"},
        {"chat": "b", "role": "user", "content": "2", "title": "B", "agent": "coach"},
        {"role": "user", "content": "3"},
    ]
    taken = take(write_lines(tmp_path / "many.jsonl", lines))
    assert taken.by_chat == {
        "one": ["Hi", "Hello", "Hi"],
        "two": ["Hi", "1"],
        "three": ["Hi"],
        "many:4": ["Hi"],
        "many:5": ["ok"],
        "b": ["2"],
        "many": ["3"],
    }
    assert {(taken.chats[chat].title, taken.chats[chat].agent) for chat in ("one", "b")} == {
        ("First", ""),
        ("B", "coach"),
    }
    assert taken.left == [
        (5, "A message must be a Message or a dict, not str."),
        (5, "The message is empty."),
    ]


@each("indent", [None, 2])
def test_json_files_hold_messages_or_a_session_or_sessions(tmp_path: Path, indent: int | None) -> None:
    for value, names in (
        (TALK, ["x"]),
        ({"messages": TALK}, ["x"]),
        ({"id": "n", "messages": TALK}, ["n"]),
        ([{"messages": TALK}, {"id": "s", "messages": TALK}], ["x:1", "s"]),
    ):
        assert list(take(write_json(tmp_path / "x.json", value, indent)).chats) == names
    # One session in JSONL is named as it will be among many.
    assert take(write_lines(tmp_path / "t.jsonl", [{"messages": TALK}])).chats.keys() == {"t:1"}


def test_bad_lines_are_reported_with_their_numbers(tmp_path: Path) -> None:
    digits = b"1" + b"0" * 5000  # more than Python makes a number of
    lines = [
        b'\xef\xbb\xbf{"role": "user", "content": "1"}',
        b'{"role": "user", "content": "\xff\xfe"}',
        b"",
        b'{"role": "user", "content": "cut',
        b"[]",
        b'{"version": 3}',
        b'{"role": "user", "content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"role": "user", "content": ' + digits + b"}",
        b'{"role": "user", "content": "2"}\r',
        b'{"role": "user", "content": "3"',
    ]
    (tmp_path / "talk.jsonl").write_bytes(b"\n".join(lines))
    taken = take(tmp_path / "talk.jsonl")
    assert taken.contents == ["1", digits.decode(), "2"]
    assert taken.left == [
        (2, "not valid UTF-8"),
        (4, "not valid JSON"),
        (5, "not a JSON object"),
        (6, "neither a message nor a session"),
        (7, "nested too deeply"),
        (10, "not valid JSON"),
    ]


def test_nesting_that_json_bears_and_messages_do_not(tmp_path: Path) -> None:
    inner: object = "x"
    for _ in range(320):
        inner = [{"type": "tool_result", "tool_use_id": "t", "content": inner}]
    report = take(write_lines(tmp_path / "deep.jsonl", [{"role": "user", "content": inner}, *TALK])).report
    assert report.added + sum(skipped.count for skipped in report.problems) == 4
    assert report.added >= 3


def trip(first: int, last: int, place: str = "lake") -> list[Json]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": f"Message {n} about the {place}"} for n in range(first, last)]


def said(memory: Memory) -> dict[str, list[str]]:
    return {one.id: [m.content for m in memory.chat(one.id).history()] for one in memory.chats(limit=None)}


HI: list[Json] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]


@pytest.mark.slow
@each(
    ("first", "second", "kept"),
    [
        (trip(0, 6), trip(0, 10), [10]),  # grown
        (trip(0, 6), trip(0, 6), [6]),  # renamed
        (trip(0, 10), trip(0, 6), [10]),  # an older export, later
        (trip(0, 600), trip(0, 700), [700]),
        (HI, HI + trip(0, 4), [2, 6]),  # it may be another conversation
        (HI, HI, [2, 2]),
        (trip(0, 4) + trip(0, 4, "sea"), trip(0, 4) + trip(0, 4, "shore"), [8, 8]),
        (trip(0, 4, "sea"), trip(0, 4, "shore"), [4, 4]),
    ],
)
def test_an_export_that_grew_or_was_renamed_is_the_same_chat(
    tmp_path: Path, first: list[Json], second: list[Json], kept: list[int]
) -> None:
    for make in (write_lines, write_json):
        with Memory(":memory:") as memory:
            for name, lines in (("june", first), ("july", second)):
                import_paths(memory, make(tmp_path / f"{name}.jsonl", lines))
            chats = said(memory)
            assert sorted(map(len, chats.values())) == kept
            assert set(chats) == ({"june", "july"} if len(kept) > 1 else {"june"})


def test_chats_of_a_renamed_export_are_known_line_by_line(quick: Memory, tmp_path: Path) -> None:
    system = {"role": "system", "content": "You are brief."}
    chats = [{"messages": [system, *trip(0, 4, f"lake {n}")]} for n in range(60)]
    grown = {"messages": [*chats[2]["messages"], *trip(4, 6, "lake 2")]}
    again = [*reversed(chats[3:]), grown, *chats[:2], {"messages": [system, *trip(0, 4, "sea")]}, chats[7]]
    import_paths(quick, write_lines(tmp_path / "june.jsonl", chats))
    report = import_paths(quick, write_lines(tmp_path / "july.jsonl", again))
    # Of one file, two chats that are alike are two.
    assert (report.added, report.present) == (2 + 5 + 5, 60 * 5)
    assert len(said(quick)) == 62
    assert quick.verify().ok


CALL: Json = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "z1", "function": {"name": "check"}}],
}
OTHER: Json = CALL | {"tool_calls": [{"id": "z2", "function": {"name": "look"}}]}
ANSWER = {"role": "tool", "tool_call_id": "z1", "content": "fine"}
LOST = {"role": "tool", "tool_call_id": "nope", "content": "orphan"}
ASKED, SAID = {"role": "user", "content": "How is the harbour?"}, {"role": "assistant", "content": "Fine."}
TWO = CALL | {"tool_calls": [*OTHER["tool_calls"], *CALL["tool_calls"]]}
BOTH = {"role": "user", "content": [*result("z1"), *result("z2")]}
NO_CALL = "a result whose call is neither in the file nor stored: kept as one of no call"


@each(
    ("lines", "order"),
    [
        ([ASKED, ANSWER, CALL, SAID], [0, 2, 1, 3]),
        ([ASKED, ANSWER, SAID, OTHER, CALL, SAID], [0, 2, 3, 4, 1, 5]),
        ([ANSWER, LOST, ASKED, CALL], [1, 2, 3, 0]),
        ([ASKED, CALL, ANSWER, CALL, ANSWER, SAID], [0, 1, 2, 3, 4, 5]),
        ([ANSWER, CALL, ANSWER, CALL], [1, 0, 2, 3]),
        ([ANSWER, CALL, ASKED, CALL, SAID], [1, 0, 2, 3, 4]),
        ([BOTH, ANSWER, TWO, SAID], [2, 0, 1, 3]),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_a_call_comes_before_its_result(
    tmp_path: Path, whole: bool, lines: list[Json], order: list[int]
) -> None:
    def written(messages: list[Json]) -> Path:
        return write_lines(tmp_path / "x.jsonl", [{"id": "x", "messages": messages}] if whole else messages)

    with Memory(":memory:") as memory:
        report = import_paths(memory, written(lines))
        assert [one.reason for one in report.skipped] == [NO_CALL] * (LOST in lines)
        found = memory.chat("x").history()
        assert [one.raw for one in found] == [lines[place] for place in order]
        results = [one.answers for one in found if one.raw == ANSWER]
        assert results == [("z1",)] * lines.count(ANSWER)
        assert memory.verify().ok
        assert "fine" in str(memory.chat("x").prompt(8000).messages)
        assert import_paths(memory, written([*lines, ASKED])).added == 1


def test_a_result_stored_before_its_call_came_is_one_of_no_call(quick: Memory, tmp_path: Path) -> None:
    path, row = tmp_path / "talk.jsonl", {**LOST, "chat": "talk", "id": "r", "raw": None}
    for lines in (
        [row],
        [OTHER | {"chat": "talk", "tool_calls": [{"id": "nope", "function": {"name": "x"}}]}, row],
    ):
        report = import_paths(quick, write_lines(path, lines))
        assert (report.added, [one.reason for one in report.skipped]) == (1, [NO_CALL] * (len(lines) == 1))
    (said, _) = quick.chat("talk").history()
    assert (said.content, said.call_id, said.answers) == ("orphan", None, ())
    assert quick.verify().ok
