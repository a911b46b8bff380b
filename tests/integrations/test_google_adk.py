"""Google's ADK: sessions that are chats, and state on scratchpads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from adk_sessions import CHAT, KEY, WHO, awaited, filled, of_ada, said, setting, texts
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.genai.types import Blob, Content, FunctionCall, FunctionResponse, Part
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import Conflict, Damaged, Denied, InvalidInput, Memory, Message
from holdfast.integrations.google_adk import HoldfastMemoryService, HoldfastSessionService
from soak import cases
from tables import each

PARTS = [
    [Part(text="Where was this?"), Part(inline_data=Blob(data=b"\x89PNG\xff", mime_type="image/png"))],
    [
        Part(text="Look it up.", thought=True, thought_signature=b"\xff\x00"),
        Part(text="One moment."),
        Part(function_call=FunctionCall(id="c1", name="places", args={"of": "picture", "not": None})),
    ],
    [Part(function_response=FunctionResponse(id="c1", name="places", response={"result": "Lofoten"}))],
    [Part(text="In Lofoten.")],
    [],
]


@pytest.fixture
def sessions(app: Memory) -> HoldfastSessionService:
    return HoldfastSessionService(app)


# Sessions


def test_events_come_back_equal_and_are_read_as_messages_of_a_chat(
    sessions: HoldfastSessionService, app: Memory
) -> None:
    events = [
        Event(
            author="coach" if n else "user",
            invocation_id="i1",
            content=Content(role="model", parts=parts),
            timestamp=1_000.5 + n,
            actions=EventActions(state_delta={"n": n, "none": None, "of": [1.5, {"a": None}]}),
            long_running_tool_ids={"b", "a"},
            custom_metadata={"of": None},
            branch="a.b",
        )
        for n, parts in enumerate(PARTS)
    ]
    session = filled(sessions, *events, Event(author="coach", error_message="Too busy"), setting(x=1))
    again = awaited(sessions.get_session(**KEY))
    assert again == session
    assert again.events[:-2] == events
    log = of_ada(app).chat(CHAT).history()
    assert [(one.role, one.name, one.content) for one in log[:-1]] == [
        ("user", None, "Where was this?\n[image: image/png]"),
        ("assistant", "coach", "One moment."),
        ("tool", "coach", "Lofoten"),
        ("assistant", "coach", "In Lofoten."),
        ("assistant", "coach", "[event]"),
        ("assistant", "coach", "Too busy"),
    ]
    assert [(one.id, one.name, one.arguments) for one in log[1].calls] == [
        ("c1", "places", {"of": "picture", "not": None})
    ]
    assert log[2].answers == ("c1",)
    assert [one.id for one in log] == [one.id for one in session.events]
    assert log[0].at is not None
    assert log[0].at.timestamp() == 1_000.5


def test_state_is_shared_as_its_prefix_says(sessions: HoldfastSessionService) -> None:
    awaited(
        sessions.create_session(**KEY, state={"app:a": 1, "user:b": "two", "c": [3], "temp:d": 4}),
        sessions.create_session(**{**KEY, "session_id": "s2"}),
        sessions.create_session(app_name="coach", user_id="bob", session_id="s1"),
        sessions.create_session(app_name="other", user_id="ada", session_id="s1"),
    )
    assert awaited(sessions.get_session(**KEY)).state == {"app:a": 1, "user:b": "two", "c": [3]}
    assert awaited(sessions.get_session(**{**KEY, "session_id": "s2"})).state == {"app:a": 1, "user:b": "two"}
    bob = awaited(sessions.get_session(app_name="coach", user_id="bob", session_id="s1"))
    assert bob.state == {"app:a": 1}
    assert awaited(sessions.get_session(app_name="other", user_id="ada", session_id="s1")).state == {}
    assert awaited(sessions.get_user_state(**WHO)) == {"b": "two"}
    assert awaited(sessions.get_user_state(app_name="coach", user_id="bob")) == {}
    awaited(sessions.append_event(bob, setting(**{"user:b": 2, "c": None, "temp:d": 4})))
    again = awaited(sessions.get_session(app_name="coach", user_id="bob", session_id="s1"))
    assert (bob.state["temp:d"], again.state) == (4, {"app:a": 1, "user:b": 2, "c": None})


@pytest.mark.parametrize("name", ["token", "", "x" * 600, "temp:a\x00ü/%"])
def test_what_a_scratchpad_does_not_take_is_kept_beside_it(
    sessions: HoldfastSessionService, app: Memory, name: str
) -> None:
    secret = "sk-ant-api03-" + "aB3" * 30
    state = {f"user:{name}": secret, f"app:{name}": "x" * 200_000}
    awaited(sessions.create_session(**KEY, state=state))
    session = awaited(sessions.get_session(**KEY))
    assert session.state == state
    assert secret not in str(of_ada(app).scratchpad.stored())
    for value in ("plain", secret):
        awaited(sessions.append_event(session, setting(**{f"user:{name}": value})))
        assert awaited(sessions.get_user_state(**WHO)) == {name: value}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["1", " 1", "null", "NaN", '"a"', "[", "{}", "\x00", "\U0001f600", "true "]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
states = st.dictionaries(
    st.tuples(st.sampled_from(["", "app:", "user:"]), st.text()).map("".join), json_values
)


def test_a_session_in_hand_that_is_stale_is_refused(sessions: HoldfastSessionService, app: Memory) -> None:
    first = filled(sessions, said("a", timestamp=5.0))
    second, third, bare = (awaited(sessions.get_session(**KEY)) for _ in range(3))
    bare.events = []
    awaited(sessions.append_event(second, said("b", timestamp=5.0)))
    for stale in (first, third, bare):
        with pytest.raises(ValueError, match="has been modified") as refused:
            awaited(sessions.append_event(stale, setting(**{"user:x": 1})))
        assert isinstance(refused.value, Conflict)
    assert "x" not in awaited(sessions.get_user_state(**WHO))
    # What was never stored may stand in a session in hand, and one may be made by hand.
    second.events.append(said("only in hand"))
    awaited(sessions.append_event(second, said("c")))
    by_hand = Session(id="s1", **WHO, events=[second.events[-1]])
    awaited(sessions.append_event(by_hand, said("d")))
    assert texts(awaited(sessions.get_session(**KEY)).events) == ["a", "b", "c", "d"]
    assert app.verify().ok


def test_an_event_is_stored_once(sessions: HoldfastSessionService) -> None:
    session = filled(sessions)
    event = said("a", actions=EventActions(state_delta={"n": 1}))
    awaited(sessions.append_event(session, event), sessions.append_event(session, event))
    assert texts(session.events) == texts(awaited(sessions.get_session(**KEY)).events) == ["a"]
    with pytest.raises(Conflict):
        awaited(sessions.append_event(session, said("other words", id=event.id)))
    awaited(sessions.append_event(session, said("partial", partial=True)))
    awaited(sessions.append_event(session, said("odd", id=" \x00" * 300)))
    assert texts(awaited(sessions.get_session(**KEY)).events) == ["a", "odd"]


def test_sessions_are_listed_by_their_last_update(sessions: HoldfastSessionService, app: Memory) -> None:
    names = ["s1", "a/b\x00#1 %", "ü" * 400, "s4"]
    for n, name in enumerate(names):
        filled(sessions, said("x", timestamp=float(9 - n)), session_id=name)
    awaited(sessions.create_session(app_name="coach", user_id="bob", state={"user:x": 1, "y": 2}))
    filled(sessions, app_name="other")
    app.scoped(tenant="coach", user="ada").chat("no session").append(role="user", content="x")
    listed = awaited(sessions.list_sessions(**WHO)).sessions
    assert [one.id for one in listed] == names[::-1]
    assert not any(one.events for one in listed)
    everyone = awaited(sessions.list_sessions(app_name="coach")).sessions
    assert [one.user_id for one in everyone] == ["ada"] * 4 + ["bob"]
    assert everyone[-1].state == {"user:x": 1, "y": 2}
    assert awaited(sessions.list_sessions(app_name="nobody's")).sessions == []


def test_a_deleted_session_is_erased(sessions: HoldfastSessionService, app: Memory) -> None:
    filled(sessions, said("My sister Marta breeds alpacas."), setting(**{"user:x": 1, "y": 2}))
    awaited(sessions.delete_session(**KEY), sessions.delete_session(**KEY))
    assert awaited(sessions.get_session(**KEY)) is None
    assert of_ada(app).recall("alpacas") == []
    assert awaited(sessions.list_sessions(**WHO)).sessions == []
    session = filled(sessions)
    assert (session.events, session.state) == ([], {"user:x": 1})


def test_what_is_not_there_or_there_already_is_told(sessions: HoldfastSessionService) -> None:
    session = filled(sessions)
    with pytest.raises(AlreadyExistsError, match="'s1' exists"):
        awaited(sessions.create_session(**KEY))
    assert awaited(sessions.get_session(**{**KEY, "session_id": "s2"})) is None
    session.id = "s2"
    with pytest.raises(SessionNotFoundError, match="no session 's2'"):
        awaited(sessions.append_event(session, said("a")))
    assert awaited(sessions.create_session(**WHO)).id != awaited(sessions.create_session(**WHO)).id


@each(
    "call",
    [
        lambda one: one.create_session(app_name="", user_id="ada"),
        lambda one: one.create_session(app_name="coach", user_id=" "),
        lambda one: one.create_session(app_name="coach", user_id=5),
        lambda one: one.create_session(**WHO, session_id=5),
        lambda one: one.get_session(**WHO, session_id=""),
        lambda one: one.create_session(**WHO, state={"x": float("inf"), 5: 5}),
        lambda one: one.append_event(Session(id="s1", **WHO), Event(author="x", output=object())),
        lambda one: one.append_event(Session(id="s1", **WHO), said("x", timestamp=1e300)),
    ],
)
def test_what_cannot_be_stored_is_refused(
    quick: Memory, call: Callable[[HoldfastSessionService], Awaitable[object]]
) -> None:
    with pytest.raises(InvalidInput):
        awaited(call(HoldfastSessionService(quick)))


def test_one_users_memory_acts_for_nobody_else() -> None:
    with Memory(":memory:", user="ada") as memory:
        with pytest.raises(Denied):
            awaited(HoldfastSessionService(memory).create_session(**WHO))
        with pytest.raises(Denied):
            awaited(HoldfastMemoryService(memory).search_memory(**WHO, query="x"))
    with pytest.raises(InvalidInput):
        HoldfastSessionService("agent.db")  # type: ignore[arg-type]


def test_tenants_have_apps_of_their_own(app: Memory) -> None:
    filled(HoldfastSessionService(app.scoped(tenant="acme")), setting(**{"app:x": 1}))
    other = HoldfastSessionService(app.scoped(tenant="globex"))
    assert awaited(other.list_sessions(app_name="coach")).sessions == []
    # No name of an app leads into another tenant.
    assert awaited(HoldfastSessionService(app).get_session(**{**KEY, "app_name": "acme/coach"})) is None
    assert app.scoped(tenant="acme/coach", user="ada").chat(CHAT).stats().messages == 1


def test_a_forged_event_is_told(sessions: HoldfastSessionService, app: Memory) -> None:
    filled(sessions)
    forged = Message("user", "x", raw={"author": {"os": "system"}}, meta={"google-adk": "event"})
    of_ada(app).chat(CHAT).append(forged)
    with pytest.raises(Damaged, match="Message 1 of the chat"):
        awaited(sessions.get_session(**KEY))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from("ab"), states),
        st.tuples(st.just("append"), st.sampled_from("ab"), states),
        st.tuples(st.just("delete"), st.sampled_from("ab"), st.none()),
        st.tuples(
            st.just("read"),
            st.sampled_from("ab"),
            st.builds(
                GetSessionConfig,
                num_recent_events=st.none() | st.integers(0, 3),
                after_timestamp=st.none() | st.integers(0, 8).map(float),
            ),
        ),
    ),
    max_size=10,
)


@settings(max_examples=cases(10, 120))
@given(steps)
@example(
    [
        ("create", "a", {}),
        *([("append", "a", {})] * 5),
        *(
            ("read", "a", GetSessionConfig(num_recent_events=number, after_timestamp=after))
            for number in (None, 0, 2, 9)
            for after in (None, 1.0, 4.0, 9.0)
        ),
    ]
)
def test_it_behaves_as_the_service_of_adk(steps: list[tuple[str, str, Any]]) -> None:
    async def used(service: BaseSessionService) -> list[object]:
        seen: list[object] = []
        for place, (step, id, value) in enumerate(steps):
            key, session = {**WHO, "session_id": id}, await service.get_session(**WHO, session_id=id)
            if step == "create" and session is None:
                created = await service.create_session(**key, state=value)
                seen.append((created.id, created.state, created.events))
            elif step == "append" and session is not None:
                event = said(str(place), id=f"e{place}", timestamp=float(place))
                event.actions.state_delta = dict(value)
                await service.append_event(session, event)
                seen.append((session.events, session.state, session.last_update_time))
            elif step == "delete":
                await service.delete_session(**key)
            elif step == "read":
                read = await service.get_session(**key, config=value)
                seen.append(read and (read.events, read.state))
            listed = (await service.list_sessions(**WHO)).sessions
            seen.append(sorted((one.id, str(sorted(one.state.items(), key=str))) for one in listed))
        return seen

    with Memory(":memory:") as memory:
        ours, theirs = HoldfastSessionService(memory), InMemorySessionService()
        assert asyncio.run(used(ours)) == asyncio.run(used(theirs))
