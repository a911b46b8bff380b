"""The readers of data sets, on small files in their forms; and what is told of files."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from benchmarks.datasets import Corpus, Question
from benchmarks.readers import READERS, found_in, locomo
from holdfast.errors import InvalidInput
from tables import each
from transcripts import claude, result, use, write_json, write_lines


def corpora(path: Path, name: str) -> list[Corpus]:
    (file,) = found_in([path])
    assert file.reader.name == name
    return list(file.corpora())


CONVERSATION = {
    "sample_id": "conv-1",
    "conversation": {
        "session_10_date_time": "12:05 am on 1 February, 2023",
        "session_10": [{"speaker": "Bob", "dia_id": "D10:1", "text": "Late"}],
        "session_2_date_time": "1:56 pm on 8 May, 2022",
        "session_2": [
            {"speaker": "Ann", "dia_id": "D2:1", "text": "Look", "blip_caption": "a cat"},
            {"speaker": "Bob", "dia_id": "D2:3", "text": " "},
            {"speaker": "Bob", "dia_id": "D2:4", "text": "Well"},
        ],
        "session_3_date_time": "some day",
        "session_3": ["?", {"speaker": 3, "text": "No id"}],
    },
    "observation": {
        "session_1_observation": {"Ann": [["Ann has a cat.", "D2:1"], ["Unknown.", ["D:2:02"]], "bad"]}
    },
    "qa": [
        {"question": "both?", "answer": 1, "evidence": ["D2:1; D10:01"], "category": 1},
        {"question": "odd?", "evidence": ["D:10:1", "D", "D9:9", "D10:1"], "category": 5},
        {"question": "range?", "evidence": ["D2:2-D2:9"], "category": 4},
        {"question": "strange?", "evidence": 7, "category": "x"},
        "?",
    ],
}


def test_locomo_has_sessions_in_order_and_evidence_that_is_mended(tmp_path: Path) -> None:
    path = write_json(tmp_path / "list.json", [CONVERSATION])
    (corpus,) = corpora(path, "LoCoMo")
    assert [session.id for session in corpus.sessions] == [f"conv-1/session_{n}" for n in (2, 3, 10)]
    assert [(m.id, m.name, m.content, str(m.at)) for m in corpus.messages()][::2] == [
        ("D2:1", "Ann", "Look\n[image: a cat]", "2022-05-08 13:56:00+00:00"),
        ("", None, "No id", "None"),
    ]
    assert corpus.questions == (
        Question("both?", "multi-hop", ("D2:1", "D10:1"), "1"),
        Question("odd?", "adversarial", ("D10:1",)),
        Question("range?", "single-hop", ("D2:4",)),
        Question("strange?", "other", ()),
    )
    assert locomo.facts(path)["conv-1"] == {"Ann has a cat.": {"D2:1"}, "Unknown.": {"D2:2"}}, "its notes"


def session(id: str, time: str, *turns: tuple[str, str, object]) -> dict[str, object]:
    """Make a session of RealMem: who speaks, what, and what a turn has besides."""
    said = [{"speaker": who, "content": text, **more} for who, text, more in turns]  # type: ignore[dict-item]
    return {"session_uuid": id, "current_time": time, "dialogue_turns": said}


QUERY = {"is_query": True}
PERSON = {
    "dialogues": [
        session("s1", "2025-12-21 (Sunday)", ("User", "Plan?", {}), ("Assistant", "Plan.", {})),
        session(
            "s2",
            "2025-12-21 (Sunday)",
            ("User", "And now?", QUERY),
            ("Assistant", "This.", {"memory_session_uuids": ["s1", "s2", "s3", "s1"]}),
        ),
        session("s3", "tomorrow", ("Coach", "Hm", {}), ("User", "Last", QUERY)),
        "?",
    ],
}


def test_realmem_has_sessions_in_order_and_queries_about_earlier_ones(tmp_path: Path) -> None:
    (corpus,) = corpora(write_json(tmp_path / "ada.json", PERSON), "RealMem")
    assert (corpus.name, corpus.unit) == ("ada", "session")
    assert [(session.id, len(session.messages)) for session in corpus.sessions] == [
        ("s1", 2),
        ("s2", 2),
        ("s3", 2),
        ("ada:4", 0),
    ]
    assert [(m.role, m.name) for m in corpus.messages()][3:5] == [("assistant", None), ("user", "Coach")]
    times = [message.at for message in corpus.messages() if message.at]
    assert times == sorted(set(times))
    assert corpus.questions == (
        Question("And now?", "query", ("s1",), before=1),
        Question("Last", "query", (), before=2),
    )


def test_sessions_of_agents_lie_beside_their_questions(tmp_path: Path) -> None:
    page = "<tool-use a='b'><details>\n<summary>Tool</summary>\n8080\n</details></tool-use>"
    said = [{"role": "user", "content": "Which port?"}, {"role": "assistant", "content": page}]
    with gzip.open(tmp_path / "plain.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(one)}\n" for one in said)
    native = [claude("assistant", "u1", None, use("ls")), claude("user", "u2", "u1", result("ls", "README"))]
    write_lines(tmp_path / "native.jsonl", [{"type": "summary", "summary": "left out"}, *native])
    question = {"id": "1", "question": "Port?", "kind": "value", "answer": "8080", "gold": [["plain", 1]]}
    write_lines(tmp_path / "questions.jsonl", [question | {"outdated": [["native", 1]]}])
    (corpus,) = corpora(tmp_path, "agent sessions")
    assert [(m.id, m.content) for m in corpus.messages()] == [
        ("native:0", 'Bash {"command": "ls"}'),
        ("native:1", "README"),
        ("plain:0", "Which port?"),
        ("plain:1", page),
    ]
    asked = Question("Port?", "value", ("plain:1",), "8080", outdated=("native:1",))
    assert corpus.questions == (asked,)
    assert len(corpus.files) == 3

    write_lines(tmp_path / "questions.jsonl", [question | {"gold": [["plain", 3]]}])
    with pytest.raises(InvalidInput, match="plain:3, which is no message"):
        corpora(tmp_path, "agent sessions")


OWN = {
    "sessions": [
        {
            "id": "monday",
            "messages": [
                {"role": "user", "content": "I moved to Porto.", "at": "2026-01-05T10:00:00Z"},
                {"role": "assistant", "content": "Noted.", "id": "noted"},
            ],
        },
        {"id": "tuesday", "messages": [{"role": "user", "content": "Hello."}]},
    ],
    "questions": [{"question": "Where?", "gold": ["monday:0"], "kind": "place", "outdated": ["noted"]}],
}


def test_a_set_of_ones_own_names_messages_or_sessions(tmp_path: Path) -> None:
    (corpus,) = corpora(write_json(tmp_path / "own.json", OWN), "own")
    assert (corpus.unit, [m.id for m in corpus.messages()]) == ("message", ["monday:0", "noted", "tuesday:0"])
    assert corpus.questions == (Question("Where?", "place", ("monday:0",), outdated=("noted",)),)
    by_session = OWN | {"questions": [{"question": "Where?", "gold": ["monday"]}]}
    (corpus,) = corpora(write_json(tmp_path / "own.json", by_session), "own")
    assert corpus.unit == "session"


@each(
    ("change", "what"),
    [
        ({"questions": [{"question": "?", "gold": ["monday:9"]}]}, "'monday:9', which is no message"),
        ({"sessions": [{"messages": [{"content": "x", "at": "noon"}]}]}, "'noon' as a time"),
    ],
)
def test_what_is_wrong_in_ones_own_set_is_named(tmp_path: Path, change: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        corpora(write_json(tmp_path / "own.json", OWN | change), "own")


def test_a_folder_is_searched_and_what_is_no_data_set_passed_over(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "own.json", OWN)
    write_json(tmp_path / "other.json", {"x": 1})
    (tmp_path / "damaged.json").write_text("{")
    told: list[str] = []
    assert [(file.reader.name, file.path.name) for file in found_in([tmp_path], told.append)] == [
        ("own", "own.json")
    ]
    assert ["damaged.json" in line for line in told] == [True]
    with pytest.raises(InvalidInput, match="cannot be read"):
        found_in([tmp_path / "damaged.json"])
    with pytest.raises(InvalidInput, match="There is no file"):
        found_in([tmp_path / "gone.json"])


ATOMS: list[object] = [
    *("", "x", "D1:1", "D1:1-D999999:2", "\ud800", "9999-12-31 (x)", "99:99 pm on 99 Foo, 2023"),
    *("2023-02-31", "12:00 pm on 41 May, 2023"),
    *(0, -1, 10**400, 1.5, float("nan"), None, True, [], {}, [[]], [{}], {"session_1": 1}),
]
FORMS: list[object] = [
    [CONVERSATION],
    PERSON,
    OWN,
]


def mutated(rng: random.Random, value: object) -> object:
    if rng.random() < 0.06:
        return rng.choice(ATOMS)
    if isinstance(value, dict):
        return {key: mutated(rng, inner) for key, inner in value.items() if rng.random() > 0.03}
    return [mutated(rng, inner) for inner in value] if isinstance(value, list) else value


@each("form", FORMS)
def test_anything_anywhere_is_read_or_refused(tmp_path: Path, form: object) -> None:
    rng = random.Random(5)
    path = tmp_path / "questions" / "questions.json"
    for _ in range(300):
        value = mutated(rng, form)
        for reader in READERS:
            if reader.knows(value):
                try:
                    read = list(reader.read(path, value))
                except InvalidInput:
                    continue
                assert all(isinstance(question.text, str) for corpus in read for question in corpus.questions)
