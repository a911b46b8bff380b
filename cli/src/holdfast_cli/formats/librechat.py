"""LibreChat: exported conversations, as a list of messages or as their tree."""

from collections.abc import Iterator
from functools import partial

from holdfast_cli.formats import turns
from holdfast_cli.formats.branches import read_thread
from holdfast_cli.formats.files import File
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip
from holdfast_cli.formats.json_values import Json, dict_of, list_of, text_of


def is_conversation(value: Json) -> bool:
    """Return whether an object is an exported conversation."""
    first = dict_of(next(iter(list_of(value.get("messages"))), None))
    is_export = (
        isinstance(value.get("messagesTree"), list) or {"messageId", "isCreatedByUser"} <= first.keys()
    )
    return isinstance(value.get("conversationId"), str) and is_export


def read(_: File, position: int, value: Json) -> Iterator[Item]:
    """Yield the messages of a conversation: the thread that ends with the newest message."""
    chat = ImportedChat(text_of(value["conversationId"]), text_of(value.get("title")))
    messages = _flat(list_of(value.get("messagesTree") or value.get("messages")))
    fields = ("messageId", "parentMessageId", "createdAt")
    return read_thread(position, messages, partial(_message, chat, position), fields)


def _flat(tree: list[object]) -> Iterator[Json]:
    """Yield the messages of a tree, each before those that follow it."""
    pending = tree[::-1]
    while pending:
        message = dict_of(pending.pop())
        pending.extend(reversed(list_of(message.get("children"))))
        yield turns.without(message, "children")


def _message(chat: ImportedChat, position: int, key: str, message: Json) -> Iterator[Item]:
    if message.get("error") is True:
        yield Skip(position, turns.ERROR)
        return
    role = "user" if message.get("isCreatedByUser") is True else "assistant"
    blocks = [block for part in turns.parts_of(message.get("content")) for block in _blocks(part)]
    files = [dict_of(item) for name in ("files", "attachments") for item in list_of(message.get(name))]
    blocks = blocks or [turns.words(message.get("text"))]
    blocks += [turns.attachment(item.get("filename"), kind=item.get("type")) for item in files]
    raw, speaker = (
        turns.without(message, "content", "text"),
        turns.Speaker(role, key, message.get("createdAt")),
    )
    yield from turns.messages_of(chat, position, speaker, blocks, raw)


def _blocks(part: Json) -> list[Json]:
    kind = text_of(part.get("type"))
    inner = dict_of(part.get(kind))
    match kind:
        case "text" | "error":
            return [turns.words(turns.texts_in(part.get(kind) or part.get("text")))]
        case "think":
            return [turns.thought(part.get("think"))]
        case "tool_call":
            function, output = dict_of(inner.get("function")) or inner, inner.get("output")
            given = function.get("arguments", inner.get("args"))
            return turns.call(inner.get("id"), function.get("name"), given, *([output] if output else []))
        case "image_file" | "image_url":
            return [turns.attachment(inner.get("filename"), inner.get("url"), "image")]
    return [part]
