"""Chat-format messages in JSONL and JSON files: plain, OpenAI, fine-tuning sets, LangChain, our exports."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from holdfast.errors import InvalidInput
from holdfast.port.imports import ChatLabel, check_label
from holdfast.types import Message
from holdfast_cli.formats.chat_lines import entries_of, read_entry
from holdfast_cli.formats.files import MAX_LINE, File, lines, values
from holdfast_cli.formats.import_items import ImportedChat, Item, item_of, read_objects
from holdfast_cli.formats.json_values import stable_id, text_of

_ITEMS = {"message", "function_call", "function_call_output", "reasoning"}  # of OpenAI's Responses format
_NO_MESSAGE = "neither a message nor a session"


def is_message(value: Mapping[str, object]) -> bool:
    """Return whether an object is a message in a chat format, or a chat with `messages`."""
    return _is_message(value) or isinstance(value.get("messages"), list)


def _is_message(value: Mapping[str, object]) -> bool:
    return isinstance(value.get("role"), str) or text_of(value.get("type")) in _ITEMS


def read(file: File) -> Iterator[Item]:
    """Yield the messages of a JSONL file with one message or one whole chat a line.

    A message belongs to the chat that it names (`chat`, `session_id` or `conversation_id`), else to one with
    the name of the file; the id of a chat without one is the name of the file and the line.
    """
    return read_objects(
        lines(file, MAX_LINE), lambda line, value: _items(value, line, file.name), _NO_MESSAGE
    )


def read_document(file: File) -> Iterator[Item]:
    """Yield the messages of a JSON file: a list of messages, a list of chats, or one chat."""
    return read_objects(values(file), lambda line, value: _items(value, line, file.name), _NO_MESSAGE)


def _items(value: dict[str, object], line: int, name: str) -> Iterator[Item] | None:
    messages = value.get("messages")
    if isinstance(messages, list):
        identity = _first(value, "id", "session_id", "conversation_id", "chat")
        by_file = f"{name}:{line}" if line else name
        chat = chat_in(value, identity or by_file, by_file=not identity)
        return (item_of(chat, line or entry[0], _message, *entry) for entry in entries_of(value))
    if not _is_message(value):
        return None
    identity = _first(value, "chat", "session_id", "conversation_id")
    chat = chat_in(value, identity or name, by_file=not identity)
    return iter([item_of(chat, line, _message, line, value)])


def _first(value: Mapping[str, object], *keys: str) -> str:
    return next((text for key in keys if (text := text_of(value.get(key)))), "")


def chat_in(value: Mapping[str, object], identity: str, *, by_file: bool = False) -> ImportedChat:
    """Return the chat that an object describes as our exports do, under an id."""
    title, agent = text_of(value.get("title")), text_of(value.get("agent"))
    is_archived, label = value.get("archived") is True, _label(value.get("about"))
    return ImportedChat(identity, title, agent, is_archived, label, by_file=by_file)


def _label(about: object) -> ChatLabel | None:
    """Return the label of a chat in an export; None for an `about` of another program."""
    if not isinstance(about, dict):
        return None
    created = text_of(about.get("created"))
    try:
        since = datetime.fromisoformat(created) if created else None
        return check_label(about.get("channel"), about.get("meta"), since)
    except (ValueError, InvalidInput):
        return None


def _message(position: int, entry: object, beside: Mapping[str, object] | None = None) -> Message:
    message = read_entry(entry, beside)
    return message if message.id else replace(message, id=stable_id(position, entry))
