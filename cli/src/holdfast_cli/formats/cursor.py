"""Cursor: the chats in its database `state.vscdb`, those it exports, its transcripts."""

import json
import re
from collections import Counter
from collections.abc import Iterator

from holdfast.port import formats
from holdfast.types import Message
from holdfast_cli.formats.agent_rows import prompt_time, rows_of
from holdfast_cli.formats.files import MAX_LINE, File, lines, object_in
from holdfast_cli.formats.foreign_sqlite import ForeignSQLite, open_database
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of, read_objects
from holdfast_cli.formats.json_values import (
    Json,
    call_item,
    dict_of,
    list_of,
    path_of,
    result_item,
    stable_id,
    text_of,
    time_of,
)

_TABLE, _COLUMNS = "cursorDiskKV", ("key", "value")
MARK = (_TABLE, *_COLUMNS)
_CHAT, _BUBBLE = "composerData:", "bubbleId:"
_ROLES = {1: "user", 2: "assistant"}
_CALL = "toolFormerData"
_KEPT = ("bubbleId", "type", "createdAt", "text", "thinking", "requestId", "modelInfo", "tokenCount")
_ATTACHED = ("attachedCodeChunks", "codebaseContextChunks", "attachedFolders", "images", "docsReferences")
# Where versions of before 2025 kept chats.
_ITEMS = "ItemTable"
_OLD = "workbench.panel.aichat.view.aichat.chatdata"
_SENT = re.compile(r"<timestamp>\s*\w+, ([^<]{1,200})")
_EXPORTED = re.compile(r"# [^\n]{0,1000}\n_Exported on ([^\n]{1,200}) from Cursor \([^\n]{1,40}\)_")
_SPEAKER = re.compile(r"^---\n+\*\*(User|Cursor)\*\*$", re.MULTILINE)


# The database


def read_database(file: File) -> Iterator[Item]:
    """Yield the messages of every chat of the editor, as it lists them; calls and results are messages too.

    Where in the database a chat stands is told by its number among the chats. Left out and counted are
    messages that the list of a chat does not have, as the user went back behind them, and listed ones that
    are not there.
    """
    with open_database(file) as database:
        rows = database.rows(_TABLE, _COLUMNS, prefix=("key", _CHAT), order=["key"])
        for number, (key, value) in enumerate(rows, 1):
            if value is None:
                continue
            fields = object_in(value)
            if isinstance(fields, str):
                yield Skip(number, f"a chat that is {fields}", problem=True)
            else:
                yield from _chat(database, number, text_of(key).removeprefix(_CHAT), fields)
        if database.has(_ITEMS, "key") and any(database.rows(_ITEMS, ["key"], where={"key": _OLD})):
            yield Skip(1, "chats of before 2025, which are stored in another way", problem=True)


def _chat(database: ForeignSQLite, number: int, identity: str, value: Json) -> Iterator[Item]:
    bubbles = _bubbles(database, identity, value)
    headers = map(dict_of, list_of(value.get("fullConversationHeadersOnly")))
    order = list(dict.fromkeys(text_of(header.get("bubbleId")) for header in headers)) or list(bubbles)
    uris = (uri for bubble in bubbles.values() for uri in list_of(dict_of(bubble).get("workspaceUris")))
    growing = {text_of(name) for name in list_of(value.get("generatingBubbleIds"))}
    chat = ImportedChat(
        identity,
        text_of(value.get("name")),
        archived=value.get("isArchived") is True,
        folder=next(filter(None, map(path_of, uris)), ""),
    )
    at = value.get("createdAt")
    for name in order:
        bubble = bubbles.pop(name, None)
        if bubble is None:
            yield Skip(number, "listed in its chat, but not there", problem=True)
        elif name in growing:
            yield Skip(number, "still being written")
        elif isinstance(bubble, str):
            yield Skip(number, f"a message that is {bubble}", problem=True)
        else:
            at = bubble.get("createdAt") or _start_time(bubble) or at
            yield from _bubble(chat, number, name, bubble, at)
    yield from (Skip(number, "not in the list of its chat: the user went back behind it") for _ in bubbles)


def _bubbles(database: ForeignSQLite, identity: str, value: Json) -> dict[str, dict[str, object] | str]:
    """Return the messages of a chat by their ids: within it in early versions, later in rows of their own."""
    within = [dict_of(bubble) for bubble in list_of(value.get("conversation"))]
    bubbles: dict[str, dict[str, object] | str] = {
        text_of(bubble.get("bubbleId")) or str(place): dict(bubble) for place, bubble in enumerate(within)
    }
    bubbles |= {name: dict(dict_of(raw)) for name, raw in dict_of(value.get("conversationMap")).items()}
    start = f"{_BUBBLE}{identity}:"
    for key, text in database.rows(_TABLE, _COLUMNS, prefix=("key", start), order=["key"]):
        bubbles[text_of(key).removeprefix(start)] = object_in(text)
    return bubbles


