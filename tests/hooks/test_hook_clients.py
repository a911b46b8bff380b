"""What each client writes to a hook, and how it is answered: by calls recorded of the real clients."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from hook_runs import Hooks
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast_cli.hooks.clients import LIMIT, NAMES, client_of
from holdfast_cli.hooks.hook_call import EVENTS, Event, HookCall
from tables import each

FIXTURES = Path(__file__).parent / "fixtures"
RECORDED = sorted(FIXTURES.rglob("*.json"))


def event_of(file: Path) -> Event:
    return cast("Event", max((event for event in EVENTS if file.stem.startswith(event)), key=len))


def call_of(client: str, recorded: str) -> HookCall:
    file = FIXTURES / client / f"{recorded}.json"
    return client_of(client).parse(event_of(file), json.loads(file.read_text("utf-8")))


@each("file", RECORDED)
def test_a_recorded_call_names_its_session_and_folder(file: Path) -> None:
    payload = json.loads(file.read_text("utf-8"))
    call = client_of(file.parent.name).parse(event_of(file), payload)
    assert (call.client, call.event) == (file.parent.name, event_of(file))
    assert call.session == payload.get("conversation_id", payload.get("session_id"))
    assert call.cwd == "/home/ada/shop"
    assert bool(call.agent) == file.stem.endswith("-agent")


@each("name", NAMES)
def test_every_event_was_recorded(name: str) -> None:
    client = client_of(name)
    recorded = {
        json.loads(file.read_text("utf-8"))["hook_event_name"] for file in (FIXTURES / name).iterdir()
    }
    assert {hook.native for hook in client.hooks} == recorded
    assert {hook.event for hook in client.hooks} == set(EVENTS)


@each("name", NAMES)
def test_words_come_with_the_prompt_and_the_stop(name: str) -> None:
    assert call_of(name, "prompt").prompt == "What is the plan?"
    stop = call_of(name, "stop")
    assert (stop.prompt, stop.answer) == ("", "" if name == "cursor" else "All done.")
    with pytest.raises(InvalidInput, match="emacs"):
        client_of("emacs")


def test_context_of_hooks_before_a_prompt_is_nobodys_words() -> None:
    file = FIXTURES / "gemini" / "prompt.json"
    assert json.loads(file.read_text("utf-8"))["prompt"].startswith("<hook_context>")
    parse = client_of("gemini").parse
    for prompt, said in (
        ("<hook_context>a</hook_context>\n\n<hook_context>b</hook_context>\nGo on.", "Go on."),
        ("What is a <hook_context>x</hook_context>?", "What is a <hook_context>x</hook_context>?"),
        ("<hook_context>" * 50_000, "<hook_context>" * 50_000),
    ):
        assert parse("prompt", {"session_id": "s", "prompt": prompt}).prompt == said


def test_a_sub_agent_has_a_transcript_of_its_own() -> None:
    for name in ("claude-code", "codex", "cursor"):
        agent, main = call_of(name, "stop-agent"), call_of(name, "stop")
        assert agent.session == main.session
        assert agent.transcript
        assert agent.transcript != main.transcript


def test_why_a_session_starts() -> None:
    assert call_of("claude-code", "session-start").source == "startup"
    assert call_of("claude-code", "session-start-resume").source == "resume"
    assert call_of("claude-code", "session-start-compact").source == "compact"
    assert call_of("codex", "session-start-compact").source == "compact"
    assert call_of("cursor", "session-start").source == "startup"
    fork = {"session_id": "s", "source": "fork"}
    assert client_of("codex").parse("session-start", fork).source == "resume"
    assert client_of("codex").parse("session-start", {"session_id": "s", "source": "new"}).source == "startup"
    assert call_of("codex", "stop").source == ""


def test_the_transcript_of_cursors_command_line_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    parse = client_of("cursor").parse
    for session, name in (("a-1", "a-1.jsonl"), ("b-2", "b-2/b-2.jsonl")):
        assert parse("stop", {"conversation_id": session}).transcript == ""
        path = tmp_path / ".cursor" / "projects" / "shop" / "agent-transcripts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        assert parse("stop", {"conversation_id": session, "transcript_path": None}).transcript == str(path)
    # No id leads out of the folder, or matches several; plain text is read by nothing.
    for session in ("*", "../a-1", "a-?"):
        assert parse("stop", {"conversation_id": session}).transcript == ""
    assert parse("stop", {"conversation_id": "a-1", "transcript_path": "/a-1.txt"}).transcript == ""


def test_cursor_is_not_taken_for_claude_code_whose_hooks_it_runs() -> None:
    payload = json.loads((FIXTURES / "cursor" / "prompt.json").read_text("utf-8"))
    with pytest.raises(InvalidInput, match="Cursor") as caught:
        client_of("claude-code").parse("prompt", payload)
    assert "holdfast install cursor" in caught.value.todo


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=2)
MEMBERS = sorted({name for file in RECORDED for name in json.loads(file.read_text("utf-8"))})


@given(st.sampled_from(NAMES), st.sampled_from(EVENTS), st.dictionaries(st.sampled_from(MEMBERS), VALUES))
def test_members_of_any_type_are_a_call_or_refused(name: str, event: Event, payload: dict[str, Any]) -> None:
    try:
        call = client_of(name).parse(event, payload)
    except InvalidInput:
        return
    assert call.session
    parts = (call.cwd, call.transcript, call.prompt, call.answer, call.source, call.agent)
    assert all(isinstance(part, str) for part in parts)


# Answers

# The answers to a text and to none.
ANSWERS = {
    **{
        (name, event): (
            {"hookSpecificOutput": {"hookEventName": native, "additionalContext": "Ä\u2028 known."}},
            none,
        )
        for name, prompt, none in (
            *(("claude-code", "UserPromptSubmit", ""), ("codex", "UserPromptSubmit", {})),
            ("gemini", "BeforeAgent", {}),
        )
        for event, native in (("session-start", "SessionStart"), ("prompt", prompt))
    },
    ("cursor", "session-start"): ({"additional_context": "Ä\u2028 known."}, {}),
    ("cursor", "prompt"): ({"continue": True, "additional_context": "Ä\u2028 known."}, {"continue": True}),
}


@each("name", NAMES)
@each("event", EVENTS)
def test_a_text_becomes_context_where_the_client_takes_one(name: str, event: Event) -> None:
    none = "" if name == "claude-code" else {}
    for text, expected in zip(("Ä\u2028 known.", ""), ANSWERS.get((name, event), (none, none)), strict=True):
        answer = client_of(name).answer(event, text)
        assert (json.loads(answer) if answer else answer) == expected


@given(st.sampled_from(NAMES), st.text(), st.integers(0, 3_000))
def test_an_answer_is_ascii_and_within_the_limit(name: str, text: str, times: int) -> None:
    answer = client_of(name).answer("session-start", text * times)
    assert answer.isascii()
    found = json.loads(answer or "{}")
    context = found.get("additional_context") or found.get("hookSpecificOutput", {}).get("additionalContext")
    if text * times:
        assert len(context.encode("utf-16-le")) // 2 <= LIMIT
    if len(text * times) < 4_000:
        assert (context or "") == (text * times)


@each("name", NAMES)
def test_a_message_is_for_the_person(name: str) -> None:
    for event in EVENTS:
        answer = json.loads(client_of(name).answer(cast("Event", event), "", "The last call failed."))
        assert answer.get("systemMessage") == (None if name == "cursor" else "The last call failed.")
        assert "hookSpecificOutput" not in answer


def test_a_hook_loads_no_command_line_and_for_small_talk_no_memory(tmp_path: Path) -> None:
    hooks = Hooks(tmp_path)
    with hooks.memory() as memory:
        memory.chat("other").append(role="user", content="The staging server is called heron.")
    late = {"typer", "rich", "asyncio", "platformdirs", "importlib.resources", "holdfast_cli.commands"}
    for prompt, later in (
        ("What is the staging server called?", set[str]()),
        ("ok, go on", {"numpy", "sqlite3", "holdfast.memory"}),
    ):
        process = hooks.start("prompt", PYTHONPROFILEIMPORTTIME="1")
        answer, told = process.communicate(hooks.payload(prompt=prompt))
        assert (b"heron" in answer) is not bool(later)
        loaded = set(re.findall(r"([\w.]+)$", told.decode(), re.MULTILINE))
        assert "holdfast_cli.hooks.events" in loaded
        assert loaded.isdisjoint(late | later)
