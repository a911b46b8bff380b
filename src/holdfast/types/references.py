"""References to messages in text: `chat#seq` or `chat#first-last`, in another space `space|chat#seq`."""

import re
from typing import NamedTuple

from holdfast.types.checks import MAX_COUNT
from holdfast.types.scope import Scope, scope_of

IN_SPACE = "|"  # between the name of a space and the reference of what is there

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


def split_space(text: str, scope: Scope) -> tuple[str, str]:
    """Return a reference without the space that it begins with, and that space; "" for none that is read.

    The own one is a beginning only where several are: without projects and `reads`, chats may be named so.

    >>> split_space("user|monday#3", Scope(user="ada", project="shop"))
    ('monday#3', '/ada')
    """
    name, _, rest = text.partition(IN_SPACE)
    others = scope.spaces if scope.is_layered else scope.spaces[1:]
    space = next((other for other in others if rest and scope.reference(other) == name), "")
    return rest if space else text, space


def noted(reference: str, space: str, scope: Scope) -> str:
    """Return a reference as `Message.shown` has it: to a message of another space, with the name of that one.

    It is named as seen from the space of the scope: to others of a team, "user" is somebody else. The id of a
    record is one of all spaces.

    >>> noted("monday#3", "/ada", Scope(user="ada", project="shop"))
    'user|monday#3'
    """
    if space in ("", scope.space) or read_reference(reference) is None:
        return reference
    return f"{scope_of(scope.space).reference(space)}{IN_SPACE}{reference}"
