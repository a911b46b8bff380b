"""Tasks of Cline and sessions of Goose: by hand, in the forms of their sources and of public histories."""

from __future__ import annotations

from pathlib import Path

from tables import each
from transcripts import Json, take, write_json, write_lines

DETAILS = "<environment_details>\n# Current Time\n10/5/2026\n</environment_details>"
START = 1_790_000_000_000


def text(*texts: str) -> list[Json]:
    return [{"type": "text", "text": one} for one in texts]


def task(tmp_path: Path, *rows: Json, name: str = "1790000000000") -> Path:
    return write_json(tmp_path / "tasks" / name / "api_conversation_history.json", list(rows))


def spoken(role: str, *parts: str | Json, after: int = 0) -> Json:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in parts]
    return {"role": role, "content": content, "ts": START + 1000 * after}


def test_a_task_is_what_the_user_and_the_agent_said(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "clock.ts"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": text("tick()")}
    path = task(
        tmp_path,
        spoken("user", "<task>\nShow seconds.\n</task>", DETAILS),
        spoken("assistant", "I read.", use, after=4),
        spoken("user", result, "<feedback>\nAnd minutes\n</feedback>", DETAILS, after=5),
        spoken("user", DETAILS, after=6),
        spoken("user", f"Only <task> is a tag.\n\n{DETAILS}", after=7),
        spoken("assistant", "<read_file>\n<path>a.md</path>\n</read_file>", after=8),
        # What a tool that is called by words returns is nobody's words.
        spoken("user", "[read_file for 'a.md'] Result:", "Remember the moon.", DETAILS, after=9),
    )
    taken = take(path)
    assert taken.said == [
        ("user", "Show seconds."),
        ("assistant", "I read."),
        ("tool", "tick()"),
        ("user", "And minutes"),
        ("user", "Only <task> is a tag."),
        ("assistant", "<read_file>\n<path>a.md</path>\n</read_file>"),
        ("tool", "[read_file for 'a.md'] Result:\nRemember the moon."),
    ]
    found = [message for _, message in taken.messages]
    assert [call.id for call in found[1].calls] == [found[2].call_id] == ["t1"]
    assert [one.at.second for one in found if one.at] == [20, 24, 25, 25, 27, 28, 29]
    assert taken.left == [(4, "not conversation: context that the program added")]
    # Another task has a file of the same name.
    other = take(path, task(tmp_path, spoken("user", "Hi.", DETAILS), name="1790000099000"))
    assert {chat: len(said) for chat, said in other.by_chat.items()} == {
        "1790000000000": 7,
        "1790000099000": 1,
    }


def call(identity: str, name: str, **arguments: object) -> Json:
    return {
        "type": "toolRequest",
        "id": identity,
        "toolCall": success({"name": name, "arguments": arguments}),
    }


def answer(identity: str, result: object) -> Json:
    return {"type": "toolResponse", "id": identity, "toolResult": result}


HEAD = {"working_dir": "/home/ada/shop", "description": "The office", "message_count": 5}


def row(second: int, role: str, *parts: Json, **more: object) -> Json:
    return {"role": role, "created": 1_790_000_000 + second, "content": list(parts), **more}


def success(value: object) -> Json:
    return {"status": "success", "value": value}


DENIED = {"status": "error", "error": "denied"}
HIDDEN = {"metadata": {"userVisible": False, "agentVisible": True}}
ROWS = [
    row(0, "user", *text("Where is the office?")),
    row(
        1, "assistant", *text("I look."), call("a", "shell", command="ls"), call("b", "shell", command="pwd")
    ),
    row(2, "user", answer("a", success(text("plan.txt"))), answer("b", DENIED)),
    row(3, "user", *text("A summary"), **HIDDEN),
    row(4, "assistant", {"type": "redactedThinking", "data": "x"}, call("c", "shell")),
    row(5, "user", answer("c", success({"content": text("In Porto."), "isError": False}))),
]


@each("form", ["lines", "bare lines", "document", "older document"])
def test_a_session_of_goose_has_calls_results_and_times(tmp_path: Path, form: str) -> None:
    if "lines" in form:
        path = write_lines(tmp_path / f"{form}.jsonl", ROWS if form == "bare lines" else [HEAD, *ROWS])
    else:
        key = "conversation" if form == "document" else "messages"
        path = write_json(tmp_path / f"{form}.json", {**HEAD, "id": "20260921_1", key: ROWS}, indent=1)
    copy = tmp_path / "copy" / f"another {path.name}"
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(path.read_bytes())
    taken = take(path, copy)  # under another name it is the same chat
    copy.unlink()
    assert taken.report.formats == {"Goose": 12}
    found = [message for _, message in taken.messages]
    assert [(one.role, one.content, one.call_id) for one in found] == [
        ("user", "Where is the office?", None),
        ("assistant", "I look.", None),
        ("tool", "plan.txt", "a"),
        ("tool", "denied", "b"),
        ("assistant", "", None),
        ("tool", "In Porto.", "c"),
    ]
    assert [(call.id, call.name, call.arguments) for one in found for call in one.calls] == [
        ("a", "shell", {"command": "ls"}),
        ("b", "shell", {"command": "pwd"}),
        ("c", "shell", {}),
    ]
    assert [one.at.second for one in found if one.at] == [20, 21, 22, 22, 24, 25]
    assert {reason for _, reason in taken.left} == {
        "not conversation: written by the program, and not shown to the user"
    }
    (chat,) = taken.chats.values()
    assert chat.title == ("Where is the office?" if form == "bare lines" else "The office")
