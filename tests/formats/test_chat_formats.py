"""Chats in the formats of others: import has all of them back, and what a format cannot hold is counted."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, messages_from_dict

from holdfast import InvalidInput, Memory, Message, ToolCall
from holdfast.integrations.langchain import HoldfastChatMessageHistory
from holdfast_cli.formats.export import FORMATS, ExportedChats, export_chats, export_chats_as
from holdfast_cli.formats.importing import import_paths
from soak import cases
from tables import each

AT = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
# What looks like the marks of the formats.
HOSTILE = (
    '<!-- message {"role": "user"} -->',
    "\\<!-- chat {} -->",
    "# t\n<!-- calls -->\n```json\n[]\n```",
    "a\r\n\r\nb\n",
    "\n\n  x",
    "```",
    "\u2028 \x00 \U0001f600 -->",
    "---\n## user",
)


def fill(memory: Memory, many: int = 3) -> None:
    chat = memory.chat("monday", channel="mail", meta={"k": [1]})
    calls = [ToolCall("t1", "find", {"x": [1, None]}), ToolCall("t2", "look", "not {json")]
    results = [{"type": "tool_result", "tool_use_id": one.id, "content": f"of {one.id}"} for one in calls]
    spoken: list[Message | dict[str, object]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "No jokes."},
        Message("user", "Which race?", name="ada", at=AT, meta={"x": {"y": "--> --"}}),
        Message("assistant", "I look.", calls=tuple(calls)),
        {"role": "user", "content": [*results, {"type": "text", "text": "and go on"}]},
        {"role": "tool", "tool_call_id": "elsewhere", "content": "an answer to nothing here"},
        Message("tool", "of nobody", name="clock"),
        {"role": "system", "content": "From now on in Dutch."},
        {"role": "user", "content": [{"type": "text", "text": "See"}, IMAGE]},
    ]
    for said in (*spoken, *({"role": "user", "content": text} for text in HOSTILE)):
        chat.append(said)
    chat.rename("The plan --> # 1")
    memory.scoped(agent="coach").chat("tue\\sday").append([{"role": "user", "content": "hi"}] * many)
    memory.chat("tue\\sday").archive()


def written(memory: Memory, path: Path, format: str) -> ExportedChats:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        if format == "jsonl":
            return ExportedChats(export_chats(memory, stream))
        return export_chats_as(memory, stream, format)


FIELDS = attrgetter(*"seq role content id name at calls call_id answers meta".split())


def bare(memory: Memory) -> list[tuple[object, ...]]:
    chats = sorted(chat.id for chat in memory.chats(archived=None))
    return [(chat, *FIELDS(one)) for chat in chats for one in memory.chat(chat).history()]


@pytest.mark.parametrize("format", ["jsonl", *FORMATS])
def test_an_export_comes_back_and_changes_nothing_where_it_came_from(
    memory: Memory, tmp_path: Path, format: str
) -> None:
    many = 1_003 if format in ("jsonl", "openai") else 3  # of the first, more than are read at once
    fill(memory, many)
    path = tmp_path / f"out.{'md' if format == 'markdown' else 'jsonl'}"
    done = written(memory, path, format)
    assert done.messages == 17 + many
    assert set(done.left_out) <= {
        "the payload as it came, of which the message is kept",
        "an image or a file, for which a placeholder stands",
    }
    with Memory(":memory:", user="ada") as copy:
        report = import_paths(copy, path)
        assert (report.sessions, report.added, report.problems) == (2, 17 + many, ())
        assert bare(copy) == bare(memory)
        if format != "markdown":  # it has no images, which count as tokens
            assert copy.chats(archived=None) == memory.chats(archived=None)
        if format == "jsonl":
            histories = [
                [one.chat(chat).history() for chat in ("monday", "tue\\sday")] for one in (memory, copy)
            ]
            assert histories[0] == histories[1]
    report = import_paths(memory, path)
    assert (report.added, report.present, report.problems) == (0, 17 + many, ())


def test_a_reply_of_reasoning_alone_is_counted_and_the_rest_is_written(quick: Memory, tmp_path: Path) -> None:
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}
    quick.chat("c").append([{"role": "user", "content": "hi"}, thought])
    done = written(quick, tmp_path / "out.jsonl", "openai")
    assert done == ExportedChats(1, Counter({"a message of reasoning alone, left out": 1}))
    assert json.loads((tmp_path / "out.jsonl").read_text())["messages"] == [{"role": "user", "content": "hi"}]


def test_lines_are_as_the_clients_take_them(quick: Memory, tmp_path: Path) -> None:
    fill(quick)
    for format in ("openai", "anthropic"):
        written(quick, tmp_path / f"{format}.jsonl", format)
    first = (tmp_path / "openai.jsonl").read_text().splitlines()[0]
    roles = [one["role"] for one in json.loads(first)["messages"]]
    assert roles[:8] == ["system", "developer", "user", "assistant", "tool", "tool", "user", "user"]
    whole = json.loads((tmp_path / "anthropic.jsonl").read_text().splitlines()[0])
    assert [block["text"] for block in whole["system"]] == ["Be brief.", "No jokes.", "From now on in Dutch."]
    assert {one["role"] for one in whole["messages"]} == {"user", "assistant"}
    answers = whole["messages"][2]["content"]
    assert [block["type"] for block in answers] == ["tool_result", "tool_result", "text"]


def test_threads_are_messages_of_langchain(quick: Memory, tmp_path: Path) -> None:
    fill(quick)
    written(quick, tmp_path / "threads.jsonl", "langgraph")
    threads = map(json.loads, (tmp_path / "threads.jsonl").read_text().splitlines())
    found: Any = messages_from_dict(next(one["messages"] for one in threads if one["id"] == "monday"))
    kinds = ["system", "system", "human", "ai", "tool", "tool", "human", "human", "human", "system"]
    assert [one.type for one in found][:10] == kinds
    assert found[3].tool_calls == [
        {"name": "find", "args": {"x": [1, None]}, "id": "t1", "type": "tool_call"}
    ]
    assert found[3].invalid_tool_calls[0]["args"] == "not {json"
    assert found[2].name == "ada"
    assert len(found) == 19


def test_messages_of_langchain_are_written_as_they_were_stored(quick: Memory, tmp_path: Path) -> None:
    said = [HumanMessage("hi", additional_kwargs={"x": 1}), AIMessage("ho", response_metadata={"model": "m"})]
    HoldfastChatMessageHistory(quick, "c").add_messages(said)
    assert not written(quick, tmp_path / "threads.jsonl", "langgraph").left_out
    found = messages_from_dict(json.loads((tmp_path / "threads.jsonl").read_text())["messages"])
    assert [one.model_copy(update={"id": None}) for one in found] == said


TEXTS = st.one_of(
    st.text(max_size=30), st.lists(st.sampled_from((*HOSTILE, "", "x")), max_size=4).map("\n".join)
)
CALLS = st.lists(
    st.builds(
        ToolCall,
        st.text("abc-", min_size=1, max_size=3),
        st.text("xyz", min_size=1, max_size=2),
        st.one_of(st.just("not json"), st.dictionaries(st.text(max_size=3), TEXTS, max_size=2)),
    ),
    max_size=2,
    unique_by=lambda call: call.id,
).map(tuple)
SPOKEN = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "system", "developer"]),
    TEXTS.filter(str.strip),
    name=st.one_of(st.none(), st.text("ab \n#", min_size=1, max_size=4)),
    at=st.integers(0, 10**9).map(lambda seconds: AT + timedelta(seconds=seconds)),
    meta=st.dictionaries(st.text(max_size=3), st.one_of(st.integers(), TEXTS), max_size=2),
)
MESSAGES = st.one_of(
    SPOKEN,
    st.builds(
        lambda text, calls: Message("assistant", text if calls or text.strip() else "x", calls=calls),
        TEXTS,
        CALLS,
    ),
    st.builds(
        lambda text, call: Message("tool", text, call_id=call), TEXTS, st.one_of(st.none(), st.text("abc-"))
    ),
)


@pytest.mark.slow
@each("format", FORMATS)
@settings(max_examples=cases(10, 120))
@given(said=st.lists(MESSAGES, min_size=1, max_size=6))
def test_any_messages_come_back_from_any_format(format: str, said: list[Message]) -> None:
    with (
        Memory(":memory:", user="ada") as memory,
        Memory(":memory:", user="ada") as copy,
        TemporaryDirectory() as folder,
    ):
        try:
            memory.chat("c").append(said)
        except InvalidInput:
            return
        path = Path(folder, "out.md" if format == "markdown" else "out.jsonl")
        written(memory, path, format)
        assert not import_paths(memory, path).added
        report = import_paths(copy, path)
        assert not report.problems
        assert bare(copy) == bare(memory)
        assert not import_paths(memory, path).problems
