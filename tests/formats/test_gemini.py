"""Chats of Gemini CLI: recorded by the program, and what it writes in other cases."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from holdfast import Memory
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.private_tags import PRIVATE
from tables import each
from transcripts import Json, contents, gemini, gemini_call, messages, read, skips, write_json, write_lines

RECORDED = Path(__file__).parents[1] / "data" / "imported" / "gemini-0.61.0.jsonl"
SESSION = "ee302b2c-e50c-4b61-a325-ef00c13e40e1"


def chat(**more: object) -> Json:
    return {"sessionId": "s1", "projectHash": "none", "startTime": "2026-01-06T09:15:59.901Z", **more}


def test_a_recorded_chat_is_read_whole() -> None:
    items = read(RECORDED)
    found = [item for item in items if isinstance(item, ImportedMessage)]
    assert {item.chat.id for item in found} == {SESSION}
    assert [(item.message.role, item.message.content.partition("\n")[0]) for item in found] == [
        ("user", "What files are here?"),
        ("assistant", "I look."),
        ("assistant", ""),
        ("tool", "Directory listing for /home/ada/shop:"),
        ("assistant", "There is one file, plan.txt."),
        ("user", "Write a note"),
        ("assistant", ""),
        ("tool", found[7].message.content.partition("\n")[0]),
        ("assistant", "There is one file, plan.txt."),
        ("user", "Where does the office move? <private>secret 1234</private> @plan.txt"),
        ("assistant", "We decided that the office moves to Porto in May."),
    ]
    call = found[6].message.calls[0]
    assert (call.name, call.arguments) == (
        "write_file",
        {"file_path": "note.txt", "content": "The office is in Porto."},
    )
    assert found[7].message.call_id == call.id
    assert {reason for _, reason in skips(items)} == {
        "not conversation: a note on the session",
        "written again, longer, on a line that follows",
        "a call or result of a tool, which stands with the call",
    }


def test_a_chat_is_imported_once_however_it_grows(tmp_path: Path) -> None:
    lines = RECORDED.read_text("utf-8").splitlines(keepends=True)
    path = tmp_path / "session.jsonl"
    added = 0
    with Memory(":memory:") as memory, Memory(":memory:") as whole:
        for end in range(1, len(lines) + 1):
            path.write_text("".join(lines[:end]), encoding="utf-8")
            report = import_paths(memory, path)
            added += report.added
            assert report.problems == ()
        assert import_paths(whole, RECORDED).added == added == 11
        history = memory.chat(SESSION).history()
        assert [message.content for message in history] == [
            message.content for message in whole.chat(SESSION).history()
        ]
        assert PRIVATE in history[-2].content
        assert "secret 1234" not in repr([message.raw for message in history])


def test_what_the_user_went_back_behind_is_left_out(tmp_path: Path) -> None:
    lines = [
        *(chat(), gemini("a", "user", "one"), gemini("b", "gemini", "1"), gemini("c", "user", "two")),
        *(
            {"$rewindTo": "c"},
            gemini("d", "user", "three"),
            {"$rewindTo": "gone"},
            gemini("e", "user", "four"),
        ),
        *({"$rewindTo": "a"}, gemini("a", "user", "five")),
    ]
    items = read(write_lines(tmp_path / "session.jsonl", lines))
    assert contents(items) == ["five"]
    left = [line for line, reason in skips(items) if reason.startswith("on a branch that was left")]
    assert left == [2, 3, 4, 6, 8]


def test_a_call_stands_apart_from_its_message_and_its_result(tmp_path: Path) -> None:
    record = gemini("a", "gemini", "I look.", calls=1)
    record["toolCalls"] += [{"name": "ls", "args": {"path": "/"}}, {**gemini_call("x"), "result": None}]
    items = read(write_lines(tmp_path / "session.jsonl", [chat(), gemini("a", "gemini", "I look."), record]))
    found = [item.message for item in items if isinstance(item, ImportedMessage)]
    assert [(message.id, message.role) for message in found] == [
        ("a", "assistant"),
        ("a-0", "assistant"),
        ("a-0/result", "tool"),
        ("a/2", "assistant"),
        ("x", "assistant"),
    ]
    assert all("result" not in (message.raw or {}) for message in found if message.role != "tool")


def test_thoughts_and_media_are_told_by_placeholders(tmp_path: Path) -> None:
    thought: Json = gemini("a", "gemini", "x") | {"content": "", "thoughts": [{"subject": "s"}]}
    media: Json = gemini("b", "user", "x") | {"content": ["look", {"inlineData": {"mimeType": "image/png"}}]}
    items = read(write_lines(tmp_path / "session.jsonl", [chat(), thought, media, gemini("c", "info", "hi")]))
    assert contents(items) == ["[reasoning]", "look\n[file: image/png]"]
    assert skips(items)[-1] == (4, "not conversation: info")


def test_documents_of_before_2026_are_read(tmp_path: Path) -> None:
    value = chat(messages=[gemini("a", "user", "one"), gemini("b", "gemini", "1", calls=1)])
    for indent in (None, 2):
        items = read(write_json(tmp_path / "session.json", value, indent))
        assert contents(items) == ["one", "1", "", "plan.txt"]


def test_the_folder_of_the_project_is_taken_where_the_hash_proves_it(tmp_path: Path) -> None:
    folder = "/home/ada/shop"
    (tmp_path / ".project_root").write_text(folder)
    for digest, expected in ((sha256(folder.encode()).hexdigest(), folder), ("0" * 64, "")):
        lines = [chat(projectHash=digest), gemini("a", "user", "one")]
        (item,) = [
            item
            for item in read(write_lines(tmp_path / "chats" / "session.jsonl", lines))
            if isinstance(item, ImportedMessage)
        ]
        assert item.chat.folder == expected


def test_a_sub_agent_is_a_chat_of_its_own(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "chats" / "s0" / "s1.jsonl", [chat(kind="subagent"), gemini("a", "user", "look")]
    )
    assert messages(read(path)) == [("s0/agent-s1", "user", "look")]


def test_what_hooks_added_to_a_prompt_is_not_of_the_user(tmp_path: Path) -> None:
    context = "<hook_context>&lt;known&gt;\nThe office is in Porto.\n&lt;/known&gt;</hook_context>"
    first, second, third = (gemini(name, "user", "") for name in "abc")
    # Of a start without a terminal it stands before the prompt, of a prompt in a part of its own.
    first["content"] = [{"text": f"{context}\n\nWhere is the office?"}]
    second["content"] = [{"text": "And <hook_context> in code?"}, {"text": context}]
    third["content"] = [{"text": context}]
    items = read(write_lines(tmp_path / "chat.jsonl", [chat(), first, second, third]))
    assert contents(items) == ["Where is the office?", "And <hook_context> in code?"]
    assert (4, "not conversation: context that the program added") in skips(items)


CONTEXT = "<session_context>\nThis is the Gemini CLI.\n<a>b</a>\n</session_context>"


def called(identity: str) -> Json:
    return gemini(identity, "gemini", "", calls=1) | {"content": ""}


def history(*records: Json) -> Json:
    return {"$set": {"messages": list(records)}}


@each(
    ("lines", "expected"),
    [
        # A program hands a history over, and the chat goes on.
        ([history(gemini("a", "user", "one"), gemini("b", "gemini", "1", calls=1)),
          gemini("c", "user", "two")],
         ["one", "1", "", "plan.txt", "two"]),
        ([gemini("a", "user", "one"), history(gemini("a", "user", "one"), gemini("b", "user", "two"))],
         ["one", "two"]),
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
    ],
)  # fmt: skip
def test_a_history_that_a_line_sets_is_read_once(
    tmp_path: Path, lines: list[Json], expected: list[str]
) -> None:
    path = write_lines(tmp_path / "chat.jsonl", [chat(), *lines])
    assert contents(read(path)) == expected
    with Memory(":memory:") as memory:
        assert [import_paths(memory, path).added for _ in range(2)] == [len(expected), 0]


def with_parts(identity: str, kind: str, *parts: Json) -> Json:
    return gemini(identity, kind, "") | {"content": list(parts)}


def asked(call: str, name: str = "ls") -> Json:
    return {"functionCall": {"id": call, "name": name, "args": {"path": "."}}}


def answered(call: str, output: str, name: str = "ls") -> Json:
    return {"functionResponse": {"id": call, "name": name, "response": {"output": output}}}


def image(data: str) -> Json:
    return {"inlineData": {"mimeType": "image/png", "data": data}}


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
    path = write_lines(tmp_path / "chat.jsonl", [chat(), *lines])
    items = [item.message for item in read(path) if isinstance(item, ImportedMessage)]
    assert [(one.role, one.calls[0].name if one.calls else one.content) for one in items] == expected
    calls = [call.id for one in items for call in one.calls]
    assert [one.call_id for one in items if one.role == "tool"] == calls
    with Memory(":memory:") as memory:
        assert [import_paths(memory, path).added for _ in range(2)] == [len(expected), 0]
        assert memory.verify().ok


def test_a_result_whose_call_is_gone_is_kept(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl", [chat(), *(with_parts(f"u{n}", "user", answered("", n)) for n in "12")]
    )
    assert messages(read(path)) == [("s1", "tool", "1"), ("s1", "tool", "2")]


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
    path = write_lines(tmp_path / "run.jsonl", lines)
    items = read(path)
    assert messages(items) == [
        ("s7", "user", "What files?"),
        ("s7", "assistant", "I look."),
        ("s7", "assistant", ""),
        ("s7", "tool", "denied"),
        ("s7", "assistant", "I look."),
        ("s7", "user", "And now?"),
        ("s7", "assistant", "I look."),
    ]
    assert [reason for _, reason in skips(items)] == [
        f"not conversation: {one}" for one in ("init", "error", "result")
    ]
    with Memory(":memory:") as memory:
        assert [import_paths(memory, path).added for _ in range(2)] == [7, 0]
