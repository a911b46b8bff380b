"""The state of ADK: of apps and users on scratchpads, of a session in items of its chat."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from google.adk.events.event_actions import EventActions
from google.adk.sessions import State

from holdfast.errors import Denied, InvalidInput
from holdfast.port.items import Items
from holdfast.port.texts import clean

if TYPE_CHECKING:
    from holdfast.port.items import Item

_PREFIX = "state/"


def check_state(state: Mapping[str, object] | None) -> dict[str, object]:
    """Return a state as ADK stores it, without temporary names.

    Raises:
        InvalidInput: it is not a dict of JSON.

    """
    try:
        # Its own rules of what becomes JSON, and its warning where something does not.
        dumped = EventActions(state_delta=dict(state or {})).model_dump(mode="json")["state_delta"]
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The state is not JSON: {error}.", "Pass a dict of JSON values.") from error
    Items.dump(dumped, "The state")
    return {name: value for name, value in dumped.items() if not name.startswith(State.TEMP_PREFIX)}


def write_state(tx: Items, chat: str, state: Mapping[str, object]) -> None:
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


def read_state(db: Items, session: Iterable[Item]) -> dict[str, object]:
    """Return the state of a session, from the items of its chat, with that of its app and of its user."""
    app, user = read_shared(db.shared()), read_shared(db)
    return {
        **own_state(session),
        **{State.APP_PREFIX + name: value for name, value in app.items()},
        **{State.USER_PREFIX + name: value for name, value in user.items()},
    }


def own_state(session: Iterable[Item]) -> dict[str, object]:
    """Return the state of a session alone, from the items of its chat."""
    items = (item for item in session if item.key.startswith(_PREFIX))
    return {item.key.removeprefix(_PREFIX): json.loads(item.data) for item in items}


def read_shared(db: Items) -> dict[str, object]:
    """Return the state that the sessions of a user share, or those of an app."""
    on_pad = {name: _value(text) for name, text in db.read_pad().items()}
    return on_pad | own_state(db.scan(prefix=_PREFIX))


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
