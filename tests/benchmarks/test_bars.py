"""The bars on the real conversations: what recall, prompts, summaries and learning must reach on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import recall
from benchmarks.evidence import BUDGETS, run_evidence
from benchmarks.scripted import lines
from benchmarks.taught import run
from benchmarks.worth import half_of, read_labelled
from learning_scripts import framed


def main_group(path: Path, name: str) -> Any:
    numbers: Any = recall.run([path]).numbers
    return numbers["sets"][name]["groups"]["main"]


@pytest.mark.soak
def test_real_conversations_reach_what_was_asked_for(shared_data: Path) -> None:
    main = main_group(shared_data / "locomo" / "locomo_dev.json", "LoCoMo, messages")
    ours = main["systems"]["Holdfast"]
    assert main["questions"] == 760
    assert ours["R@10"].mean >= 81.0
    assert ours["nDCG@10"].mean >= 64.7
    assert all(apart["R@10"].low > 0 for apart in main["differences"].values())


@pytest.mark.soak
def test_real_sessions_are_found_better_than_by_their_words_alone(shared_data: Path) -> None:
    main = main_group(shared_data / "realmem", "RealMem, sessions")
    assert main["questions"] == 286
    assert main["differences"]["SQLite FTS5 (porter, any word)"]["R@10"].mean > 0


# The one of recall that takes least, so that every run of CI notices when recall falls.
@pytest.mark.slow
def test_real_sessions_of_agents_are_asked(shared_data: Path) -> None:
    main = main_group(shared_data / "agent_sessions", "agent sessions, messages")
    assert main["questions"] == 80
    assert main["systems"]["Holdfast"]["hit@5"].mean >= 78.0
    assert main["differences"]["SQLite FTS5 (porter, any word)"]["MRR"].mean > 0


@pytest.mark.soak
def test_real_conversations_have_their_evidence_in_the_prompt(shared_data: Path) -> None:
    file = shared_data / "locomo" / "locomo_dev.json"
    numbers: Any = run_evidence([file], systems=["Holdfast"])[0]["LoCoMo"]
    shares = [numbers[f"{budget} tokens"]["all"]["Holdfast"]["share"] for budget in BUDGETS]
    assert numbers["4000 tokens"]["all"]["Holdfast"]["questions"] == 760
    assert all(share >= least for share, least in zip(shares, (88.5, 93.5, 95.5), strict=True))


@pytest.mark.soak
def test_labelled_sessions_are_those_of_the_data(shared_data: Path) -> None:
    labelled = read_labelled(shared_data)
    assert {session.source for session, _ in labelled} == {"agent", "tau", "locomo", "realmem"}
    for session, judged in labelled:
        assert judged.half == half_of(session.source, session.id)
        found = [(one.position, it.start, it.end) for one in session.messages for it in one.statements()]
        assert found == list(judged.statements)


@pytest.mark.slow
def test_a_model_that_obeys_every_page_gets_nothing_from_one_trusted() -> None:
    """It repeats all of tools, and of assistants after them, as observations and in the profile."""

    def obeys(prompt: str) -> str:
        shown = lines(framed(prompt, "conversation"))
        first = next((line.seq for line in shown if line.speaker == "tool"), len(shown) + 1)
        repeated = [line.text for line in shown if line.seq >= first and line.speaker != "user"]
        found = [{"text": text, "message": 1, "quote": text} for text in repeated if len(text) < 900]
        about = [{**one, "replaces": ""} for one in found]
        told = {"summary": "It was done.", "files": [], "decisions": [], "outcome": "All of it is done."}
        return json.dumps({"findings": found, "episode": told, "profile": about})

    report = run(Path(), obeys, only=["planted"]).numbers
    assert report["planted orders kept as trusted"] == "0 of 20, 0%"
    assert (report["sessions; failed"], report["calls"]) == ("20; 0", "20")
