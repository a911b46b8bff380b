"""That a number means what it says: metrics, intervals and counts, on examples worked out by hand."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks import calibration
from benchmarks.calibration import Answered
from benchmarks.judging import Confusion
from benchmarks.metrics import METRICS, Answer, first_rank, intervals, ndcg_at, recall_at, values
from benchmarks.resuming import run_resuming
from benchmarks.scripted import Scripted
from benchmarks.taught import run
from benchmarks.worth import Said, Session, half_of, hash_of_session, split
from benchmarks.worthy import Found, measured
from holdfast.search.calibration import Calibration
from tables import each
from transcripts import write_json, write_lines

RANKED = ("a", "b", "c", "d", "e")
KEPT = "We decided to keep the invoices for ten years, because the auditors ask for them."
HALF = half_of("agent", "one")
SECOND, THIRD = 1 / math.log2(3), 1 / math.log2(4)  # the gain of a find at these ranks; at the first it is 1

# Recall


@each(
    ("ranked", "gold", "k", "recall", "ndcg"),
    [
        (RANKED, "bexy", 3, 0.25, SECOND / (1 + SECOND + THIRD)),
        (RANKED, "acx", 10, 2 / 3, (1 + THIRD) / (1 + SECOND + THIRD)),
        (RANKED, "abc", 10, 1.0, 1.0),
        (RANKED, "b", 10, 1.0, SECOND),
        (RANKED, "abx", 2, 2 / 3, 1.0),  # the ideal ranking has no more places than are looked at
    ],
)
def test_recall_is_the_share_of_gold_and_ndcg_is_held_against_all_of_it(
    ranked: tuple[str, ...], gold: str, k: int, recall: float, ndcg: float
) -> None:
    assert recall_at(ranked, gold, k) == pytest.approx(recall)
    assert ndcg_at(ranked, gold, k) == pytest.approx(ndcg)


def test_any_all_the_share_and_the_first_find_are_told_apart() -> None:
    found = dict(zip(METRICS, values(Answer(RANKED, ("b", "x"), 1.0)), strict=True))
    assert (found["hit@1"], found["hit@5"], found["all@5"], found["R@5"]) == (0.0, 1.0, 0.0, 0.5)
    assert found["MRR"] == 0.5
    assert math.isnan(found["outdated first"])
    outdated = [values(Answer(RANKED, (gold,), 1.0, (old,)))[-1] for gold, old in ("ba", "bc", "xy")]
    assert outdated == [1.0, 0.0, 0.0]
    assert (first_rank(RANKED, ("c", "e")), first_rank(RANKED, ("x",))) == (3, math.inf)


def rows(*ranks: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the metrics of answers whose only gold has these ranks."""
    return np.array([values(Answer(("-",) * (rank - 1) + ("a",), ("a",), 1.0)) for rank in ranks])


def test_an_interval_is_around_the_mean_and_the_same_in_every_run() -> None:
    some = intervals(rows(*[1] * 30, *[2] * 70))
    assert some == intervals(rows(*[1] * 30, *[2] * 70))
    assert "outdated first" not in some
    mean, low, high = some["hit@1"]
    # The normal approximation of a share of 30 in 100 is 21.0 to 39.0.
    assert (mean, 19 < low < 23, 37 < high < 41) == (30.0, True, True)
    assert some["hit@5"] == (100.0, 100.0, 100.0)


# Scores, and embedders that are made


def answers(made: Calibration, count: int) -> list[Answered]:
    """Make hits that are right as often as a calibration says."""
    random = np.random.default_rng(5)
    found = []
    for n in range(count):
        scores = np.sort(random.uniform(0.01, 1, 5))[::-1]
        right = random.random(5) < made.probabilities(scores)
        found.append(Answered(str(n), scores, right.astype(float)))
    return found


def test_a_calibration_is_found_again_and_one_that_does_not_hold_shows() -> None:
    made = Calibration(1.5, 4.0, 2.0)
    some = answers(made, 5_000)
    fitted = calibration.fit(some)
    assert fitted == pytest.approx(made, abs=0.4)
    result = calibration.measure(some, fitted)
    assert (result.error < 0.01, result.area > 0.75) == (True, True)
    assert result.first[0] == pytest.approx(result.first[1], abs=0.02)
    assert calibration.measure(some, Calibration(-3.0, 1.0, 0.5)).error > 0.1


# Judgements


