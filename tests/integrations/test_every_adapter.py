"""What each adapter promises, whatever its framework: who sees what, any session, writers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from holdfast import Conflict, Memory

# Each stores texts in a session, and gives all texts that are in it then.
Used = Callable[..., Coroutine[Any, Any, list[str]]]


async def agent_framework(memory: Memory, session: str, *texts: str) -> list[str]:
    from agent_framework import Message

    from holdfast.integrations.agent_framework import HoldfastHistoryProvider

    history = HoldfastHistoryProvider(memory)
    await history.save_messages(session, [Message("user", [text]) for text in texts])
    return [one.text for one in await history.get_messages(session)]


async def claude_agent(memory: Memory, session: str, *texts: str) -> list[str]:
    from holdfast.integrations.claude_agent import HoldfastSessionStore

    store, key = HoldfastSessionStore(memory), {"project_key": "p", "session_id": session}
    entries: list[Any] = [{"type": "x", "text": text} for text in texts]
    await store.append(key, entries)
    loaded: list[Any] = await store.load(key) or []
    return [one["text"] for one in loaded]


async def google_adk(memory: Memory, session: str, *texts: str) -> list[str]:
    from google.adk.events.event import Event
    from google.genai.types import Content, Part

    from holdfast.integrations.google_adk import HoldfastSessionService

    service: Any = HoldfastSessionService(memory.scoped(user=""))
    key = {"app_name": "coach", "user_id": memory.scope.user, "session_id": session}
    with suppress(Conflict):  # it exists
        await service.create_session(**key)
    for text in texts:
        while True:
            with suppress(Conflict):  # as another wrote meanwhile
                event = Event(author="user", content=Content(parts=[Part(text=text)]))
                await service.append_event(await service.get_session(**key), event)
                break
    return [one.content.parts[0].text for one in (await service.get_session(**key)).events]


async def langchain(memory: Memory, session: str, *texts: str) -> list[str]:
    from langchain_core.messages import HumanMessage

    from holdfast.integrations.langchain import HoldfastChatMessageHistory

    history = HoldfastChatMessageHistory(memory, session)
    await history.aadd_messages([HumanMessage(text) for text in texts])
    return [str(one.content) for one in await history.aget_messages()]


async def langgraph_saver(memory: Memory, session: str, *texts: str) -> list[str]:
    from langchain_core.messages import AnyMessage, HumanMessage
    from langgraph.graph import START, MessagesState, StateGraph

    from holdfast.integrations.langgraph import HoldfastSaver

    builder: Any = StateGraph(MessagesState)
    builder.add_node("listen", lambda _: {})
    builder.add_edge(START, "listen")
    graph, config = (
        builder.compile(checkpointer=HoldfastSaver(memory)),
        {"configurable": {"thread_id": session}},
    )
    for text in texts:
        await graph.ainvoke({"messages": [HumanMessage(text)]}, config)
    said: list[AnyMessage] = (await graph.aget_state(config)).values.get("messages", [])
    return [str(one.content) for one in said]


async def langgraph_store(memory: Memory, session: str, *texts: str) -> list[str]:
    from holdfast.integrations.langgraph import HoldfastStore

    store = HoldfastStore(memory)
    for text in texts:
        await store.aput(("of", session), text, {"text": text})
    return [item.key for item in await store.asearch(("of", session), query=(*texts, "x")[0], limit=100)]


async def llama_index(memory: Memory, session: str, *texts: str) -> list[str]:
    from llama_index.core.base.llms.types import ChatMessage

    from holdfast.integrations.llama_index import HoldfastChatStore

    store = HoldfastChatStore(memory=memory)
    await store.add_messages(session, [ChatMessage(content=text) for text in texts])
    return [one.content or "" for one in await store.get_messages(session)]


async def openai_agents(memory: Memory, session: str, *texts: str) -> list[str]:
    from holdfast.integrations.openai_agents import HoldfastSession

    items: Any = HoldfastSession(memory, session)
    await items.add_items([{"role": "user", "content": text} for text in texts])
    return [one["content"] for one in await items.get_items()]


async def pydantic_conversations(memory: Memory, session: str, *texts: str) -> list[str]:
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import ConversationConflict
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    from holdfast.integrations.pydantic_conversations import HoldfastConversationStore

    store = HoldfastConversationStore(memory)
    for text in texts:
        while True:
            with suppress(ConversationConflict):  # as another wrote meanwhile
                found = await store.load(session) or Conversation(conversation_id=session)
                found.messages.append(ModelRequest(parts=[UserPromptPart(text)]))
                await store.save(found)
                break
    found = await store.load(session) or Conversation(conversation_id=session)
    return [
        str(part.content) for one in found.messages for part in one.parts if isinstance(part, UserPromptPart)
    ]


ADAPTERS: list[Used] = [
    agent_framework,
    claude_agent,
    google_adk,
    langchain,
    langgraph_saver,
    langgraph_store,
    llama_index,
    openai_agents,
    pydantic_conversations,
]
every_adapter = pytest.mark.parametrize("used", ADAPTERS)


@every_adapter
def test_users_tenants_and_sessions_are_apart(location: str, used: Used) -> None:
    async def check(app: Memory) -> None:
        places = list(product(("", "acme"), ("ada", "bob"), ("trip", "home")))
        for place in places:
            tenant, user, session = place
            assert await used(app.scoped(tenant=tenant, user=user), session, " ".join(place)) == [
                " ".join(place)
            ]
        for place in places:
            tenant, user, session = place
            assert await used(app.scoped(tenant=tenant, user=user), session) == [" ".join(place)]
        app.scoped(tenant="coach" if used is google_adk else "", user="ada").erase(user="ada")
        for session in ("trip", "home"):
            assert await used(app.scoped(user="ada"), session) == []
            assert await used(app.scoped(user="bob"), session) == [f" bob {session}"]
        for tenant, user in product(("", "acme"), ("ada", "bob")):
            assert app.scoped(tenant=tenant, user=user).verify().ok

    with Memory(location, admin=True) as app:
        asyncio.run(check(app))


NAMES = [" ", "../trip", "trip/", "a/b%\x00\ud800'; DROP TABLE items; --", "x" * 2_000]
NAMES += ["x" * 2_001, "trip", "trip%", "TRIP", "%74rip", "ü", "trip#1"]

# Their sessions have the names of chats or namespaces, or are not that long.
REFUSING = (claude_agent, langchain, langgraph_store, openai_agents)


@every_adapter
def test_any_text_is_a_session_of_its_own_or_refused(used: Used) -> None:
    async def check(memory: Memory) -> None:
        kept = list[str]()
        for name in NAMES:
            with suppress(ValueError):
                assert (await used(memory, name), await used(memory, name, str(NAMES.index(name)))) == (
                    [],
                    [str(NAMES.index(name))],
                )
                kept.append(name)
        assert [await used(memory, name) for name in kept] == [[str(NAMES.index(name))] for name in kept]
        assert kept == NAMES or (used in REFUSING and kept[-6:] == NAMES[-6:])

    with Memory(":memory:", admin=True) as app:
        asyncio.run(check(app.scoped(user="ada")))


@pytest.mark.parametrize(
    "used", [one for one in ADAPTERS if one is not langgraph_saver]
)  # a thread has one run
def test_of_what_several_write_at_once_nothing_is_lost(shared_location: str, used: Used) -> None:
    def write(name: str) -> list[str]:
        with Memory(shared_location, admin=True) as app:
            return asyncio.run(used(app.scoped(user="ada"), "trip", *(f"{name}{n}" for n in range(5))))

    Memory(shared_location).close()
    with ThreadPoolExecutor(3) as threads:
        for name, seen in zip("abc", threads.map(write, "abc"), strict=True):
            assert sorted(one for one in seen if one[0] == name) == [f"{name}{n}" for n in range(5)]
    with Memory(shared_location, admin=True) as app:
        stored = asyncio.run(used(app.scoped(user="ada"), "trip"))
        assert sorted(stored) == [f"{name}{n}" for name in "abc" for n in range(5)]
        assert app.scoped(user="ada").verify().ok
