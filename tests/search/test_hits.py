from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from holdfast import Memory
from holdfast.text.analyze import fold
from holdfast.types import ToolCall, Why
from recall_corpora import QUERIES, Said, found, tell

pytest_plugins = ["recall_fixtures"]


# What a hit says


def test_a_hit_says_where_its_message_stands(space: Memory) -> None:
    at = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    stored = space.chat("monday").append(role="user", content="the marathon", name="Ada", at=at)
    (hit,) = space.recall("marathon")
    assert (hit.source, hit.text, hit.id, hit.chat, hit.seq) == (
        "message",
        "the marathon",
        stored.id,
        "monday",
        1,
    )
    assert (hit.role, hit.name, hit.actor, hit.at) == ("user", "Ada", "Ada", at)


def test_a_hit_is_the_message_that_the_history_has(space: Memory) -> None:
    tell(space, [Said(f"chat{n % 4}", f"berlin {n}") for n in range(30)])
    for hit in space.recall("berlin", limit=30):
        (message,) = space.chat(hit.chat).history(after=hit.seq - 1, before=hit.seq + 1)
        assert (message.content, message.id, message.at) == (hit.text, hit.id, hit.at)


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


def test_reasons_print_as_a_phrase(space: Memory) -> None:
    tell(space, [Said("a", "the berlin marathon"), Said("b", "a garden")])
    phrase = str(space.recall("berlin marathon")[0].why)
    assert re.fullmatch(r"([a-z]+ \d+%, )*words \d+% \(berlin, marathon\)(, [a-z]+ \d+%)*", phrase)


def test_reasons_print_with_their_largest_share_first() -> None:
    why = Why({"session": 0.39, "words": 0.61}, ("berlin", "marathon"))
    assert str(why) == "words 61% (berlin, marathon), session 39%"
    assert repr(why) == f"Why({why})"


def test_reasons_read_as_a_mapping() -> None:
    why = Why({"session": 0.4, "words": 0.6})
    assert dict(why) == {"words": 0.6, "session": 0.4}
    assert (len(why), why["words"], "date" in why) == (2, 0.6, False)


def test_a_named_speaker_is_among_the_reasons(space: Memory) -> None:
    tell(space, [Said("a", "a walk", name="Ada"), Said("b", "a walk", name="Bob")])
    assert "speaker" in space.recall("did Ada walk?")[0].why


def test_a_date_is_among_the_reasons(space: Memory) -> None:
    tell(space, [Said("a", "a walk"), Said("b", "a walk", minutes=100_000)])
    assert "date" in space.recall("a walk in July 2022")[0].why


# Tool calls

CALL = ToolCall(
    "c1", "read_file", {"path": "src/a/b.py", "options": {"encoding": "latin-9"}, "lines": ["größe", 4711]}
)


@pytest.mark.parametrize(
    "query",
    ["read_file", "read file", "src/a/b.py", "b.py", "latin-9", "encoding", "options", "größe", "lines"],
)
def test_the_names_and_arguments_of_tool_calls_are_found(space: Memory, query: str) -> None:
    tell(space, [Said("other", "nothing of interest")])
    space.chat("a").append(role="assistant", calls=[CALL])
    hits = space.recall(query)
    assert [hit.chat for hit in hits] == ["a"]
    assert hits[0].why.words


def test_arguments_that_are_text_are_found(space: Memory) -> None:
    space.chat("a").append(role="assistant", calls=[ToolCall("c1", "shell", "rm -rf /srv/lantern {")])
    assert space.recall("lantern")[0].text == "shell rm -rf /srv/lantern {"


def test_a_call_and_the_text_beside_it_are_both_found(space: Memory) -> None:
    space.chat("a").append(role="assistant", content="Let me look at the garden", calls=[CALL])
    assert found(space.recall("garden")) == found(space.recall("read_file")) == ["Let me look at the garden"]


def test_the_result_of_a_tool_is_found(space: Memory) -> None:
    space.chat("a").append(role="assistant", calls=[CALL])
    space.chat("a").append(role="tool", content="def lantern(): ...", call_id="c1")
    assert space.recall("lantern", roles=["tool"])[0].seq == 2


def test_the_id_of_a_call_is_found(space: Memory) -> None:
    space.chat("a").append(role="assistant", calls=[ToolCall("toolu_9XyZ", "shell", {})])
    assert space.recall("toolu_9XyZ")


def test_a_message_that_only_calls_a_tool_shows_the_call(memory: Memory) -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "run_shell", "arguments": '{"command": "pytest -k marathon"}'},
    }
    memory.chat("monday").append({"role": "assistant", "content": None, "tool_calls": [call]})
    (hit,) = memory.recall("pytest marathon", sources=["message"])
    assert hit.text == 'run_shell {"command": "pytest -k marathon"}'


def test_a_credential_in_a_call_is_masked_in_its_hit(memory: Memory) -> None:
    key = "sk-ant-api03-" + "aB3dE5fG7h" * 9
    memory.chat("monday").append(role="assistant", calls=[ToolCall("c1", "deploy", {"marathon_key": key})])
    (hit,) = memory.recall("deploy marathon", sources=["message"])
    assert hit.text.startswith("deploy {")
    assert key not in hit.text
    assert key in memory.recall("deploy marathon", sources=["message"], secrets="show")[0].text
