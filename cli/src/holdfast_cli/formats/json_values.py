"""Values of JSON from untrusted files, of whatever type they are, and what formats make of them."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b

from holdfast.errors import InvalidInput
from holdfast.port import formats

Json = Mapping[str, object]
"""An object of JSON."""

_PART = re.compile(r"text|input_|output_text|image|resource")  # the kinds of what may stand in an output
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")
_SHOWN_TIME = re.compile(
    r"(\w{3} \d{1,2}, \d{4}|\d{1,2}[/.]\d{1,2}[/.]\d{4})(?:,? (?:at )?(\d{1,2}:\d\d)(:\d\d)?(?:\s?([AP]M))?)?"
    r"(?: \(?(?:[^\s,]{1,60}, )?(?:UTC|GMT)([+-]\d{1,2})?(\.5|:\d\d)?)?"
)


def hash_of(value: object, size: int = 12) -> str:
    """Return a hash of a JSON value, of `size` bytes, in hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=size).hexdigest()


def stable_id(position: int, payload: object) -> str:
    """Return the id of a message that has none: its position in the chat and a hash of its content."""
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    return f"{position}-{blake2b(text.encode(), digest_size=4).hexdigest()}"


def repeat_id(counts: Counter[str], payload: object) -> str:
    """Return the id of a message that has neither id nor lasting place: a hash, and its number among equals.

    Args:
        counts: how often each was said so far, counted on here.
        payload: whatever distinguishes the message, such as its chat, role, time and words.

    """
    try:
        digest = hash_of(payload)
    except RecursionError:
        # Whoever parses it reports that.
        digest = blake2b(digest_size=12).hexdigest()
    counts[digest] += 1
    return f"{digest}-{counts[digest]}"


def hook_id(role: str, text: str) -> str:
    """Return the beginning of the id that hooks give a message without one, made of its words.

    Its count in the chat follows, so that a reader of the whole transcript can make the same id.
    """
    digest = blake2b(f"{role}\0{text}".encode("utf-8", "replace"), digest_size=12).hexdigest()
    return f"hook-{digest}-"


def call_item(call: str, name: object, arguments: object, at: object) -> dict[str, object]:
    """Return a call of a tool as an item in a chat format."""
    entry = {"id": call, "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [entry], "at": at}


def result_item(call: str, content: object, at: object) -> dict[str, object]:
    """Return the result of a call as an item in a chat format."""
    return {"role": "tool", "tool_call_id": call, "content": content, "at": at}


def output_of(output: object) -> object:
    """Return the output of a tool in a form that chat formats have."""
    output = output.get("content", output) if isinstance(output, dict) else output
    kinds = (text_of(dict_of(part).get("type")) for part in list_of(output))
    is_parts = isinstance(output, list) and all(map(_PART.match, kinds))
    return output if output is None or isinstance(output, str) or is_parts else json.dumps(output)


def time_of(value: object) -> datetime | None:
    """Return the time of a value, also one for people such as `6/16/2025 at 1:55 PM GMT+3`, or None.

    The month comes first, unless it is none or points stand between. A zone without numbers is taken for UTC.
    """
    try:
        return formats.read_time(value)
    except InvalidInput:
        match = _SHOWN_TIME.match(text_of(value))
    date, clock, seconds, half, hours, minutes = match.groups("") if match else [""] * 6
    shift = f"{int(hours or 0):+03d}{30 if minutes == '.5' else int(minutes.strip('.:') or 0):02d}"
    written, form = f"{clock or '0:00'}{seconds or ':00'}", "%H:%M:%S"
    if half:
        written, form = f"{written} {half}", "%I:%M:%S %p"
    for day in ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%b %d, %Y"):
        with suppress(ValueError):
            return datetime.strptime(f"{date} {written} {shift}", f"{day} {form} %z")
    return None


def path_of(uri: object) -> str:
    """Return the path in the URI of a file on this machine, "" for any other."""
    scheme, _, path = text_of(uri).partition("://")
    if scheme != "file" or not path.startswith("/"):
        return ""
    data = _ESCAPED.sub(lambda code: bytes.fromhex(code[1].decode()), path.encode(errors="replace"))
    return data.decode(errors="replace")


def text_of(value: object) -> str:
    """Return the value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def dict_of(value: object) -> Mapping[str, object]:
    """Return the value if it is a dict, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []
