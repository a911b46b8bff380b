"""Checkpoints that LangGraph itself wrote."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths

pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs: pip install langgraph-checkpoint-sqlite")

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

# How the serializer of earlier versions wrote a message.
OLD = {
    "lc": 2,
    "type": "constructor",
    "id": ["langchain_core", "messages", "human", "HumanMessage"],
    "kwargs": {"content": "old"},
}
CALL = {"name": "look", "args": {"x": 1}, "id": "c1", "type": "tool_call"}


def answer(state: MessagesState) -> dict[str, list[BaseMessage]]:
    last = state["messages"][-1]
    if last.content == "look":
        return {"messages": [AIMessage("", tool_calls=[CALL]), ToolMessage("seen", tool_call_id="c1")]}
    if last.content == "forget":
        return {"messages": [RemoveMessage(id=str(state["messages"][0].id))]}
    return {"messages": [AIMessage([{"type": "text", "text": f"re: {last.content}"}])]}


def graph(saver: SqliteSaver) -> Any:
    built = StateGraph(MessagesState)
    built.add_node("answer", answer)
    built.add_edge(START, "answer")
    return built.compile(checkpointer=saver)


def of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def told(memory: Memory, chat: str) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in memory.chat(chat).history()]


def test_the_newest_state_of_each_thread_and_its_forks(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        app = graph(saver)
        for text in ("one", "look"):
            app.invoke({"messages": [HumanMessage(text)]}, of("t1"))
        app.invoke({"messages": [HumanMessage("other")]}, of("t2"))
        report = import_paths(memory, path)
        assert (report.sessions, report.added, report.problems) == (2, 7, ())
        looked = [("user", "look"), ("assistant", ""), ("tool", "seen")]
        main = [("user", "one"), ("assistant", "re: one"), *looked]
        assert told(memory, "t1") == main
        stored = memory.chat("t1").history()
        assert [call.arguments for call in stored[3].calls] == [{"x": 1}]
        assert stored[4].answers == ("c1",)
        assert stored[0].at is not None
        before = next(s for s in app.get_state_history(of("t1")) if len(s.values["messages"]) == 2)
        app.invoke({"messages": [HumanMessage("instead")]}, before.config)
        again = import_paths(memory, path)
    assert again.added == 2 + 3
    # The log keeps what was said; what only the other end has is a chat of its own as well.
    assert told(memory, "t1") == [*main, ("user", "instead"), ("assistant", "re: instead")]
    (fork,) = [chat.id for chat in memory.chats() if chat.id.startswith("t1/")]
    assert told(memory, fork) == looked
    counted = {one.reason: one.count for one in again.skipped}
    assert counted["an earlier state of a thread"] > 5
    assert not again.problems


def test_what_cannot_be_read_has_a_line(quick: Memory, tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
    states: list[tuple[str, str | None, object]] = [
        ("pickled", "pickle", b"\x80\x04N."),
        ("cut", "msgpack", b"\x85\xa1v"),
        ("deep", "msgpack", b"\x91" * 5_000),
        ("none", None, None),
        ("text", "msgpack", "text"),
        ("empty", "msgpack", b"\x80"),
        ("delta", "msgpack", b"\x81\xb0channel_versions\x81\xa8messages\x01"),
        ("old", "json", json.dumps({"channel_values": {"messages": [OLD]}}).encode()),
        ("odd", "json", b'{"channel_values": {"messages": [7, {"type": "alien", "content": "x"}]}}'),
    ]
    with closing(sqlite3.connect(path)) as database:
        for thread, kind, state in states:
            row = (thread, "", "1", None, kind, state, b"")
            database.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        database.execute("INSERT INTO checkpoints VALUES (7, '', 1, NULL, 'msgpack', X'80', X'')")
        database.execute("INSERT INTO checkpoints VALUES ('s', 'sub:1', '1', NULL, 'msgpack', X'80', X'')")
        database.commit()
    report = import_paths(quick, path)
    assert (report.added, told(quick, "old")) == (1, [("user", "old")])
    assert sum(one.count for one in report.skipped) == len(states) + 2
