"""Claude.ai: the conversations, projects and memories of a data export."""

from collections.abc import Iterator
from functools import partial

from holdfast_cli.formats import turns
from holdfast_cli.formats.branches import read_thread
from holdfast_cli.formats.files import File
from holdfast_cli.formats.import_items import ImportedChat, ImportedRecord, Item, Skip
from holdfast_cli.formats.json_values import Json, dict_of, list_of, text_of
from holdfast_cli.formats.notes import parts_of_text

_ROLES = {"human": "user", "assistant": "assistant"}
_COUNTED = ("token_budget", "flag")  # kinds of parts that are no words
_MEMORY, _MEMORIES = "conversations_memory", "project_memories"


def is_conversation(value: Json) -> bool:
    """Return whether an object is a conversation of an export."""
    return isinstance(value.get("chat_messages"), list) and isinstance(value.get("uuid"), str)


def is_knowledge(value: Json) -> bool:
    """Return whether an object is a project of an export, or its memories."""
    is_project = isinstance(value.get("docs"), list) and "prompt_template" in value
    return (is_project and isinstance(value.get("uuid"), str)) or isinstance(value.get(_MEMORY), str)


def read(_: File, position: int, value: Json) -> Iterator[Item]:
    """Yield the messages of a conversation: the thread that ends with the newest message.

    Calls of tools and their results are messages of their own. Of attachments the name is taken and the text
    that Claude.ai has drawn from them, of other files the name.
    """
    chat = ImportedChat(text_of(value["uuid"]), text_of(value.get("name")))
    messages = map(dict_of, list_of(value["chat_messages"]))
    # Exports of before 2025 have no branches.
    fields = ("uuid", "parent_message_uuid", "created_at")
    leaf = value.get("current_leaf_message_uuid")
    return read_thread(position, messages, partial(_message, chat, position), fields, leaf)


def _message(chat: ImportedChat, position: int, key: str, message: Json) -> Iterator[Item]:
    role, blocks = _ROLES.get(text_of(message.get("sender"))), turns.parts_of(message.get("content"))
    if role is None:
        yield Skip(position, "neither of the user nor of Claude", problem=True)
        return
    counted = [kind for part in blocks if (kind := part.get("type")) in _COUNTED]
    yield from (Skip(position, f"not conversation: {kind}") for kind in counted)
    blocks = [part for part in blocks if part.get("type") not in _COUNTED]
    if not any(part.get("type") != "text" or text_of(part.get("text")).strip() for part in blocks):
        blocks = [turns.words(message.get("text"))]
    for item in map(dict_of, list_of(message.get("attachments"))):
        # What was pasted has no name.
        blocks += [turns.attachment(item["file_name"])] if item.get("file_name") else []
        blocks.append(turns.words(item.get("extracted_content")))
    files = map(dict_of, list_of(message.get("files")))
    blocks += [turns.attachment(item.get("file_name"), kind=item.get("file_kind")) for item in files]
    speaker = turns.Speaker(role, key, message.get("created_at"))
    raw = turns.without(message, "content", "text", "attachments")
    yield from turns.messages_of(chat, position, speaker, blocks, raw)


def read_knowledge(_: File, position: int, value: Json) -> Iterator[Item]:
    """Yield the documents and instructions of a project, or what Claude.ai remembers, as findings.

    Long ones are in parts of 8,000 characters. Each is known again by its project and its name.
    """
    project, docs = text_of(value.get("name")), map(dict_of, list_of(value.get("docs")))
    texts = [(text_of(doc.get("filename")), doc.get("content")) for doc in docs]
    texts += [("instructions", value.get("prompt_template")), (_MEMORY, value.get(_MEMORY))]
    texts += dict_of(value.get(_MEMORIES)).items()
    for name, text in texts:
        heading = f"{project} › {name}\n\n" if project else ""
        for number, part in enumerate(parts_of_text(text_of(text).strip()), 1):
            source = f"claude.ai:{text_of(value.get('uuid'))[:200]}/{name[:200]}#{number}"
            yield ImportedRecord(position, {"text": heading + part, "kind": "finding", "source": source})
