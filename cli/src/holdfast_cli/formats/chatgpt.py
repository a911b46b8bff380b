"""ChatGPT: the conversations of a data export, `conversations.json` or its numbered parts."""

from collections.abc import Iterator, Mapping

from holdfast.port import formats
from holdfast.types import Message
from holdfast_cli.formats.branches import LEFT, seconds, thread
from holdfast_cli.formats.files import File
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of
from holdfast_cli.formats.json_values import Json, dict_of, list_of, text_of

_HIDDEN = "hidden in ChatGPT"
_SETTINGS = "settings of the account, not conversation"
_EMPTY = "empty"
_SETTINGS_TYPES = {"user_editable_context", "model_editable_context"}
_REASONING_TYPES = {"thoughts", "reasoning_recap"}
_PLAIN_TYPES = {"", "text", "multimodal_text", "code", "execution_output"}
_TEXTS = ("title", "name", "text", "result", "content")  # the fields of content types other than text


def is_conversation(value: Json) -> bool:
    """Return whether an object is a conversation of an export."""
    return isinstance(value.get("mapping"), dict)


def read(file: File, position: int, value: Json) -> Iterator[Item]:
    """Yield the messages of a conversation: the thread that ChatGPT shows, down to `current_node`.

    Messages that ChatGPT hides, that are settings or empty, or that are on other branches, are left out and
    counted. A message to a tool becomes a tool call, and the tool's message its result.
    """
    identity = text_of(value.get("conversation_id")) or text_of(value.get("id"))
    identity = identity or (f"{file.name}:{position}" if position else file.name)
    chat = ImportedChat(identity, text_of(value.get("title")), archived=value.get("is_archived") is True)
    nodes = {key: node for key, node in dict_of(value.get("mapping")).items() if isinstance(node, dict)}
    thread = _thread(value.get("current_node"), nodes)
    call: Json = {}
    at = value.get("create_time")
    for key in thread:
        message = nodes[key].get("message")
        if not isinstance(message, dict):
            # The root has none.
            continue
        at = message.get("create_time") or at
        if reason := _why_left_out(message):
            yield Skip(position, reason)
            continue
        yield item_of(chat, position, _message, message, key, at, call)
        if _author(message).get("role") == "user":
            call = {}
        elif _recipient(message):
            call = {"id": text_of(message.get("id")) or key, "name": _recipient(message)}
    in_thread = set(thread)
    for key, node in nodes.items():
        message = node.get("message")
        if key not in in_thread and isinstance(message, dict):
            yield Skip(position, _why_left_out(message) or LEFT)


def _thread(current: object, nodes: Mapping[str, Json]) -> list[str]:
    """Return the nodes from the root to the current one, or to the newest leaf if there is none."""
    by_child = {text_of(child): key for key, node in nodes.items() for child in list_of(node.get("children"))}
    parents = {key: text_of(node.get("parent")) or by_child.get(key, "") for key, node in nodes.items()}
    times = {key: seconds(dict_of(node.get("message")).get("create_time")) for key, node in nodes.items()}
    return thread(current, parents, times)


def _author(message: Json) -> Json:
    return dict_of(message.get("author"))


def _why_left_out(message: Json) -> str:
    metadata = dict_of(message.get("metadata"))
    if text_of(dict_of(message.get("content")).get("content_type")) in _SETTINGS_TYPES:
        return _SETTINGS
    if message.get("weight") == 0 or metadata.get("is_visually_hidden_from_conversation") is True:
        return _HIDDEN
    has_role = _recipient(message) or _author(message).get("role") == "tool"
    return "" if has_role or _text(message).strip() else _EMPTY


def _recipient(message: Json) -> str:
    """Return the tool that an assistant's message is sent to; "" for messages to the user."""
    recipient = text_of(message.get("recipient"))
    is_call = recipient != "all" and _author(message).get("role") == "assistant"
    return recipient if is_call else ""


def _message(message: dict[str, object], key: str, at: object, call: Json) -> Message:
    """Return a message, with a tool call if it is sent to a tool."""
    author, content = _author(message), _text(message)
    identity = text_of(message.get("id")) or key
    fields: dict[str, object] = {"id": identity, "role": author.get("role"), "name": author.get("name")}
    recipient, tool = _recipient(message), text_of(author.get("name"))
    if recipient:
        function = {"name": recipient, "arguments": content}
        fields["tool_calls"] = [{"id": identity, "function": function}]
    elif author.get("role") == "tool" and call and _family(tool) == _family(text_of(call["name"])):
        fields["tool_call_id"] = call["id"]
    return formats.parse(fields | {"content": "" if recipient else content, "at": at, "raw": message})


def _family(tool: str) -> str:
    return tool.partition(".")[0]


def _text(message: Json) -> str:
    content = message.get("content")
    if not isinstance(content, dict):
        return text_of(content)
    kind, parts = text_of(content.get("content_type")), content.get("parts")
    if kind in _REASONING_TYPES:
        return formats.REASONING
    if isinstance(parts, list):
        texts = [_part(part) for part in parts]
    else:
        texts = [text_of(content.get(key)) for key in _TEXTS]
    files = list_of(dict_of(message.get("metadata")).get("attachments"))
    names = [text_of(dict_of(file).get("name")) for file in files]
    texts += [f"[file: {name}]" for name in names if name]
    return "\n".join(filter(None, texts)) or ("" if kind in _PLAIN_TYPES else f"[{kind}]")


def _part(part: object) -> str:
    if not isinstance(part, dict):
        return text_of(part)
    kind = text_of(part.get("content_type")) or "part"
    if text := text_of(part.get("text")):
        return text
    if kind != "image_asset_pointer":
        return f"[{kind}]"
    prompt = text_of(dict_of(dict_of(part.get("metadata")).get("dalle")).get("prompt"))
    return f"[image: {prompt or text_of(part.get('asset_pointer')).rsplit('/', 1)[-1] or 'unnamed'}]"
