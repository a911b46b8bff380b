"""Chats of Gemini CLI: recorded by the program, and what it writes in other cases."""

from __future__ import annotations

from pathlib import Path

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.private_tags import PRIVATE
from tables import each
from transcripts import Json, gemini, take, write_json, write_lines

RECORDED = Path(__file__).parents[1] / "data" / "imported" / "gemini-0.61.0.jsonl"
SESSION = "ee302b2c-e50c-4b61-a325-ef00c13e40e1"


def chat(**more: object) -> Json:
    return {"sessionId": "s1", "projectHash": "none", "startTime": "2026-01-06T09:15:59.901Z", **more}


def test_a_recorded_chat_is_read_whole_and_once_however_it_grows(quick: Memory, tmp_path: Path) -> None:
    lines = RECORDED.read_text("utf-8").splitlines(keepends=True)
    path, added = tmp_path / "session.jsonl", 0
    for end in range(1, len(lines) + 1):
        path.write_text("".join(lines[:end]), encoding="utf-8")
        report = import_paths(quick, path)
        added += report.added
        assert report.problems == ()
    found = quick.chat(SESSION).history()
    assert added == 11
    assert [(one.role, one.content.partition("\n")[0]) for one in found] == [
        ("user", "What files are here?"),
        ("assistant", "I look."),
        ("assistant", ""),
        ("tool", "Directory listing for /home/ada/shop:"),
        ("assistant", "There is one file, plan.txt."),
        ("user", "Write a note"),
        ("assistant", ""),
        ("tool", found[7].content.partition("\n")[0]),
        ("assistant", "There is one file, plan.txt."),
        ("user", f"Where does the office move? {PRIVATE} @plan.txt"),
        ("assistant", "We decided that the office moves to Porto in May."),
    ]
    call = found[6].calls[0]
    arguments = {"file_path": "note.txt", "content": "The office is in Porto."}
    assert (call.name, call.arguments) == ("write_file", arguments)
    assert found[7].call_id == call.id
    assert "secret 1234" not in repr([message.raw for message in found])
    whole = take(RECORDED)
    assert whole.contents == [one.content for one in found]
    assert {reason for _, reason in whole.left} == {
        "not conversation: a note on the session",
        "written again, longer, on a line that follows",
        "a call or result of a tool, which stands with the call",
    }


@each("indent", [None, 2])
def test_documents_of_before_2026_are_read(tmp_path: Path, indent: int | None) -> None:
    value = chat(messages=[gemini("a", "user", "one"), gemini("b", "gemini", "1", calls=1)])
    taken = take(write_json(tmp_path / "session.json", value, indent))
    assert taken.contents == ["one", "1", "", "plan.txt"]


def test_a_sub_agent_is_a_chat_of_its_own(tmp_path: Path) -> None:
    lines = [chat(kind="subagent"), gemini("a", "user", "look")]
    taken = take(write_lines(tmp_path / "chats" / "s0" / "s1.jsonl", lines))
    assert taken.by_chat == {"s0/agent-s1": ["look"]}


CONTEXT = "<session_context>\nThis is the Gemini CLI.\n<a>b</a>\n</session_context>"
ADDED = "<hook_context>&lt;known&gt;\nThe office is in Porto.\n&lt;/known&gt;</hook_context>"


def with_parts(identity: str, kind: str, *parts: Json | str) -> Json:
    return gemini(identity, kind, "") | {
        "content": [{"text": one} if isinstance(one, str) else one for one in parts]
    }


def asked(call: str, name: str = "ls") -> Json:
    return {"functionCall": {"id": call, "name": name, "args": {"path": "."}}}


def answered(call: str, output: str, name: str = "ls") -> Json:
    return {"functionResponse": {"id": call, "name": name, "response": {"output": output}}}


def image(data: str) -> Json:
    return {"inlineData": {"mimeType": "image/png", "data": data}}


def called(identity: str) -> Json:
    return gemini(identity, "gemini", "", calls=1) | {"content": ""}


def history(*records: Json) -> Json:
    return {"$set": {"messages": list(records)}}


