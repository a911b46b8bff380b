"""A session of ADK in a chat: its events are messages, and items say that it is there, and its state."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Self, cast

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event_actions import EventActions
from google.adk.sessions import Session, State

from holdfast.errors import Conflict, Denied, InvalidInput
from holdfast.integrations.google_adk.app_memory import FRAMEWORK, app_memory, session_chat
from holdfast.integrations.google_adk.events import is_event, to_event
from holdfast.port.items import Item, Items, retry_transaction
from holdfast.port.texts import clean

if TYPE_CHECKING:
    from holdfast.port.items import Item

try:
    from google.adk.errors._stale_session_error import StaleSessionError
except ImportError:
    # Earlier releases raise what later ones derive it from.
    StaleSessionError = ValueError  # type: ignore[misc, assignment]

if TYPE_CHECKING:
    from google.adk.sessions.base_session_service import GetSessionConfig

    from holdfast import Memory
    from holdfast.types import Message

# The key of the item of the session itself; those of its state come after it.
_HEAD, _PREFIX = "", "state/"


class SessionExists(Conflict, AlreadyExistsError):
    """A session has the id already; nothing was changed. ADK's own error as well."""


class NoSession(InvalidInput, SessionNotFoundError):
    """There is no such session; nothing was stored. ADK's own error as well."""


class StaleSession(Conflict, StaleSessionError):
    """Others have appended to the session since it was read; nothing was stored. ADK's own error as well."""


class SessionHead(NamedTuple):
    """The id of a session, when it was updated, in seconds, and the id of its newest event, "" for none."""

    session: str
    updated: float
    newest: str = ""

    @classmethod
    def of(cls, items: Iterable[Item]) -> Self | None:
        """Return the head among the items of a chat; None if they are of no session."""
        return next((cls(*json.loads(item.data)) for item in items if item.key == _HEAD), None)

    def packed(self) -> dict[str, bytes]:
        """Return it as an item."""
        return {_HEAD: json.dumps(self).encode()}


class StoredSession:
    """A session of a user of an app. All methods block, and each is one transaction."""

    def __init__(self, memory: Memory, app_name: str, user_id: str, session_id: str) -> None:
        self._chat = session_chat(session_id)
        self._app, self._user, self._id = app_name, user_id, session_id
        self._table = Items(app_memory(memory, app_name, user_id), FRAMEWORK)

    @retry_transaction
    def create(self, state: Mapping[str, object]) -> Session:
        """Create the session.

        Raises:
            SessionExists: it is there.
            InvalidInput: the state is not a dict of JSON.

        """
        state = _check_state(state)
        with self._table.writing() as tx:
            if tx.get(_HEAD, self._chat):
                raise SessionExists(f"The session {self._id!r} exists.", "Get it, or choose another id.")
            head = SessionHead(self._id, tx.now / 1_000_000)
            tx.put(head.packed(), self._chat)
            _write_state(tx, self._chat, state)
            return self._session(tx, head, tx.scan(self._chat))

    def get(self, config: GetSessionConfig) -> Session | None:
        """Return the session with its events, or those that are asked for; None if it is not there.

        Raises:
            Damaged: a stored event is not one of ADK any more.

        """
        with self._table.reading():
            items = self._table.scan(self._chat)
            head = SessionHead.of(items)
            if head is None:
                return None
            session = self._session(self._table, head, items)
            newest = list(self._newest(config.num_recent_events, config.after_timestamp))
        session.events = [to_event(message) for message in reversed(newest)]
        return session

    @retry_transaction
    def append(self, message: Message, timestamp: float, *, updated: float, newest: str) -> float | None:
        """Append an event with its change of state, and return when the session was updated.

        None stands for an event that is stored already. The caller knows the session as of
        `updated`, with the event `newest` at its end.

        Raises:
            NoSession: it is not there.
            StaleSession: others have appended to it.
            InvalidInput: the event is not JSON.
            Conflict: another event has its id.

        """
        event = cast("Mapping[str, dict[str, object]]", message.raw)
        with self._table.writing() as tx:
            stored = SessionHead.of(tx.get_many([_HEAD], self._chat).values())
            if stored is None:
                raise NoSession(f"There is no session {self._id!r}.", "Create it first.")
            if not tx.log(self._chat).append([message]):
                return None
            # Events that were never stored may be at the end of those in hand.
            if stored.updated != updated and stored.newest != newest:
                raise StaleSession(
                    f"The session {self._id!r} has been modified since it was read.", "Get it again."
                )
            # So that each append is seen by those who hold the session.
            same = timestamp == stored.updated
            now = math.nextafter(timestamp, math.inf) if same else timestamp
            head = SessionHead(self._id, now, str(event["id"]))
            tx.put(head.packed(), self._chat)
            state = cast("Mapping[str, object]", event.get("actions", {}).get("state_delta", {}))
            _write_state(tx, self._chat, state)
            return now

    def delete(self) -> None:
        """Erase the session with its chat; do nothing if it is not there."""
        if self._table.get(_HEAD, self._chat) is not None:
            self._table.erase(self._chat)

    def _session(self, db: Items, head: SessionHead, items: Iterable[Item]) -> Session:
        return _bare_session(self._app, self._user, head, _read_state(db, items))

    def _newest(self, limit: int | None, after: float | None) -> Iterator[Message]:
        """Yield the messages of the newest events, newest first, until one is older than `after`."""
        for message in islice(filter(is_event, self._table.log(self._chat).backward()), limit):
            # Of the event itself: that of the message is rounded.
            time = (message.raw or {}).get("timestamp")
            if after is not None and isinstance(time, int | float) and time < after:
                return
            yield message


