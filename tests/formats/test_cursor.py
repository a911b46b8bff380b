"""Chats of Cursor: by hand, as public descriptions of its database have them; the program was not run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.json_values import time_of
from holdfast_cli.formats.private_tags import PRIVATE
from tables import each
from transcripts import Json, take, write_lines

CREATED = 1_767_690_959_000
CALL: Json = {
    "toolCallId": "call_1",
    "name": "read_file",
    "rawArgs": '{"path": "plan.txt"}',
    "status": "completed",
    "result": '{"contents": "plan"}',
}


class Editor:
    """A database of the editor, open as the editor has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = wal")
        for table in ("ItemTable", "cursorDiskKV"):
            self.connection.execute(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")

    def put(self, key: str, value: object, table: str = "cursorDiskKV") -> None:
        text = value if isinstance(value, str | bytes | None) else json.dumps(value)
        self.connection.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, text))

    def chat(self, identity: str, *names: str, **more: object) -> None:
        listed = [{"bubbleId": name} for name in names]
        head = {"composerId": identity, "createdAt": CREATED, "fullConversationHeadersOnly": listed}
        self.put(f"composerData:{identity}", head | more)

    def bubble(self, chat: str, name: str, kind: object, text: str, **more: object) -> None:
        self.put(f"bubbleId:{chat}:{name}", {"bubbleId": name, "type": kind, "text": text, **more})


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    editor = Editor(tmp_path / "state.vscdb")
    with closing(editor.connection):
        editor.chat("c1", "b2", "b1", "b3", name="The office", isArchived=True)
        editor.bubble("c1", "b2", 1, "Where is the office?", workspaceUris=["file:///home/ada/my%20shop"])
        editor.bubble("c1", "b1", 2, "", toolFormerData=CALL, createdAt="2026-01-06T09:16:00Z")
        editor.bubble("c1", "b3", 2, "In Porto.", thinking={"text": "hm"})
        # Early chats have their messages within.
        within = [{"bubbleId": "x", "type": 1, "text": "one"}, {"type": 2, "text": "two"}]
        editor.put("composerData:c0", {"conversation": within})
        yield editor


def test_a_chat_is_read_in_the_order_of_its_list(editor: Editor) -> None:
    taken = take(editor.path)
    assert taken.by_chat == {
        "c1": ["Where is the office?", "", '{"contents": "plan"}', "In Porto."],
        "c0": ["one", "two"],
    }
    assert (taken.chats["c1"].title, taken.chats["c1"].archived) == ("The office", True)
    found = [message for chat, message in taken.messages if chat == "c1"]
    assert [one.role for one in found] == ["user", "assistant", "tool", "assistant"]
    (call,) = found[1].calls
    assert (call.id, call.name, call.arguments) == ("call_1", "read_file", {"path": "plan.txt"})
    assert found[2].call_id == "call_1"
    assert [str(one.at)[11:19] for one in found] == ["09:15:59", *["09:16:00"] * 3]
    assert "plan" not in json.dumps(found[3].raw)


def test_chats_are_imported_once_while_the_editor_writes_them(quick: Memory, editor: Editor) -> None:
    assert [import_paths(quick, editor.path).unchanged for _ in range(2)] == [0, 1]
    # The log of the database has changed, not the file.
    editor.chat("c1", "b2", "b1", "b3", "b4", "b5", generatingBubbleIds=["b5"])
    editor.bubble("c1", "b4", 1, "And <private>the key 1234</private>?")
    editor.bubble("c1", "b5", 2, "It")
    report = import_paths(quick, editor.path)
    assert (report.added, report.unchanged, report.problems) == (1, 0, ())
    assert [(skip.reason, skip.count) for skip in report.skipped] == [("still being written", 1)]
    editor.chat("c1", "b2", "b1", "b3", "b4", "b5")
    editor.bubble("c1", "b5", 2, "It is under the stone.")
    report = import_paths(quick, editor.path)
    assert (report.added, report.present, report.problems) == (1, 7, ())
    history = quick.chat("c1").history()
    assert [message.content for message in history][-2:] == [f"And {PRIVATE}?", "It is under the stone."]
    assert "1234" not in repr([message.raw for message in history])


def test_what_is_missing_unlisted_or_broken_is_counted(editor: Editor) -> None:
    editor.chat("c2", "gone", "empty", "odd", "broken", "full", "torn")
    editor.bubble("c2", "empty", 2, " ")
    editor.bubble("c2", "odd", 3, "x")
    editor.put("bubbleId:c2:torn", b"\xff")
    editor.bubble("c2", "full", 1, "look", images=[{"path": "cat.png"}])
    editor.bubble("c2", "left", 1, "unsent")
    editor.put("composerData:c3", "[1]")
    editor.put("composerData:c4", None)
    editor.connection.execute("INSERT INTO cursorDiskKV VALUES ('bubbleId:c2:broken', 7)")
    editor.put("workbench.panel.aichat.view.aichat.chatdata", {}, "ItemTable")
    assert {reason for _, reason in take(editor.path).left} == {
        "listed in its chat, but not there",
        "empty",
        "neither of the user nor of the assistant",
        "a message that is not valid UTF-8",
        "a message that is not valid JSON",
        "attached to a message: files, images and other context",
        "not in the list of its chat: the user went back behind it",
        "a chat that is not a JSON object",
        "chats of before 2025, which are stored in another way",
    }


