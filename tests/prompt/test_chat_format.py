"""Messages of a log in the OpenAI chat format: each result right behind its call."""

from __future__ import annotations

from hypothesis import given

from holdfast.messages.openai import to_openai
from holdfast.prompt.build import to_chat
from holdfast.prompt.window import FreshTail
from holdfast.types import Message
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
    called: set[str] = set()
    for item in written:
        if item["role"] == "tool" and "tool_call_id" in item:
            assert item["tool_call_id"] in called
        else:
            calls = item.get("tool_calls", [])
            assert isinstance(calls, list)
            called = {call["id"] for call in calls}
