"""Chats of Cursor: by hand, as public descriptions of its database have them; the program was not run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.json_values import time_of
from holdfast_cli.formats.private_tags import PRIVATE
from tables import each
from transcripts import Json, contents, messages, read, skips, write_lines

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
        self.put(
            f"composerData:{identity}",
            {"composerId": identity, "createdAt": CREATED, "fullConversationHeadersOnly": listed, **more},
        )

    def bubble(self, chat: str, name: str, kind: object, text: str, **more: object) -> None:
        self.put(f"bubbleId:{chat}:{name}", {"bubbleId": name, "type": kind, "text": text, **more})


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    editor = Editor(tmp_path / "state.vscdb")
    with closing(editor.connection):
        editor.chat("c1", "b2", "b1", "b3", name="The office", isArchived=True)
        editor.bubble("c1", "b2", 1, "Where is the office?", workspaceUris=["file:///home/ada/my%20shop"])
        editor.bubble("c1", "b1", 2, "", toolFormerData=CALL, createdAt="2026-01-06T09:16:00Z")
        editor.bubble(
            "c1", "b3", 2, "In Porto.", thinking={"text": "hm"}, timingInfo={"clientStartTime": 7.5}
        )
        yield editor


def test_a_chat_is_read_in_the_order_of_its_list(editor: Editor) -> None:
    items = read(editor.path)
    assert messages(items) == [
        ("c1", "user", "Where is the office?"),
        ("c1", "assistant", ""),
        ("c1", "tool", '{"contents": "plan"}'),
        ("c1", "assistant", "In Porto."),
    ]
    found = [item for item in items if isinstance(item, ImportedMessage)]
    assert {(item.chat.title, item.chat.archived, item.chat.folder) for item in found} == {
        ("The office", True, "/home/ada/my shop")
    }
    (call,) = found[1].message.calls
    assert (call.id, call.name, call.arguments) == ("call_1", "read_file", {"path": "plan.txt"})
    assert found[2].message.call_id == "call_1"
    assert [str(item.message.at)[:19] for item in found] == [
        "2026-01-06 09:15:59",
        "2026-01-06 09:16:00",
        "2026-01-06 09:16:00",
        "2026-01-06 09:16:00",
    ]
    assert "plan" not in json.dumps([dict(item.message.raw or {}) for item in found[3:]])


def test_chats_are_imported_once_while_the_editor_writes_them(editor: Editor) -> None:
    editor.chat("c1", "b2", "b1", "b3", "b4", "b5", generatingBubbleIds=["b5"])
    editor.bubble("c1", "b4", 1, "And <private>the key 1234</private>?")
    editor.bubble("c1", "b5", 2, "It")
    with Memory(":memory:") as memory:
        report = import_paths(memory, editor.path)
        assert (report.added, report.problems) == (5, ())
        assert [(skip.reason, skip.count) for skip in report.skipped] == [("still being written", 1)]
        editor.chat("c1", "b2", "b1", "b3", "b4", "b5")
        editor.bubble("c1", "b5", 2, "It is under the stone.")
        report = import_paths(memory, editor.path)
        assert (report.added, report.present, report.problems) == (1, 5, ())
        history = memory.chat("c1").history()
        assert [message.content for message in history][-2:] == [f"And {PRIVATE}?", "It is under the stone."]
        assert "1234" not in repr([message.raw for message in history])


def test_early_chats_have_their_messages_within(editor: Editor) -> None:
    within = [{"bubbleId": "x", "type": 1, "text": "one"}, {"type": 2, "text": "two"}]
    editor.put("composerData:c0", {"conversation": within})
    found = [one for one in messages(read(editor.path)) if one[0] == "c0"]
    assert found == [("c0", "user", "one"), ("c0", "assistant", "two")]


def test_what_is_missing_unlisted_or_broken_is_counted(editor: Editor) -> None:
    editor.chat("c2", "gone", "empty", "odd", "broken", "full")
    editor.bubble("c2", "empty", 2, " ")
    editor.bubble("c2", "odd", 3, "x")
    editor.put("bubbleId:c2:broken", b"\xff")
    editor.bubble("c2", "full", 1, "look", images=[{"path": "cat.png"}])
    editor.bubble("c2", "left", 1, "unsent")
    editor.put("composerData:c3", "[1]")
    editor.put("composerData:c4", None)
    editor.put("workbench.panel.aichat.view.aichat.chatdata", {}, "ItemTable")
    assert skips(read(editor.path)) == [
        (2, "listed in its chat, but not there"),
        (2, "empty"),
        (2, "neither of the user nor of the assistant"),
        (2, "a message that is not valid UTF-8"),
        (2, "attached to a message: files, images and other context"),
        (2, "not in the list of its chat: the user went back behind it"),
        (3, "a chat that is not a JSON object"),
        (1, "chats of before 2025, which are stored in another way"),
    ]


@pytest.mark.parametrize("value", [{}, {"type": []}, {"type": 2, "text": 5, "toolFormerData": {"name": []}}])
def test_values_of_wrong_types_are_no_error(editor: Editor, value: Json) -> None:
    wrong: Json = {"fullConversationHeadersOnly": [7, {"bubbleId": []}, {"bubbleId": "b"}], "createdAt": "x"}
    editor.put("composerData:c2", wrong | {"conversation": 7, "conversationMap": [], "name": {}})
    editor.put("bubbleId:c2:b", value | {"workspaceUris": ["file://[", 7], "timingInfo": []})
    with Memory(":memory:") as memory:
        report = import_paths(memory, editor.path)
        assert report.added == 4
        assert report.problems


def test_transcripts_of_the_command_line_have_the_words_of_the_user(tmp_path: Path) -> None:
    asked = "<user_query>\nWhere?\n</user_query>\n<context>files</context>"
    use = {"type": "tool_use", "id": "t", "name": "Shell", "input": {"command": "ls"}}
    lines = [
        {"role": "user", "message": {"content": [{"type": "text", "text": asked}]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "I look."}, use]}},
        {"role": "assistant", "message": {"content": "In Porto."}},
        {"role": "assistant", "other": 1},
    ]
    path = write_lines(tmp_path / "s1" / "s1.jsonl", lines)
    items = read(path)
    assert messages(items)[0] == ("s1", "user", "Where?")
    assert contents(items)[1:] == ["I look.", "In Porto."]
    assert skips(items) == [(4, "no message")]
    with Memory(":memory:") as memory:
        assert import_paths(memory, path).added == 3
        write_lines(path, [*lines[:3], lines[0]])
        assert import_paths(memory, path).added == 1


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
    line = {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}
    items = read(write_lines(tmp_path / "s1.jsonl", [line, {"type": "turn_ended"}]))
    found = [(one.message.content, one.message.at) for one in items if isinstance(one, ImportedMessage)]
    assert [(words, at and str(at)) for words, at in found] == ([(content, time)] if content else [])
    assert ((1, "not conversation: context that the program added") in skips(items)) == (content is None)


def test_thoughts_that_a_transcript_leaves_out_are_no_words(tmp_path: Path) -> None:
    texts = ["[REDACTED]", "Done.\n\n[REDACTED]", "[REDACTED]\nIt says [REDACTED] there."]
    use: Json = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    content: list[list[Json]] = [[{"type": "text", "text": text}] for text in texts]
    content.append([{"type": "text", "text": "[REDACTED]"}, use])
    lines = [{"role": "assistant", "message": {"content": parts}} for parts in content]
    items = read(write_lines(tmp_path / "s1.jsonl", lines))
    assert contents(items) == ["[reasoning]", "Done.", "It says [REDACTED] there.", ""]


EXPORTED = """# The office
_Exported on 6/16/2025 at 12:55:28 GMT+3 from Cursor (1.0.0)_

