"""Checks of arguments: each returns the value that it accepts, or raises InvalidInput."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from datetime import MAXYEAR, UTC, datetime, timedelta, tzinfo
from typing import TypeGuard

from holdfast.errors import InvalidInput, shown

Time = datetime | str  # text is ISO 8601, such as 2026-01-31 or 2026-01-31T09:00; without an offset it is UTC
Range = tuple[int, int]  # the first and the last seq of some messages
MAX_COUNT = 2**62  # above every count, and within the integers of both databases
MAX_NAME = 512  # bytes in UTF-8 of a name: four of them fit the 2,704 of a row in a PostgreSQL index

_DURATION = re.compile(r"([0-9]{1,7})([hdw])", re.ASCII)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONGEST = timedelta(days=36_500)


def check_name(value: object, what: str, *, empty: bool = False, longest: int = MAX_NAME) -> str:
    """Return `value` if it can name something in both databases.

    A name is text of at most 512 bytes in UTF-8 without control characters or lone surrogates.

    Raises:
        InvalidInput: it is not a name, or blank where `empty` is not set.

    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}.", "Pass a string.")
    if not value.strip() and not (empty and value == ""):
        raise InvalidInput(f"{what} is blank.", "Give it at least one visible character.")
    if 4 * len(value) > longest and (size := len(value.encode("utf-8", "replace"))) > longest:
        raise InvalidInput(f"{what} has {size:,} bytes in UTF-8.", f"Use at most {longest:,}.")
    if not value.isprintable():
        for c in value:
            if ord(c) < 32 or 0xD800 <= ord(c) <= 0xDFFF or ord(c) == 127:
                raise InvalidInput(
                    f"{what} contains {c!r}, a control character or half a character.", "Remove it."
                )
    return value


def check_several(values: object, what: str, items: str = "texts") -> Iterable[object]:
    """Return the items of a list, or one text as a list of it.

    Raises:
        InvalidInput: it is neither.

    """
    if isinstance(values, str):
        return (values,)
    if not isinstance(values, Iterable) or isinstance(values, bytes):
        raise InvalidInput(f"`{what}` is {shown(values)}.", f"Pass one, or a list of {items}.")
    return values


def as_duration(value: object, what: str) -> timedelta | None:
    """Return a time that passes: a timedelta above 0, or text such as "12h", "180d" or "4w"; None stays None.

    Raises:
        InvalidInput: it is neither, or more than 36,500 days.

    """
    duration = value
    if isinstance(value, str) and (parts := _DURATION.fullmatch(value)):
        duration = int(parts[1]) * _UNITS[parts[2]]
    if duration is None or (isinstance(duration, timedelta) and timedelta(0) < duration <= _LONGEST):
        return duration
    raise InvalidInput(
        f"`{what}` is {shown(value)}.",
        f'Pass "12h", "180d", "4w" or a timedelta, up to {_LONGEST.days:,} days.',
    )


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether `value` is a whole number; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether `value` is a number; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def are_names(value: object, known: Container[str] | None = None) -> bool:
    """Return whether `value` is a tuple of strings, all of them known."""
    return isinstance(value, tuple) and all(
        isinstance(name, str) and (known is None or name in known) for name in value
    )


def check_count(value: object, what: str) -> int:
    """Return `value`, at most `MAX_COUNT`, if it is a whole number of 0 or more.

    Raises:
        InvalidInput: it is not.

    """
    if not is_whole(value):
        raise InvalidInput(
            f"`{what}` must be a whole number, not {type(value).__name__}.", "Pass an int of 0 or more."
        )
    if value < 0:
        raise InvalidInput(f"`{what}` is {shown(value)}, below zero.", "Pass 0 or more.")
    return min(value, MAX_COUNT)


def check_key(key: object) -> bytes:
    """Return the key of the checksums; empty for None.

    Raises:
        InvalidInput: it is not bytes, or fewer than 16 or more than 64.

    """
    if key is None:
        return b""
    if isinstance(key, bytes) and 16 <= len(key) <= 64:
        return key
    raise InvalidInput("`key` is not 16 to 64 bytes.", "Make one with os.urandom(32), and keep it elsewhere.")


def check_flag(value: object, what: str) -> bool:
    """Return `value` if it is True or False.

    Raises:
        InvalidInput: it is neither.

    """
    if not isinstance(value, bool):
        raise InvalidInput(f"`{what}` must be a bool, not {type(value).__name__}.", "Pass True or False.")
    return value


def as_time(value: object, what: str) -> datetime | None:
    """Return `value` as a time, as `to_time` does; None for None."""
    return None if value is None else to_time(value, what)


def to_time(value: object, what: str, zone: tzinfo = UTC, *, ends: bool = False) -> datetime:
    """Return `value`, a time or its text in ISO 8601, as a time; without an offset it is one of the zone.

    A day is its beginning or, where it `ends` something, the beginning of the next one.

    Raises:
        InvalidInput: it is neither.

    """
    try:
        time = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        time = value
    if not isinstance(time, datetime):
        raise InvalidInput(
            f"`{what}` is {shown(value)}, not a time.", "Pass a datetime, or text such as 2026-01-31T09:00."
        )
    time = time if time.tzinfo else time.replace(tzinfo=zone)
    is_day = ends and isinstance(value, str) and len(value.strip()) == len("2026-01-31")
    return time + timedelta(1) if is_day and time.year < MAXYEAR else time


def check_range(messages: object, chat: str) -> Range | None:
    """Return the first and the last `seq` of some messages of a chat; None for None.

    Raises:
        InvalidInput: `messages` is not a `seq`, or two in order, or there is no chat.

    """
    if messages is None:
        return None
    pair = (messages, messages) if isinstance(messages, int) else messages
    if not (
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and all(is_whole(number) for number in pair)
        and 1 <= pair[0] <= pair[1] <= MAX_COUNT
    ):
        raise InvalidInput(
            f"Invalid message range {shown(messages)}.",
            "Pass the `seq` of one message, or of the first and the last, in this order.",
        )
    if not chat:
        raise InvalidInput("A message range needs a chat.", "Pass chat= as well.")
    return (pair[0], pair[1])
