"""opencode, and the command line of Kilo that is made from it: exported sessions, and the database."""

import re
from collections import defaultdict
from collections.abc import Iterator

from holdfast.port.texts import clean
from holdfast_cli.formats import turns
from holdfast_cli.formats.branches import LEFT
from holdfast_cli.formats.files import File, object_in
from holdfast_cli.formats.foreign_sqlite import ForeignSQLite, open_database
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip
from holdfast_cli.formats.json_values import Json, dict_of, list_of, text_of, time_of

MARK = ("part", "id", "message_id", "session_id", "data")
_SESSIONS = ("id", "parent_id", "directory", "title", "time_created", "revert")
_UNNAMED = re.compile(r"(?s)^(?:New|Child) session - \d{4}-.*")
_STEPS = {"step-start", "step-finish", "snapshot", "patch", "agent", "compaction", "retry"}

_Entry = tuple[Json, list[Json]]  # what is known of a message, and its parts


def is_export(value: Json) -> bool:
    """Return whether an object is an exported session."""
    info = dict_of(value.get("info"))
    return isinstance(info.get("id"), str) and "time" in info and isinstance(value.get("messages"), list)


def read(_: File, number: int, value: Json) -> Iterator[Item]:
    """Yield the messages of an exported session, with calls and results.

    A session that another one has started is a chat `<session>/agent-<id>`. Left out and counted are what the
    user took back, summaries of compactions, what the program adds, and steps beside the words.
    """
    messages = map(dict_of, list_of(value["messages"]))
    entries = [(dict_of(it.get("info")), list(map(dict_of, list_of(it.get("parts"))))) for it in messages]
    return _session(number, dict_of(value["info"]), entries)


def read_database(file: File) -> Iterator[Item]:
    """Yield the messages of every session of a database; where one stands is told by its number."""
    with open_database(file) as database:
        rows = database.rows("session", _SESSIONS, order=["time_created", "id"])
        for number, (identity, parent, folder, title, created, revert) in enumerate(rows, 1):
            info: Json = {"id": identity, "parentID": parent, "directory": folder, "title": title}
            info = {**info, "time": {"created": created}, "revert": object_in(revert)}
            yield from _session(number, info, _rows(database, text_of(identity)))


def _rows(database: ForeignSQLite, session: str) -> list[_Entry]:
    same, parts = {"session_id": session}, defaultdict[object, list[Json]](list)
    for message, data in database.rows("part", ("message_id", "data"), where=same, order=["id"]):
        part = object_in(data)
        parts[message].append({"type": f"a part that is {part}"} if isinstance(part, str) else part)
    rows = database.rows("message", ("id", "data"), where=same, order=["time_created", "id"])
    return [({**dict_of(object_in(data)), "id": identity}, parts[identity]) for identity, data in rows]


def _session(number: int, info: Json, entries: list[_Entry]) -> Iterator[Item]:
    identity, parent, title = (text_of(info.get(key)) for key in ("id", "parentID", "title"))
    name, title = f"{parent}/agent-{identity}" if parent else identity, _UNNAMED.sub("", title)
    since = time_of(dict_of(info.get("time")).get("created"))
    chat = ImportedChat(name, title, folder=text_of(info.get("directory")), since=since)
    reverted, is_behind = text_of(dict_of(info.get("revert")).get("messageID")), False
    for place, (message, parts) in enumerate(entries, 1):
        is_behind |= bool(reverted) and message.get("id") == reverted
        is_message = message.get("role") in ("user", "assistant") and bool(text_of(message.get("id")))
        is_done = "completed" in dict_of(message.get("time")) or message.get("error") or place < len(entries)
        if not is_message:
            yield Skip(number or place, "no message", problem=True)
        elif is_behind or message.get("summary") is True:
            yield Skip(number or place, LEFT if is_behind else turns.SUMMARY)
        elif message["role"] == "assistant" and not is_done:
            yield Skip(number or place, turns.GROWS)
        else:
            yield from _message(chat, number or place, message, parts)


def _message(chat: ImportedChat, place: int, message: Json, parts: list[Json]) -> Iterator[Item]:
    blocks: list[Json] = []
    for part in parts:
        match kind := text_of(part.get("type")):
            case "text" if part.get("synthetic") is True or part.get("ignored") is True:
                yield Skip(place, turns.BY_PROGRAM)
            case "text" | "subtask":
                blocks.append(turns.words(part.get("text", part.get("prompt"))))
            case "reasoning":
                blocks.append(turns.thought(part.get("text")))
            case "file":
                blocks.append(_file(part))
            case "tool":
                state = _state(dict_of(part.get("state")))
                blocks += turns.call(part.get("callID"), part.get("tool"), *state)
            case _:
                yield Skip(place, f"not conversation: {clean(kind)[:60]}", problem=kind not in _STEPS)
    at = dict_of(message.get("time")).get("created")
    speaker = turns.Speaker(message["role"], text_of(message["id"]), at)
    yield from turns.messages_of(chat, place, speaker, blocks, turns.without(message, "summary", "system"))


def _state(state: Json) -> list[object]:
    """Return the arguments of a call, and its result with the images that it has, if it has ended."""
    output = state.get("output", state.get("error"))
    files = list(map(dict_of, list_of(state.get("attachments"))))
    whole = [turns.words(output), *map(_file, files)] if files else output
    return [state.get("input"), *([] if output is None else [whole])]


def _file(part: Json) -> Json:
    return turns.attachment(part.get("filename"), part.get("url"), part.get("mime"))
