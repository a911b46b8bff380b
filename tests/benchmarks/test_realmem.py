from __future__ import annotations

from pathlib import Path

from benchmarks.datasets import Question
from benchmarks.readers import found_in
from transcripts import write_json


def turn(speaker: str, content: str, **more: object) -> dict[str, object]:
    return {"speaker": speaker, "content": content, **more}


PERSON = {
    "_metadata": {"person_name": "Ada"},
    "dialogues": [
        {
            "session_uuid": "s1",
            "session_identifier": "Fitness:S1",
            "current_time": "2025-12-21 (Sunday)",
            "dialogue_turns": [turn("User", "Plan?"), turn("Assistant", "Plan.")],
        },
        {
            "session_uuid": "s2",
            "session_identifier": "Fitness:S2",
            "current_time": "2025-12-21 (Sunday)",
            "dialogue_turns": [
                turn("User", "And now?", is_query=True),
                turn("Assistant", "This.", memory_session_uuids=["s1", "s2", "s3", "s1"]),
                turn("User", "Really?", is_query=True),
                turn("Assistant", "Yes.", memory_session_uuids=["s3"]),
            ],
        },
        {
            "session_uuid": "s3",
            "current_time": "tomorrow",
            "dialogue_turns": [turn("Coach", "Hm"), 7, turn("User", "Last", is_query=True)],
        },
        "?",
    ],
}


def test_the_order_of_the_file_is_that_of_time(tmp_path: Path) -> None:
    (file,) = found_in([write_json(tmp_path / "ada.json", PERSON)])
    (corpus,) = file.corpora()
    assert (corpus.name, corpus.unit) == ("ada", "session")
    assert [(session.id, [(m.role, m.content) for m in session.messages]) for session in corpus.sessions] == [
        ("s1", [("user", "Plan?"), ("assistant", "Plan.")]),
        (
            "s2",
            [("user", "And now?"), ("assistant", "This."), ("user", "Really?"), ("assistant", "Yes.")],
        ),
        ("s3", [("user", "Hm"), ("user", "Last")]),
        ("ada:4", []),
    ]
    times = [message.at for message in corpus.messages() if message.at]
    assert times == sorted(times)
    assert len(set(times)) == 6
    assert {str(time.date()) for time in times} == {"2025-12-21"}
    assert corpus.sessions[2].messages[0].name == "Coach"


def test_queries_name_the_earlier_sessions_that_they_need(tmp_path: Path) -> None:
    (file,) = found_in([write_json(tmp_path / "ada.json", PERSON)])
    (corpus,) = file.corpora()
    assert corpus.questions == (
        Question("And now?", "query", ("s1",), before=1),
        Question("Really?", "query", (), before=1),
        Question("Last", "query", (), before=2),
    )
