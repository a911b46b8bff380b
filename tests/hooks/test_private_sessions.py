"""Sessions with hooks, of which the user keeps a part private: in no answer, no file and no byte."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import pytest
from hook_runs import Hooks

from database_bytes import database_bytes
from holdfast import Memory
from holdfast_cli.hooks import pause
from holdfast_cli.hooks.project import project_of
from transcripts import Json, claude, result, write_lines

KNOWN = "We decided to keep the invoices in Lisbon, because the auditors of the shop ask for that."


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hooks:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("HOLDFAST_PROJECT", raising=False)
    return Hooks(tmp_path)


def line(hooks: Hooks, kind: str, uuid: str, parent: str | None, content: object, **more: object) -> Json:
    return {**claude(kind, uuid, parent, content, cwd=str(hooks.shop)), "timestamp": now(), **more}


def now() -> str:
    return datetime.now(UTC).isoformat()


def everything(hooks: Hooks) -> bytes:
    """Return the bytes of the database, and of all files of the state."""
    files = [file for file in (hooks.folder / "state").rglob("*") if file.is_file()]
    with Memory(hooks.db) as memory:
        return (
            database_bytes(memory, str(hooks.db), hooks.folder)
            + b"".join(map(Path.read_bytes, files)).lower()
        )


def stored(hooks: Hooks) -> list[str]:
    with Memory(hooks.db, admin=True) as memory:
        spaces = [memory, *(memory.scoped(user=user) for user in memory.grants.users())]
        projects = [Memory(hooks.db, project=project_of(hooks.shop).name)]
        read = [
            one.content
            for each in (*spaces, *projects)
            for chat in each.chats()
            for one in each.chat(chat.id).history()
        ]
        projects[0].close()
        return read


@pytest.mark.slow
def test_private_words_of_a_prompt_are_nowhere(hooks: Hooks) -> None:
    prompt = "Where do we keep <private>the zanzibar account</private>?"
    lines = [
        line(hooks, "user", "u1", None, prompt),
        line(hooks, "assistant", "a1", "u1", "I keep the zanzibar account in the vault."),
    ]
    write_lines(hooks.transcript(), lines[:1])
    hooks.call("prompt", prompt=prompt)
    hooks.call("stop")
    # The next stop imports the answer only, and knows of the tag all the same.
    write_lines(hooks.transcript(), lines)
    hooks.call("stop")
    hooks.call("session-end")
    assert b"zanzibar" not in everything(hooks)
    assert len(stored(hooks)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("client", ["cursor", "codex", "gemini"])
def test_the_words_of_clients_without_transcripts_are_kept_without_what_is_private(
    hooks: Hooks, client: str
) -> None:
    hooks.client = client
    hooks.raw("session-start", json.dumps(hooks.recorded(client, "session-start")).encode(), "--wait")
    prompts = [f"Use <private>the zanzibar account</private> {pin}." for pin in ("", "<private>12</private>")]
    for prompt in prompts:
        payload = hooks.recorded(client, "prompt") | {"prompt": prompt}
        hooks.raw("prompt", json.dumps(payload).encode(), "--wait")
    with Memory(hooks.db, project=hooks.journal()[-1].project) as memory:
        assert [chat.messages for chat in memory.chats()] == [2]
    found = everything(hooks)
    assert b"zanzibar" not in found
    # Nor a hash of them, from which a short number can be guessed.
    for prompt in prompts:
        digest = blake2b(f"user\0{prompt}".encode(), digest_size=12).hexdigest()
        assert digest.encode() not in found


def with_result(hooks: Hooks, text: str) -> list[Json]:
    (hooks.shop / ".holdfastignore").write_text("secrets/\n")
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "secrets/a"}}
    return [
        line(hooks, "user", "u1", None, "What do the notes say?"),
        line(hooks, "assistant", "a1", "u1", [call]),
        line(hooks, "user", "r1", "a1", result("t1", text)),
    ]


@pytest.mark.slow
def test_what_an_ignored_file_says_is_recognised_after_later_stops(hooks: Hooks) -> None:
    key, note = "sk9Zq71kkW0aPq3R", "the zanzibar harbour opens with a copper whistle"
    lines = with_result(hooks, f"     1\u2192{note}\n     2\u2192KEY={key}")
    for number in range(3):
        write_lines(hooks.transcript(), lines)
        hooks.call("stop")
        parent = lines[-1]["uuid"]
        lines.append(line(hooks, "assistant", f"b{number}", parent, f"The key is {key}.\n{note}\n"))
    found = everything(hooks)
    assert b"zanzibar" not in found
    assert key.lower().encode() not in found
    assert len(stored(hooks)) == 5


@pytest.mark.slow
def test_while_paused_nothing_is_stored_or_injected(hooks: Hooks) -> None:
    with_words = line(hooks, "user", "u1", None, KNOWN)
    write_lines(hooks.transcript(), [with_words])
    hooks.call("stop")
    assert "Lisbon" in hooks.context("prompt", "s2", prompt="Where do we keep the invoices of the shop?")
    project = project_of(hooks.shop)
    pause.pause(project.name, str(project.root))
    during = line(hooks, "user", "u2", "u1", "zanzibar", cwd=str(hooks.folder))
    write_lines(hooks.transcript(), [with_words, during])
    for event in ("session-start", "prompt", "stop", "before-compaction", "session-end"):
        assert hooks.context(event, prompt="Where do we keep the invoices of the shop?") == ""
    assert stored(hooks) == [KNOWN]
    pause.resume(project.name, str(project.root))
    write_lines(hooks.transcript(), [with_words, during, line(hooks, "user", "u3", "u2", "afterwards")])
    hooks.call("stop")
    assert stored(hooks) == [KNOWN, "afterwards"]
    assert b"zanzibar" not in everything(hooks)


@pytest.mark.slow
@pytest.mark.parametrize("stops", [1, 2])
def test_the_title_of_what_was_said_in_a_pause_is_nowhere(hooks: Hooks, stops: int) -> None:
    pause.pause("", "")
    title = {"type": "ai-title", "aiTitle": "Zanzibar accounts", "sessionId": "s1"}
    lines = [line(hooks, "user", "u1", None, "zanzibar"), title]
    write_lines(hooks.transcript(), lines)
    pause.resume("", "")
    for number in range(stops):
        hooks.call("stop")
        lines.append(line(hooks, "user", f"v{number}", "u1", "afterwards"))
        write_lines(hooks.transcript(), lines)
    hooks.call("stop")
    assert stored(hooks) == ["afterwards"] * stops
    assert b"zanzibar" not in everything(hooks)


@pytest.mark.parametrize(("file", "text"), [("state/pauses.jsonl", "{"), ("shop/.holdfastignore", "*\n")])
def test_of_a_damaged_list_of_pauses_or_an_ignored_project_there_is_no_memory(
    hooks: Hooks, file: str, text: str
) -> None:
    write_lines(hooks.transcript(), [line(hooks, "user", "u1", None, KNOWN)])
    (hooks.folder / file).parent.mkdir(exist_ok=True)
    (hooks.folder / file).write_text(text)
    hooks.call("stop")
    assert hooks.context("session-start") == ""
    assert not hooks.db.exists()
