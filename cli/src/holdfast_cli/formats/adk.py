"""Agent Development Kit: sessions that it saves as JSON, and the database of `SqliteSessionService`."""

from collections.abc import Iterator

from holdfast_cli.formats import turns
from holdfast_cli.formats.branches import LEFT
from holdfast_cli.formats.files import File, object_in
from holdfast_cli.formats.foreign_sqlite import open_database
from holdfast_cli.formats.import_items import ImportedChat, Item, Owner, Skip
from holdfast_cli.formats.json_values import Json, dict_of, list_of, text_of

_EVENTS, _COLUMNS = "events", ("app_name", "user_id", "session_id", "event_data")
MARK = (_EVENTS, *_COLUMNS, "timestamp")
_CALLS, _RESULTS = ("function_call", "executable_code"), ("function_response", "code_execution_result")
_URL_SAFE = str.maketrans("-_", "+/")
_NOBODY = "user"  # the user of whom `adk web` and `adk run` say no more


def is_session(value: Json) -> bool:
    """Return whether an object is a saved session."""
    named = (value.get("id"), _get(value, "app_name"), _get(value, "user_id"))
    return isinstance(value.get("events"), list) and all(isinstance(part, str) for part in named)


def read(_: File, number: int, value: Json) -> Iterator[Item]:
    """Yield the messages of a session: what is said, calls and results, each with its author as name.

    Left out and counted are events without content, such as changes of the state, summaries of compactions,
    and invocations that were rewound.
    """
    chat = _chat(value["id"], _get(value, "user_id"), is_only=True)
    return _events(chat, number, list(map(dict_of, list_of(value["events"]))))


def read_database(file: File) -> Iterator[Item]:
    """Yield the messages of every session of a database; where one stands is told by its number."""
    sessions: dict[tuple[object, ...], list[Json]] = {}
    with open_database(file) as database:
        for *key, data in database.rows(_EVENTS, _COLUMNS, order=["timestamp", "rowid"]):
            sessions.setdefault(tuple(key), []).append(dict_of(object_in(data)))
    for number, ((_, user, identity), events) in enumerate(sessions.items(), 1):
        yield from _events(_chat(identity, user, is_only=False), number, events)


def _chat(identity: object, user: object, *, is_only: bool) -> ImportedChat:
    return ImportedChat(text_of(identity), owner=Owner("" if user == _NOBODY else text_of(user), is_only))


def _get(value: Json, name: str) -> object:
    """Return a field, whose name is written in either way."""
    first, *rest = name.split("_")
    return value.get(name, value.get(first + "".join(map(str.capitalize, rest))))


def _events(chat: ImportedChat, number: int, events: list[Json]) -> Iterator[Item]:
    behind = _rewound(events)
    for place, event in enumerate(events, 1):
        blocks = [_block(dict_of(part)) for part in list_of(dict_of(event.get("content")).get("parts"))]
        author = text_of(event.get("author"))
        if place in behind:
            yield Skip(number or place, LEFT)
        elif not blocks or event.get("partial") is True:
            is_summary = "compaction" in dict_of(event.get("actions"))
            yield Skip(number or place, turns.SUMMARY if is_summary else "not conversation: without content")
        else:
            role, name = ("user", "") if author == "user" else ("assistant", author)
            identity = text_of(event.get("id")) or f"event {place}"
            speaker = turns.Speaker(role, identity, event.get("timestamp"), name)
            raw = turns.without(event, "content", "timestamp")
            yield from turns.messages_of(chat, number or place, speaker, blocks, raw)


def _rewound(events: list[Json]) -> set[int]:
    """Return the places of events that a later one took back: from the start of an invocation on."""
    starts: dict[str, int] = {}
    behind: set[int] = set()
    for place, event in enumerate(events, 1):
        starts.setdefault(text_of(_get(event, "invocation_id")), place)
        back = text_of(_get(dict_of(event.get("actions")), "rewind_before_invocation_id"))
        behind.update(range(starts.get(back, place), place) if back else ())
    return behind


def _block(part: Json) -> Json:
    """Return a part of an event as a block."""
    fields = {name: dict_of(_get(part, name)) for name in (*_CALLS, *_RESULTS, "inline_data", "file_data")}
    name, value = next(((name, value) for name, value in fields.items() if value), ("", part))
    if name in _CALLS:
        given = value.get("args", {"code": value.get("code")})
        return turns.call(value.get("id"), value.get("name") or name, given)[0]
    if name in _RESULTS:
        output = value.get("response", value.get("output"))
        return turns.result(value.get("id"), dict_of(output).get("result", output))
    if name:
        kind, data = text_of(_get(value, "mime_type")), text_of(value.get("data"))
        # It writes the base64 of URLs.
        url = f"data:{kind};base64,{data.translate(_URL_SAFE)}" if data else _get(value, "file_uri")
        return turns.attachment(_get(value, "display_name") or _get(value, "file_uri"), url, kind)
    return turns.thought(part.get("text")) if part.get("thought") is True else turns.words(part.get("text"))
