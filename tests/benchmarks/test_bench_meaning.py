"""The benchmark of meaning: embedders of each quality, on small files of both kinds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_bench_recall import LOCOMO, REALMEM

from benchmarks import meaning
from holdfast.errors import InvalidInput


def test_every_quality_is_measured_on_both_kinds(tmp_path: Path) -> None:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    (tmp_path / "realmem.json").write_text(json.dumps(REALMEM))
    report = meaning.run([tmp_path])
    assert [len(table.rows) for table in report.tables()] == [1 + len(meaning.QUALITIES)] * 2
    for numbers in report.to_json().values():
        if isinstance(numbers, dict) and "R@10" in numbers:
            assert set(numbers["R@10"].values()) == {100.0}


def test_a_question_is_as_near_to_its_answers_as_the_embedder_is_good() -> None:
    nearness = []
    for quality in meaning.QUALITIES:
        made = meaning.GradedEmbedder(quality)
        made.answers = {"Which?": ["This one."]}
        nearness.append(np.dot(made.embed_query("Which?"), made.embed_documents(["This one."])[0]))
    assert nearness == sorted(nearness)
    assert abs(nearness[0]) < 0.3
    assert nearness[-1] == pytest.approx(1)


def test_files_without_questions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("[]")
    with pytest.raises(InvalidInput):
        meaning.run([tmp_path])
