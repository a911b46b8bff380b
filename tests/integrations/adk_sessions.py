"""Events and sessions of Google's ADK, for the tests of its services."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai.types import Content, Part

from holdfast import Memory

WHO: dict[str, Any] = {"app_name": "coach", "user_id": "ada"}
KEY: dict[str, Any] = {**WHO, "session_id": "s1"}
CHAT = "google-adk/s1"


def said(text: str, author: str = "user", **fields: Any) -> Event:
    content = Content(role="user" if author == "user" else "model", parts=[Part(text=text)])
    return Event(author=author, content=content, **fields)


def setting(**state: object) -> Event:
    return Event(author="coach", actions=EventActions(state_delta=state))


def awaited(*calls: Awaitable[Any]) -> Any:
    """Await calls one after the other, and return what the last one returns."""

    async def used() -> Any:
        return [await call for call in calls][-1]

    return asyncio.run(used())


def texts(events: list[Event]) -> list[str]:
    return [event.content.parts[0].text or "" for event in events if event.content and event.content.parts]


def of_ada(memory: Memory, app: str = "coach") -> Memory:
    own = memory.scope.tenant
    return memory.scoped(tenant=f"{own}/{app}" if own else app, user="ada")


def filled(service: BaseSessionService, *events: Event, **key: Any) -> Session:
    """Create a session, append events, and return it as it is in hand."""
    session: Session = awaited(service.create_session(**{**KEY, **key}))
    for event in events:
        awaited(service.append_event(session, event))
    return session
