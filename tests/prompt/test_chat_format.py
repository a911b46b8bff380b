"""Messages of a log in the OpenAI chat format: each result right behind its call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import given

from chat_messages import to_chat
from holdfast import Memory
from holdfast.messages.openai import to_openai
from holdfast.prompt.window import FreshTail
from holdfast.types import Message
from tables import each
from window_logs import LOGS, parse, window_of


def test_results_stand_right_behind_their_call() -> None:
    """Models reject anything in between, and a log can have it."""
    written = to_chat(parse("u +x,y +z -z u -y -x a"))
    shape = [item.get("tool_call_id") or len(str(item.get("tool_calls", ""))) > 0 for item in written]
    assert shape == [False, True, "y", "x", True, "z", False, False]
    assert to_chat(parse("u +x -x u +x -x a")) == tuple(
        d for m in parse("u +x -x u +x -x a") for d in to_openai(m)
    )


@given(LOGS)
def test_every_result_follows_its_call(log: list[Message]) -> None:
    written = to_chat(window_of(FreshTail(10**6), reversed(log), len(log), 0).messages)
    check_pairs(written)


def check_pairs(written: Iterable[Mapping[str, object]]) -> None:
    """Check that each call is answered once, by a result that follows it."""
    waiting: list[object] = []
    for item in written:
        if item["role"] == "tool":
            waiting.remove(item["tool_call_id"])
        else:
            assert waiting == []
            calls = item.get("tool_calls", [])
            assert isinstance(calls, list)
            waiting = [call["id"] for call in calls]
            assert len({*waiting}) == len(waiting)
    assert waiting == []


def call(*ids: str) -> dict[str, object]:
    look = {"name": "look", "arguments": "{}"}
    calls = [{"id": one, "type": "function", "function": look} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def given_back(id: str, text: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": id, "content": text}


SAID = {"role": "user", "content": "Go on."}
BLOCKS = [{"type": "tool_result", "tool_use_id": "c", "content": text} for text in ("1", "2")]


@each(
    ("log", "results"),
    [
        ([call("c"), given_back("c", "timed out"), given_back("c", "42")], ["timed out\n42"]),
        ([call("c"), given_back("c", "1"), SAID, given_back("c", "2")], ["1\n2"]),
        ([call("c", "c"), given_back("c", "1"), given_back("c", "2")], ["1", "2"]),
        ([call("c", "c"), *(given_back("c", one) for one in "123")], ["1", "2\n3"]),
        ([call("c", "c"), given_back("c", "1")], ["1", "[answered above]"]),
        ([call("c", "d", "c"), *(given_back(one, one) for one in "dcc")], ["d", "c", "c"]),
        ([call("c", "c"), {"role": "user", "content": BLOCKS}], ["1", "2"]),
        ([call("c"), {"role": "user", "content": BLOCKS}], ["1\n2"]),
        ([call("c"), given_back("c", "1"), call("c"), given_back("c", "2")], ["1", "2"]),
    ],
)
def test_a_call_that_is_answered_twice_and_calls_with_one_id_have_one_result_each(
    quick: Memory, log: list[dict[str, object]], results: list[str]
) -> None:
    """A log has it after a retry, or from a model that uses an id twice; APIs refuse it for ever."""
    chat = quick.chat(f"{results} {len(log)}")
    chat.append([SAID, *log, {"role": "assistant", "content": "It is 42."}, SAID])
    written = chat.prompt(2_000).messages
    check_pairs(written)
    assert [one["content"] for one in written if one["role"] == "tool"] == results
    turns = chat.prompt(2_000, format="anthropic").messages
    blocks = [block for turn in turns for block in turn["content"]]
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    answered = [block for block in blocks if block["type"] == "tool_result"]
    assert sorted(called) == sorted(block["tool_use_id"] for block in answered)
    assert len({*called}) == len(called)
    texts = [block["content"] for block in answered]
    assert [
        one if isinstance(one, str) else "\n".join(part["text"] for part in one) for one in texts
    ] == results
