"""Entries of other programs as messages: words with calls of tools, and each result of a call on its own."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from holdfast.port import formats
from holdfast_cli.formats.import_items import TOO_DEEP, ImportedChat, Item, Skip, item_of
from holdfast_cli.formats.json_values import Json, dict_of, list_of, output_of, text_of

SUMMARY = "a summary of messages that come before it"
ERROR = "not conversation: an error in place of an answer"
GROWS = "still being written"
BY_PROGRAM = "not conversation: context that the program added"


class Speaker(NamedTuple):
    """Who says an entry: the role, the id of the entry, its time as the file has it, and a name."""

    role: object
    id: str
    at: object = None
    name: str = ""


def messages_of(
    chat: ImportedChat, line: int, speaker: Speaker, blocks: Iterable[Json], raw: Json
) -> Iterator[Item]:
    """Yield the messages of an entry: what stands between results of calls, and each of these.

    The first has the id of the entry, those that follow `<id>/<n>`. A call without an id gets one, and a
    result that names no call is that of the first call of the entry that has none yet.

    Args:
        chat: the chat that it belongs to.
        line: where it stands in the file.
        speaker: who says it, and when.
        blocks: its content, in the format of Anthropic.
        raw: what the file has beside its content.

    """
    try:
        runs = _runs(speaker, blocks)
    except RecursionError:
        yield Skip(line, TOO_DEEP, problem=True)
        return
    for number, (role, content) in enumerate(runs):
        identity = f"{speaker.id}/{number}" if number else speaker.id
        said = {**speaker._asdict(), "role": role, "content": content, "id": identity}
        yield item_of(chat, line, formats.parse, {**said, "raw": {**raw, "role": role, "content": content}})
    if not runs:
        yield Skip(line, "empty")


def _runs(speaker: Speaker, blocks: Iterable[Json]) -> list[tuple[object, list[Json]]]:
    """Return blocks by the messages that they are, each with its role."""
    runs: list[tuple[object, list[Json]]] = []
    waiting: list[str] = []
    for place, block in enumerate(blocks):
        kind, own = block.get("type"), block
        if kind == "tool_result":
            answered = text_of(block.get("tool_use_id")) or next(iter(waiting), "")
            waiting = [other for other in waiting if other != answered]
            output = output_of(block.get("content"))
            runs.append(("tool", [{**block, "tool_use_id": answered, "content": output}]))
            continue
        if kind == "text" and not text_of(block.get("text")).strip():
            continue
        if kind == "tool_use":
            waiting.append(text_of(block.get("id")) or f"{speaker.id}/call-{place}")
            given = block.get("input")
            given = given if given is None or isinstance(given, str | Mapping) else json.dumps(given)
            name = text_of(block.get("name")) or "tool"
            own = {**block, "id": waiting[-1], "name": name, "input": given}
        if not runs or runs[-1][0] == "tool":
            runs.append((speaker.role, []))
        runs[-1][1].append(own)
    return runs


def parts_of(value: object) -> list[Json]:
    """Return the parts of a content; a text is one."""
    return [words(value)] if isinstance(value, str) else list(map(dict_of, list_of(value)))


def words(text: object) -> Json:
    """Return a text as a block."""
    return {"type": "text", "text": text_of(text)}


def thought(text: object) -> Json:
    """Return what a model has thought as a block."""
    return {"type": "thinking", "thinking": text}


def call(identity: object, name: object, arguments: object, *output: object) -> list[Json]:
    """Return a call of a tool as blocks, with its result if there is one."""
    use = {"type": "tool_use", "id": identity, "name": name, "input": arguments}
    return [use, *(result(identity, part) for part in output)]


def result(identity: object, output: object) -> Json:
    """Return the result of a call as a block."""
    return {"type": "tool_result", "tool_use_id": identity, "content": output}


def attachment(name: object, url: object = "", kind: object = "") -> Json:
    """Return an image or another file as a block: by its name, an image also by its address or data."""
    address, label = text_of(url), {"name": text_of(name)} if name else {}
    if not (text_of(kind).startswith("image") or address.startswith("data:image/")):
        return {"type": "file", **label}
    is_there = address.startswith(("data:image/", "https://", "http://"))
    return {"type": "image_url", **label, **({"image_url": {"url": address}} if is_there else {})}


def texts_in(value: object) -> str:
    """Return the texts of parts, or of a tree of them, one after the other."""
    pending, texts = [value], list[str]()
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, list):
            pending.extend(reversed(part))
        else:
            node = dict_of(part)
            pending += [node[key] for key in ("children", "node", "content", "value", "text") if key in node]
    return "\n".join(filter(None, texts))


def without(entry: Json, *fields: str) -> Json:
    """Return an entry without what its blocks have."""
    return {key: value for key, value in entry.items() if key not in fields}
