"""ADK's sessions in a memory: each is a chat, and its events are the messages."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING
from uuid import uuid4

from holdfast.contract import check_provider
from holdfast.errors import MissingExtra
from holdfast.integrations.google_adk.app_memory import app_memory
from holdfast.integrations.off_loop import off_loop

try:
    from google.adk.sessions import BaseSessionService
    from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse

    from holdfast.integrations.google_adk.events import to_message
    from holdfast.integrations.google_adk.stored_session import StoredSession, sessions_of, user_state
except ImportError as error:
    raise MissingExtra.of("google-adk") from error

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions import Session

    from holdfast import Memory


class HoldfastSessionService(BaseSessionService):
    """Store the sessions of ADK in chats of a memory.

    An app is a tenant of the memory, its users are users, and the session `ID` of a user is the chat
    `google-adk/ID`; so apps and users cannot see each other, and recall, windows, compaction and learning
    work on what was said. An event is one message, and comes back equal; messages that others append to the
    chat are no events.

    State whose names begin with `app:` or `user:` is on the scratchpad of the app or of the user, texts as
    they are and other values as JSON; a system text names it `{app:x}` and `{user:x}`. What a scratchpad does
    not take, such as a credential, is stored beside it. `temp:` is never stored, and all else is beside the
    chat.

    All methods are safe for concurrent tasks, threads and processes, and each is one transaction. A session
    in hand that others have appended to since is stale: an event that is appended to it is refused. An event
    that is stored already is not stored again.

    Args:
        memory: a memory without a user, or with `admin=True`. Within a tenant `acme` the app `coach` is the
            tenant `acme/coach`.

    Raises:
        InvalidInput: `memory` is not a memory.

    """

    def __init__(self, memory: Memory) -> None:
        check_provider(memory)
        self._memory = memory

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: Mapping[str, object] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session, of a new id if none is given, and return it with all of its state.

        Raises:
            SessionExists: the user has a session of this id.
            InvalidInput: the state is not JSON, or a name cannot be stored.

        """
        opened = self._open(app_name, user_id, session_id or str(uuid4()))
        return await off_loop(self._memory, opened.create, state or {})

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session with its events, all or the newest; None if there is none.

        With `after_timestamp`, they are the newest ones before which none is older than that.

        Raises:
            Damaged: a stored event is not one of ADK any more.

        """
        opened = self._open(app_name, user_id, session_id)
        return await off_loop(self._memory, opened.get, config or GetSessionConfig())

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of a user, or of all users of the app, the one updated last at the end.

        They have their state, and no events.
        """
        return ListSessionsResponse(sessions=await off_loop(self._memory, self._list, app_name, user_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erase a session and all that was said in it; the file is rewritten later, see `Memory.erase`."""
        await off_loop(self._memory, self._open(app_name, user_id, session_id).delete)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, object]:
        """Return the state that the sessions of a user share, by names without `user:`."""
        return await off_loop(self._memory, user_state, self._memory, app_name, user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event to a session, in storage and in hand, and return it.

        One that is partial is not stored.

        Raises:
            StaleSession: others have appended to the session since it was read; it is ADK's StaleSessionError
                where the release has that.
            NoSession: there is no such session.
            InvalidInput: the event holds what is not JSON; nothing was stored.
            Conflict: another event has its id.

        """
        if event.partial:
            return event
        opened = self._open(session.app_name, session.user_id, session.id)
        updated = await off_loop(
            self._memory,
            opened.append,
            to_message(event),
            event.timestamp,
            updated=session.last_update_time,
            newest=session.events[-1].id if session.events else "",
        )
        if updated is None:
            return event
        event = await super().append_event(session, event)
        session.last_update_time = updated
        return event

    def _open(self, app_name: str, user_id: str, session_id: str) -> StoredSession:
        return StoredSession(self._memory, app_name, user_id, session_id)

    def _list(self, app_name: str, user_id: str | None) -> list[Session]:
        every = app_memory(self._memory, app_name, None).grants
        users = every.users() if user_id is None else [user_id]
        # The user without a name stands for what all share.
        lists = (sessions_of(self._memory, app_name, user) for user in users if user)
        sessions = chain.from_iterable(lists)
        return sorted(sessions, key=lambda session: (session.last_update_time, session.user_id, session.id))
