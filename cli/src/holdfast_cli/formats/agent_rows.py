"""Chat rows of coding agents, close to chat formats: the shared parsing, and the rows of Cline and Goose."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath

from holdfast.port import formats
from holdfast_cli.formats import turns
from holdfast_cli.formats.files import File, lines, object_in, values
from holdfast_cli.formats.foreign_sqlite import open_database
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of, read_objects
from holdfast_cli.formats.json_values import Json, dict_of, list_of, output_of, repeat_id, text_of, time_of

_ROLES = ("user", "assistant")
_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
# What programs put around the words of the user, and what they add to them.
_AROUND = re.compile(r"^</?(?:task|feedback|answer|user_message)>$\n?", re.MULTILINE)
_ADDED = re.compile(
    r"^<(environment_details|turn-context|info-msg|timestamp|user_info|git_status|project_layout|rules"
    r"|agent_skills|agent_transcripts|attached_files|image_files|uploaded_documents|additional_data"
    r"|open_and_recently_viewed_files|manually_attached_skills|cursor_commands|system[_-]reminder"
    r"|system[_-]notification)>.*?</\1>\s*"
    r"|^\[TASK RESUMPTION\].*\Z|^# (?:task_progress|TODO LIST) .*\Z",
    re.DOTALL | re.MULTILINE,
)
# How programs that call tools by words have begun a result, which the next part holds.
_RESULT = re.compile(r"\[[^\]\n]{1,300}\] Result:|<file_content path=")
_THOUGHT = re.compile(r"^[ \t]*\[REDACTED\][ \t]*$\n?", re.MULTILINE)
_NOW = re.compile(
    r"(?sm)<environment_details>(?:(?!</environment_details>).)*?^# Current Time\n(?:[^\n]{0,60}: )?"
    r"([^\n:]{1,60}:\d\d[^\n]{0,100})"
)
_TASK = "api_conversation_history"


def rows_of(chat: ImportedChat, number: int, item: dict[str, object], counts: Counter[str]) -> Iterator[Item]:
    """Yield the messages of a row: results of tools, each its own, and the words without what is added."""
    content = item["content"]
    blocks = [content] if isinstance(content, str) else list_of(content)
    parts = [{"type": "text", "text": part} if isinstance(part, str) else dict_of(part) for part in blocks]
    results = [[part] for part in parts if part.get("type") == "tool_result"]
    words: list[object] = []
    outputs: list[object] = []
    into = words
    for part in parts:
        text = text_of(part.get("text"))
        if item["role"] == "user" and (_AROUND.search(text) or _RESULT.match(text)):
            into = words if _AROUND.search(text) else outputs
        if [part] not in results and (own := _own(part, item["role"])):
            into.append(own)
    if item["role"] == "assistant" and parts and not words:
        words = [{"type": "thinking"}]
    for role, content in (("tool", outputs), *((item["role"], group) for group in (*results, words))):
        if content:
            identity = repeat_id(counts, [chat.lasting_id, role, item.get("at"), content])
            row = {**item, "role": role, "content": content, "id": identity}
            yield item_of(chat, number, formats.parse, row)
    if not (results or words or outputs):
        yield Skip(number, "not conversation: context that the program added" if parts else "empty")


def prompt_time(content: object, pattern: re.Pattern[str]) -> datetime | None:
    """Return the time that a program added to a prompt, by its pattern."""
    texts = (text_of(dict_of(part).get("text", part)) for part in list_of(content) or [content])
    return next((time_of(match[1]) for match in map(pattern.search, texts) if match), None)


def _own(part: Json, role: object) -> Json | None:
    """Return a part with the speaker's own words only, None if nothing is left."""
    if part.get("type") != "text":
        return part
    text = text_of(part.get("text"))
    if role == "assistant":
        text = _THOUGHT.sub("", text)
    elif queries := _QUERY.findall(text):
        text = "\n".join(queries)
    else:
        text = _AROUND.sub("", _ADDED.sub("", text))
    return {**part, "text": text.strip()} if text.strip() else None


# Cline, Roo and Kilo


def is_task(value: Json) -> bool:
    """Return whether an object is a message of a task of Cline, or of a program made from it."""
    texts = (text_of(dict_of(part).get("text")) for part in list_of(value.get("content")))
    is_marked = isinstance(value.get("ts"), int) or any("<environment_details>" in text for text in texts)
    return value.get("role") in _ROLES and isinstance(value.get("content"), list) and is_marked


