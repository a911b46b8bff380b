"""Graphs and agents of LangGraph that keep what they know in a memory, and LangMem's tools."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from holdfast import Memory
from holdfast.integrations.langgraph import HoldfastStore

if TYPE_CHECKING:
    # Newer than the lowest version that is tested.
    from langchain.agents.middleware.types import InputAgentState

with warnings.catch_warnings():
    # It imports names from where LangGraph had them before.
    warnings.simplefilter("ignore", DeprecationWarning)
    from langmem import create_manage_memory_tool, create_search_memory_tool


class Scripted(BaseChatModel):
    """A model that answers what it is told to, one message after the other."""

    answers: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[object], **options: object) -> Scripted:
        return self

    def _generate(self, messages: list[BaseMessage], *args: object, **options: object) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answers.pop(0))])


def call(tool: str, **arguments: object) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=tool, args=arguments, id=f"call-{tool}")])


def ask(store: BaseStore, user: str, *answers: AIMessage) -> list[str]:
    """Run an agent with LangMem's tools and a script, and return what its tools answered."""
    namespace = ("memories", "{langgraph_user_id}")
    tools = [create_manage_memory_tool(namespace), create_search_memory_tool(namespace)]
    agent = create_agent(Scripted(answers=[*answers, AIMessage("Done.")]), tools, store=store)
    config: RunnableConfig = {"configurable": {"langgraph_user_id": user}}
    asked: InputAgentState = {"messages": [HumanMessage("Go on.")]}
    state = asyncio.run(agent.ainvoke(asked, config))
    return [str(one.content) for one in state["messages"] if isinstance(one, ToolMessage)]


def test_the_tools_of_langmem_manage_and_search_memories(memory: Memory) -> None:
    store = HoldfastStore(memory)
    ask(store, "ada", call("manage_memory", content="Ada prefers green tea.", action="create"))
    ask(store, "bob", call("manage_memory", content="Bob prefers coffee.", action="create"))
    [found] = ask(store, "ada", call("search_memory", query="Which teas does she prefer?", limit=1))
    [tea] = json.loads(found)
    assert (tea["value"]["content"], tea["namespace"]) == ("Ada prefers green tea.", ["memories", "ada"])
    ask(store, "ada", call("manage_memory", content="Ada prefers oolong.", action="update", id=tea["key"]))
    assert [item.value["content"] for item in store.search(("memories", "ada"))] == ["Ada prefers oolong."]
    ask(store, "ada", call("manage_memory", action="delete", id=tea["key"]))
    assert store.list_namespaces() == [("memories", "bob")]
