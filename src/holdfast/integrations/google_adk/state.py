"""The state of ADK: of apps and users on scratchpads, of a session in items of its chat."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from google.adk.events.event_actions import EventActions
from google.adk.sessions import State

from holdfast.errors import Denied, InvalidInput
from holdfast.integrations.google_adk.app_memory import FRAMEWORK
from holdfast.scratchpad import check_entry
from holdfast.store import items, pads
from holdfast.store.items import ItemPlace
from holdfast.store.pads import ScratchpadKey
from holdfast.text.clean import clean
from holdfast.text.json_text import dump, load

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Reader
    from holdfast.store.items import Item
    from holdfast.types import Scope

_PREFIX = "state/"


def checked_state(state: Mapping[str, object] | None) -> dict[str, object]:
    """Return a state as ADK stores it, without what is temporary.

    Raises:
        InvalidInput: it is not a dict of JSON.

    """
    try:
        # Its own rules of what becomes JSON, and its warning where something does not.
        dumped = EventActions(state_delta=dict(state or {})).model_dump(mode="json")["state_delta"]
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The state is not JSON: {error}.", "Pass a dict of JSON values.") from error
    dump(dumped, "The state")
    return {name: value for name, value in dumped.items() if not name.startswith(State.TEMP_PREFIX)}


def write_state(tx: Connection, scope: Scope, chat: str, state: Mapping[str, object], now: int) -> None:
    """Store a change of state, which is JSON: each name where its prefix says."""
    own = {}
    # In one order everywhere, so that of two transactions none waits for the other.
    for name, value in sorted(state.items()):
        if name.startswith(State.APP_PREFIX):
            _write_shared(tx, scope.shared.space, name.removeprefix(State.APP_PREFIX), value, now)
        elif name.startswith(State.USER_PREFIX):
            _write_shared(tx, scope.space, name.removeprefix(State.USER_PREFIX), value, now)
        else:
            own[_PREFIX + name] = _bytes(value)
    items.put(tx, ItemPlace(scope.space, chat, FRAMEWORK), own, now)


def read_state(db: Reader, scope: Scope, session: Iterable[Item], now: int) -> dict[str, object]:
    """Return the state that a session sees, from the items of its chat and what its app and user share."""
    app, user = read_shared(db, scope.shared.space, now), read_shared(db, scope.space, now)
    return {
        **own_state(session),
        **{State.APP_PREFIX + name: value for name, value in app.items()},
        **{State.USER_PREFIX + name: value for name, value in user.items()},
    }


def own_state(session: Iterable[Item]) -> dict[str, object]:
    """Return the state of a session alone, from the items of its chat."""
    return {
        one.key.removeprefix(_PREFIX): load(one.data.decode())
        for one in session
        if one.key.startswith(_PREFIX)
    }


def read_shared(db: Reader, space: str, now: int) -> dict[str, object]:
    """Return the state that the sessions of a user share, or those of an app, by the space."""
    on_pad = {name: _value(text) for name, text in pads.read_all(db, ScratchpadKey(space)).items()}
    return on_pad | own_state(items.scan(db, ItemPlace(space, "", FRAMEWORK), now, prefix=_PREFIX))


def _write_shared(tx: Connection, space: str, name: str, value: object, now: int) -> None:
    """Store a value on the scratchpad; one that it does not take, such as a credential, as an item."""
    pad, place = ScratchpadKey(space), ItemPlace(space, "", FRAMEWORK)
    try:
        text = check_entry(name, _text(value))
    except (InvalidInput, Denied):
        if clean(name) == name:
            pads.delete(tx, pad, name)
        items.put(tx, place, {_PREFIX + name: _bytes(value)}, now)
    else:
        items.delete(tx, place, [_PREFIX + name])
        pads.put(tx, pad, name, text, now)


def _text(value: object) -> str:
    """Return a value as it stands on a scratchpad: JSON, or a text as it is where it reads back as that."""
    if isinstance(value, str) and clean(value) == value and _value(value) is value:
        return value
    return json.dumps(value)


def _value(text: str) -> object:
    try:
        return load(text)
    except (ValueError, RecursionError):
        return text


def _bytes(value: object) -> bytes:
    # In ASCII, of which neither database changes anything.
    return json.dumps(value).encode()