@pytest.mark.parametrize("value", [{}, {"type": []}, {"type": 2, "text": 5, "toolFormerData": {"name": []}}])
def test_values_of_wrong_types_are_no_error(editor: Editor, value: Json) -> None:
    wrong: Json = {"fullConversationHeadersOnly": [7, {"bubbleId": []}, {"bubbleId": "b"}], "createdAt": "x"}
    editor.put("composerData:c2", wrong | {"conversation": 7, "conversationMap": [], "name": {}})
    editor.put("bubbleId:c2:b", value | {"workspaceUris": ["file://[", 7], "timingInfo": []})
    report = take(editor.path).report
    assert (report.added, bool(report.problems)) == (6, True)


def spoken(role: str, *parts: str | Json) -> Json:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in parts]
    return {"role": role, "message": {"content": content}}


def test_transcripts_of_the_command_line_have_the_words_of_the_user(quick: Memory, tmp_path: Path) -> None:
    use: Json = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    lines: list[Json] = [
        spoken("user", "<user_query>\nWhere?\n</user_query>\n<context>files</context>"),
        spoken("assistant", "I look.", use | {"id": "t"}),
        {"role": "assistant", "message": {"content": "In Porto."}},
        {"role": "assistant", "other": 1},
        # Thoughts that a transcript leaves out are no words.
        *(spoken("assistant", "[REDACTED]"), spoken("assistant", "Done.\n\n[REDACTED]")),
        *(spoken("assistant", "[REDACTED]\nSays [REDACTED]."), spoken("assistant", "[REDACTED]", use)),
    ]
    path = write_lines(tmp_path / "s1" / "s1.jsonl", lines)
    taken = take(path)
    said = ["Where?", "I look.", "In Porto.", "[reasoning]", "Done.", "Says [REDACTED].", ""]
    assert (taken.by_chat, taken.left) == ({"s1": said}, [(4, "no message")])
    assert import_paths(quick, path).added == 7
    write_lines(path, [*lines, lines[0]])
    assert import_paths(quick, path).added == 1


GO = "<user_query>\nGo\n</user_query>"


def sent(time: str, words: str = GO) -> str:
    return f"<timestamp>{time}</timestamp>\n{words}"


@each(
    ("text", "content", "time"),
    [
        (sent("Tuesday, Sep 8, 2026, 4:08 PM (UTC-7)"), "Go", "2026-09-08 16:08:00-07:00"),
        (sent("Monday, Jul 6, 2026, 12:54 AM (UTC+5:30)"), "Go", "2026-07-06 00:54:00+05:30"),
        (sent("Friday, Jun 12, 2026, 1:19 PM (UTC)", "Go"), "Go", "2026-06-12 13:19:00+00:00"),
        (f"<image_files>\n1. /a.png\n</image_files>\n{sent('Tag, 8. Sep')}", "Go", None),
        (f"{GO}\n{GO}", "Go\nGo", None),
        ("Write <timestamp> into `<rules>x</rules>`", "Write <timestamp> into `<rules>x</rules>`", None),
        ("<system_notification>\nA task has finished.\n</system_notification>", None, None),
    ],
)
def test_prompts_of_transcripts_are_what_the_user_wrote_and_when(
    tmp_path: Path, text: str, content: str | None, time: str | None
) -> None:
    taken = take(write_lines(tmp_path / "s1.jsonl", [spoken("user", text), {"type": "turn_ended"}]))
    assert taken.contents == ([content] if content else [])
    if time:
        assert taken.messages[0][1].at == datetime.fromisoformat(time)
    assert ((1, "not conversation: context that the program added") in taken.left) == (content is None)


EXPORTED = "# The office\n_Exported on 6/16/2025 at 12:55:28 GMT+3 from Cursor (1.0.0)_\n\n---\n\n"


def turns(*words: str) -> str:
    speakers = ("User", "Cursor") * len(words)
    return "".join(f"\n**{who}**\n\n{said}\n\n---\n" for who, said in zip(speakers, words, strict=False))


def test_an_exported_chat_is_read(quick: Memory, tmp_path: Path) -> None:
    path = tmp_path / "cursor_the_office.md"
    said = [
        "Where is the\n---\noffice?",
        "In Porto.",
        "And when does the office move?",
        "In May, we said.",
    ]
    for count in (2, 4):
        path.write_text(EXPORTED + turns(*said[:count]))
        assert import_paths(quick, path).added == 2
    # Under another name it is the same chat.
    assert import_paths(quick, path.rename(tmp_path / "again.md")).added == 0
    ((chat, title),) = [(chat.id, chat.title) for chat in quick.chats()]
    assert (chat, title) == ("cursor_the_office", "The office")
    found = quick.chat(chat).history()
    assert [one.content for one in found] == said
    assert {str(message.at) for message in found} == {"2025-06-16 09:55:28+00:00"}


@each(
    ("written", "time"),
    [
        ("28/9/2026 at 17:49:33 VET", "2026-09-28 17:49:33+00:00"),
        ("7/8/2025 at 12:03:40 AM PDT", "2025-07-08 00:03:40+00:00"),
        ("16.6.2025, 12:55:28", "2025-06-16 12:55:28+00:00"),
        ("10/5/2026, 9:00:00\u202fPM (Asia/Calcutta, UTC+5.5:00)", "2026-10-05 21:00:00+05:30"),
        ("13/13/2026 at 9:00:00", "None"),
        ("1/1/2026, 25:00:00", "None"),
    ],
)
def test_times_as_programs_show_them(written: str, time: str) -> None:
    assert str(time_of(written)) == time