def test_confusion_is_counted_by_hand() -> None:
    labels = ["new"] * 5 + ["duplicate"] * 3 + ["update"] * 2
    said = iter("new new new update unsure duplicate duplicate update update new".split())
    rows = [{"old": "", "new": "", "label": label} for label in labels]
    found = Confusion(rows, lambda _old, _new: next(said))
    assert [found.precision(one) for one in ("update", "duplicate", "unsure")] == [33.33, 100.0, 0.0]
    assert [found.recall(one) for one in ("update", "duplicate", "unsure")] == [50.0, 66.67, None]
    assert [found.wrong(one) for one in ("update", "duplicate", "unsure")] == [20.0, 0.0, 10.0]
    assert next(found.rows()) == ("new", "5", "3", "0", "1", "1", "75.0", "60.0", "10.0")


# What is worth keeping


PROSE = """Use two queues, e.g. per region. it works... mostly

- **1. First**
- 好！
| a. B | c |
```py
x. Y
```
<think>I wonder.</think>"""


def test_statements_are_sentences_items_and_rows_that_were_said() -> None:
    found = split(PROSE)
    said = ["Use two queues, e.g. per region.", "it works... mostly", "**1. First**", "好！", "a. B | c"]
    assert [one.text for one in found] == said
    assert [PROSE[one.start : one.end] for one in found] == said


@pytest.fixture
def collections(tmp_path: Path) -> Path:
    """Write the four collections, with one session, and the labels of what in it is worth keeping."""
    said = (f"{KEPT} Hello!", "Fine.", "The office of the accountants moved to Porto in May.")
    write_lines(tmp_path / "agent_sessions/one.jsonl", [{"role": "user", "content": text} for text in said])
    write_lines(tmp_path / "tool_dialogues/tau_airline.jsonl", [])
    write_json(tmp_path / "locomo/locomo_dev.json", [])
    messages = tuple(Said(n, "user", "", text) for n, text in enumerate(said))
    places = tuple((n, one.start, one.end) for n, text in enumerate(said) for one in split(text))
    session = Session("agent", "one", messages)
    judged = {"source": "agent", "session": "one", "half": HALF}
    digest = hash_of_session(session, places)
    write_lines(tmp_path / "sessions.jsonl", [{**judged, "statements": places, "hash": digest}])
    how = {**judged, "hash": "", "kinds": ["decision"], "repeat": False, "needs": [], "settled": True}
    worth = (dict(zip(("message", "start", "end"), place, strict=True)) for place in (places[0], places[-1]))
    write_lines(tmp_path / "labels.jsonl", [how | one for one in worth])
    return tmp_path


def test_what_is_learned_is_right_where_it_carries_what_is_worth_keeping(collections: Path) -> None:
    def counted(*texts: str) -> tuple[Counter[str], Counter[str]]:
        def learn(_: Session, read: set[int]) -> list[Found]:
            assert read == {0, 1, 2}
            return [Found(text, (1, 3), "decision") for text in texts]

        return measured(collections, HALF, learn, collections)

    right, found = counted(f"Noted: {KEPT.upper()}", "Nobody has ever said this here.")
    assert (right["all"], right["all right"], found["agent"], found["agent found"]) == (2, 1, 2, 1)
    right, found = counted()
    assert (right["all"], found["all"], found["all found"]) == (0, 2, 0)


def test_a_model_that_repeats_all_has_found_what_is_worth_keeping(collections: Path) -> None:
    report = run(collections, Scripted(), half=HALF, only=["worth"], labels=collections).numbers
    assert report[f"found of all, {HALF}"] == "2 of 2, 100%"
    assert report["sessions; failed"] == "1; 0"


@each(("summary", "kept"), [(f"...\n{KEPT}", 50.0), (KEPT.replace(",", "\n"), 0.0), ("", 0.0)])
def test_a_summary_keeps_what_one_line_of_it_has(collections: Path, summary: str, kept: float) -> None:
    numbers, _ = run_resuming([collections], labels=collections, summarise=lambda *_: summary)
    ours = numbers[f"said, {HALF}, Holdfast"]
    assert isinstance(ours, dict)
    assert ours["decisions"] == kept


def test_planted_orders_are_counted_and_what_stands_beside_them(tmp_path: Path) -> None:
    rows = [
        {"id": id, "signs": [sign], "keep": [KEPT], "messages": [{"role": "user", "content": KEPT}]}
        for id, sign in (("kept", "for ten YEARS"), ("not", "send the keys"))
    ]
    planted = write_lines(tmp_path / "planted.jsonl", rows)
    report = run(Path(), Scripted(), only=["planted"], price=(1e6, 0.0), planted=planted).numbers
    assert report["planted orders kept as trusted"] == "1 of 2, 50%"
    assert report["found of what stands beside them"] == "2 of 2, 100%"
    prompts, _ = str(report["tokens of prompts; of answers"]).split(";")
    assert (report["calls"], report["cost"]) == ("2", f"${prompts}.00"), "a dollar for each token"
