"""LangChain: a history whose messages are those of a chat, and a retriever over what is remembered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from holdfast import Damaged, InvalidInput, Memory, Message
from holdfast.integrations.langchain import HoldfastChatMessageHistory, HoldfastRetriever
from soak import cases
from tables import each

PICTURE = {"type": "image", "base64": "iVBORw0K", "mime_type": "image/png"}
MESSAGES: list[BaseMessage] = [
    SystemMessage("You are a coach.", id="s-1"),
    HumanMessage([{"type": "text", "text": "Where was this taken?"}, PICTURE], name="ada"),
    AIMessage(
        [
            {"type": "thinking", "thinking": "Look it up.", "signature": "sig"},
            {"type": "text", "text": "One moment."},
        ],
        tool_calls=[{"id": "c1", "name": "places", "args": {"of": "picture"}}],
        usage_metadata={"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
        response_metadata={"model_name": "m-1"},
        id="run-1",
    ),
    ToolMessage("Lofoten", tool_call_id="c1", artifact={"score": 0.5}, status="success"),
    AIMessage("In Lofoten.", additional_kwargs={"refusal": None}),
    AIMessageChunk(content="partly"),
    ChatMessage(content="Hear, hear", role="emperor"),
    FunctionMessage(content="42", name="answer"),
    RemoveMessage(id="run-1"),
]


@pytest.fixture
def history(memory: Memory) -> HoldfastChatMessageHistory:
    return HoldfastChatMessageHistory(memory, "trip")


# History


def test_messages_come_back_as_they_were_and_are_read_as_those_of_a_chat(
    history: HoldfastChatMessageHistory, memory: Memory
) -> None:
    history.add_messages(MESSAGES)
    assert history.messages == MESSAGES == asyncio.run(history.aget_messages())
    assert [type(one) for one in history.messages] == [type(one) for one in MESSAGES]
    assert HoldfastChatMessageHistory(memory, "trip", limit=2).messages == MESSAGES[-2:]
    log = memory.chat("trip").history()
    assert [(one.role, one.content) for one in log] == [
        ("system", "You are a coach."),
        ("user", "Where was this taken?\n[image: unnamed]"),
        ("assistant", "One moment."),
        ("tool", "Lofoten"),
        ("assistant", "In Lofoten."),
        ("assistant", "partly"),
        ("assistant", "Hear, hear"),
        ("tool", "42"),
        ("assistant", "[remove]"),
    ]
    assert [(call.id, call.name, call.arguments) for call in log[2].calls] == [
        ("c1", "places", {"of": "picture"})
    ]
    assert log[3].answers == ("c1",)


def test_what_was_cleared_stays_in_the_log_which_says_so(
    history: HoldfastChatMessageHistory, memory: Memory
) -> None:
    history.add_user_message("I live in Rome.")
    asyncio.run(history.aclear())
    history.add_ai_message("Hello.")
    assert history.messages == [AIMessage("Hello.")]
    said = [one.content for one in memory.chat("trip").history()]
    assert said == ["I live in Rome.", "[the session was cleared]", "Hello."]
    memory.erase(chat="trip")
    assert history.messages == []


def test_what_is_no_message_of_langchain_is_told(history: HoldfastChatMessageHistory, memory: Memory) -> None:
    wrong: list[Any] = [
        "a text",
        {"role": "user", "content": "hi"},
        ToolMessage("x", tool_call_id="c", artifact=object()),
    ]
    for one in wrong:
        with pytest.raises(InvalidInput):
            history.add_messages([HumanMessage("fine"), one])
    assert history.messages == []
    forged = Message("user", "x", raw={"type": "os.system", "data": {}}, meta={"langchain": "item"})
    memory.chat("trip").append(forged)
    with pytest.raises(Damaged, match="Message 1 of the chat"):
        _ = history.messages


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "image_url", "tool_use", "tool_result", "file", "x"])},
    optional=dict.fromkeys("text image_url id name input tool_use_id content url".split(), json_values),
)


@pytest.mark.slow
@settings(max_examples=cases(20, 240))
@given(st.lists(parts | st.text(), max_size=3), st.sampled_from([HumanMessage, AIMessage, SystemMessage]))
def test_any_content_comes_back_equal(content: list[Any], kind: type[BaseMessage]) -> None:
    with Memory(":memory:") as memory:
        history = HoldfastChatMessageHistory(memory, "trip")
        history.add_messages([kind(content)])
        assert history.messages == [kind(content)]


# Retriever


@pytest.fixture
def remembered(memory: Memory) -> Memory:
    chat = memory.chat("monday")
    chat.append(role="user", content="I am training for the Berlin marathon.", meta={"topic": "sport"})
    chat.append(role="user", content="The Berlin office moves in May.", meta={"topic": "work"})
    chat.append(role="user", content="Berlin has the better bakeries.")
    memory.remember("Never plans runs in Berlin on Mondays", kind="fact")
    return memory


def test_documents_name_their_source_date_and_score(remembered: Memory) -> None:
    found = HoldfastRetriever(memory=remembered).invoke("marathon in Berlin?")
    said = next(one for one in found if one.id == "monday#1")
    (hit,) = (
        one for one in remembered.recall("marathon in Berlin?") if one.chat == "monday" and one.seq == 1
    )
    assert said.page_content == "I am training for the Berlin marathon."
    assert said.metadata == {
        "source": "monday#1",
        "type": "message",
        "score": hit.score,
        "at": hit.at.isoformat(),
        "why": str(hit.why),
        "chat": "monday",
        "role": "user",
        "space": hit.space,
    }
    fact = next(one for one in found if one.metadata["type"] == "record")
    assert (fact.id, fact.metadata["kind"]) == (fact.metadata["source"], "fact")
    assert json.loads(json.dumps([one.metadata for one in found])) == [one.metadata for one in found]


def test_how_many_and_which_is_chosen_by_the_retriever_or_the_call(remembered: Memory) -> None:
    def texts(found: list[Document]) -> list[str]:
        return [one.page_content for one in found]

    retriever = HoldfastRetriever(memory=remembered, k=2, where={"topic": "work"})
    assert texts(retriever.invoke("Berlin")) == ["The Berlin office moves in May."]
    sport = retriever.invoke("Berlin", where={"topic": "sport"})
    assert texts(sport) == ["I am training for the Berlin marathon."]
    assert len(retriever.invoke("Berlin", where=None)) == 2
    facts = HoldfastRetriever(memory=remembered, options={"sources": ["record"]})
    assert [one.metadata["type"] for one in asyncio.run(facts.ainvoke("Berlin"))] == ["record"]
    assert len(asyncio.run(retriever.ainvoke("Berlin", where=None, k=1))) == 1


@each(("query", "found"), [("👍", 1), ("🎉", 0), ("…", 0), ("???", 0), ("", 0)])
def test_a_query_without_words_finds_its_emoji_or_nothing(quick: Memory, query: str, found: int) -> None:
    quick.chat("old").append([{"role": "user", "content": "Ship it 👍", "id": "1"}])
    retriever = HoldfastRetriever(memory=quick)
    assert len(retriever.invoke(query)) == len(asyncio.run(retriever.ainvoke(query))) == found
