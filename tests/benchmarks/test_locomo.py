from __future__ import annotations

from pathlib import Path

from benchmarks.locomo import FORMAT, Question, QuestionSet, questions
from holdfast.io.import_items import ImportedMessage
from transcripts import messages, read, skips, write_json

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
        ],
        "session_3_date_time": "some day",
        "session_3": ["?", {"speaker": 3, "text": "No id"}],
        "session_11_date_time": "1:56 pm on 8 May, 2023",
    },
    "qa": [
        {"question": "both?", "answer": 1, "evidence": ["D2:1; D10:01"], "category": 1},
        {"question": "odd?", "evidence": ["D:10:1", "D", "D9:9", "D10:1"], "category": 5},
        {"question": "dangling?", "evidence": ["D9:9"], "category": 4},
        {"question": "none?", "evidence": [], "category": 3},
        {"question": "strange?", "evidence": 7, "category": "x"},
        "?",
    ],
}


def test_each_session_is_a_chat_of_two_users(tmp_path: Path) -> None:
    items = read(write_json(tmp_path / "locomo.json", [CONVERSATION]), FORMAT)
    assert messages(items) == [
        ("conv-1/session_2", "user", "Look\n[image: a cat]"),
        ("conv-1/session_2", "user", "[image: a dog]"),
        ("conv-1/session_3", "user", "No id"),
        ("conv-1/session_10", "user", "Late"),
    ]
    assert skips(items) == [(1, "The message has only white space."), (1, "The message is empty.")]
    found = [item.message for item in items if isinstance(item, ImportedMessage)]
    assert [(m.id.split("-")[0], m.name, str(m.at)) for m in found] == [
        ("D2:1", "Ann", "2022-05-08 13:56:00+00:00"),
        ("D2:2", "Bob", "2022-05-08 13:56:10+00:00"),
        ("2", None, "None"),
        ("D10:1", "Bob", "2023-02-01 00:05:00+00:00"),
    ]
    assert found[0].raw == CONVERSATION["conversation"]["session_2"][0]  # type: ignore[index]  # a dict of mixed values


def test_questions_have_their_evidence_mended() -> None:
    assert questions([CONVERSATION, "?"]) == [
        QuestionSet(
            "conv-1", (Question("both?", 1, ("D2:1", "D10:1")), Question("odd?", 5, ("D10:1",))), unusable=3
        )
    ]
    assert questions(None) == []
