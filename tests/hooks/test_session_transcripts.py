"""Transcripts of Codex and Gemini CLI, as these wrote them, and of Cursor, imported by their hooks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hook_runs import Hooks

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths

pytestmark = pytest.mark.slow

IMPORTED = Path(__file__).parents[1] / "data" / "imported"
PROMPT = "What files are here?"


@dataclass
class Session:
    """A session of a client in the shop, with the lines that the client has written so far."""

    hooks: Hooks
    lines: list[str]
    id: str

    @property
    def transcript(self) -> Path:
        return self.hooks.transcript(self.id)

    def grow(self, to: int | None = None) -> None:
        """Let the client write up to a line, or all."""
        self.transcript.write_text("".join(self.lines[:to]), encoding="utf-8")

    def call(self, event: str, **payload: str) -> str:
        return self.hooks.call(event, self.id, **payload)

    def said(self) -> list[tuple[str, str]]:
        with self.hooks.memory() as memory:
            return [(one.role, one.content) for one in memory.chat(self.id).history()]


@pytest.fixture(params=["codex", "cursor", "gemini"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    client = request.param
    recorded, identity = {
        "codex": ("codex-0.169.0-session.jsonl", "01a20ea4-1fed-71b1-96be-8b2ca59b86fa"),
        # What others have published of the editor's transcripts, which have no times.
        "cursor": ("cursor-by-hand.jsonl", "0f3c1f6e-8f0b-4c61-9d8e-2f7f4a0b9c11"),
        "gemini": ("gemini-0.61.0.jsonl", "ee302b2c-e50c-4b61-a325-ef00c13e40e1"),
    }[client]
    lines = (IMPORTED / recorded).read_text("utf-8").splitlines(keepends=True)
    return Session(Hooks(tmp_path, client), lines, identity)


def as_imported(session: Session) -> list[tuple[str, str]]:
    with Memory(":memory:") as memory:
        import_paths(memory, session.transcript)
        return [(one.role, one.content) for one in memory.chat(session.id).history()]


@pytest.mark.slow
def test_a_stop_imports_every_message_call_and_result_once(session: Session) -> None:
    session.grow(len(session.lines) // 2)
    assert session.call("stop") == "{}"
    half = session.said()
    session.grow()
    for event in ("stop", "stop", "session-end"):
        session.call(event)
    whole = session.said()
    assert whole == as_imported(session)
    assert 0 < len(half) < len(whole)
    assert {"user", "assistant", "tool"} == {role for role, _ in whole}
    assert not any(run.error for run in session.hooks.journal())
    with session.hooks.memory() as memory:
        stored = [str((one.content, one.raw)) for one in memory.chat(session.id).history()]
    assert not any("secret 1234" in one for one in stored)
    assert any("left out, as the user asked" in one for one in stored)


@pytest.mark.slow
def test_what_was_erased_does_not_come_back(session: Session) -> None:
    session.grow(-1)
    session.call("stop")
    with session.hooks.memory() as memory:
        memory.erase(chat=session.id, messages=1)
    session.grow()
    session.call("session-end")
    assert PROMPT not in [text for _, text in session.said()]


def test_a_prompt_that_was_stored_before_there_was_a_transcript_is_stored_once(session: Session) -> None:
    session.call("session-start", source="startup")
    session.call("prompt", prompt=PROMPT)
    assert session.said() == [("user", PROMPT)]
    session.grow()
    # Where there is one, the stop will store what is submitted.
    session.call("prompt", prompt="Write a note")
    assert session.said() == [("user", PROMPT)]
    session.call("stop")
    assert [text for role, text in session.said() if text == PROMPT] == [PROMPT]
    assert sorted(session.said()) == sorted(as_imported(session))


def test_an_answer_names_what_the_session_was_shown(session: Session) -> None:
    with session.hooks.memory() as memory:
        known = memory.remember("The office is in Lisbon.", target="env")
    assert "Lisbon" in session.call("session-start", source="startup")
    # They were recorded before this session was shown anything.
    session.lines = [line.replace("2026-", "2099-") for line in session.lines]
    session.grow()
    session.call("stop")
    with session.hooks.memory() as memory:
        answers = [one for one in memory.chat(session.id).history() if one.role == "assistant"]
    assert answers
    assert all(known.id in one.shown for one in answers)
