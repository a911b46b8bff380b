"""The readers of data sets, on small files in their forms; and what is told of files."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
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


@pytest.mark.parametrize("cut", [False, True])
def test_beam_finds_the_chat_beside_the_questions(tmp_path: Path, cut: bool) -> None:
    said = [
        [{"id": 0, "role": "user", "content": "Sprint? ->-> 1,1", "time_anchor": "March-15-2024"}],
        [{"id": 2, "role": "user", "content": "It ends on March 29."}],
    ]
    folder = tmp_path / "100K" / "1"
    chat = write_json(folder / "chat.json", [{"batch_number": 1, "turns": said}])
    if cut:
        chat = write_json(folder / "chat_trunecated.json", [{"batch_number": 1, "turns": said[:1]}])
    asked = {
        "information_extraction": [{"question": "End?", "source_chat_ids": [2, 9], "rubric": []}],
        "temporal_reasoning": [{"question": "Long?", "source_chat_ids": {"first": [[0]]}, "rubric": []}],
    }
    questions = write_json(folder / "probing_questions" / "probing_questions.json", asked)
    (corpus,) = corpora(tmp_path, "BEAM")
    assert (corpus.name, corpus.files) == ("100K/1", (chat, questions))
    first = next(iter(corpus.messages()))
    assert (first.id, first.content, str(first.at)) == ("0", "Sprint?", "2024-03-15 00:00:00+00:00")
    assert corpus.questions == (
        Question("End?", "information_extraction", () if cut else ("2",)),
        Question("Long?", "temporal_reasoning", ("0",)),
    )
    for file in folder.glob("*.json"):
        file.unlink()
    with pytest.raises(InvalidInput, match=r"no chat\.json"):
        corpora(tmp_path, "BEAM")


INSTANCE = {
    "question_id": "q1",
    "question_type": "knowledge-update",
    "question": "Which tea?",
    "haystack_session_ids": ["late", "early"],
    "haystack_dates": ["2023/05/21 (Sun) 23:50", "2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [[{"role": "user", "content": text}] for text in ("Oolong now.", "Tea.")],
    "answer_session_ids": ["late", "gone"],
}
UNKNOWN = INSTANCE | {"question_id": "q_abs"}
REALTALK = {
    "session_1": [
        {"clean_text": text, "speaker": "Ann", "dia_id": f"D1:{n}", "date_time": "29.12.2023, 00:51:12"}
        for n, text in enumerate(["Hey", "Ran"], 1)
    ],
    "qa": [{"question": "When?", "answer": "x", "evidence": ["D1:1-D1:2"], "category": 2}],
}
NOTES = [
    {"mid": n, "message": text, "time": "2024年04月01日 周一 08:30", "place": "上海"}
    for n, text in enumerate(["我将要参加论坛。", "论坛的地点是北京。"])
]
ASKED = {"qid": 0, "question": "地点是什么？", "answer": "北京", "target_step_id": [1, 7], "time": "?"}
PARTS = [{"tid": 0, "message_list": NOTES, "question_list": [ASKED, ASKED | {"question": "[ERRORQ]"}]}]
WHOLE = {"simple": {"events": [{"tid": 0, "message_list": NOTES, "QA": ASKED}], "items": None}}
PLACE = Question("地点是什么？", "simple", ("1",))
TEA = Question("Which tea?", "knowledge-update", ("late",))
RUN = Question("When?", "temporal", ("D1:1", "D1:2"), "x")


@each(
    ("file", "reader", "value", "newest", "question"),
    [
        ("s.json", "LongMemEval", [INSTANCE], "Oolong now. 2023-05-21", TEA),
        ("s.json", "LongMemEval", [UNKNOWN], "Oolong now. 2023-05-21", replace(TEA, gold=())),
        ("s.json", "REALTALK", REALTALK, "Ran 2023-12-29", RUN),
        ("memdaily.json", "MemSim", WHOLE, "论坛的地点是北京。 2024-04-01", PLACE),
        ("01_simple_events.json", "MemSim", PARTS, "论坛的地点是北京。 2024-04-01", PLACE),
    ],
)
def test_messages_have_their_order_and_questions_their_evidence(
    tmp_path: Path, file: str, reader: str, value: object, newest: str, question: Question
) -> None:
    (corpus,) = corpora(write_json(tmp_path / reader / file, value), reader)
    said = list(corpus.messages())
    assert (len(said), f"{said[-1].content} {said[-1].at:%Y-%m-%d}") == (2, newest)
    assert corpus.questions == (question,)


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
    *("31.02.2024, 25:00:00", "2024年13月41日 08:30", "May-45-2024", "2023/99/99 (x) 99:99"),
    *(0, -1, 10**400, 1.5, float("nan"), None, True, [], {}, [[]], [{}], {"session_1": 1}),
]
FORMS: list[object] = [
    [CONVERSATION],
    PERSON,
    [INSTANCE],
    REALTALK,
    WHOLE,
    PARTS,
    {"knowledge_update": [{"question": "?", "rubric": [], "source_chat_ids": {"a": [1]}}]},
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
    write_json(tmp_path / "chat.json", [{"turns": [[{"id": 1, "content": "a"}]]}])
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