---


**User**

Where is the
---
office?

---

**Cursor**

In Porto.

---
"""


def test_an_exported_chat_is_read(tmp_path: Path) -> None:
    (tmp_path / "cursor_the_office.md").write_text(EXPORTED)
    assert messages(read(tmp_path / "cursor_the_office.md")) == [
        ("cursor_the_office", "user", "Where is the\n---\noffice?"),
        ("cursor_the_office", "assistant", "In Porto."),
    ]
    with Memory(":memory:") as memory:
        assert import_paths(memory, tmp_path).added == 2
        (tmp_path / "cursor_the_office.md").write_text(f"{EXPORTED}\n**User**\n\nAnd when?\n")
        assert import_paths(memory, tmp_path).added == 1
        assert [chat.title for chat in memory.chats()] == ["The office"]
        times = {str(message.at) for message in memory.chat("cursor_the_office").history()}
        assert times == {"2025-06-16 09:55:28+00:00"}


@each(
    ("written", "time"),
    [
        ("6/16/2025 at 12:55:28 GMT+3", "2025-06-16 12:55:28+03:00"),
        ("28/9/2026 at 17:49:33 VET", "2026-09-28 17:49:33+00:00"),
        ("7/8/2025 at 12:03:40 AM PDT", "2025-07-08 00:03:40+00:00"),
        ("16.6.2025, 12:55:28", "2025-06-16 12:55:28+00:00"),
        ("10/5/2026, 9:00:00\u202fPM (Asia/Calcutta, UTC+5.5:00)", "2026-10-05 21:00:00+05:30"),
        ("10/5/2026, 9:00:00 AM (America/St_Johns, UTC-3.5:00)", "2026-10-05 09:00:00-03:30"),
        ("1/1/2026", "2026-01-01 00:00:00+00:00"),
        ("13/13/2026 at 9:00:00", "None"),
        ("1/1/2026, 25:00:00", "None"),
        ("yesterday", "None"),
    ],
)
def test_times_as_programs_show_them(written: str, time: str) -> None:
    assert str(time_of(written)) == time
