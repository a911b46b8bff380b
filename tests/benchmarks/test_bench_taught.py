"""How well a model learns: what counts as right, found and taken in, with models that follow a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.scripted import Scripted, lines
from benchmarks.taught import PLANTED, run
from benchmarks.worth import LABELS, read_labelled, read_labels
from holdfast.errors import InvalidInput, ModelFailed
from learning_scripts import framed

TOLD = {
    "summary": "The user asked for several things.",
    "files": [],
    "decisions": ["It was decided to do them in their order."],
    "outcome": "All of them are done.",
}


def answer(*texts: str, profile: bool = False) -> str:
    """Answer that some texts were found, each as its own quote."""
    items = [{"text": text, "message": 1, "quote": text} for text in texts]
    about = [{**item, "replaces": ""} for item in items] if profile else []
    return json.dumps({"findings": items, "episode": TOLD, "profile": about})


@pytest.fixture
def labels(shared_data: Path, tmp_path: Path) -> tuple[Path, list[str]]:
    """Take the labels of one session of the half to fit to, and what it says that is worth keeping."""
    rows = [json.loads(line) for line in (LABELS / "sessions.jsonl").read_text("utf-8").splitlines()]
    row = next(row for row in rows if row["source"] == "tau" and row["half"] == "tune")
    (tmp_path / "sessions.jsonl").write_text(json.dumps(row), "utf-8")
    own = [
        line
        for line in (LABELS / "labels.jsonl").read_text("utf-8").splitlines()
        if json.loads(line)["session"] == row["session"] and json.loads(line)["source"] == "tau"
    ]
    (tmp_path / "labels.jsonl").write_text("\n".join(own), "utf-8")
    ((session, _),) = read_labelled(shared_data, tmp_path)
    said = {one.position: one.text for one in session.messages}
    return tmp_path, [said[one.message][one.start : one.end] for one in read_labels(tmp_path)]


def test_what_is_worth_keeping_is_found_by_a_model_that_knows_it(
    shared_data: Path, labels: tuple[Path, list[str]]
) -> None:
    folder, worth = labels

    def measured(*texts: str) -> dict[str, object]:
        how = {"half": "tune", "only": ["worth"], "labels": folder}
        return run(shared_data, lambda _: answer(*texts), **how).to_json()  # type: ignore[arg-type]  # as named

    knows = measured(*worth)
    assert worth
    assert str(knows["right of learned, tune"]).endswith("100%")
    assert str(knows["found of all, tune"]).endswith("100%")
    assert (knows["sessions; failed"], knows["calls"]) == ("1; 0", "1")
    guesses = measured("Anything else that nobody has ever said here.")
    assert str(guesses["found of all, tune"]).startswith("0 of")


def test_planted_orders_are_counted_and_what_stands_beside_them() -> None:
    report = run(Path(), Scripted(), only=["planted"], price=(1.0, 2.0)).to_json()
    rows = [json.loads(line) for line in PLANTED.read_text("utf-8").splitlines()]
    assert len(rows) == len({row["id"] for row in rows}) == 20
    assert report["calls"] == "20"
    assert str(report["planted orders kept as trusted"]).endswith("of 20, 10%")
    assert str(report["cost"]).startswith("$0.")


@pytest.mark.slow
def test_a_model_that_obeys_every_page_gets_nothing_from_one_trusted() -> None:
    """It repeats all of tools, and of assistants after them, as observations and in the profile."""

    def obeys(prompt: str) -> str:
        shown = lines(framed(prompt, "conversation"))
        first = next((line.seq for line in shown if line.speaker == "tool"), len(shown) + 1)
        repeated = [line.text for line in shown if line.seq >= first and line.speaker != "user"]
        return answer(*(text for text in repeated if len(text) < 900), profile=True)

    report = run(Path(), obeys, only=["planted"]).to_json()
    assert report["planted orders kept as trusted"] == "0 of 20, 0%"


def test_a_model_that_fails_for_all_ends_it() -> None:
    def fails(_: str) -> str:
        raise ModelFailed("There is no credit left.", "Pay.", reason="quota")

    with pytest.raises(InvalidInput, match="no credit left"):
        run(Path(), fails, only=["planted"])


def test_without_a_key_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = ["learn", "--llm", "openai:gpt-5-mini", "--only", "planted", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "Set OPENAI_API_KEY in the environment" in result.stderr
    assert CliRunner().invoke(app, [*words, "--half", "both"]).exit_code == 2
