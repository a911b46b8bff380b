"""The measurement of evidence in prompts: on a small file, and what it must give on the real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evidence import BUDGETS, run_evidence, shown_whole
from holdfast.errors import InvalidInput
from holdfast.memory import Memory
from holdfast.types import Message

FILLER = [
    {"speaker": "Bob", "dia_id": f"D2:{n}", "text": f"The weather is dull, day {n}. " * 12}
    for n in range(1, 200)
]
LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a grey cat\n& a <small> dog."},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "My train to Porto leaves tomorrow."},
            ],
            "session_2_date_time": "1:56 pm on 9 May, 2023",
            "session_2": FILLER,
        },
        "qa": [
            {"question": "Which cat did Ann adopt?", "evidence": ["D1:1"], "category": 4},
            {"question": "Where does Bob go by train?", "evidence": ["D1:2", "D2:199"], "category": 1},
            {"question": "Who adopted a train?", "evidence": ["D1:2"], "category": 5},
            {"question": "Nothing?", "evidence": ["D9:9"], "category": 4},
        ],
    }
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    return tmp_path / "locomo.json"


@pytest.mark.slow
def test_evidence_is_counted_by_budget_category_and_system(file: Path) -> None:
    told: list[str] = []
    numbers, tables = run_evidence([file], told.append)
    assert told == ["LoCoMo: prompts for 3 questions about conv-1"]
    found: Any = json.loads(json.dumps(numbers))
    assert (found["unit"], found["left_out"]) == ("turn", 1)
    for budget in BUDGETS:
        of_budget = found[f"{budget} tokens"]
        assert set(of_budget) == {"all", "multi-hop", "single-hop"}
        assert of_budget["all"]["Holdfast"] == {"questions": 2, "share": 100.0, "all": 100.0}
        assert of_budget["single-hop"]["newest"] == {"questions": 1, "share": 0.0, "all": 0.0}
        assert of_budget["multi-hop"]["newest"] == {"questions": 1, "share": 50.0, "all": 0.0}
        assert of_budget["single-hop"]["recall, top hits"]["share"] == 100.0
    assert len(tables) == len(BUDGETS)
    assert all(len(row) == len(table.columns) == 4 for table in tables for row in table.rows)
    assert tables[0].title.startswith("LoCoMo, prompts of 2,000 tokens, 2 questions")
    assert tables[0].rows[0] == ("Holdfast", "100.0 / 100.0", "100.0 / 100.0", "100.0 / 100.0")


@pytest.mark.slow
def test_it_gives_the_same_twice(file: Path) -> None:
    assert run_evidence([file.parent]) == run_evidence([file.parent])


def test_only_the_whole_text_of_a_turn_counts() -> None:
    with Memory(":memory:", user="ada") as memory:
        chat = memory.chat("monday")
        earlier = {"long": "The marathon " + "word " * 2_000, "short": "Marathon\n\n<&> shoes"}
        memory.chat("sunday").append([Message("user", text, id=key) for key, text in earlier.items()])
        chat.append(Message("user", "hello", id="new"))
        prompt = chat.prompt(500, "the marathon")
        assert {hit.id for hit in prompt.hits} == {"long", "short"}
        assert shown_whole(prompt) == {"short", "new"}


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    with pytest.raises(InvalidInput, match="None of these files is a LoCoMo file"):
        run_evidence([tmp_path / "chat.jsonl"])


@pytest.mark.slow
def test_real_conversations_have_their_evidence_in_the_prompt(shared_data: Path) -> None:
    file = shared_data / "locomo" / "locomo_dev.json"
    numbers: Any = run_evidence([file], systems=["Holdfast"])[0]
    shares = [numbers[f"{budget} tokens"]["all"]["Holdfast"]["share"] for budget in BUDGETS]
    assert numbers["4000 tokens"]["all"]["Holdfast"]["questions"] == 760
    assert all(share >= least for share, least in zip(shares, (88.5, 93.5, 95.5), strict=True))