def _start_time(bubble: Json) -> object:
    """Return when a message was sent, in milliseconds; in some versions the times are those of a process."""
    start = dict_of(bubble.get("timingInfo")).get("clientStartTime")
    return start if isinstance(start, int | float) and start > 1e12 else None


def _bubble(
    chat: ImportedChat, number: int, name: str, bubble: dict[str, object], at: object
) -> Iterator[Item]:
    role = _ROLES.get(kind) if isinstance(kind := bubble.get("type"), int) else None
    if role is None:
        yield Skip(number, "neither of the user nor of the assistant", problem=True)
        return
    call, text = dict_of(bubble.get(_CALL)), text_of(bubble.get("text")).strip()
    if text or dict_of(bubble.get("thinking")).get("text"):
        yield item_of(chat, number, _message, name, role, bubble, at)
    elif not call.get("name"):
        yield Skip(number, "empty")
    if call.get("name"):
        identity = text_of(call.get("toolCallId")) or name
        rest = {key: part for key, part in call.items() if key not in {"result", "error", "additionalData"}}
        item = call_item(identity, call["name"], call.get("rawArgs") or call.get("params") or "{}", at)
        item |= {"id": f"{name}/call", "raw": {**rest, "id": identity}}
        yield item_of(chat, number, formats.parse, item)
        error = call.get("error")
        if result := text_of(call.get("result")) or (json.dumps(error) if error else ""):
            raw = {"id": identity, "name": call["name"], "status": call.get("status"), "result": result}
            item = result_item(identity, result, at) | {"id": f"{name}/result", "raw": raw}
            yield item_of(chat, number, formats.parse, item)
    if any(bubble.get(key) for key in _ATTACHED):
        yield Skip(number, "attached to a message: files, images and other context")


def _message(name: str, role: str, bubble: Json, at: object) -> Message:
    text = text_of(bubble.get("text"))
    content = text if text.strip() else formats.REASONING
    # Some hundred fields are of the editor, among them whole files.
    raw = {key: bubble[key] for key in _KEPT if key in bubble}
    return formats.parse({"role": role, "content": content, "at": at, "id": name, "raw": raw})


# The transcripts


def is_line(value: Json) -> bool:
    """Return whether an object is a message of a transcript."""
    message = value.get("message")
    return "type" not in value and value.get("role") in _ROLES.values() and "content" in dict_of(message)


def read(file: File) -> Iterator[Item]:
    """Yield the messages of a transcript, which has no ids, and times of some prompts at most."""
    chat, counts = ImportedChat(file.name.rsplit("/", 1)[-1]), Counter[str]()

    def items(line: int, value: dict[str, object]) -> Iterator[Item] | None:
        if not is_line(value):
            return iter([Skip(line, "the end of a turn")]) if value.get("type") == "turn_ended" else None
        content = dict_of(value["message"])["content"]
        row = {"role": value["role"], "content": content, "at": prompt_time(content, _SENT), "raw": value}
        return rows_of(chat, line, row, counts)

    return read_objects(lines(file), items, "no message")


# The chats that it exports as Markdown


def is_export(text: str) -> bool:
    """Return whether a text that begins so is a chat that was exported."""
    return _EXPORTED.match(text) is not None


def read_export(file: File) -> Iterator[Item]:
    """Yield the messages of an exported chat, which has neither ids nor calls of tools, and one time."""
    with file.open() as stream:
        text = stream.read(MAX_LINE + 1)
    if len(text) > MAX_LINE:
        yield Skip(0, f"longer than {MAX_LINE >> 20} MiB", problem=True)
        return
    head, *spoken = _SPEAKER.split(text.decode("utf-8-sig").replace("\r\n", "\n"))
    title, stamp = head.strip().partition("\n")[0].removeprefix("# "), _EXPORTED.match(head.strip())
    chat = ImportedChat(file.name, title, since=time_of(stamp[1]) if stamp else None, by_file=True)
    for place, (speaker, words) in enumerate(zip(spoken[::2], spoken[1::2], strict=True), 1):
        role = "user" if speaker == "User" else "assistant"
        item: dict[str, object] = {"role": role, "content": words.strip().removesuffix("\n---").rstrip()}
        yield item_of(chat, place, formats.parse, item | {"id": stable_id(place, item), "raw": item})
