"""Rollouts of Codex: recorded by the program, and what it writes in other cases."""

from __future__ import annotations

from pathlib import Path

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.private_tags import PRIVATE
from tables import each
from transcripts import Json, codex, take, write_lines

RECORDED = Path(__file__).parents[1] / "data" / "imported"


def said(role: str, text: str, **more: object) -> Json:
    kind = "input_text" if role != "assistant" else "output_text"
    content = [{"type": kind, "text": text}]
    return codex("response_item", type="message", role=role, content=content, **more)


def item(kind: str, **more: object) -> Json:
    return codex("response_item", type=kind, **more)


def started(identity: str = "s1", **more: object) -> Json:
    return codex("session_meta", id=identity, cwd="/home/ada/shop", **more)


def test_a_recorded_session_is_read_whole() -> None:
    taken = take(RECORDED / "codex-0.169.0-session.jsonl")
    result = taken.messages[4][1]
    assert taken.said == [
        ("user", "What files are here?"),
        ("assistant", "[reasoning]"),
        ("assistant", "I look."),
        ("assistant", ""),
        ("tool", result.content),
        ("assistant", "There is one file, plan.txt."),
        ("user", f"Where does the office move? {PRIVATE}"),
        ("assistant", "We decided that the office moves to Porto in May."),
    ]
    (call,) = taken.messages[3][1].calls
    assert (call.name, call.arguments) == ("exec_command", {"cmd": "ls"})
    assert result.call_id == call.id
    assert result.content.endswith("plan.txt\n")
    assert str(taken.messages[0][1].at) == "2026-11-24 17:39:26.925000+00:00"
    assert sum(one.count for one in taken.report.skipped) + 8 == 37
    assert {one.reason.removeprefix("not conversation: ") for one in taken.report.skipped} == {
        *("session_meta", "event_msg", "turn_context", "world_state", "token_usage_record"),
        *("instructions of the program (developer)", "context that the program added"),
    }


NOTED = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": ["user.text"]}}


def back(turns: int) -> Json:
    return codex("event_msg", type="thread_rolled_back", num_turns=turns)


@each(
    ("lines", "texts", "left"),
    [
        # Turns that were taken back are left out, and more turns than there are leave nothing.
        (
            [
                *(said("user", "one"), said("assistant", "1"), said("user", "two"), said("assistant", "2")),
                *(back(1), back(1), said("user", "three"), said("user", "four"), back(1)),
            ],
            ["three"],
            [2, 3, 4, 5, 9],
        ),
        ([said("user", "one"), back(10**30), said("user", "two")], ["two"], [2]),
        # What the program says as the user is not said by the user, nor are compactions.
        (
            [
                said("user", "# AGENTS.md instructions for /home/ada/shop\n\n<INSTRUCTIONS>"),
                said("user", "<environment_context>\n  <cwd>/home/ada/shop</cwd>"),
                said("user", "<turn_aborted>"),
                said("user", "<environment_context> is what I ask about", **NOTED),
                codex("compacted", message="What was said", replacement_history=[]),
                said("user", "go on"),
            ],
            ["<environment_context> is what I ask about", "go on"],
            [2, 3, 4, 6],
        ),
        # Before September 2025 items were bare.
        (
            [
                {"record_type": "state"},
                said("user", "Hello")["payload"],
                {"type": "reasoning", "id": "r", "summary": []},
                said("assistant", "Hi")["payload"],
            ],
            ["Hello", "[reasoning]", "Hi"],
            [],
        ),
    ],
)
def test_what_was_said_in_a_rollout(
    tmp_path: Path, lines: list[Json], texts: list[str], left: list[int]
) -> None:
    head = (
        started()
        if "payload" in lines[0]
        else {"id": "s1", "timestamp": "2025-07-01T09:00:00Z", "instructions": None}
    )
    taken = take(write_lines(tmp_path / "rollout.jsonl", [head, *lines]))
    assert taken.by_chat == {"s1": texts}
    reasons = (
        "on a branch that was left",
        "a summary of",
        "not conversation: context",
        "not conversation: state",
    )
    assert [line for line, reason in taken.left if reason.startswith(reasons)] == left


