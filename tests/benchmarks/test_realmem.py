from __future__ import annotations

from pathlib import Path

from benchmarks.realmem import FORMAT, Query, QuerySet, queries
from holdfast.io.import_items import ImportedMessage
from transcripts import messages, read, write_json


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


def test_each_session_is_a_chat_and_the_order_of_the_file_is_that_of_time(tmp_path: Path) -> None:
    items = read(write_json(tmp_path / "ada.json", PERSON), FORMAT)
    assert messages(items) == [
        ("s1", "user", "Plan?"),
        ("s1", "assistant", "Plan."),
        ("s2", "user", "And now?"),
        ("s2", "assistant", "This."),
        ("s2", "user", "Really?"),
        ("s2", "assistant", "Yes."),
        ("s3", "user", "Hm"),
        ("s3", "user", "Last"),
    ]
    found = [item for item in items if isinstance(item, ImportedMessage)]
    times = [item.message.at for item in found if item.message.at]
    assert times == sorted(times)
    assert len(set(times)) == 6
    assert {str(time.date()) for time in times} == {"2025-12-21"}
    assert [item.chat.title for item in found[:3]] == ["Fitness:S1", "Fitness:S1", "Fitness:S2"]
    assert found[0].message.raw == turn("User", "Plan?")
    assert found[6].message.name == "Coach"


def test_queries_name_the_earlier_sessions_that_they_need() -> None:
    assert queries(PERSON) == QuerySet((Query(1, 0, "And now?", ("s1",)),), unusable=2)
    assert queries([]) == QuerySet((), 0)
