"""How messages are referred to, wherever a person, a program or a model reads it: `chat#seq`, or `chat#first-last`."""

import re
from typing import NamedTuple

from holdfast.types import MAX_COUNT

_NUMBERS = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")


class Reference(NamedTuple):
    """Some messages of a chat, from the first `seq` to the last. `chat` is "" where only numbers were written."""

    chat: str
    first: int
    last: int


def write_reference(chat: str, first: int, last: int | None = None) -> str:
    """Write which message of a chat is meant, or which messages.

    >>> write_reference("monday", 3), write_reference("monday", 3, 7)
    ('monday#3', 'monday#3-7')
    """
    return f"{chat}#{first}" if last in (None, first) else f"{chat}#{first}-{last}"


def read_reference(text: str) -> Reference | None:
    """Read which messages are meant; None if the text is no reference. A chat may have a # in its own name.

    >>> read_reference("team#2#3-7"), read_reference("3"), read_reference("monday")
    (Reference(chat='team#2', first=3, last=7), Reference(chat='', first=3, last=3), None)
    """
    chat, _, numbers = text.rpartition("#")
    if not (written := _NUMBERS.fullmatch(numbers)):
        return None
    first, last = int(written[1]), int(written[2] or written[1])
    return Reference(chat, first, last) if 1 <= first <= last <= MAX_COUNT else None
