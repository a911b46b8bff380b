"""Google's ADK: a memory that recalls its sessions, and its runner with both."""

from __future__ import annotations

import pytest
from adk_sessions import CHAT, KEY, WHO, awaited, filled, of_ada, said, setting, texts
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai.types import Content, Part

from holdfast import InvalidInput, Memory
from holdfast.integrations.google_adk import HoldfastMemoryService, HoldfastSessionService


def found(response: SearchMemoryResponse) -> list[str]:
    return [entry.content.parts[0].text or "" for entry in response.memories if entry.content.parts]


@pytest.fixture
def sessions(app: Memory) -> HoldfastSessionService:
    return HoldfastSessionService(app)


@pytest.fixture
def remembered(app: Memory) -> HoldfastMemoryService:
    return HoldfastMemoryService(app)


# Memory


def test_a_session_is_added_once(
    sessions: HoldfastSessionService, remembered: HoldfastMemoryService, app: Memory
) -> None:
    session = Session(id="s1", **WHO, events=[said("My sister Marta breeds alpacas."), setting(x=1)])
    for _ in range(2):
        awaited(remembered.add_session_to_memory(session))
    session.events += [said("She lives in Chur.", author="coach"), said("part", partial=True)]
    awaited(remembered.add_session_to_memory(session))
    log = of_ada(app).chat("google-adk-memory/s1").history()
    assert [one.content for one in log] == ["My sister Marta breeds alpacas.", "She lives in Chur."]
    assert Event.model_validate(log[1].raw) == session.events[2]
    # A session of the same memory is found at once, and never stored again.
    stored = filled(sessions, said("Llamas spit."), session_id="s2")
    for _ in range(2):
        assert found(awaited(remembered.search_memory(**WHO, query="Who spits?"))) == ["Llamas spit."]
        awaited(remembered.add_session_to_memory(stored))
    assert {one.id for one in of_ada(app).chats()} == {"google-adk-memory/s1", "google-adk/s2"}


def test_an_entry_has_its_author_and_its_time(
    sessions: HoldfastSessionService, remembered: HoldfastMemoryService, app: Memory
) -> None:
    filled(
        sessions, said("Alpacas like hay.", "coach", timestamp=86_400.5), said("My password: hunter2-x9Kq")
    )
    of_ada(app).remember("Owns four alpacas", by="user")
    one_source = HoldfastMemoryService(app, sources=["message"], limit=1)
    (entry,) = awaited(one_source.search_memory(**WHO, query="hay alpacas")).memories
    assert (entry.author, entry.id) == ("coach", f"{CHAT}#1")
    assert entry.timestamp == "1970-01-02T00:00:00.500000+00:00"
    assert entry.content == Content(role="model", parts=[Part(text="Alpacas like hay.")])
    assert entry.custom_metadata.items() >= {"source": "message", "chat": CHAT, "role": "assistant"}.items()
    hits = awaited(remembered.search_memory(**WHO, query="four alpacas")).memories
    assert {one.custom_metadata["source"] for one in hits} == {"record", "message"}
    assert "hunter2" not in str(awaited(remembered.search_memory(**WHO, query="password")))


def test_entries_are_remembered_as_facts(remembered: HoldfastMemoryService, app: Memory) -> None:
    entry = MemoryEntry(content=Content(parts=[Part(text="Marta breeds alpacas")]), author="coach")
    for _ in range(2):
        awaited(remembered.add_memory(**WHO, memories=[entry], custom_metadata={"of": "family"}))
    (record,) = of_ada(app).records()
    assert (record.kind, record.text) == ("fact", "Marta breeds alpacas")
    assert record.meta == {"of": "family", "author": "coach"}
    with pytest.raises(InvalidInput, match="no text"):
        awaited(remembered.add_memory(**WHO, memories=[entry, MemoryEntry(content=Content(parts=[]))]))
    assert len(of_ada(app).records()) == 1
    (hit,) = awaited(remembered.search_memory(**WHO, query="alpacas")).memories
    awaited(remembered.delete_memory(**WHO, memory_id=hit.id))
    assert of_ada(app).records() == []


def test_what_is_deleted_is_not_added_again(
    sessions: HoldfastSessionService, remembered: HoldfastMemoryService, app: Memory
) -> None:
    here = filled(sessions, said("Alpacas like hay."), said("Trains are late."))
    elsewhere = Session(id="s2", **WHO, events=[said("Alpacas hum."), said("Trains are loud.")])
    awaited(remembered.add_session_to_memory(elsewhere))
    for entry in awaited(remembered.search_memory(**WHO, query="alpacas")).memories:
        # What was said beside it is found as well.
        for _ in range(2 if "Alpacas" in str(entry.content) else 0):
            awaited(remembered.delete_memory(**WHO, memory_id=entry.id))
    awaited(remembered.add_session_to_memory(here), remembered.add_session_to_memory(elsewhere))
    assert awaited(remembered.search_memory(**WHO, query="alpacas")).memories == []
    assert texts(awaited(sessions.get_session(**KEY)).events) == ["Trains are late."]
    for nothing in ("", " ?!", "\x00", "\ud800"):
        assert awaited(remembered.search_memory(**WHO, query=nothing)).memories == []
    for unknown in (None, "", "nothing", "nothing#3", f"{CHAT}#9", "3"):
        awaited(remembered.delete_memory(**WHO, memory_id=unknown))
    assert len(awaited(remembered.search_memory(**WHO, query="trains")).memories) == 2


def test_users_and_apps_recall_their_own(
    sessions: HoldfastSessionService, remembered: HoldfastMemoryService
) -> None:
    filled(sessions, said("My sister Marta breeds alpacas."))
    for who in ({"app_name": "coach", "user_id": "bob"}, {"app_name": "other", "user_id": "ada"}):
        assert awaited(remembered.search_memory(**who, query="Who breeds alpacas?")).memories == []
        awaited(remembered.delete_memory(**who, memory_id=f"{CHAT}#1"))
    assert len(awaited(remembered.search_memory(**WHO, query="Who breeds alpacas?")).memories) == 1
