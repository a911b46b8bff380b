"""References to messages in text: `chat#seq`, or `chat#first-last`."""

import re
from typing import NamedTuple

from holdfast.types import MAX_COUNT

_NUMBERS = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")


class Reference(NamedTuple):
    """Messages of a chat from the first `seq` to the last; `chat` is "" where only numbers were written."""

    chat: str
    first: int
    last: int


def write_reference(chat: str, first: int, last: int | None = None) -> str:
    """Return the reference to one message of a chat, or to a range of them.

    >>> write_reference("monday", 3), write_reference("monday", 3, 7)
    ('monday#3', 'monday#3-7')
    """
    return f"{chat}#{first}" if last in (None, first) else f"{chat}#{first}-{last}"


def read_reference(text: str) -> Reference | None:
    """Return a reference as it was written; None for other text. A chat may have a # in its name.

    >>> read_reference("team#2#3-7"), read_reference("3"), read_reference("monday")
    (Reference(chat='team#2', first=3, last=7), Reference(chat='', first=3, last=3), None)
    """
    chat, _, numbers = text.rpartition("#")
    if not (written := _NUMBERS.fullmatch(numbers)):
        return None
    first, last = int(written[1]), int(written[2] or written[1])
    return Reference(chat, first, last) if 1 <= first <= last <= MAX_COUNT else None
