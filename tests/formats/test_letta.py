"""Agent files of Letta. Made by hand, after `letta/schemas/agent_file.py` and the makers' examples."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from transcripts import Json, take, write_json

HUMAN = "First name: Chad\nOccupation: PhD student"


def block(identity: str, label: str, value: str) -> Json:
    return {"id": identity, "label": label, "value": value, "limit": 20_000, "description": f"About {label}"}


def message(role: str, content: object, **more: object) -> Json:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {
        "type": "message",
        "role": role,
        "content": parts,
        "created_at": "2025-10-31T22:56:56.459100+00:00",
        "tool_calls": None,
        "tool_call_id": None,
        **more,
    }


def call(identity: str, name: str, **arguments: object) -> Json:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": identity, "type": "function", "function": function}


def agent_file() -> Json:
    packed = {"type": "user_message", "message": "Where is my order?", "time": "2025-10-31"}
    returned = {"status": "OK", "message": "shipped", "time": "2025-10-31 10:57:00 PM UTC+0000"}
    alert = {"type": "system_alert", "message": "Note: Chad had asked about a refund.", "time": "-"}
    conversation = [
        message("system", "<base_instructions>… <memory_blocks>…"),
        message("user", json.dumps({"type": "login", "last_login": "never"})),
        message("user", json.dumps(packed)),
        message("assistant", "He wants his order.", tool_calls=[call("c1", "find_order", id=7)]),
        message("tool", json.dumps(returned), tool_call_id="c1", name="find_order"),
        message("assistant", "Tell him.", tool_calls=[call("c2", "send_message", message="It is coming.")]),
        message("tool", json.dumps({"status": "OK", "message": "None", "time": "-"}), tool_call_id="c2"),
        message("user", json.dumps(alert)),
        message("assistant", [{"type": "omitted_reasoning"}, {"type": "text", "text": "Anything else?"}]),
        message("approval", [], approve=True),
    ]
    agent = {
        "id": "agent-0",
        "name": "support",
        "block_ids": ["block-0", "block-1", "block-2", "block-3"],
        "messages": [{"id": f"message-{n}", **one} for n, one in enumerate(conversation)],
        "tool_exec_environment_variables": {"API_KEY": "sk-1"},
        "tool_rules": [],
    }
    return {
        "agents": [agent, {"id": "agent-1", "name": "second", "block_ids": ["block-3"], "messages": []}],
        "blocks": [
            block("block-0", "human", HUMAN),
            block("block-1", "persona", "I am Sam."),
            block("block-2", "orders", "Order 7 is late."),
            block("block-3", "policies", "Refunds take 5 days."),
            block("block-4", "empty", "  "),
        ],
        "passages": [{"id": "passage-1", "text": "Chad lives in Berkeley.", "tags": ["place"]}],
        "tools": [{"name": "find_order"}, {"name": "send_message"}],
        "groups": [],
        "files": [{"file_name": "terms.pdf"}],
        "sources": [],
        "mcp_servers": [],
    }


def test_messages_are_what_was_said_and_all_else_has_a_line(tmp_path: Path) -> None:
    taken = take(write_json(tmp_path / "support.af", agent_file(), 2))
    assert taken.by_chat.keys() == {"letta:support"}
    assert taken.said == [
        ("user", "Where is my order?"),
        ("assistant", "He wants his order."),
        ("tool", "shipped"),
        ("assistant", "It is coming."),
        ("assistant", "Anything else?"),
    ]
    assert sorted(reason for _, reason in taken.left) == [
        "a file of a data source: import its text itself",
        *["a tool, which Holdfast does not run"] * 2,
        "a variable of tools, which may be a key",
        "an approval of a call",
        "an empty memory block",
        "an event that Letta wrote: login",
        "the result of send_message, which says nothing",
        "the system text, which Letta writes anew from the blocks",
    ]
    assert "sk-1" not in repr(taken)


def test_core_memory_passages_and_summaries_become_records_once(memory: Memory, tmp_path: Path) -> None:
    path = write_json(tmp_path / "support.af", agent_file())
    report = import_paths(memory, path)
    assert (report.added, report.records, report.problems) == (5, 6, ())
    found = {(one.kind, one.agent, one.category): one.text for one in memory.records()}
    assert found == {
        ("profile", "support", ""): HUMAN,
        ("soul", "support", ""): "I am Sam.",
        ("fact", "support", "orders"): "Order 7 is late.",
        ("fact", "", "policies"): "Refunds take 5 days.",
        ("finding", "support", "summary"): "Note: Chad had asked about a refund.",
        ("finding", "", ""): "Chad lives in Berkeley.",
    }
    assert {one.by for one in memory.records()} == {"import"}
    assert memory.scoped(agent="support").chat("letta:support").prompt(500).system.count(HUMAN[:16]) == 1
    (tmp_path / "copy.af").write_bytes(path.read_bytes())
    again = import_paths(memory, tmp_path / "copy.af")
    assert (again.added, again.present, again.records, again.records_present) == (0, 5, 0, 6)


def test_the_earlier_form_of_one_agent(quick: Memory, tmp_path: Path) -> None:
    labels = (("human", HUMAN), ("human", "Likes trains and old maps."), ("", "x"))
    old = {
        "name": "memgpt",
        "version": "0.6.40",
        "core_memory": [{"label": label, "value": value} for label, value in labels],
        "messages": [message("user", "Hello"), {"role": "user", "text": "older still"}, "junk"],
        "tools": [{"name": "send_message"}],
    }
    report = import_paths(quick, write_json(tmp_path / "old.af", old))
    records = {(one.kind, one.category) for one in quick.records()}
    assert records >= {("profile", ""), ("fact", "block")}
    said = quick.scoped(agent="memgpt").chat("letta:memgpt").history()
    assert [one.content for one in said] == ["Hello", "older still"]
    assert ("no message", (3,)) in [(one.reason, one.lines) for one in report.skipped]


def test_a_profile_that_is_there_is_not_replaced(quick: Memory, tmp_path: Path) -> None:
    quick.scoped(agent="support").remember("Our own.", "profile")
    report = import_paths(quick, write_json(tmp_path / "support.af", agent_file()))
    assert [one.reason for one in report.problems] == ["there is a profile already, which is left as it is"]
    assert [one.text for one in quick.records(kind="profile")] == ["Our own."]