@each(
    ("lines", "expected"),
    [
        # The user goes back behind messages, and by what is not there behind all.
        ([gemini("a", "user", "one"), gemini("b", "gemini", "1"), gemini("c", "user", "two"),
          {"$rewindTo": "c"}, gemini("d", "user", "three"), {"$rewindTo": "gone"},
          gemini("e", "user", "four")],
         ["four"]),
        # Thoughts and media are told by placeholders, and notes of the program by nothing.
        ([gemini("a", "gemini", "") | {"content": "", "thoughts": [{"subject": "s"}]},
          with_parts("b", "user", "look", image("AA")), gemini("c", "info", "hi")],
         ["[reasoning]", "look\n[file: image/png]"]),
        # What hooks add is in the prompt without a terminal, and else in a part of its own.
        ([gemini("a", "user", f"{ADDED}\n\nWhere?"), with_parts("b", "user", "And <hook_context>?", ADDED),
          with_parts("c", "user", ADDED)],
         ["Where?", "And <hook_context>?"]),
        # A program hands a history over, and the chat goes on.
        ([history(gemini("a", "user", "one"), gemini("b", "gemini", "1", calls=1)),
          gemini("c", "user", "two")],
         ["one", "1", "", "plan.txt", "two"]),
        # A compaction repeats the end under other ids; what was said twice before it is twice in it.
        ([gemini("a", "user", "go on"), gemini("b", "gemini", "1"), gemini("c", "user", "go on"),
          history(gemini("x", "user", CONTEXT), gemini("y", "user", "<state_snapshot>s</state_snapshot>"),
                  gemini("z", "gemini", "Got it."), gemini("d", "user", "go on"),
                  gemini("e", "user", "go on")),
          gemini("f", "gemini", "Got it.")],
         ["go on", "1", "go on", "Got it."]),
        ([gemini("a", "user", "go on"), history(gemini("d", "user", "go on"), gemini("e", "user", "go on"))],
         ["go on", "go on"]),
        ([called("a"), history(called("x")), history(called("a"), gemini("y", "user", "one"))],
         ["", "plan.txt", "", "plan.txt", "one"]),
        # The user goes back behind what a compaction repeated, and behind what a history brought.
        ([gemini("a", "user", "one"), gemini("b", "user", "two"), history(gemini("d", "user", "two")),
          {"$rewindTo": "d"}, gemini("e", "user", "three")],
         ["one", "three"]),
        ([history(gemini("a", "user", "one"), gemini("b", "user", "two")), {"$rewindTo": "b"}],
         ["one"]),
        ([gemini("a", "user", f"{CONTEXT}\n\none"), gemini("b", "user", CONTEXT)], ["one"]),
        # A result whose call is gone is kept.
        ([with_parts(f"u{n}", "user", answered("", n)) for n in "12"], ["1", "2"]),
    ],
)  # fmt: skip
def test_the_lines_of_a_chat_are_what_was_said_once(
    tmp_path: Path, lines: list[Json], expected: list[str]
) -> None:
    path = write_lines(tmp_path / "chat.jsonl", [chat(), *lines])
    assert take(path).contents == expected
    with Memory(":memory:") as memory:
        assert import_paths(memory, path).added == len(expected)
        # Another line that says nothing has the file read again.
        write_lines(path, [chat(), *lines, gemini("i", "info", "hi")])
        assert import_paths(memory, path).added == 0


LOOK = [
    with_parts("b", "gemini", {"text": "I look."}, asked("c1"), asked("c2", "cat")),
    with_parts("c", "user", answered("c1", "plan.txt"), answered("c2", "", "cat"), image("AA")),
]
LOOKED = [("assistant", "I look."), ("assistant", "ls"), ("assistant", "cat"), ("user", "[file: image/png]")]
LOOKED += [("tool", "plan.txt"), ("tool", '{"output": ""}')]


@each(
    ("lines", "expected"),
    [
        ([history(*LOOK)], LOOKED),
        (LOOK, LOOKED),
        # A compaction repeats all of it under other ids, and a new image.
        (
            [*LOOK, history(*(one | {"id": f"x{one['id']}"} for one in LOOK),
                            with_parts("d", "user", image("BB")))],
            [*LOOKED, ("user", "[file: image/png]")],
        ),
        # Without ids, results follow their calls.
        (
            [history(*(with_parts(f"{kind}{text}", kind, part) for text in "12"
                       for kind, part in (("gemini", asked("")), ("user", answered("", text)))))],
            [("assistant", "ls"), ("tool", "1"), ("assistant", "ls"), ("tool", "2")],
        ),
    ],
)  # fmt: skip
def test_calls_results_and_files_in_parts_are_read_once(
    tmp_path: Path, lines: list[Json], expected: list[tuple[str, str]]
) -> None:
    found = [one for _, one in take(write_lines(tmp_path / "chat.jsonl", [chat(), *lines])).messages]
    assert [(one.role, one.calls[0].name if one.calls else one.content) for one in found] == expected
    calls = [call.id for one in found for call in one.calls]
    assert [one.call_id for one in found if one.role == "tool"] == calls


def event(kind: str, **more: object) -> Json:
    return {"type": kind, "timestamp": "2026-01-30T06:18:17.750Z", **more}


def test_the_pieces_of_a_stream_are_one_message(tmp_path: Path) -> None:
    pieces = [event("message", role="assistant", content=piece, delta=True) for piece in ("I ", "look.")]
    lines = [
        event("init", session_id="s7", model="gemini-3-pro"),
        event("message", role="user", content="What files?"),
        *pieces,
        event("tool_use", tool_name="ls", tool_id="t1", parameters={"path": "."}),
        event("tool_result", tool_id="t1", status="error", error={"type": "x", "message": "denied"}),
        *pieces,
        event("message", role="user", content="And now?"),
        *pieces,
        event("error", severity="warning", message="loop"),
        event("result", status="success", stats={}),
    ]
    taken = take(write_lines(tmp_path / "run.jsonl", lines))
    said = ["What files?", "I look.", "", "denied", "I look.", "And now?", "I look."]
    assert taken.by_chat == {"s7": said}
    reasons = [f"not conversation: {one}" for one in ("init", "error", "result")]
    assert [reason for _, reason in taken.left] == reasons
