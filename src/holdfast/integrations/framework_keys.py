"""The ids of frameworks as ids of chats: legible, and different for every key."""

from __future__ import annotations

import re
from hashlib import sha256

from holdfast.types import MAX_NAME

_UNSAFE = re.compile(r"[%/\x00-\x1f\x7f\ud800-\udfff]")
_ESCAPED = re.compile(r"%(D[89A-F][0-9A-F]{2}|[0-7][0-9A-F])")
# Characters of a part in the id of a chat; a longer one is hashed.
_LONGEST = 120


def chat_id(prefix: str, *parts: str) -> str:
    """Return the id of the chat for a key of a framework: `prefix/part/part…`, different for every key.

    Control characters, slashes and percent signs are escaped; a long part is replaced by its hash.

    >>> chat_id("langgraph", "thread/1", "ns")
    'langgraph/thread%2F1/ns'
    """
    escaped = map(escape, parts)
    name = "/".join([prefix, *(part if len(part) <= _LONGEST else f"%#{digest(part)}" for part in escaped)])
    return name if len(name.encode()) <= MAX_NAME else f"{prefix}/%#{digest(name)}"


def escape(part: str) -> str:
    """Return a text without slashes and control characters, from which `unescape` makes it again."""
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", part)


def unescape(part: str) -> str:
    """Return the text that `escape` was given; a hash as it is."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), part)


def digest(text: str) -> str:
    """Return a hash of any text, 64 characters."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
