"""pydantic-ai's conversations in a memory: real runs, forks and branches, beside its own store in memory."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pydantic_agents
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic_agents import Watched, look_up, say, weather
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models.test import TestModel

from holdfast import Damaged, Memory, Message
from holdfast.integrations.pydantic_conversations import HoldfastConversationStore
from soak import cases

runner = pydantic_agents.runner
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ask(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text, timestamp=NOON)])


async def found(store: ConversationStore, id: str) -> Conversation:
    """Load a conversation that there is."""
    conversation = await store.load(id)
    assert conversation is not None
    return conversation


async def talk(store: ConversationStore, agent: Agent[None, Any], id: str, *texts: str) -> list[ModelMessage]:
    """Run an agent for each text, with the conversation loaded before and saved after it."""
    messages: list[ModelMessage] = []
    for text in texts:
        conversation = await store.load(id) or Conversation(conversation_id=id)
        result = await agent.run(text, conversation=conversation)
        await store.save(result)
        messages = result.all_messages()
    return messages


# Runs -------------------------------------------------------------------------------------------------------


def test_a_conversation_is_carried_from_run_to_run_and_over_a_restart(location: str) -> None:
    watched = Watched(look_up)
    agent = Agent(watched.model, tools=[weather], system_prompt="Be brief.", instructions="Look it up.")
    with Memory(location, user="ada") as memory:
        store = HoldfastConversationStore(memory)
        said = asyncio.run(talk(store, agent, "trip", "Hello", "The weather?", "Hello"))
        loaded = asyncio.run(found(HoldfastConversationStore(memory.scoped()), "trip"))
        assert loaded.messages == said
        assert (loaded.usage.requests, loaded.usage.tool_calls) == (4, 2)
        chat = memory.chat(store.chat_id("trip"))
        roles = ["user", "assistant", "user", "assistant", "tool", "tool", "assistant", "user", "assistant"]
        assert [message.role for message in chat.history()] == ["system", *roles]
        assert "The weather?" in [hit.text for hit in memory.recall("weather")]
        assert memory.verify().ok


# Beside the framework's own store ---------------------------------------------------------------------------

IDS = st.sampled_from(["a", "b/c", "d%"])
SCOPES = st.sampled_from([None, "ada", "bob"])
NUMBERS = st.integers(0, 6)
STEPS = st.one_of(
    st.tuples(st.just("save"), IDS, st.integers(0, 3), SCOPES),
    st.tuples(st.just("rewrite"), IDS, NUMBERS, SCOPES),
    st.tuples(st.just("window"), IDS, NUMBERS, SCOPES),
    st.tuples(st.just("branch"), IDS, NUMBERS, SCOPES),
    st.tuples(st.just("back"), IDS, NUMBERS, SCOPES),
    st.tuples(st.just("fork"), IDS, NUMBERS, IDS),
    st.tuples(st.just("delete"), IDS, NUMBERS, SCOPES),
)


async def take(store: ConversationStore, number: int, step: tuple[str, str, int, str | None]) -> object:
    """Take a step and return what came of it, without ids, which no two stores share."""
    kind, id, count, other = step
    texts = [ask(f"{number}.{n}") for n in range(count)]
    try:
        if kind == "fork":
            return (await store.fork(id, at=count, new_conversation_id=other)).messages
        if kind == "delete":
            await store.delete(id, scope=other)
            return None
        loaded = await store.load(id, limit=count if kind == "window" else None)
        if kind in ("branch", "back"):
            record = await store.read_record(id)
            tip = record.branches[0] if kind == "back" and record and record.branches else None
            place: dict[str, Any] = {"at": count} if tip is None else {"from_entry": tip}
            revision = loaded.revision if loaded else None
            return (await store.branch(id, **place, expected_revision=revision, scope=other)).messages
        conversation = loaded or Conversation(conversation_id=id)
        if kind == "rewrite":
            kept = conversation.messages[:count]
            conversation = Conversation(
                messages=[*kept, *texts], conversation_id=id, revision=conversation.revision
            )
        else:
            conversation.messages.extend(texts)
        return [entry.message for entry in await store.save(conversation, scope=other)]
    except UserError as error:
        return type(error)


async def state(store: ConversationStore) -> object:
    seen = []
    for record in await store.list_conversations():
        id = record.conversation_id
        branches = [[one.message for one in await store.read_history(tip)] for tip in record.branches]
        last = await store.load(id, limit=2)
        seen.append((id, record.scope, (await found(store, id)).messages, branches, last and last.messages))
    return seen


@pytest.mark.slow
@settings(max_examples=cases(15, 180))
@given(st.lists(STEPS, max_size=12))
@example([("save", "a", 2, None), ("fork", "a", 1, "d%"), ("save", "d%", 1, None), ("branch", "a", 1, None)])
def test_each_step_has_the_result_that_the_store_of_the_framework_has(
    steps: list[tuple[str, str, int, str | None]],
) -> None:
    async def program(memory: Memory) -> None:
        ours, theirs = HoldfastConversationStore(memory), InMemoryConversationStore()
        for number, step in enumerate(steps):
            assert await take(ours, number, step) == await take(theirs, number, step)
            assert await state(ours) == await state(theirs)

    with Memory(":memory:") as memory:
        asyncio.run(program(memory))
        # Each message is stored once, however histories branch.
        said = [one.content for chat in memory.chats() for one in memory.chat(chat.id).history()]
        assert len(said) == len(set(said))


# The contract of the primitives -----------------------------------------------------------------------------


def test_a_record_is_written_only_over_the_revision_that_is_expected(memory: Memory) -> None:
    async def program() -> None:
        store = HoldfastConversationStore(memory)
        entry = ConversationEntry(parent_id=None, message=ask("Hello"))
        record = ConversationRecord(conversation_id="trip", head_id=entry.id)
        with pytest.raises(ConversationConflict):
            await store.write_record(record, new_entries=[entry], expected_revision="never")
        assert memory.chats() == []
        await store.write_record(record, new_entries=[entry], expected_revision=None)
        assert await store.read_record("trip") == record
        with pytest.raises(ConversationConflict):
            await store.write_record(record, expected_revision=None)
        with pytest.raises(LookupError):
            await store.read_entry("nowhere")
        await store.delete("trip")
        assert await store.read_record("trip") is None
        assert await store.read_entry(entry.id) == entry

    asyncio.run(program())


def test_messages_of_others_in_the_chat_are_not_in_the_conversation(memory: Memory) -> None:
    async def program() -> None:
        store = HoldfastConversationStore(memory)
        await talk(store, Agent(TestModel(custom_output_text="Yes.")), "trip", "Rome?")
        forged = {"pydantic-ai": {"entry": "forged", "after": {"entry": 7}}}
        chat = memory.chat(store.chat_id("trip"))
        chat.append(role="user", content="Not of the framework")
        said = await talk(store, Agent(TestModel(custom_output_text="No.")), "trip", "Berlin?")
        assert (await found(store, "trip")).messages == said
        chat.append([Message("user", "Forged", meta=forged, id="forged")])
        with pytest.raises(Damaged, match="'forged'"):
            await store.read_entry("forged")

    asyncio.run(program())


def test_a_history_goes_on_without_what_was_erased(memory: Memory) -> None:
    async def program() -> None:
        store = HoldfastConversationStore(memory)
        agent = Agent(TestModel(custom_output_text="Yes."))
        said = await talk(store, agent, "trip", "Rome?", "Berlin?")
        await store.fork("trip", new_conversation_id="other")
        chat = store.chat_id("trip")
        for seq, left in ((2, [said[0], *said[2:]]), (4, [said[0], said[2]])):
            memory.erase(chat=chat, messages=seq)
            loaded = await found(store, "trip")
            assert loaded.messages == left
        loaded.messages.append(say("Where to?"))
        await store.save(loaded)
        assert (await found(store, "trip")).messages == loaded.messages
        memory.erase(chat=chat)
        assert await store.load("trip") is None
        assert (await found(store, "other")).messages == []

    asyncio.run(program())
