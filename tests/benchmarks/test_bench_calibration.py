"""The benchmark of calibration: on small files, and that what it fits is what the data were made by."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_bench_recall import LOCOMO, REALMEM

from benchmarks import calibration
from benchmarks.calibration import Answered
from benchmarks.readers import locomo
from holdfast.errors import InvalidInput
from holdfast.search.calibration import Calibration

NOTED = {
    "session_1_observation": {
        "Ann": [["Ann has a grey cat.", "D1:1"], ["Unknown.", ["D:1:02", "D9:9"]], "bad"],
    }
}
THINGS = "kayak lamp violin ferry garden bridge oven stamp tent mirror clock ladder".split()


def _answers(made: Calibration, count: int) -> list[Answered]:
    random = np.random.default_rng(5)
    answers = []
    for n in range(count):
        scores = np.sort(random.uniform(0.01, 1, 5))[::-1]
        right = random.random(5) < made.probabilities(scores)
        answers.append(Answered(str(n), scores, right.astype(float)))
    return answers


def test_what_made_the_answers_is_found_again() -> None:
    made = Calibration(1.5, 4.0, 2.0)
    answers = _answers(made, 5_000)
    fitted = calibration.fit(answers)
    assert fitted == pytest.approx(made, abs=0.4)
    result = calibration.measure(answers, fitted)
    assert result.error < 0.01
    assert result.area > 0.75
    assert result.first[0] == pytest.approx(result.first[1], abs=0.02)


def test_a_calibration_that_does_not_hold_shows() -> None:
    answers = _answers(Calibration(1.5, 4.0, 2.0), 1_000)
    assert calibration.measure(answers, Calibration(-3.0, 1.0, 0.5)).error > 0.1


def _conversation(name: str, owner: str) -> dict[str, object]:
    said = [
        f"{owner} sold the {thing} of the {other}."
        for thing, other in zip(THINGS, reversed(THINGS), strict=True)
    ]
    return {
        "sample_id": name,
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": owner, "dia_id": f"D1:{n}", "text": text} for n, text in enumerate(said)
            ],
        },
        "observation": {"session_1_observation": {owner: [[text, f"D1:{n}"] for n, text in enumerate(said)]}},
        "qa": [
            {"question": f"Who sold the {thing} and the {name}?", "evidence": [f"D1:{n}"], "category": 4}
            for n, thing in enumerate(THINGS)
        ],
    }


@pytest.mark.slow
def test_every_source_is_measured_with_and_without_meaning(tmp_path: Path) -> None:
    value = [_conversation("conv-1", "Ann"), _conversation("conv-2", "Eve")]
    (tmp_path / "locomo.json").write_text(json.dumps(value))
    report = calibration.run([tmp_path])
    measured = {row[0] for row in report.tables()[0].rows}
    assert {"message by words", "message by words and meaning"} <= measured
    assert {"commit", "machine", "files"} <= set(report.to_json())


def test_notes_lead_to_the_turns_that_they_are_from(tmp_path: Path) -> None:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([{**LOCOMO[0], "observation": NOTED}]))
    assert locomo.facts(path)["conv-1"] == {
        "Ann has a grey cat.": frozenset({"D1:1"}),
        "Unknown.": frozenset({"D1:2", "D9:9"}),
    }


def test_files_without_questions_about_messages_are_refused(tmp_path: Path) -> None:
    (tmp_path / "realmem.json").write_text(json.dumps(REALMEM))
    with pytest.raises(InvalidInput):
        calibration.run([tmp_path])
