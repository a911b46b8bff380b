"""Open WebUI: exported chats."""

import html
import re
from collections.abc import Iterator
from functools import partial

from holdfast_cli.formats import turns
from holdfast_cli.formats.branches import read_thread
from holdfast_cli.formats.files import File, object_in
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip
from holdfast_cli.formats.json_values import Json, dict_of, list_of, text_of

_START, _END = '<details type="', "</details>"
_ATTRIBUTE = re.compile(r'(\w{1,40})="([^"]*)"')


def is_chat(value: Json) -> bool:
    """Return whether an object is a chat of an export."""
    return isinstance(dict_of(dict_of(value.get("chat")).get("history")).get("messages"), dict)


def read(file: File, position: int, value: Json) -> Iterator[Item]:
    """Yield the messages of a chat: the thread that is shown, down to `currentId`.

    What stands in `<details>` of an answer are calls of tools with their results, and thoughts.
    """
    history, own = dict_of(dict_of(value["chat"])["history"]), text_of(value.get("id"))
    name = own or (f"{file.name}:{position}" if position else file.name)
    is_archived = value.get("archived") is True
    chat = ImportedChat(name, text_of(value.get("title")), archived=is_archived, by_file=not own)
    messages = ({**dict_of(node), "id": key} for key, node in dict_of(history["messages"]).items())
    fields = ("id", "parentId", "timestamp")
    return read_thread(
        position, messages, partial(_message, chat, position), fields, history.get("currentId")
    )


def _message(chat: ImportedChat, position: int, key: str, message: Json) -> Iterator[Item]:
    content = text_of(message.get("content"))
    if message.get("done") is False and message.get("role") == "assistant":
        yield Skip(position, turns.GROWS)
    elif message.get("error") and not content:
        yield Skip(position, turns.ERROR)
    else:
        speaker = turns.Speaker(message.get("role"), key, message.get("timestamp"))
        blocks = [*_blocks(content), *map(_file, map(dict_of, list_of(message.get("files"))))]
        raw = turns.without(message, "content", "files", "output")
        yield from turns.messages_of(chat, position, speaker, blocks, raw)


def _file(item: Json) -> Json:
    name = item.get("name") or dict_of(item.get("file")).get("filename")
    return turns.attachment(name, item.get("url"), item.get("content_type") or item.get("type"))


def _blocks(content: str) -> Iterator[Json]:
    """Yield the words of a content, and what stands in its `<details>`."""
    at = 0
    while (start := content.find(_START, at)) >= 0 and (end := content.find(_END, start)) >= 0:
        yield turns.words(content[at:start].strip())
        yield from _details(content[start:end])
        at = end + len(_END)
    yield turns.words(content[at:].strip())


def _details(text: str) -> list[Json]:
    head, _, body = text.partition(">")
    fields = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(head)}
    body = body.partition("</summary>")[2].strip() or body.strip()
    match fields.get("type"):
        case "reasoning":
            return [turns.thought(body)]
        case "tool_calls":
            output = _inner(fields.get("result", "") or html.unescape(body))
            results = [output] if fields.get("done") == "true" else []
            # The arguments are JSON in a text of JSON.
            return turns.call(
                fields.get("id"), fields.get("name"), _inner(fields.get("arguments", "")), *results
            )
    return [turns.words(text + _END)]


def _inner(text: str) -> str:
    """Return the text that a text of JSON has, or the text."""
    return text_of(dict_of(object_in(f'{{"text": {text}}}')).get("text")) or text
