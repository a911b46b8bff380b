"""Letta: agent files (`.af`), with the blocks of core memory, the messages and archival passages.

Both forms: that of Letta 0.8 and later, with lists of agents and blocks, and the earlier one of one agent.
"""

import re
from collections import Counter
from collections.abc import Iterator

from holdfast.port import formats
from holdfast.port.handles import NewRecord
from holdfast.port.texts import clean
from holdfast_cli.formats.files import File, object_in, values
from holdfast_cli.formats.import_items import ImportedChat, ImportedRecord, Item, Skip, item_of, read_objects
from holdfast_cli.formats.json_values import Json, dict_of, list_of, stable_id, text_of

_SAYS = "send_message"  # the tool by which earlier agents speak; their text is what they think
_ONE_PER_AGENT = {"human": "profile", "persona": "soul"}
_ABOUT_USER = re.compile(r"user|human")
_SYSTEM = "the system text, which Letta writes anew from the blocks"
_SENT = "the result of send_message, which says nothing"
_LEFT_OUT = {
    "tools": "a tool, which Holdfast does not run",
    "tool_rules": "a rule for tools, which Holdfast does not run",
    "mcp_servers": "an MCP server, which Holdfast does not call",
    "skills": "a skill, which is no memory",
    "files": "a file of a data source: import its text itself",
    "sources": "a data source: import its files themselves",
    "groups": "a group of agents",
    "tool_exec_environment_variables": "a variable of tools, which may be a key",
    "secrets": "a variable of tools, which may be a key",
}
_REASONING = {"redacted_reasoning", "omitted_reasoning", "summarized_reasoning"}


def is_agent_file(value: Json) -> bool:
    """Return whether an object is an agent file."""
    agents = value.get("agents")
    is_new = isinstance(agents, list) and isinstance(value.get("blocks"), list)
    return is_new or (isinstance(value.get("core_memory"), list) and isinstance(value.get("messages"), list))


def read(file: File) -> Iterator[Item]:
    """Yield the memory blocks, messages and passages of the agents of a file.

    The blocks `human` and `persona` become the profile and the soul of their agent, others facts under their
    label; one of several agents belongs to all. Passages, and summaries of messages that the file does not
    have, become findings. What an agent says by `send_message` becomes its message.
    """
    return read_objects(
        values(file), lambda _, value: _document(value) if is_agent_file(value) else None, "no agent file"
    )


def _document(value: Json) -> Iterator[Item]:
    agents = [dict_of(agent) for agent in list_of(value.get("agents"))] or [value]
    users = Counter(str(block) for agent in agents for block in list_of(agent.get("block_ids")))
    names = {str(block): _name(agent) for agent in agents for block in list_of(agent.get("block_ids"))}
    blocks = [
        (names.get(key, "") if users[key] == 1 else "", block)
        for block in map(dict_of, list_of(value.get("blocks")))
        if (key := str(block.get("id")))
    ]
    for agent in agents:
        own = [*list_of(agent.get("core_memory")), *list_of(agent.get("memory_blocks"))]
        blocks += [(_name(agent), dict_of(block)) for block in own]
    yield from _blocks(blocks)
    for agent in agents:
        yield from _messages(agent)
        yield from _passages(_name(agent), agent)
        yield from _skips(agent)
    if value is not agents[0]:
        yield from _passages("", value)
        yield from _skips(value)


def _name(agent: Json) -> str:
    return clean(text_of(agent.get("name"))).strip() or "agent"


def _skips(value: Json) -> Iterator[Skip]:
    for key, reason in _LEFT_OUT.items():
        yield from (Skip(0, reason) for _ in (*list_of(value.get(key)), *dict_of(value.get(key))))


def _blocks(blocks: list[tuple[str, Json]]) -> Iterator[Item]:
    labels: set[tuple[str, str]] = set()
    for place, (agent, block) in enumerate(blocks, 1):
        label, text = text_of(block.get("label")) or "block", text_of(block.get("value"))
        if not text.strip():
            yield Skip(place, "an empty memory block")
            continue
        kind = "fact" if (agent, label) in labels else _ONE_PER_AGENT.get(label, "fact")
        labels.add((agent, label))
        record: NewRecord = {"text": text, "kind": kind, "source": f"letta:{agent}/{label}"}
        if kind == "fact":
            record |= {"category": label, "target": "user" if _ABOUT_USER.search(label) else "env"}
        if description := text_of(block.get("description")).strip():
            record["meta"] = {"label": label, "description": description}
        yield ImportedRecord(place, record, agent)