def test_every_kind_of_call_and_output(tmp_path: Path) -> None:
    lines = [
        started(),
        item("local_shell_call", call_id="a", action={"type": "exec", "command": ["ls"]}),
        item("function_call_output", call_id="a", output={"content": "x", "success": True}),
        item("custom_tool_call", call_id="b", name="apply_patch", input="*** Begin Patch"),
        item("custom_tool_call_output", call_id="b", output="Done"),
        item("web_search_call", id="ws", action={"type": "search", "query": "Porto"}),
        item("image_generation_call", id="ig", revised_prompt="a heron", result="iVBORw0KGgo="),
        item("tool_search_call", call_id="ts", execution="client", arguments={"query": "mail"}),
        item("tool_search_output", call_id="ts", execution="client", tools=[{"name": "send_mail"}]),
        item("mcp_call", id="m", name="lookup", server_label="s", arguments='{"k": 1}', output="found"),
        item("code_interpreter_call", id="c", code="1+1", outputs=[{"type": "logs", "logs": "2"}]),
        item("ghost_snapshot", ghost_commit={}),
    ]
    taken = take(write_lines(tmp_path / "rollout.jsonl", lines))
    assert [(call.id, call.name, call.arguments) for _, one in taken.messages for call in one.calls] == [
        ("a", "local_shell", {"type": "exec", "command": ["ls"]}),
        ("b", "apply_patch", "*** Begin Patch"),
        ("ws", "web_search", {"type": "search", "query": "Porto"}),
        ("ig", "image_generation", {"revised_prompt": "a heron"}),
        ("ts", "tool_search", {"query": "mail"}),
        ("m", "lookup", {"k": 1}),
        ("c", "code_interpreter", {"code": "1+1"}),
    ]
    assert [(one.call_id, one.content) for _, one in taken.messages if one.role == "tool"] == [
        ("a", "x"),
        ("b", "Done"),
        ("ig", "[image: a heron]"),
        ("ts", '{"tools": [{"name": "send_mail"}]}'),
        ("m", "found"),
        ("c", '[{"type": "logs", "logs": "2"}]'),
    ]
    assert taken.left[1:] == [(12, "not conversation: ghost_snapshot")]


PARENT, CHILD, GRANDCHILD = (f"01a1000{n}-0000-7000-8000-000000000001" for n in (0, 2, 4))


def at(time: str, line: Json) -> Json:
    return {**line, "timestamp": f"2026-07-{time}Z"}


def turn(number: int) -> Json:
    return codex("turn_context", turn_id=f"01a1000{number}-5555-7000-8000-0000000000aa")


def forks(*, turns: bool) -> list[list[Json]]:
    """Make a session, a fork of it, and a fork of the fork; each repeats what it was made from."""
    plums = said("user", "Which plums?")
    first = [turn(1), plums, said("assistant", "Damsons."), plums]
    second = [turn(3), said("user", "And apples?"), said("assistant", "Bramleys.")]
    third = [turn(5), said("user", "And pears?")]
    own = (started(PARENT), started(CHILD, forked_from_id=PARENT), started(GRANDCHILD, forked_from_id=CHILD))
    copied = [own[1], own[0], *first], [own[2], *own[1::-1], *first, *second]
    files = [[at(f"01T10:00:0{n}", one) for n, one in enumerate([own[0], *first])]]
    for day, old, new in ((2, copied[0], second), (3, copied[1], third)):
        files.append(
            [at(f"0{day}T08:00:00", one) for one in old] + [at(f"0{day}T08:01:00", one) for one in new]
        )
    return [[one for one in lines if turns or one["type"] != "turn_context"] for lines in files]


@each("turns", [True, False])
def test_what_a_fork_repeats_is_of_the_session_that_it_was_made_from(tmp_path: Path, turns: bool) -> None:
    # Without the ids of turns, the pause before the first new line tells what a fork copied, not from whom.
    expected = [3, 2, 1] if turns else [3, 2]
    named = zip((PARENT, CHILD, GRANDCHILD), forks(turns=turns), strict=True)
    files = [write_lines(tmp_path / f"rollout-{name}-{turns}.jsonl", lines) for name, lines in named]
    with Memory(":memory:") as memory:
        assert [import_paths(memory, file).added for file in files[: len(expected)]] == expected
        assert len(memory.chat(PARENT).history()) == 3
        assert [one.content for one in memory.chat(CHILD).history()] == ["And apples?", "Bramleys."]
    with Memory(":memory:") as memory:
        # The session itself is gone.
        assert import_paths(memory, files[1]).added == 5
        assert import_paths(memory, files[0]).added == 0


def test_a_sub_agent_is_a_chat_of_its_own_and_the_archive_is_archived(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "s1", "depth": 1}}}
    lines = [started("s2", source=source), said("user", "look"), started("s1"), said("user", "again")]
    taken = take(write_lines(tmp_path / "archived_sessions" / "rollout.jsonl", lines))
    assert taken.by_chat == {"s1/agent-s2": ["look", "again"]}
    assert taken.chats["s1/agent-s2"].archived
