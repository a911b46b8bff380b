"""Feedback: whether a hit helped, as a change that nothing is ranked by."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from benchmarks.readers import found_in
from holdfast import InvalidInput, Memory
from holdfast_cli.formats.feedback import export_feedback
from learning_scripts import say
from tables import each

QUERY = "Which exercise did my physio give me?"
POSE = "The physio gave me the eagle pose."


@pytest.fixture
def told(memory: Memory) -> Memory:
    say(memory.chat("monday"), ("user", POSE), ("user", "We cooked pasta with basil."))
    memory.remember("Ada does the exercise of her physio every day", chat="monday", messages=1)
    return memory


def exported(memory: Memory) -> Any:
    stream = StringIO()
    export_feedback(memory, stream)
    return json.loads(stream.getvalue())


def test_feedback_is_a_change_of_the_user(told: Memory) -> None:
    (hit, *_) = told.recall(QUERY, sources=["message"])
    record = told.learning.feedback(hit, helpful=True, query=QUERY)
    assert (record.text, record.by, record.meta["helpful"]) == (QUERY, "user", True)
    assert (record.chat, record.messages) == ("monday", (1, 1))
    assert told.changes(limit=1)[0].id == record.id
    assert told.records(kind="feedback") == [record]
    assert told.scoped(user="bob").records(kind="feedback") == []
    told.undo()
    assert told.records(kind="feedback") == []
    masked = told.learning.feedback("monday#1", helpful=True, query="pose AKIAQ3EGRGB2M4XPIX5T")
    assert "AKIA" not in masked.text


def test_feedback_changes_no_answer_and_no_prompt(told: Memory) -> None:
    before = told.recall(QUERY), told.records(), told.chat("monday").prompt(query=QUERY)
    version = told.chat("monday").snapshot()
    for hit in told.recall(QUERY):
        told.learning.feedback(hit, helpful=False, query=QUERY)
    assert (told.recall(QUERY), told.records()) == before[:2]
    assert told.chat("monday").prompt(query=QUERY).system == before[2].system
    assert told.chat("monday").snapshot() == version
    assert told.recall(QUERY, kinds=["feedback"]) == []
    assert told.verify().problems == ()


@pytest.mark.parametrize("source", ["message", "record"])
@pytest.mark.parametrize("whole", [False, True])
def test_feedback_is_erased_with_what_it_is_about(told: Memory, source: Any, *, whole: bool) -> None:
    (hit, *_) = told.recall(QUERY, sources=[source])
    told.learning.feedback(hit, helpful=True, query=QUERY)
    if source == "record":
        told.erase(record=hit.id)
    elif whole:
        told.erase(chat="monday")
    else:
        told.erase(chat="monday", messages=1)
    assert told.records(kind="feedback") == []
    assert QUERY not in str(told.changes())
    assert told.verify().problems == ()


def test_feedback_becomes_questions_of_the_benchmark(told: Memory, tmp_path: Path) -> None:
    record = told.records(kind="fact")[0]
    told.learning.feedback("monday#2", helpful=True, query=QUERY)
    told.learning.feedback("monday#2", helpful=False, query=QUERY)  # the last one counts
    told.learning.feedback(record.id, helpful=True, query=QUERY)
    told.learning.feedback("monday#2", helpful=False, query="What about the pasta?")
    told.learning.feedback(told.recall(QUERY)[0], helpful=True)
    file = tmp_path / "questions.json"
    with file.open("w") as stream:
        assert export_feedback(told, stream) == (1, 2)
    (corpus,) = next(iter(found_in([file]))).corpora()
    (question,) = corpus.questions
    assert (question.text, question.gold, question.kind) == (QUERY, ("monday#1",), "feedback")
    assert corpus.sessions[0].messages[0].content == POSE
    assert exported(told)["questions"][0]["unhelpful"] == ["monday#2"]


@each(
    ("hit", "query", "helpful"),
    [("monday#1", "", True), ("monday#9", QUERY, True), ("monday#1", QUERY, "yes"), ("monday#1", 3, True)],
)
def test_what_is_no_feedback_is_refused(told: Memory, hit: str, query: Any, helpful: Any) -> None:
    with pytest.raises(InvalidInput):
        told.learning.feedback(hit, helpful=helpful, query=query)
    with pytest.raises(InvalidInput, match="not found in this scope"):
        told.scoped(user="bob").learning.feedback("monday#1", helpful=True, query=QUERY)
    assert exported(told)["questions"] == []
