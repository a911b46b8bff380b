"""Graphs of LangGraph whose checkpoints are in a memory, run by LangGraph itself with a scripted model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from holdfast import Conflict, Damaged, InvalidInput, Memory
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.port.items import Items
from programs import start

BERLIN, ANSWER = "I run the marathon in Berlin.", "Then train on Tuesdays."


# Answers forever, and says how far it is; with a thread it is another process that goes on.
_TALKING = """
import sys
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from holdfast import Memory
from holdfast.integrations.langgraph import HoldfastSaver

def answer(state):
    return {"messages": [AIMessage(f"Answer to {state['messages'][-1].content}")]}

builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
with Memory(sys.argv[1], user="ada") as memory:
    graph = builder.compile(checkpointer=HoldfastSaver(memory))
    for number in range(int(sys.argv[2]), 10_000):
        config = {"configurable": {"thread_id": "1"}}
        state = graph.invoke({"messages": f"Question {number}"}, config, durability="sync")
        print(len(state["messages"]), flush=True)
"""


@dataclass(frozen=True)
class _State:
    """A type of an application."""

    number: int


def thread(name: str = "1") -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def answering(*answers: str) -> Any:
    """Return a graph of one node, which answers with a scripted model."""
    model = GenericFakeChatModel(messages=iter([AIMessage(answer) for answer in answers]))
    builder: Any = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder


def said(saver: HoldfastSaver, name: str = "1") -> list[tuple[str, str]]:
    return [(one.role, one.content) for one in saver.chat(name).history()]


def contents(state: Any) -> list[str]:
    return [one.content for one in state.values["messages"]]


@pytest.fixture
def saver(memory: Memory) -> HoldfastSaver:
    return HoldfastSaver(memory)


def test_a_thread_goes_on_and_recall_finds_what_was_said_in_it_once(memory: Memory) -> None:
    saver = HoldfastSaver(memory)
    graph = answering(ANSWER, "Gladly.").compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage(BERLIN)]}, thread())
    again = HoldfastSaver(memory)
    graph = answering("Gladly.").compile(checkpointer=again)
    state = graph.invoke({"messages": "Thank you."}, thread())
    assert [one.content for one in state["messages"]] == [BERLIN, ANSWER, "Thank you.", "Gladly."]
    assert said(saver) == [
        ("user", BERLIN),
        ("assistant", ANSWER),
        ("user", "Thank you."),
        ("assistant", "Gladly."),
    ]
    assert [hit.text for hit in memory.recall("marathon in Berlin")].count(BERLIN) == 1
    assert memory.verify().ok


def test_a_fork_repeats_nothing_in_the_log(saver: HoldfastSaver) -> None:
    graph = answering(ANSWER, "Or on Fridays.").compile(checkpointer=saver)
    graph.invoke({"messages": BERLIN}, thread())
    before = next(one for one in graph.get_state_history(thread()) if one.next == ("model",))
    graph.invoke(None, before.config)
    assert contents(graph.get_state(thread())) == [BERLIN, "Or on Fridays."]
    assert said(saver) == [("user", BERLIN), ("assistant", ANSWER), ("assistant", "Or on Fridays.")]
    finished = [one for one in graph.get_state_history(thread()) if len(one.values.get("messages", [])) == 2]
    assert [contents(one)[1] for one in finished] == ["Or on Fridays.", ANSWER]


def test_new_content_under_an_id_is_a_version_and_a_removed_message_leaves_a_tombstone(
    memory: Memory,
) -> None:
    saver = HoldfastSaver(memory)
    graph = answering(ANSWER).compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage(BERLIN, id="race")]}, thread())
    graph.update_state(thread(), {"messages": [HumanMessage("I run in Paris.", id="race")]}, as_node="model")
    graph.update_state(thread(), {"messages": [HumanMessage("I run in Paris.", id="race")]}, as_node="model")
    assert contents(graph.get_state(thread())) == ["I run in Paris.", ANSWER]
    assert [content for _, content in said(saver)] == [BERLIN, ANSWER, "I run in Paris."]
    version = saver.chat("1").history()[-1]
    assert version.meta == {"langgraph": "version", "message": "race"}
    graph.update_state(thread(), {"messages": [RemoveMessage("race")]}, as_node="model")
    assert contents(graph.get_state(thread())) == [ANSWER]
    tombstone = saver.chat("1").history()[-1]
    assert (tombstone.role, tombstone.content) == ("system", "[message langgraph/1#1 was removed]")
    assert tombstone.meta["messages"] == ["race"]
    graph.update_state(thread(), {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]}, as_node="model")
    assert len(said(saver)) == 5
    assert memory.verify().ok


def test_messages_that_a_node_changes_in_place_are_stored_as_they_are_now(saver: HoldfastSaver) -> None:
    def shorten(state: MessagesState) -> dict[str, Any]:
        for message in state["messages"]:
            message.content = str(message.content)[:5]
        state["messages"][-1].additional_kwargs["kept"] = True
        return {"messages": state["messages"]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("shorten", shorten)
    builder.add_edge(START, "shorten")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage(f"Message {n}") for n in range(20)]}, thread())
    fresh = builder.compile(checkpointer=HoldfastSaver(saver._memory))
    assert contents(fresh.get_state(thread())) == ["Messa"] * 20
    assert fresh.get_state(thread()).values["messages"][-1].additional_kwargs == {"kept": True}


class ChangedMeanwhile(JsonPlusSerializer):
    """Serialize a message that a node changes right after: LangGraph stores a step beside the next one."""

    def __init__(self, message: HumanMessage) -> None:
        super().__init__(pickle_fallback=False, allowed_msgpack_modules=[])
        self._message = message

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        found = super().dumps_typed(obj)
        if obj is self._message:
            self._message.content = "as it is now"
        return found


def test_a_message_that_is_changed_while_it_is_stored_is_stored_again(saver: HoldfastSaver) -> None:
    message = HumanMessage("as it was", id="m1")
    changing = HoldfastSaver(saver._memory, serde=ChangedMeanwhile(message))
    config: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    checkpoint = empty_checkpoint()
    for step in (1, 2):
        checkpoint = create_checkpoint(checkpoint, None, step)
        checkpoint["channel_values"] = {"messages": [message]}
        checkpoint["channel_versions"] = {"messages": f"{step}"}
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        config = changing.put(config, checkpoint, metadata, {"messages": f"{step}"})
    stored = HoldfastSaver(saver._memory).get_tuple(config)
    assert stored is not None
    assert [one.content for one in stored.checkpoint["channel_values"]["messages"]] == ["as it is now"]


def test_subgraphs_have_checkpoints_of_their_own_and_say_nothing_twice(saver: HoldfastSaver) -> None:
    def wait(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"Noted: {interrupt('What else?')}")]}

    inner: Any = StateGraph(MessagesState)
    inner.add_node("wait", wait)
    inner.add_edge(START, "wait")
    outer: Any = StateGraph(MessagesState)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    graph = outer.compile(checkpointer=saver)
    graph.invoke({"messages": BERLIN}, thread())
    state = graph.get_state(thread(), subgraphs=True)
    assert contents(state.tasks[0].state) == [BERLIN]
    graph.invoke(Command(resume="a coach"), thread())
    assert said(saver) == [("user", BERLIN), ("assistant", "Noted: a coach")]
    assert len({one.config["configurable"]["checkpoint_ns"] for one in saver.list(thread())}) == 2


def test_a_copied_thread_stays_when_the_other_is_erased(memory: Memory) -> None:
    saver = HoldfastSaver(memory)
    answering(ANSWER).compile(checkpointer=saver).invoke({"messages": BERLIN}, thread("one"))
    saver.copy_thread("one", "two")
    with pytest.raises(Conflict):
        saver.copy_thread("one", "two")
    saver.delete_thread("one")
    assert said(saver, "two") == [("user", BERLIN), ("assistant", ANSWER)]
    assert [chat.id for chat in memory.chats()] == [saver.chat("two").id]


def test_pruning_keeps_the_newest_and_deletes_what_nothing_needs(memory: Memory) -> None:
    saver = HoldfastSaver(memory)
    graph = answering(ANSWER, "Gladly.").compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage(BERLIN, id="race")]}, thread())
    graph.update_state(thread(), {"messages": [RemoveMessage("race")]})
    saver.prune(["1"])
    assert len([*saver.list(thread())]) == 1
    kept = Items(memory, "langgraph.messages").scan(saver.chat("1").id)
    assert len(kept) == 1
    assert BERLIN.encode() not in b"".join(item.data for item in kept)
    graph.invoke({"messages": "Thank you."}, thread())
    fresh = answering().compile(checkpointer=HoldfastSaver(memory))
    assert contents(fresh.get_state(thread())) == [ANSWER, "Thank you.", "Gladly."]
    with pytest.raises(InvalidInput):
        saver.prune(["1"], strategy="all")


def test_what_a_deleted_run_said_is_noted_as_removed(saver: HoldfastSaver) -> None:
    graph = answering(ANSWER, "Gladly.").compile(checkpointer=saver)
    graph.invoke({"messages": BERLIN}, {**thread(), "metadata": {"run_id": "first"}})
    graph.invoke({"messages": "Thank you."}, {**thread(), "metadata": {"run_id": "second"}})
    saver.delete_for_runs(["second"])
    assert contents(graph.get_state(thread())) == [BERLIN, ANSWER]
    assert said(saver)[-1][1] == "[2 messages from langgraph/1#3 to langgraph/1#4 were removed]"


def test_a_pickle_is_neither_written_nor_read(memory: Memory) -> None:
    with pytest.raises(InvalidInput):
        HoldfastSaver(memory, serde=JsonPlusSerializer(pickle_fallback=True))
    with pytest.raises(InvalidInput):
        HoldfastSaver(memory, serde=JsonPlusSerializer(allowed_msgpack_modules=True))
    saver = HoldfastSaver(memory)
    answering(ANSWER).compile(checkpointer=saver).invoke({"messages": BERLIN}, thread())
    chat = saver.chat("1").id
    for collection in ("checkpoints", "values", "messages"):
        table = Items(memory, f"langgraph.{collection}")
        for item in table.scan(chat):
            if b'"msgpack"' not in item.data:
                continue
            head, line, data = item.data.partition(b"\n")
            for hostile in (
                item.data.replace(b'"msgpack"', b'"pickle"'),
                item.data.replace(b'"msgpack"', b'"unknown"'),
                b"\xff" + item.data,
                b"[" * 100_000,
                b'["", {}, [[1, 2' + line + data,
                head + line + b"\xc1" + data,
            ):
                table.put({item.key: hostile}, chat)
                with pytest.raises(Damaged):
                    [*saver.list(thread())]
            table.put({item.key: item.data}, chat)
    assert len([*saver.list(thread())]) == 3


def test_a_type_that_is_not_allowed_is_not_made(memory: Memory, tmp_path: Path) -> None:
    saver = HoldfastSaver(memory)
    permissive = JsonPlusSerializer(allowed_msgpack_modules=True)
    kind, data = permissive.dumps_typed(tmp_path)
    assert saver.serde.loads_typed((kind, data)) == tmp_path
    kind, data = permissive.dumps_typed(_State(1))
    assert saver.serde.loads_typed((kind, data)) == {"number": 1}
    allowing = HoldfastSaver(memory, serde=JsonPlusSerializer(allowed_msgpack_modules=[_State]))
    assert allowing.serde.loads_typed((kind, data)) == _State(1)


@pytest.mark.slow
def test_a_killed_process_leaves_whole_steps_and_another_one_goes_on(shared_location: str) -> None:
    acknowledged = 0
    for turn in range(3):
        program = start(_TALKING, shared_location, turn * 1_000)
        assert program.stdout
        lines = [int(program.stdout.readline()) for _ in range(4)]
        program.kill()
        program.communicate()
        assert lines[0] >= acknowledged + 1
        acknowledged = lines[-1]
        with Memory(shared_location, user="ada") as memory:
            saver = HoldfastSaver(memory)
            state = saver.get_tuple(thread())
            assert state
            stored = [one.content for one in state.checkpoint["channel_values"]["messages"]]
            assert len(stored) >= acknowledged
            assert [content for _, content in said(saver)] == stored
            assert len(Items(memory, "langgraph.messages").scan(saver.chat("1").id)) == len(stored)
            assert memory.verify().ok