def _passages(agent: str, value: Json) -> Iterator[Item]:
    for key in ("passages", "archival_memory"):
        for place, passage in enumerate(map(dict_of, list_of(value.get(key))), 1):
            text = text_of(passage.get("text"))
            identity = text_of(passage.get("id")) or stable_id(0, text)
            record: NewRecord = {"text": text, "kind": "finding", "source": f"letta:{agent}/{identity}"}
            record["tags"] = [tag for tag in list_of(passage.get("tags")) if isinstance(tag, str)]
            if created := text_of(passage.get("created_at")):
                record["meta"] = {"created_at": created}
            yield ImportedRecord(place, record, agent)


def _messages(agent: Json) -> Iterator[Item]:
    name = _name(agent)
    chat = ImportedChat(f"letta:{name}", name, name)
    sent: set[str] = set()
    for place, entry in enumerate(list_of(agent.get("messages")), 1):
        if not isinstance(entry, dict):
            yield Skip(place, "no message", problem=True)
            continue
        role, event = text_of(entry.get("role")), _event(entry)
        calls = [dict_of(call) for call in list_of(entry.get("tool_calls"))]
        speeches = [call for call in calls if dict_of(call.get("function")).get("name") == _SAYS]
        sent.update(text_of(call.get("id")) for call in speeches)
        if role == "system":
            yield Skip(place, _SYSTEM)
        elif (kind := text_of(event.get("type"))) and kind not in ("user_message", "system_alert"):
            yield Skip(place, f"an event that Letta wrote: {clean(kind)[:40]}")
        elif kind == "system_alert" or role == "summary":
            text = text_of(event.get("message")) or _text(entry)
            record: NewRecord = {"text": text, "kind": "finding", "category": "summary"}
            yield ImportedRecord(place, record | {"source": f"letta:{name}/{stable_id(0, text)}"}, name)
        elif role == "tool" and text_of(entry.get("tool_call_id")) in sent:
            yield Skip(place, _SENT)
        elif role == "approval" and not calls:
            yield Skip(place, "an approval of a call")
        else:
            others = [call for call in calls if call not in speeches]
            texts = [_speech(call) for call in speeches] or ([text_of(event.get("message"))] if event else [])
            fields = _fields(entry, role, "\n".join(filter(None, texts)), others)
            yield item_of(chat, place, formats.parse, fields)


def _fields(entry: Json, role: str, text: str, calls: list[Json]) -> dict[str, object]:
    content = text or [_part(part) for part in list_of(entry.get("content"))] or entry.get("text")
    # The ids of a file are numbers of its own; the next file has others.
    key = [role, content, entry.get("created_at"), calls, entry.get("tool_call_id")]
    return {
        "role": "assistant" if role == "approval" else role,
        "content": content,
        "id": stable_id(0, key),
        "name": entry.get("name"),
        "tool_calls": calls,
        "tool_call_id": entry.get("tool_call_id"),
        "at": entry.get("created_at"),
        "raw": entry,
    }


def _part(part: object) -> object:
    """Return a part of a content in the shape that other formats have."""
    fields = dict_of(part)
    match text_of(fields.get("type")):
        case "tool_call":
            return {**fields, "type": "tool_use"}
        case "tool_return":
            return {**fields, "type": "tool_result", "tool_use_id": fields.get("tool_call_id")}
        case kind if kind in _REASONING:
            return {"type": "reasoning"}
    return part


def _text(entry: Json) -> str:
    parts = [text_of(dict_of(part).get("text")) for part in list_of(entry.get("content"))]
    return "\n".join(filter(None, parts)) or text_of(entry.get("content")) or text_of(entry.get("text"))


def _event(entry: Json) -> Json:
    """Return the JSON object that holds a user's message, an event or a result; {} for plain text."""
    role, text = entry.get("role"), _text(entry)
    if role not in ("user", "tool", "function") or not text.startswith("{"):
        return {}
    value = dict_of(object_in(text))
    is_result = role != "user" and isinstance(value.get("message"), str) and "status" in value
    return value if is_result or (role == "user" and isinstance(value.get("type"), str)) else {}


def _speech(call: Json) -> str:
    arguments = dict_of(call.get("function")).get("arguments")
    fields = object_in(arguments) if isinstance(arguments, str) else arguments
    return text_of(dict_of(fields).get("message")) or text_of(arguments)
