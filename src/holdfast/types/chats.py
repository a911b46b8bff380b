"""Data on a chat as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ChatStats:
    """Counts of a chat.

    `stored_tokens` are those of all its messages, `context_tokens` those of what stands for them in a window.
    `erased` messages are not among them; their numbers are not used again. `summarised` messages, the oldest,
    have summaries that stand for them. `aside` messages are on other branches only, and in no other number.
    `info` describes the chat, None for an unknown one.
    """

    messages: int = 0
    stored_tokens: int = 0
    context_tokens: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    erased: int = 0
    summarised: int = 0
    aside: int = 0
    info: ChatInfo | None = field(default=None, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a chat: the `messages` from its first one to the one with the seq `head`, 0 for none.

    `shared` is the last message that another branch has as well, 0 for none; `text` is how the one after it
    begins, credentials masked. `newest` is the latest time of the messages, and `is_current` whether the chat
    goes on here.
    """

    chat: str
    head: int
    messages: int
    shared: int
    newest: datetime | None
    text: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class ChatInfo:
    """A chat in a list; `oldest` and `newest` are the times of its messages.

    `created` is when its first message was stored, None where a salvage lost that. `space` names its space
    in a list of the chats of all users.
    """

    id: str
    title: str
    agent: str
    user: str
    archived: bool
    messages: int
    tokens: int
    oldest: datetime
    newest: datetime
    created: datetime | None = None
    channel: str = ""
    meta: Mapping[str, object] = field(default_factory=dict, hash=False)
    space: str = ""
