"""Strands Agents: sessions whose messages are those of chats, and a store of memories."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Memory

pytest.importorskip("strands", reason="needs: pip install '.[strands]', apart from the rest")
from strands.session.file_session_manager import FileSessionManager
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from holdfast.integrations.strands import HoldfastMemoryStore, HoldfastSessionManager
from holdfast.integrations.strands_sessions import HoldfastSessionRepository
from soak import cases

CHAT = "strands/trip/default"
CONTENTS: list[list[dict[str, Any]]] = [
    [{"text": "Where was this?"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}],
    [
        {"reasoningContent": {"reasoningText": {"text": "Look it up.", "signature": "s"}}},
        {"text": "One moment."},
        {"toolUse": {"toolUseId": "c1", "name": "places", "input": {"of": "picture"}}},
        {"cachePoint": {"type": "default"}},
    ],
    [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"json": {"in": "Lofoten"}}]}}],
    [
        {"citationsContent": {"content": [{"text": "In Lofoten."}], "citations": []}},
        {"document": {"format": "pdf", "name": "map", "source": {"bytes": b"%PDF"}}},
    ],
]


def message(number: int, *texts: str, role: str = "user") -> SessionMessage:
    return SessionMessage({"role": role, "content": [{"text": text} for text in texts]}, number)


@pytest.fixture
def repository(memory: Memory) -> HoldfastSessionRepository:
    repository = HoldfastSessionRepository(memory)
    repository.create_session(Session("trip", SessionType.AGENT))
    repository.create_agent("trip", SessionAgent("default", {}, {}))
    return repository


# The repository


def test_messages_come_back_as_they_were(repository: HoldfastSessionRepository, memory: Memory) -> None:
    given = [
        SessionMessage(
            {"role": "assistant" if n % 2 else "user", "content": content, "tracking_id": f"t{n}"}, n
        )
        for n, content in enumerate(CONTENTS)
    ]
    for one in given:
        repository.create_message("trip", "default", one)
    assert repository.list_messages("trip", "default") == given
    assert repository.list_messages("trip", "default", limit=2, offset=1) == given[1:3]
    assert repository.read_message("trip", "default", 1) == given[1]
    assert repository.read_message("trip", "default", 4) is None
    log = memory.chat(CHAT).history()
    assert [(one.role, one.content) for one in log] == [
        ("user", "Where was this?\n[image: png]"),
        ("assistant", "One moment."),
        ("tool", '{"in": "Lofoten"}'),
        ("assistant", "In Lofoten.\n[file: map]"),
    ]
    assert [(call.id, call.name, call.arguments) for call in log[1].calls] == [
        ("c1", "places", {"of": "picture"})
    ]
    assert log[2].answers == ("c1",)


def test_a_new_version_takes_the_place_of_a_message(
    repository: HoldfastSessionRepository, memory: Memory
) -> None:
    repository.create_message("trip", "default", message(0, "My code is 1234."))
    changed = message(0, "My code is secret.")
    for redaction in (None, "[redacted]", "[redacted]"):
        if redaction:
            changed.redact_message = {"role": "user", "content": [{"text": redaction}]}
        repository.update_message("trip", "default", changed)
        assert repository.list_messages("trip", "default") == [changed]
    log = memory.chat(CHAT).history()
    said = ["My code is 1234.", "My code is secret.", "[redacted]", "[redacted]"]
    assert [one.content for one in log] == said
    assert log[2].meta == {"strands": "replaces", "message": log[1].id}
    memory.erase(chat=CHAT, messages=2)
    (left,) = repository.list_messages("trip", "default")
    assert left.to_message() == left.message == changed.redact_message
    assert "My code is secret." not in str([one.raw for one in memory.chat(CHAT).history()])


def test_sessions_agents_and_users_cannot_see_each_other(
    repository: HoldfastSessionRepository, memory: Memory
) -> None:
    repository.create_message("trip", "default", message(0, "mine"))
    bob = HoldfastSessionRepository(memory.scoped(user="bob"))
    assert bob.read_session("trip") is bob.read_agent("trip", "default") is None
    assert bob.list_messages("trip", "default") == repository.list_messages("trip", "other") == []
    assert repository.list_messages("trip/default", "") == []
    bob.create_session(Session("trip", SessionType.AGENT))
    bob.delete_session("trip")
    assert len(repository.list_messages("trip", "default")) == 1


def test_a_session_is_erased(repository: HoldfastSessionRepository, memory: Memory) -> None:
    repository.create_agent("trip", SessionAgent("a/b\x00", {}, {}))
    repository.create_message("trip", "default", message(0, "My sister Marta breeds alpacas."))
    repository.create_message("trip", "a/b\x00", message(0, "So does mine."))
    repository.create_session(Session("trip2", SessionType.AGENT))
    repository.delete_session("trip")
    assert memory.recall("alpacas") == []
    assert memory.chats() == []
    assert repository.read_session("trip") is repository.read_agent("trip", "a/b\x00") is None
    assert repository.read_session("trip2") is not None


steps = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.text(max_size=5)),
        st.tuples(st.just("update"), st.integers(0, 5), st.text(max_size=5)),
        st.tuples(st.just("redact"), st.integers(0, 5), st.text(max_size=5)),
    ),
    max_size=10,
)


@settings(max_examples=cases(10, 75))
@given(steps, st.none() | st.integers(0, 6), st.integers(0, 6))
def test_it_behaves_as_the_files_of_strands(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any], limit: int | None, offset: int
) -> None:
    with Memory(":memory:") as memory:
        theirs = FileSessionManager("trip", str(tmp_path_factory.mktemp("strands")))
        ours = HoldfastSessionManager(memory, "trip").session_repository
        both, count = (ours, theirs), 0
        for one in both:
            one.create_agent("trip", SessionAgent("default", {}, {}))
        for step, *what in steps:
            if step == "create":
                for one in both:
                    one.create_message("trip", "default", message(count, what[0]))
                count += 1
            elif what[0] < count:
                for one in both:
                    stored = one.read_message("trip", "default", what[0])
                    new = {"role": "user", "content": [{"text": what[1]}]}
                    setattr(stored, "message" if step == "update" else "redact_message", new)
                    one.update_message("trip", "default", stored)
        listed = [one.list_messages("trip", "default", limit, offset) for one in both]
        assert [(one.message, one.redact_message) for one in listed[0]] == [
            (one.message, one.redact_message) for one in listed[1]
        ]


# The store


def test_a_store_searches_its_own_memory(memory: Memory) -> None:
    store = HoldfastMemoryStore(memory, options={"sources": ["record"]}, max_search_results=1)
    asyncio.run(store.add("Rides a Brompton to work", {"from": "test"}))
    asyncio.run(store.add("Rides a Brompton to work"))
    asyncio.run(store.add("Has a second Brompton at home"))
    assert len(memory.records()) == 2
    (found,) = asyncio.run(store.search("Brompton to work"))
    assert found.content == "Rides a Brompton to work"
    assert found.metadata["type"] == "record"
    assert len(asyncio.run(store.search("Brompton", {"max_search_results": 5}))) == 2
    assert asyncio.run(store.search("Rides a Brompton to work", {"max_search_results": 0})) == []
    assert asyncio.run(HoldfastMemoryStore(memory.scoped(user="bob")).search("Brompton")) == []
    # What users type as well.
    assert [asyncio.run(store.search(typed)) for typed in ("👍", "???", "")] == [[], [], []]