def read_task(file: File) -> Iterator[Item]:
    """Yield the messages of a task, whose folder names it, by the time at which it began."""
    path, counts = PurePath(file.path), Counter[str]()
    by_file = path.stem != _TASK
    name = file.name if by_file else path.parent.name
    chat = ImportedChat(name, since=time_of(int(name)) if name.isdecimal() else None, by_file=by_file)

    def items(number: int, value: dict[str, object]) -> Iterator[Item] | None:
        role, content = value.get("role"), value.get("content")
        is_summary = value.get("isSummary") is True or value.get("isTruncationMarker") is True
        if is_summary or value.get("type") == "reasoning":
            return iter([Skip(number, turns.SUMMARY if is_summary else "not conversation: reasoning")])
        at = value.get("ts") or prompt_time(content, _NOW)
        row = {"role": role, "content": content, "at": at, "raw": value}
        return rows_of(chat, number, row, counts) if role in _ROLES else None

    return read_objects(values(file), items, "no message")


# Goose

GOOSE = ("messages", "id", "session_id", "role", "content_json", "created_timestamp", "metadata_json")


def is_goose(value: Json) -> bool:
    """Return whether an object is a session of Goose, the first line of one, or a message."""
    is_message = isinstance(value.get("created"), int) and isinstance(value.get("content"), list)
    return (is_message and value.get("role") in _ROLES) or _is_session(value)


def _is_session(value: Json) -> bool:
    messages = value.get("conversation", value.get("messages"))
    has_messages = "message_count" in value or isinstance(messages, list)
    return isinstance(value.get("working_dir"), str) and has_messages


def read_goose(file: File) -> Iterator[Item]:
    """Yield the messages of sessions, as lines or as exported documents."""
    chat, counts = ImportedChat(file.name, by_file=True), Counter[str]()

    def items(number: int, value: dict[str, object]) -> Iterator[Item]:
        nonlocal chat
        rows: list[object] = [value]
        if _is_session(value):
            title, identity = text_of(value.get("name") or value.get("description")), text_of(value.get("id"))
            folder, by_file = text_of(value["working_dir"]), not identity
            chat = ImportedChat(identity or file.name, title, folder=folder, by_file=by_file)
            rows = list_of(value.get("conversation") or value.get("messages"))
        for place, row in enumerate(map(dict_of, rows), number):
            yield from _goose(chat, place, row, counts)

    is_document = file.path.lower().endswith(".json")
    return read_objects(values(file) if is_document else lines(file), items, "no message")


def read_goose_database(file: File) -> Iterator[Item]:
    """Yield the messages of every session of its database, each a chat as in an export."""
    counts = Counter[str]()
    with open_database(file) as database:
        sessions = database.rows("sessions", ("id", "working_dir", "name", "description"), order=["id"])
        for session in sessions:
            name, folder, title, described = map(text_of, session)
            chat = ImportedChat(name, title or described, folder=folder)
            rows = database.rows(GOOSE[0], GOOSE[1:], where={"session_id": name}, order=["id"])
            for number, _, role, content, created, metadata in rows:
                parts = object_in(f'{{"content": {text_of(content)}}}')
                row = {"role": role, "created": created, "metadata": object_in(metadata), **dict_of(parts)}
                yield from _goose(chat, number if isinstance(number, int) else 0, row, counts)


def _goose(chat: ImportedChat, number: int, row: Json, counts: Counter[str]) -> Iterator[Item]:
    if row.get("role") not in _ROLES:
        yield Skip(number, "no message", problem=True)
    elif dict_of(row.get("metadata")).get("userVisible") is False:
        yield Skip(number, "not conversation: written by the program, and not shown to the user")
    else:
        parts = [_goose_part(dict_of(part)) for part in list_of(row.get("content"))]
        item = {"role": row["role"], "content": parts, "at": row.get("created"), "raw": row}
        yield from rows_of(chat, number, item, counts)


def _goose_part(part: Json) -> Json:
    """Return a part in the form that chat formats have."""
    call, use, result = part.get("id"), part.get("toolCall"), part.get("toolResult")
    value = dict_of(use or result).get("value") or dict_of(use or result).get("error") or use or result
    if use:
        name, arguments = dict_of(value).get("name") or "tool", dict_of(value).get("arguments")
        return {"type": "tool_use", "id": call, "name": name, "input": arguments}
    if result:
        return {"type": "tool_result", "tool_use_id": call, "content": output_of(value)}
    return {**part, "type": "thinking"} if part.get("type") == "redactedThinking" else part
