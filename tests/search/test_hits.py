from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast import Memory
from holdfast.text.analyze import fold
from holdfast.types import ToolCall
from recall_corpora import QUERIES, Said, tell

pytest_plugins = ["recall_fixtures"]


# What a hit says


def test_a_hit_says_where_its_message_stands(space: Memory) -> None:
    at = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    stored = space.chat("monday").append(role="user", content="the marathon", name="Ada", at=at)
    (hit,) = space.recall("did Ada run the marathon in May 2023?")
    assert (hit.source, hit.text, hit.id) == ("message", "the marathon", stored.id)
    assert (hit.chat, hit.seq, hit.role, hit.name, hit.actor, hit.at) == (
        "monday",
        1,
        "user",
        "Ada",
        "Ada",
        at,
    )
    assert {"speaker", "date", "words"} <= set(hit.why)


def test_the_text_of_a_hit_is_word_for_word_what_was_said(space: Memory) -> None:
    text = "  Où est\tle CAFÉ?\r\n\r\n“Là-bas” — 100 % 🎉 cafe\u0301 "
    space.chat("a").append(role="user", content=text)
    assert space.recall("cafe")[0].text == text


# Why it was found


def test_the_reasons_name_the_words_of_the_question_that_the_message_has(space: Memory) -> None:
    tell(space, [Said("a", "Training for the Berlin Marathon"), Said("b", "a garden")])
    assert space.recall("Which marathons are in Berlin or Tokyo?")[0].why.words == ("marathons", "berlin")


@pytest.mark.parametrize("query", QUERIES)
def test_the_words_of_the_reasons_stand_in_the_question(space: Memory, query: str) -> None:
    tell(space, [Said(f"chat{n}", text) for n, text in enumerate(QUERIES)])
    asked = fold(query)
    for hit in space.recall(query):
        assert all(fold(word.removeprefix("like ")) in asked for word in hit.why.words)


# Tool calls

CALL = ToolCall(
    "c1", "read_file", {"path": "src/a/b.py", "options": {"encoding": "latin-9"}, "lines": ["größe", 4711]}
)


def test_the_names_and_arguments_of_tool_calls_are_found(space: Memory) -> None:
    tell(space, [Said("other", "nothing of interest")])
    space.chat("a").append(role="assistant", calls=[CALL])
    space.chat("b").append(role="assistant", calls=[ToolCall("toolu_9XyZ", "shell", "rm -rf /srv/lantern {")])
    for query in ("read_file", "src/a/b.py", "latin-9", "encoding", "options", "größe", "lines"):
        hit = space.recall(query)[0]
        assert (hit.chat, bool(hit.why.words)) == ("a", True)
    for query in ("lantern", "toolu_9XyZ"):
        assert space.recall(query)[0].text == "shell rm -rf /srv/lantern {"


def test_the_result_of_a_tool_is_found(space: Memory) -> None:
    space.chat("a").append(role="assistant", calls=[CALL])
    space.chat("a").append(role="tool", content="def lantern(): ...", call_id="c1")
    assert space.recall("lantern", roles=["tool"])[0].seq == 2


def test_a_credential_in_a_call_is_masked_in_its_hit(memory: Memory) -> None:
    key = "sk-ant-api03-" + "aB3dE5fG7h" * 9
    memory.chat("monday").append(role="assistant", calls=[ToolCall("c1", "deploy", {"marathon_key": key})])
    (hit,) = memory.recall("deploy marathon", sources=["message"])
    assert hit.text.startswith("deploy {")
    assert key not in hit.text
    assert key in memory.recall("deploy marathon", sources=["message"], secrets="show")[0].text
