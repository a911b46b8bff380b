"""Chats as lines of JSON in the formats of OpenAI, Anthropic and LangChain, and back.

A line is a chat: its `messages` as the format has them, and beside them `holdfast`, an item for each message
with what the format has no place for. Import puts both together.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import cast

from holdfast.errors import InvalidInput
from holdfast.port import formats
from holdfast.types import Message
from holdfast_cli.formats.json_values import dict_of, list_of, text_of
from holdfast_cli.formats.langchain_messages import is_langchain, own_form, read_langchain, to_langchain

BESIDE = "holdfast"
PAYLOAD = "the payload as it came, of which the message is kept"
_LONGEST = 32 << 20  # characters of a line; a longer chat goes on in the next one
_MEDIA = "an image or a file, for which a placeholder stands"
_REASONING = "a message of reasoning alone, left out"
_SYSTEM = "system"
_INSTRUCTIONS = (_SYSTEM, "developer")  # roles of a system text
# The keys of a payload that a message has as fields.
_PLAIN = {"role", "content", "id", "name", "at", "timestamp", "created_at", "meta"}


def _anthropic(message: Message) -> list[dict[str, object]]:
    """Return a message in the format of Anthropic, whole: several results of one message stay together."""
    items = formats.to_anthropic(message, thinking=True)
    blocks = [block for item in items for block in list_of(item["content"])]
    role = _SYSTEM if message.role in _INSTRUCTIONS else items[0]["role"] if items else ""
    return [{"role": role, "content": blocks}] if blocks else []


WRITERS: Mapping[str, Callable[[Message], list[dict[str, object]]]] = {
    "openai": formats.to_openai,
    "anthropic": _anthropic,
    "langgraph": to_langchain,
}


def lines_of(
    head: Mapping[str, object], messages: Iterable[Message], format: str, left_out: Counter[str]
) -> Iterator[tuple[str, int]]:
    """Yield a chat as lines, each with its number of messages; what it cannot hold is counted."""
    parts, size = _Parts(head), 0
    for message in messages:
        entries = WRITERS[format](message)
        left_out.update(_losses(message, entries))
        if not entries:
            continue
        size += parts.add(message, entries, apart=format == "anthropic")
        if size > _LONGEST:
            yield parts.line()
            parts, size = _Parts(head), 0
    if parts.count:
        yield parts.line()


class _Parts:
    """The contents of a line to be written, as texts of JSON."""

    def __init__(self, head: Mapping[str, object]) -> None:
        self._head = head
        self._messages: list[str] = []
        self._system: list[str] = []
        self._beside: list[str] = []
        self.count = 0

    def add(self, message: Message, entries: list[dict[str, object]], *, apart: bool) -> int:
        """Add a message, with `apart` instructions as the system text, and return its size."""
        is_system = apart and message.role in _INSTRUCTIONS
        shown = list_of(entries[0]["content"]) if is_system else entries
        texts = [json.dumps(part) for part in shown]
        (self._system if is_system else self._messages).extend(texts)
        beside = _beside(message, entries[0]) | ({_SYSTEM: len(texts)} if is_system else {})
        # An entry that belongs to the message before has nothing beside it.
        self._beside += [json.dumps(beside), *(["null"] * (0 if is_system else len(texts) - 1))]
        self.count += 1
        return sum(map(len, texts)) + len(self._beside[-1])

    def line(self) -> tuple[str, int]:
        """Return the line, and its number of messages."""
        lists = {"messages": self._messages, _SYSTEM: self._system, BESIDE: self._beside}
        if not self._system:
            del lists[_SYSTEM]
        inner = "".join(f', "{name}": [{", ".join(texts)}]' for name, texts in lists.items())
        return f"{json.dumps(self._head)[:-1]}{inner}}}\n", self.count


def _beside(message: Message, entry: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a message that its entry lacks or has otherwise; None for those to remove."""
    fields = formats.export(message)
    try:
        plain = formats.export(read_entry(entry))
    except InvalidInput:
        plain = {}
    names = [*fields, *(name for name in plain if name not in fields)]
    return {name: fields.get(name) for name in names if name != "raw" and fields.get(name) != plain.get(name)}


def has_more(message: Message) -> bool:
    """Return whether a message has a payload with more than its own fields."""
    raw = message.raw
    return raw is not None and not (raw.keys() <= _PLAIN and raw.get("content") == message.content)


def _losses(message: Message, entries: list[dict[str, object]]) -> Iterator[str]:
    if not entries:
        yield _REASONING
    elif has_more(message) and message.raw != entries[0]:
        if is_langchain(entries[0]) and own_form(message.raw):
            return
        yield PAYLOAD
        if formats.has_media(message.raw) and not any(map(formats.has_media, entries)):
            yield _MEDIA


# And back


def entries_of(value: Mapping[str, object]) -> Iterator[tuple[int, object, Mapping[str, object]]]:
    """Yield the messages of a chat as its object has them, with their places and the fields beside them.

    A system text beside the messages of another program comes before the first one.
    """
    blocks, entries = _system(value), iter(list_of(value.get("messages")))
    beside, system = value.get(BESIDE), 0
    place = 1 if isinstance(beside, list) else 1 - len(blocks)
    for note in list_of(beside):
        extra = dict_of(note)
        count = extra.get(_SYSTEM)
        if type(count) is int and count > 0:
            texts = blocks[system : system + count]
            current: list[object] = [{"role": _SYSTEM, "content": texts}] if texts else []
            system += count
        else:
            current = list(islice(entries, 1))
        if note is not None and current:
            yield place, current[0], extra
            place += 1
    # What was added to the file, or is of another program.
    others = ({"role": _SYSTEM, "content": [block]} for block in blocks[system:])
    for number, entry in enumerate((*others, *entries), place):
        yield number, entry, {}


def _system(value: Mapping[str, object]) -> list[object]:
    system = value.get(_SYSTEM)
    is_text = isinstance(system, str) and system.strip()
    return [{"type": "text", "text": system}] if is_text else list_of(system)


def read_entry(entry: object, beside: Mapping[str, object] | None = None) -> Message:
    """Return the message of an entry and of the fields beside it.

    Raises:
        InvalidInput: it is none.

    """
    if not beside:
        return _parse_entry(entry)
    try:
        fields = formats.export(_parse_entry(entry))
    except InvalidInput:
        # Everything may be known beside it.
        if "role" not in beside:
            raise
        fields = {"raw": dict_of(entry)}
    whole = {**fields, **beside, "raw": fields["raw"]}
    return formats.parse({name: value for name, value in whole.items() if value is not None})


def _parse_entry(entry: object) -> Message:
    row = dict_of(entry)
    if not is_langchain(row):
        return formats.parse(cast("Mapping[str, object]", entry))
    data = dict_of(row["data"])
    return read_langchain({"type": row["type"], **data}, text_of(data.get("id")))
