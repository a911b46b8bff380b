"""The items that readers of files yield: messages of chats, records, and what they leave out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput
from holdfast.port import formats
from holdfast.port.imports import ChatLabel
from holdfast.types import Message

if TYPE_CHECKING:
    from holdfast.port.handles import NewRecord

_PART = re.compile(r"text|input_|output_text|image|resource")  # the kinds of what may stand in an output
_SHOWN_TIME = re.compile(
    r"(\w{3} \d{1,2}, \d{4}|\d{1,2}[/.]\d{1,2}[/.]\d{4})(?:,? (?:at )?(\d{1,2}:\d\d)(:\d\d)?(?:\s?([AP]M))?)?"
    r"(?: \(?(?:[^\s,]{1,60}, )?(?:UTC|GMT)([+-]\d{1,2})?(\.5|:\d\d)?)?"
)
TOO_DEEP = "nested too deeply"


@dataclass(frozen=True, slots=True)
class Owner:
    """The user whose something is, as its file names it, and whether all in the file is of that one."""

    user: str
    is_only: bool

    def is_another(self, user: str) -> bool:
        """Return whether it is not that of a user. One without a name takes the only one of a file."""
        return bool(self.user) and self.user != user and (bool(user) or not self.is_only)


@dataclass(frozen=True, slots=True)
class ImportedChat:
    """The chat that messages of a file belong to; an empty title or agent is set by the memory.

    `folder` is where its session was at work, "" if the file does not say so or each message does. `owner` is
    the user whose it is, and `since` is when it began, if the file says so. `by_file` says that it is called
    after its file, having no id.
    """

    id: str
    title: str = ""
    agent: str = ""
    archived: bool = False
    label: ChatLabel | None = field(default=None, compare=False)
    folder: str = field(default="", compare=False)
    owner: Owner | None = None
    since: datetime | None = field(default=None, compare=False)
    by_file: bool = False

    @property
    def lasting_id(self) -> str:
        """What ids of its messages may be made of: its id, "" if that is only the name of a file."""
        return "" if self.by_file else self.id


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message, its chat, and its line in JSONL or position in a JSON array; 0 is the whole file.

    `before` is the message as it was said, where something is left out of it.
    """

    chat: ImportedChat
    line: int
    message: Message
    before: Message | None = None


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """Something that a file knows, and its line. Its `source` names it for ever, and it is stored once.

    `agent` is the one that it belongs to, "" for that of the memory. `owner` is the user whose it is,
    if the file says so.
    """

    line: int
    record: NewRecord
    agent: str = ""
    owner: Owner | None = None

    @property
    def source(self) -> str:
        """What names it among all that is imported."""
        return self.record.get("source", "")


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that is left out, and why; `problem` if it should have been a message."""

    line: int
    reason: str
    problem: bool = False


Item = ImportedMessage | ImportedRecord | Skip


def parsed(chat: ImportedChat, line: int, parse: Callable[..., Message], *args: object) -> Item:
    """Return the message that `parse(*args)` returns, or the reason why there is none."""
    try:
        return ImportedMessage(chat, line, parse(*args))
    except InvalidInput as error:
        return Skip(line, error.what, problem=True)
    except RecursionError:
        return Skip(line, TOO_DEEP, problem=True)


def read_objects(
    values: Iterable[tuple[int, object] | Skip],
    read: Callable[[int, dict[str, object]], Iterator[Item] | None],
    otherwise: str,
) -> Iterator[Item]:
    """Yield the items that `read` finds in JSON objects; skip other values, and those it returns None for."""
    for value in values:
        if isinstance(value, Skip):
            yield value
        elif isinstance(value[1], dict) and (items := read(value[0], value[1])) is not None:
            yield from items
        else:
            yield Skip(value[0], otherwise, problem=True)


def stable_id(position: int, payload: object) -> str:
    """Return the id of a message that has none: its position in the chat and a hash of its content."""
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    return f"{position}-{blake2b(text.encode(), digest_size=4).hexdigest()}"


def repeat_id(said: Counter[str], payload: object) -> str:
    """Return the id of a message that has neither id nor lasting place: a hash, and its number among equals.

    Args:
        said: how often each was said so far, counted on here.
        payload: whatever distinguishes the message, such as its chat, role, time and words.

    """
    try:
        text = json.dumps(payload, sort_keys=True, default=str)
    except RecursionError:
        # Whoever parses it reports that.
        text = ""
    digest = blake2b(text.encode(), digest_size=12).hexdigest()
    said[digest] += 1
    return f"{digest}-{said[digest]}"


def told_id(role: str, text: str) -> str:
    """Return how the id of a message begins that a client told by its words alone, as hooks store it.

    How often it was said in the chat follows, so that a reader of the whole transcript can make the id too.
    """
    digest = blake2b(f"{role}\0{text}".encode("utf-8", "replace"), digest_size=12).hexdigest()
    return f"hook-{digest}-"


def call_item(call: str, name: object, arguments: object, at: object) -> dict[str, object]:
    """Return a call of a tool as an item in a chat format."""
    made = {"id": call, "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [made], "at": at}


def result_item(call: str, content: object, at: object) -> dict[str, object]:
    """Return the result of a call as an item in a chat format."""
    return {"role": "tool", "tool_call_id": call, "content": content, "at": at}


def output_of(given: object) -> object:
    """Return what a tool gave in a form that chat formats have."""
    given = given.get("content", given) if isinstance(given, dict) else given
    is_parts = isinstance(given, list) and all(
        _PART.match(text_of(dict_of(one).get("type"))) for one in given
    )
    return given if given is None or isinstance(given, str) or is_parts else json.dumps(given)


def time_of(value: object) -> datetime | None:
    """Return the time that a value tells, be it for a reader as `6/16/2025 at 1:55 PM GMT+3`; None if none.

    The month comes first, unless it is none or points stand between. A zone without numbers is taken for UTC.
    """
    try:
        return formats.read_time(value)
    except InvalidInput:
        found = _SHOWN_TIME.match(text_of(value))
    date, clock, seconds, half, hours, minutes = found.groups("") if found else [""] * 6
    shift = f"{int(hours or 0):+03d}{30 if minutes == '.5' else int(minutes.strip('.:') or 0):02d}"
    written, form = f"{clock or '0:00'}{seconds or ':00'}", "%H:%M:%S"
    if half:
        written, form = f"{written} {half}", "%I:%M:%S %p"
    for day in ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%b %d, %Y"):
        with suppress(ValueError):
            return datetime.strptime(f"{date} {written} {shift}", f"{day} {form} %z")
    return None


def text_of(value: object) -> str:
    """Return the value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def dict_of(value: object) -> Mapping[str, object]:
    """Return the value if it is a dict, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []
