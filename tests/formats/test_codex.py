"""Rollouts of Codex: recorded by the program, and what it writes in other cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Memory
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.json_values import hook_id
from holdfast_cli.formats.private_tags import PRIVATE
from tables import each
from transcripts import Json, codex, contents, messages, read, skips, write_lines

RECORDED = Path(__file__).parents[1] / "data" / "imported"
SESSION = "01a20ea4-1fed-71b1-96be-8b2ca59b86fa"


def said(role: str, text: str, **more: object) -> Json:
    kind = "input_text" if role != "assistant" else "output_text"
    content = [{"type": kind, "text": text}]
    return codex("response_item", type="message", role=role, content=content, **more)


def item(kind: str, **more: object) -> Json:
    return codex("response_item", type=kind, **more)


def started(identity: str = "s1", **more: object) -> Json:
    return codex("session_meta", id=identity, cwd="/home/ada/shop", **more)


def test_a_recorded_session_is_read_whole() -> None:
    items = read(RECORDED / "codex-0.169.0-session.jsonl")
    assert messages(items) == [
        (SESSION, "user", "What files are here?"),
        (SESSION, "assistant", "[reasoning]"),
        (SESSION, "assistant", "I look."),
        (SESSION, "assistant", ""),
        (SESSION, "tool", messages(items)[4][2]),
        (SESSION, "assistant", "There is one file, plan.txt."),
        (SESSION, "user", "Where does the office move? <private>secret 1234</private>"),
        (SESSION, "assistant", "We decided that the office moves to Porto in May."),
    ]
    found = [item for item in items if isinstance(item, ImportedMessage)]
    call, result = found[3].message, found[4].message
    assert [(one.name, one.arguments) for one in call.calls] == [("exec_command", {"cmd": "ls"})]
    assert result.call_id == call.calls[0].id
    assert result.content.endswith("plan.txt\n")
    assert {item.chat.folder for item in found} == {"/home/ada/shop"}
    assert str(found[0].message.at) == "2026-11-24 17:39:26.925000+00:00"
    assert len(skips(items)) + len(found) == 37
    assert {reason for _, reason in skips(items)} == {
        "not conversation: session_meta",
        "not conversation: event_msg",
        "not conversation: turn_context",
        "not conversation: world_state",
        "not conversation: token_usage_record",
        "not conversation: instructions of the program (developer)",
        "not conversation: context that the program added",
    }


def test_sessions_are_imported_once_and_without_what_is_private() -> None:
    with Memory(":memory:") as memory:
        report = import_paths(memory, RECORDED / "codex-0.169.0-session.jsonl")
        assert (report.sessions, report.added, report.problems) == (1, 8, ())
        assert import_paths(memory, RECORDED / "codex-0.169.0-session.jsonl").added == 0
        assert import_paths(memory, RECORDED / "codex-0.169.0-fork.jsonl").added == 2
        history = memory.chat(SESSION).history()
        assert history[-2].content == f"Where does the office move? {PRIVATE}"
        assert "secret 1234" not in repr([message.raw for message in history])


def test_turns_that_were_taken_back_are_left_out(tmp_path: Path) -> None:
    back = codex("event_msg", type="thread_rolled_back", num_turns=1)
    lines = [
        *(started(), said("user", "one"), said("assistant", "1"), said("user", "two")),
        *(said("assistant", "2"), back, back, said("user", "three"), said("user", "four"), back),
    ]
    items = read(write_lines(tmp_path / "rollout.jsonl", lines))
    assert contents(items) == ["three"]
    left = [line for line, reason in skips(items) if reason.startswith("on a branch that was left")]
    assert left == [2, 3, 4, 5, 9]


@pytest.mark.parametrize("turns", [99, 10**30])
def test_more_turns_than_there_are_leave_nothing(tmp_path: Path, turns: int) -> None:
    back = codex("event_msg", type="thread_rolled_back", num_turns=turns)
    path = write_lines(
        tmp_path / "rollout.jsonl", [started(), said("user", "one"), back, said("user", "two")]
    )
    assert contents(read(path)) == ["two"]


def test_compactions_and_what_the_program_says_as_the_user_are_left_out(tmp_path: Path) -> None:
    noted = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": ["user.text"]}}
    lines = [
        started(),
        said("user", "# AGENTS.md instructions for /home/ada/shop\n\n<INSTRUCTIONS>"),
        said("user", "<environment_context>\n  <cwd>/home/ada/shop</cwd>"),
        said("user", "<turn_aborted>"),
        said("user", "<environment_context> is what I ask about", **noted),
        codex("compacted", message="What was said", replacement_history=[]),
        said("user", "go on"),
    ]
    items = read(write_lines(tmp_path / "rollout.jsonl", lines))
    assert contents(items) == ["<environment_context> is what I ask about", "go on"]
    assert skips(items)[-1] == (6, "a summary of messages that come before it (compacted)")


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
    items = read(write_lines(tmp_path / "rollout.jsonl", lines))
    found = [item.message for item in items if isinstance(item, ImportedMessage)]
    calls = [(call.id, call.name, call.arguments) for message in found for call in message.calls]
    assert calls == [
        ("a", "local_shell", {"type": "exec", "command": ["ls"]}),
        ("b", "apply_patch", "*** Begin Patch"),
        ("ws", "web_search", {"type": "search", "query": "Porto"}),
        ("ig", "image_generation", {"revised_prompt": "a heron"}),
        ("ts", "tool_search", {"query": "mail"}),
        ("m", "lookup", {"k": 1}),
        ("c", "code_interpreter", {"code": "1+1"}),
    ]
    assert [(message.call_id, message.content) for message in found if message.role == "tool"] == [
        ("a", "x"),
        ("b", "Done"),
        ("ig", "[image: a heron]"),
        ("ts", '{"tools": [{"name": "send_mail"}]}'),
        ("m", "found"),
        ("c", '[{"type": "logs", "logs": "2"}]'),
    ]
    assert skips(items) == [(1, "not conversation: session_meta"), (12, "not conversation: ghost_snapshot")]


def test_calls_without_an_id_are_known_by_what_they_ask(tmp_path: Path) -> None:
    search = item("web_search_call", action={"type": "search", "query": "Porto"})
    path = write_lines(tmp_path / "rollout.jsonl", [started(), search, search])
    with Memory(":memory:") as memory:
        assert (import_paths(memory, path).added, import_paths(memory, path).added) == (2, 0)
        write_lines(path, [started(), item("function_call", name="ls", arguments="{}"), search, search])
        report = import_paths(memory, path)
        assert (report.added, report.problems) == (1, ())
        assert len({call.id for one in memory.chat("s1").history() for call in one.calls}) == 3


PARENT, CHILD, GRANDCHILD = (f"01a1000{n}-0000-7000-8000-000000000001" for n in (0, 2, 4))


def at(time: str, line: Json) -> Json:
    return {**line, "timestamp": f"2026-07-{time}Z"}


def turn(number: int) -> Json:
    return codex("turn_context", turn_id=f"01a1000{number}-5555-7000-8000-0000000000aa")


def forks(*, turns: bool) -> list[list[Json]]:
    """Make a session, a fork of it, and a fork of the fork; each repeats what it was made from."""
    first = [
        turn(1),
        said("user", "Which plums?"),
        said("assistant", "Damsons."),
        said("user", "Which plums?"),
    ]
    second = [turn(3), said("user", "And apples?"), said("assistant", "Bramleys.")]
    third = [turn(5), said("user", "And pears?")]
    metas = [
        started(PARENT),
        started(CHILD, forked_from_id=PARENT),
        started(GRANDCHILD, forked_from_id=CHILD),
    ]
    own = [[at(f"01T10:00:0{n}", one) for n, one in enumerate([metas[0], *first])]]
    copied = [metas[1], metas[0], *first]
    own.append([at("02T08:00:00", one) for one in copied] + [at("02T08:01:00", one) for one in second])
    copied = [metas[2], *metas[1::-1], *first, *second]
    own.append([at("03T08:00:00", one) for one in copied] + [at("03T08:01:00", one) for one in third])
    return [[one for one in lines if turns or one["type"] != "turn_context"] for lines in own]


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
    items = read(write_lines(tmp_path / "archived_sessions" / "rollout.jsonl", lines))
    assert messages(items) == [("s1/agent-s2", "user", "look"), ("s1/agent-s2", "user", "again")]
    assert {item.chat.archived for item in items if isinstance(item, ImportedMessage)} == {True}


def test_rollouts_of_before_september_2025_have_bare_items(tmp_path: Path) -> None:
    lines: list[Json] = [
        {"id": "s1", "timestamp": "2025-07-01T09:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
    ]
    path = write_lines(tmp_path / "rollout.jsonl", lines)
    assert messages(read(path)) == [
        ("s1", "user", "Hello"),
        ("s1", "assistant", "[reasoning]"),
        ("s1", "assistant", "Hi"),
    ]


def test_what_hooks_have_stored_of_a_session_is_not_stored_again(tmp_path: Path) -> None:
    prompts = [said("user", "go on", id=f"u{number}") for number in range(3)]
    path = write_lines(tmp_path / "rollout.jsonl", [started(), *prompts, said("assistant", "Done.", id="a")])
    with Memory(":memory:") as memory:
        chat = memory.chat("s1")
        for number in (1, 2):
            chat.append(role="user", content="go on", id=f"{hook_id('user', 'go on')}{number}")
        chat.append(role="assistant", content="Done.", id=f"{hook_id('assistant', 'Done.')}1")
        report = import_paths(memory, path)
        assert (report.added, report.present, report.problems) == (1, 3, ())
        write_lines(path, [started(), *prompts, said("user", "go on", id="u9")])
        assert import_paths(memory, path).added == 1
        assert [message.content for message in chat.history()].count("go on") == 4