def sessions_of(memory: Memory, app_name: str, user_id: str) -> list[Session]:
    """Return the sessions of a user of an app with their state, and without their events."""
    table = Items(app_memory(memory, app_name, user_id), FRAMEWORK)
    by_chat: dict[str, list[Item]] = {}
    with table.reading():
        for chat, item in table.scan_chats():
            by_chat.setdefault(chat, []).append(item)
        shared = _read_state(table, ()) if by_chat else {}
    heads = [(head, each) for each in by_chat.values() if (head := SessionHead.of(each))]
    return [_bare_session(app_name, user_id, head, {**_own_state(each), **shared}) for head, each in heads]


def user_state(memory: Memory, app_name: str, user_id: str) -> dict[str, object]:
    """Return the state that the sessions of a user of an app share."""
    table = Items(app_memory(memory, app_name, user_id), FRAMEWORK)
    with table.reading():
        return _read_shared(table)


def _bare_session(app_name: str, user_id: str, head: SessionHead, state: Mapping[str, object]) -> Session:
    """Return a session without its events."""
    return Session(
        id=head.session, app_name=app_name, user_id=user_id, state=dict(state), last_update_time=head.updated
    )


# The state: of apps and users on scratchpads, of a session in items of its chat


def _check_state(state: Mapping[str, object]) -> dict[str, object]:
    """Return a state as ADK stores it, without temporary names.

    Raises:
        InvalidInput: it is not a dict of JSON.

    """
    try:
        # Its own rules of what becomes JSON, and its warning where something does not.
        dumped = EventActions(state_delta=dict(state)).model_dump(mode="json")["state_delta"]
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The state is not JSON: {error}.", "Pass a dict of JSON values.") from error
    Items.dump(dumped, "The state")
    return {name: value for name, value in dumped.items() if not name.startswith(State.TEMP_PREFIX)}


def _write_state(tx: Items, chat: str, state: Mapping[str, object]) -> None:
    """Store a change of state, which is JSON; the prefix of a name says where."""
    own = {}
    # In one order everywhere, so that of two transactions none waits for the other.
    for name, value in sorted(state.items()):
        if name.startswith(State.APP_PREFIX):
            _write_shared(tx.shared(), name.removeprefix(State.APP_PREFIX), value)
        elif name.startswith(State.USER_PREFIX):
            _write_shared(tx, name.removeprefix(State.USER_PREFIX), value)
        else:
            own[_PREFIX + name] = _bytes(value)
    tx.put(own, chat)


def _read_state(db: Items, session: Iterable[Item]) -> dict[str, object]:
    """Return the state of a session, from the items of its chat, with that of its app and of its user."""
    app, user = _read_shared(db.shared()), _read_shared(db)
    return {
        **_own_state(session),
        **{State.APP_PREFIX + name: value for name, value in app.items()},
        **{State.USER_PREFIX + name: value for name, value in user.items()},
    }


def _own_state(session: Iterable[Item]) -> dict[str, object]:
    """Return the state of a session alone, from the items of its chat."""
    items = (item for item in session if item.key.startswith(_PREFIX))
    return {item.key.removeprefix(_PREFIX): json.loads(item.data) for item in items}


def _read_shared(db: Items) -> dict[str, object]:
    """Return the state that the sessions of a user share, or those of an app."""
    on_pad = {name: _value(text) for name, text in db.read_pad().items()}
    return on_pad | _own_state(db.scan(prefix=_PREFIX))


def _write_shared(tx: Items, name: str, value: object) -> None:
    """Store a value on the scratchpad, or as an item if that refuses it, such as a credential."""
    try:
        tx.write_pad(name, _text(value))
    except (InvalidInput, Denied):
        if clean(name) == name:
            tx.write_pad(name, None)
        tx.put({_PREFIX + name: _bytes(value)})
    else:
        tx.delete([_PREFIX + name])


def _text(value: object) -> str:
    """Return a value as it stands on a scratchpad: JSON, or a text as it is where it reads back as that."""
    if isinstance(value, str) and clean(value) == value and _value(value) is value:
        return value
    return json.dumps(value)


def _value(text: str) -> object:
    try:
        # JSON is written here without space around it; a text may have some.
        return json.loads(text) if text == text.strip() else text
    except (ValueError, RecursionError):
        return text


def _bytes(value: object) -> bytes:
    # In ASCII, of which neither database changes anything.
    return json.dumps(value).encode()
