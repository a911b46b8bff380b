"""What Claude.ai, aider, Copilot, opencode and others store: by hand, but for ADK, which writes its own."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import chats_of_programs as programs
from holdfast import InvalidInput, Memory, UnknownFormat
from holdfast_cli.formats.importing import import_paths
from tables import each
from transcripts import Json, Taken, take, write_json, write_lines

LEFT = "on a branch that was left: the prompt was edited or the answer made anew"
ADDED = "not conversation: context that the program added"
SUMMARY = "a summary of messages that come before it"
ERROR = "not conversation: an error in place of an answer"


def written(folder: Path, value: object, name: str = "chat") -> Path:
    if isinstance(value, str):
        path = folder / f"{name}.md"
        path.write_text(value, encoding="utf-8")
        return path
    if isinstance(value, list) and ("kind" in value[0] or "type" in value[0]):
        return write_lines(folder / f"{name}.jsonl", value)
    return write_json(folder / f"{name}.json", value, indent=1)


def call(name: str, arguments: object) -> tuple[str, object]:
    return (f"call {name}", arguments)


def spoken(taken: Taken) -> list[tuple[str, object]]:
    """Give each message as its role and words, and each call after its message."""
    rows: list[tuple[str, object]] = []
    for _, message in taken.messages:
        rows += [(message.role, message.content)] if message.content else []
        rows += [call(one.name, one.arguments) for one in message.calls]
    return rows


CASES: list[tuple[str, object, list[tuple[str, object]], set[str], str | None, str]] = [
    (
        "Claude.ai",
        programs.claude_ai(),
        [
            ("user", "When is high water?\n[file: tides.txt]\nBrest 06:12\nPasted words\n[image: map.png]"),
            call("web_search", {"query": "tides"}),
            ("tool", "18:40"),
            ("assistant", "At 18:40."),
            ("user", " Thanks "),
        ],
        {LEFT, "not conversation: token_budget"},
        "Tides",
        "2026-03-01 10:00:01",
    ),
    (
        "aider",
        programs.AIDER,
        [
            ("user", "Add a lid\n\n  to the teapot"),
            ("assistant", "I added it:\n\n#### Steps\n> quoted"),
            ("assistant", "It has a test."),
            ("user", "/undo"),
        ],
        {"not conversation: written by aider", "empty"},
        None,
        "2026-05-13 16:01:48",
    ),
    *(
        (
            "GitHub Copilot",
            value,
            [
                ("user", "What does it do?\n[image: shot.png]"),
                ("assistant", "I read it."),
                call("read_file", {"path": "a.ts"}),
                ("tool", "tick()\ntock()\nend"),
                ("assistant", "It ticks."),
                ("assistant", "Done."),
                ("user", "And test it"),
                ("assistant", "See `b.ts` there."),
                call("run_in_terminal", {"message": "Running"}),
                ("tool", "Ran npm test"),
                ("assistant", "Green."),
                ("user", "More"),
            ],
            {LEFT, ADDED, "not conversation: undoStop", "still being written", *more},
            "Clock",
            "2026-09-21 14:13:21",
        )
        for value, more in (
            (programs.copilot(), ()),
            (programs.copilot_log(), ("a change of something that is not there",)),
        )
    ),
    (
        "opencode",
        programs.opencode(),
        [
            ("user", "Which engine?\n[image: board.png]"),
            call("read", {"filePath": "a.md"}),
            ("tool", "hex board\n[image: board.png]"),
            call("bash", {}),
            ("tool", "no"),
            ("assistant", "Godot."),
            ("user", "Try it"),
        ],
        {LEFT, ADDED, SUMMARY, "not conversation: step-start"},
        "Engines",
        "2026-07-17 02:06:47",
    ),
    (
        "Open WebUI",
        [programs.open_webui()],
        [
            ("user", "High water?"),
            ("assistant", "I look."),
            call("tides", {"city": "Brest"}),
            ("tool", "06:12"),
            ("assistant", "At 06:12. <details><summary>More</summary>of it</details>"),
            ("user", "And here?\n[image: unnamed]\n[file: map.pdf]"),
        ],
        {LEFT, ERROR},
        "Tides",
        "2026-01-02 08:00:00",
    ),
    *(
        (
            "LibreChat",
            programs.librechat(tree=tree),
            [
                ("user", "Look it up"),
                call("search", {"q": "x"}),
                ("tool", "found"),
                ("assistant", "It is."),
                ("user", "Again"),
            ],
            {LEFT, ERROR},
            "Look",
            "2026-03-01 10:00:00",
        )
        for tree in (False, True)
    ),
    (
        "Continue",
        programs.continue_dev(),
        [
            ("user", "Which knot?\n[image: unnamed]\n[file: knots.md]"),
            call("read_file", {"path": "a"}),
            ("tool", "rope"),
            ("assistant", "A bowline."),
            ("user", "Thanks"),
        ],
        {SUMMARY},
        "Kite",
        "",
    ),
    (
        "ADK",
        programs.adk(),
        [
            ("user", "Book the night train.\n[image: unnamed]"),
            call("book", {"train": "night"}),
            ("tool", "seat 42"),
            ("assistant", "Seat 42 is yours."),
        ],
        {LEFT, "not conversation: without content"},
        None,
        "2025-12-06 05:46:42",
    ),
    (
        "SWE-agent",
        programs.swe_agent(),
        [
            ("system", "You program."),
            ("user", "Fix the colon."),
            ("assistant", "I open it."),
            call("open", {"path": "a.py"}),
            ("tool", "1: def f()"),
            ("assistant", "I run it.\n```\nls\n```"),
            ("tool", "a.py"),
        ],
        {"a demonstration, of another run"},
        None,
        "",
    ),
    (
        "Cline",
        programs.roo(),
        [("user", "Show seconds."), ("assistant", "Done.")],
        {SUMMARY, "not conversation: reasoning"},
        None,
        "2026-09-21 14:13:20",
    ),
]


@each(("format", "value", "said", "left", "title", "time"), CASES)
def test_a_chat_comes_with_its_words_calls_results_and_times(
    tmp_path: Path,
    format: str,
    value: object,
    said: list[tuple[str, object]],
    left: set[str],
    title: str | None,
    time: str,
) -> None:
    taken = take(written(tmp_path, value))
    assert taken.report.formats.keys() == {format}
    assert spoken(taken) == said
    assert {reason for _, reason in taken.left} == left
    (chat,) = taken.chats.values()
    assert title is None or chat.title == title
    first = taken.messages[0][1].at
    assert isinstance(first, datetime)
    assert not time or str(first).startswith(time)
    # A result stands with the call that it answers.
    calls = {one.id for _, message in taken.messages for one in message.calls}
    assert {answer for _, message in taken.messages for answer in message.answers} == calls


def test_events_of_the_command_line_of_copilot(tmp_path: Path) -> None:
    taken = take(write_lines(tmp_path / "events.jsonl", programs.copilot_events()))
    assert taken.report.formats == {"GitHub Copilot": 6}
    assert set(taken.by_chat) == {"cp1", "cp1/agent-t9"}
    assert taken.by_chat["cp1/agent-t9"] == ["From a sub-agent"]
    own = Taken(taken.report, taken.chats, [row for row in taken.messages if row[0] == "cp1"])
    assert spoken(own) == [
        ("user", "Sort."),
        ("assistant", "I look."),
        call("bash", {"command": "ls"}),
        ("tool", "plan.txt"),
        call("bash", {"command": "pwd"}),
        ("tool", "denied"),
    ]
    assert {reason for _, reason in taken.left} == {
        ADDED,
        *(
            f"not conversation: {kind}"
            for kind in ("session.start", "tool.execution_start", "assistant.turn_end")
        ),
    }


@each("make", programs.DOCUMENTS)
def test_a_file_that_has_grown_adds_only_what_is_new(tmp_path: Path, make: Callable[[], Json]) -> None:
    value = make()
    rows = next(
        found
        for key in ("chat_messages", "requests", "messages", "history", "events")
        if isinstance(
            found := value.get(key) or value.get("chat", {}).get("history", {}).get("messages"), list | dict
        )
    )
    short = copy.deepcopy(value)
    with Memory(":memory:") as memory:
        kept = next(
            short.get(key) or short.get("chat", {}).get("history", {}).get("messages")
            for key in ("chat_messages", "requests", "messages", "history", "events")
            if short.get(key) or short.get("chat")
        )
        if isinstance(kept, dict):
            short["chat"]["history"]["currentId"] = "u2"
            del kept["a2"]
        else:
            del kept[-1]
        assert len(kept) == len(rows) - 1
        first = import_paths(memory, written(tmp_path, short)).added
        whole = import_paths(memory, written(tmp_path, value))
        again = import_paths(memory, written(tmp_path, value, "copy"))
        assert first > 0
        assert whole.present == first
        assert (again.added, again.present) == (0, whole.added + whole.present)
        assert len(memory.chats()) + len(memory.chats(archived=True)) == 1
        assert memory.verify().ok


def test_a_history_of_aider_grows_and_an_editor_may_cut_the_ends_of_its_lines(tmp_path: Path) -> None:
    more = "\n#### Thanks  \n\nYou are welcome.\n"
    path = tmp_path / ".aider.chat.history.md"
    with Memory(":memory:") as memory:
        for text, added in ((programs.AIDER, 4), (programs.AIDER + more, 2), (programs.AIDER + more, 0)):
            path.write_text(text, encoding="utf-8")
            assert import_paths(memory, path).added == added
        assert [chat.messages for chat in memory.chats()] == [2, 4]
    cut = "\n".join(line.rstrip() for line in more.splitlines())
    path.write_text(f"# aider chat started at 2026-05-13 16:01:48\n{cut}\n> Tokens\n")
    assert take(path).said == [("user", "Thanks"), ("assistant", "You are welcome.")]


def test_projects_and_memories_of_claude_ai_become_findings_once(tmp_path: Path) -> None:
    doc = {"uuid": "d", "filename": "plan.md", "content": "# Plan\n\nSail on Monday."}
    project = {"uuid": "p1", "name": "Boat", "prompt_template": "Speak plainly.", "docs": [doc]}
    memories = {"conversations_memory": "Ada sails.", "project_memories": {"p1": "The boat is red."}}
    write_json(tmp_path / "projects.json", [project])
    write_json(tmp_path / "memories.json", [memories])
    with Memory(":memory:") as memory:
        assert import_paths(memory, tmp_path).records == 4
        assert import_paths(memory, tmp_path).records == 0
        assert {record.text for record in memory.records(kind="finding")} == {
            "Boat › plan.md\n\n# Plan\n\nSail on Monday.",
            "Boat › instructions\n\nSpeak plainly.",
            "Ada sails.",
            "The boat is red.",
        }


def database(path: Path, schema: str, **tables: Sequence[tuple[object, ...]]) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(schema)
        for table, rows in tables.items():
            for row in rows:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return path


def test_databases_have_what_exports_have(tmp_path: Path) -> None:
    value = programs.opencode()
    info = value["info"]
    schema = """
        CREATE TABLE session (
            id TEXT, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER, revert TEXT);
        CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
        CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"""
    messages = [
        (m["info"]["id"], "ses_1", m["info"]["time"]["created"], json.dumps(m["info"]))
        for m in value["messages"]
    ]
    parts = [
        (f"prt_{n}_{k}", m["info"]["id"], "ses_1", json.dumps(part))
        for n, m in enumerate(value["messages"])
        for k, part in enumerate(m["parts"])
    ]
    sub = ("ses_2", "ses_1", "/", "Child session - 2026-01-01", 1784254999999, None)
    said = ("msg_9", "ses_2", 1, json.dumps({"role": "user", "time": {"created": 1784254999999}}))
    path = database(
        tmp_path / "opencode.db",
        schema,
        session=[("ses_1", None, "/", "Engines", 1784254006000, json.dumps(info["revert"])), sub],
        message=[*messages, said, ("msg_x", "ses_1", 9, "{damaged")],
        part=[
            *parts,
            ("prt_z", "msg_9", "ses_2", '{"type": "text", "text": "Look"}'),
            ("prt_y", "msg_9", "ses_2", "["),
        ],
    )
    taken = take(path, written(tmp_path, value))
    assert set(taken.chats) == {"ses_1", "ses_1/agent-ses_2"}
    assert taken.report.present == 7  # what the export has
    assert taken.by_chat["ses_1/agent-ses_2"] == ["Look"]
    assert {one.reason for one in taken.report.problems} == {
        "no message",
        "not conversation: a part that is not valid JSON",
    }


def test_the_database_of_goose(tmp_path: Path) -> None:
    schema = """
        CREATE TABLE sessions (id TEXT, name TEXT, description TEXT, working_dir TEXT);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT,
            created_timestamp INTEGER, metadata_json TEXT);"""
    words = json.dumps([{"type": "text", "text": "Where is the office?"}])
    hidden = '{"userVisible": false, "agentVisible": true}'
    rows = [
        (1, "20260921_1", "user", words, 1790000000, "{}"),
        (2, "20260921_1", "user", words, 1790000001, hidden),
    ]
    sessions = [("20260921_1", "The office", "", "/home/ada")]
    path = database(tmp_path / "sessions.db", schema, sessions=sessions, messages=rows)
    row = {"role": "user", "created": 1790000000, "content": json.loads(words)}
    export = {"id": "20260921_1", "working_dir": "/home/ada", "name": "The office", "conversation": [row]}
    taken = take(path, written(tmp_path, export))
    assert (taken.contents, taken.report.present) == (["Where is the office?"], 1)
    assert [chat.title for chat in taken.chats.values()] == ["The office"]
    assert len(taken.left) == 1


@pytest.mark.slow
def test_what_the_agent_development_kit_writes_itself(tmp_path: Path) -> None:
    pytest.importorskip("google.adk")
    from google.adk.events import Event
    from google.adk.sessions.sqlite_session_service import SqliteSessionService
    from google.genai import types

    async def talk() -> str:
        service = SqliteSessionService(str(tmp_path / "session.db"))
        session = await service.create_session(app_name="travel", user_id="ada", session_id="s1")
        call = types.Part(function_call=types.FunctionCall(id="f1", name="book", args={"train": "night"}))
        result = types.Part(
            function_response=types.FunctionResponse(id="f1", name="book", response={"result": "seat 42"})
        )
        image = types.Part.from_bytes(data=b"\x89PNG\xff\xfe", mime_type="image/png")
        for author, parts in (
            ("user", [types.Part(text="Book it."), image]),
            ("travel", [call]),
            ("travel", [result]),
            ("travel", [types.Part(text="Seat 42.")]),
        ):
            event = Event(author=author, invocation_id="i1", content=types.Content(parts=parts))
            await service.append_event(session, event)
        found = await service.get_session(app_name="travel", user_id="ada", session_id="s1")
        assert found
        return found.model_dump_json(indent=2, exclude_none=True, by_alias=True)

    path = tmp_path / "s1.session.json"
    path.write_text(asyncio.run(talk()), encoding="utf-8")
    with Memory(":memory:", user="ada") as memory:
        assert import_paths(memory, path).added == 4
        report = import_paths(memory, tmp_path / "session.db")
        assert (report.added, report.present) == (0, 4)
        history = memory.chat("s1").history()
        assert [message.content for message in history] == [
            "Book it.\n[image: unnamed]",
            "",
            "seat 42",
            "Seat 42.",
        ]
        assert history[1].calls[0].id == history[2].call_id
        assert "iVBOR" in json.dumps(memory.chat("s1").prompt(8000, format="openai").messages)
    with Memory(":memory:", user="bob") as memory:
        assert import_paths(memory, path).added == 0


OTHERS: list[Any] = [
    {},
    {"history": []},
    {"requests": [], "version": "1"},
    {"sessionId": "x", "history": [{"a": 1}]},
    {"events": [], "id": 1},
    {"chat": {"history": []}},
    {"uuid": "x", "docs": []},
    {"info": {"title": "an API"}, "paths": {}},
    {"kind": 0, "v": {}},
    {"type": "session.start"},
    {"conversationId": "x", "messages_": []},
]


@each("value", OTHERS)
def test_json_of_anything_is_no_chat(tmp_path: Path, value: Json) -> None:
    with Memory(":memory:") as memory, pytest.raises(UnknownFormat):
        import_paths(memory, write_json(tmp_path / "package.json", value))


def odd(value: object, rng: random.Random) -> object:
    """Return a value with others at some places, of any type."""
    if rng.random() < 0.06:
        return rng.choice(
            [None, True, -1, 1e308, 10**400, "", "x\x00", [], {}, [[]], {"a": {}}, "9" * 5000, [None]]
        )
    if isinstance(value, dict):
        return {key: odd(inner, rng) for key, inner in value.items()}
    return [odd(inner, rng) for inner in value] if isinstance(value, list) else value


@pytest.mark.slow
@each("make", [*programs.DOCUMENTS, programs.copilot_log, programs.copilot_events, programs.roo])
def test_values_of_any_type_are_counted_and_nothing_is_stored_twice(
    tmp_path: Path, make: Callable[[], Any]
) -> None:
    for seed in range(8):
        value = make()
        hostile: Any = odd(value, random.Random(seed))
        if isinstance(value, dict):
            # What it is recognised by stays.
            fields = hostile if isinstance(hostile, dict) else {}
            kept = {key: inner for key, inner in fields.items() if isinstance(inner, type(value[key]))}
            hostile = {**value, **kept}
        elif not isinstance(hostile, list) or not hostile or not isinstance(hostile[0], dict):
            continue
        name = "a.jsonl" if isinstance(hostile, list) else "a.json"
        path = (write_lines if isinstance(hostile, list) else write_json)(tmp_path / name, hostile)
        with Memory(":memory:") as memory:
            try:
                first = import_paths(memory, path)
            except (InvalidInput, UnknownFormat):
                continue
            assert import_paths(memory, path).added == 0
            rows = hostile.values() if isinstance(hostile, dict) else [hostile]
            assert first.added or first.skipped or not all(rows)
            assert memory.verify().ok


@each("make", [*programs.DOCUMENTS, programs.copilot_log, programs.copilot_events])
def test_a_file_that_is_cut_off_or_too_deep_is_named(tmp_path: Path, make: Callable[[], Any]) -> None:
    whole = written(tmp_path, make())
    text = whole.read_text("utf-8")
    deep = tmp_path / f"deep{whole.suffix}"
    deep.write_text(text.replace('"id"', f'"deep": {"[" * 5000}{"]" * 5000}, "id"', 1))
    whole.write_text(text[: len(text) * 2 // 3])
    with Memory(":memory:") as memory:
        for path in (whole, deep):
            try:
                report = import_paths(memory, path)
            except UnknownFormat as error:
                assert "not valid JSON" in str(error) or "nested" in str(error)  # noqa: PT017
            else:
                assert report.problems or '"deep"' not in path.read_text("utf-8")


def test_parents_in_a_circle_and_ids_twice_are_counted(tmp_path: Path) -> None:
    value = programs.claude_ai()
    value["chat_messages"][0]["parent_message_uuid"] = "m4"
    value["chat_messages"].append({**value["chat_messages"][1], "uuid": "m3"})
    taken = take(written(tmp_path, value))
    reasons = [reason for _, reason in taken.left]
    assert "another message of its chat has the same id" in reasons
    assert len(taken.messages) + reasons.count(LEFT) >= 3
