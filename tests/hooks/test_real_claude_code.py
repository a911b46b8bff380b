"""Claude Code itself, with the hooks installed: what reaches the model, and what is stored of a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real_client import ClaudeCode, until

from anthropic_server import COMPACTS, Model, texts
from llm_server import Body

pytestmark = pytest.mark.slow

RIVERS = (
    "We decided that releases of the shop are named after rivers, and the next one is called Tagliamento."
)
QUESTION = "What is the next release of the shop called, after which river?"
CONTEXT = "hook additional context: "


def speak(body: Body) -> str:
    if any(COMPACTS in text for _, text in texts(body)):
        return "<summary>The person and the agent spoke.</summary>"
    return "Understood."


def contexts(rows: list[dict[str, Any]], event: str) -> list[str]:
    """Return what hooks of an event added to the context, by the transcript."""
    inner = (row.get("attachment", {}) for row in rows)
    added = (one for one in inner if one.get("type") == "hook_additional_context")
    return [text for one in added if one["hookEvent"] == event for text in one["content"]]


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[ClaudeCode]:
    with Model(speak) as model:
        client = ClaudeCode(tmp_path / "ada", model)
        client.install()
        yield client


def test_a_fact_of_an_earlier_session_reaches_the_model(claude: ClaudeCode) -> None:
    first = claude.ask(RIVERS)
    assert "Tagliamento" in " ".join(claude.wait_for(first, "Tagliamento", "Understood."))
    second = claude.ask(QUESTION)
    asked = claude.model.asked(QUESTION)
    assert "Tagliamento" in asked.partition("UserPromptSubmit " + CONTEXT)[2]
    # It is shown, not said: what was injected is never stored as a message.
    said = claude.wait_for(second, QUESTION, "Understood.")
    assert not any("Tagliamento" in text for text in said)


def notes(number: int) -> str:
    """Write a prompt that is long enough for a few of them to be summarised."""
    sentences = (
        f"Step {number}.{n}: shelf {n * 7} needs label {n * 13} before it is painted." for n in range(60)
    )
    return f"Note {number}. {' '.join(sentences)}"


def test_a_compaction_is_survived_and_so_is_a_resume_after_it(claude: ClaudeCode) -> None:
    session = claude.talk(RIVERS + notes(0), *(notes(number) for number in range(1, 12)))
    claude.wait_for(session, "Tagliamento", "Note 11.")
    until(lambda: claude.summaries(session), lambda found: any("Tagliamento" in text for text in found))
    claude.talk("/compact", "What was the first thing we decided?", resume=session)

    rows = claude.transcript(session)
    (boundary,) = (place for place, row in enumerate(rows) if row.get("subtype") == "compact_boundary")
    after, *_ = contexts(rows[boundary:], "SessionStart")
    # It comes from the summary tree: the newest messages do not name it, nor does the summary of the model.
    background, _, newest = after.partition("</background>")
    assert "Tagliamento" in background
    assert "Tagliamento" not in newest
    asked = claude.model.asked("What was the first thing we decided?")
    assert after in asked
    assert "The person and the agent spoke." in asked
    assert RIVERS not in asked.replace(after, "")

    claude.ask("Shall we go on with the list?", resume=session)
    *_, resumed = contexts(claude.transcript(session), "SessionStart")
    assert "Tagliamento" in resumed
    assert resumed in claude.model.asked("Shall we go on with the list?")
    said = claude.wait_for(session, "Shall we go on with the list?")
    # Neither a summary of the client nor what was injected is stored as said, and nothing twice.
    assert sum("Tagliamento" in text for text in said) == 1
    assert not any("The person and the agent spoke." in text for text in said)
