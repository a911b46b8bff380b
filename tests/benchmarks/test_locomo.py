from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.datasets import Corpus, Question
from benchmarks.readers import found_in
from transcripts import write_json

CONVERSATION = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_10_date_time": "12:05 am on 1 February, 2023",
        "session_10": [{"speaker": "Bob", "dia_id": "D10:1", "text": "Late"}],
        "session_2_date_time": "1:56 pm on 8 May, 2022",
        "session_2": [
            {"speaker": "Ann", "dia_id": "D2:1", "text": "Look", "blip_caption": "a cat"},
            {"speaker": "Bob", "dia_id": "D2:2", "text": "", "blip_caption": "a dog"},
            {"speaker": "Bob", "dia_id": "D2:3", "text": " "},
            {"speaker": "Bob", "dia_id": "D2:4", "text": "Well"},
        ],
        "session_3_date_time": "some day",
        "session_3": ["?", {"speaker": 3, "text": "No id"}],
        "session_11_date_time": "1:56 pm on 8 May, 2023",
    },
    "qa": [
        {"question": "both?", "answer": 1, "evidence": ["D2:1; D10:01"], "category": 1},
        {"question": "odd?", "evidence": ["D:10:1", "D", "D9:9", "D10:1"], "category": 5},
        {"question": "range?", "evidence": ["D2:2-D2:9"], "category": 4},
        {"question": "dangling?", "evidence": ["D9:9"], "category": 4},
        {"question": "none?", "evidence": [], "category": 3},
        {"question": "strange?", "evidence": 7, "category": "x"},
        "?",
    ],
}


@pytest.fixture(params=["in a list", "alone"])
def corpus(tmp_path: Path, request: pytest.FixtureRequest) -> Corpus:
    value = [CONVERSATION] if request.param == "in a list" else CONVERSATION
    (file,) = found_in([write_json(tmp_path / "locomo.json", value)])
    (found,) = file.corpora()
    return found


def test_sessions_come_in_the_order_of_their_numbers(corpus: Corpus) -> None:
    assert [session.id for session in corpus.sessions] == [
        "conv-1/session_2",
        "conv-1/session_3",
        "conv-1/session_10",
    ]
    assert [(m.id, m.name, m.content, str(m.at)) for m in corpus.messages()] == [
        ("D2:1", "Ann", "Look\n[image: a cat]", "2022-05-08 13:56:00+00:00"),
        ("D2:2", "Bob", "[image: a dog]", "2022-05-08 13:56:10+00:00"),
        ("D2:4", "Bob", "Well", "2022-05-08 13:56:30+00:00"),
        ("", None, "No id", "None"),
        ("D10:1", "Bob", "Late", "2023-02-01 00:05:00+00:00"),
    ]
    assert {message.role for message in corpus.messages()} == {"user"}


def test_questions_have_their_evidence_mended(corpus: Corpus) -> None:
    assert corpus.questions == (
        Question("both?", "multi-hop", ("D2:1", "D10:1"), "1"),
        Question("odd?", "adversarial", ("D10:1",)),
        Question("range?", "single-hop", ("D2:2", "D2:4")),
        Question("dangling?", "single-hop", ()),
        Question("none?", "open-domain", ()),
        Question("strange?", "other", ()),
    )
