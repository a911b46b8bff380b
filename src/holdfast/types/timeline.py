"""What was said and learned, by day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

from holdfast.types.changes import Change


@dataclass(frozen=True, slots=True)
class ChatDay:
    """What was said in a chat on a day: from the message `first` to `last`, `messages` of them.

    `title` is that of the chat, `at` the time of the first message, and `said` the beginnings of what the
    user asked for that day, each on a line; credentials are masked.
    """

    chat: str
    title: str
    agent: str
    at: datetime
    first: int
    last: int
    messages: int
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimelineDay:
    """A day of a memory, in its zone: its chats by their first messages, and the changes of what is known."""

    day: date
    chats: tuple[ChatDay, ...]
    learned: tuple[Change, ...]


class Timeline(list[TimelineDay]):
    """A page of a timeline: days with something on them, the oldest first.

    `cursor` is where the next page begins, None at the end. A day may go on there.
    """

    __slots__ = ("cursor",)

    def __init__(self, days: Iterable[TimelineDay] = (), cursor: str | None = None) -> None:
        super().__init__(days)
        self.cursor = cursor
