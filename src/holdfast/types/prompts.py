"""Windows and prompts, and the receipts of prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.types.hits import Hit
from holdfast.types.messages import Message
from holdfast.types.reprs import brief
from holdfast.types.summaries import Summary


@dataclass(frozen=True, slots=True)
class Omission:
    """Messages that a window leaves out: how many, the first and the last `seq`, their tokens, and why."""

    messages: int
    first: int
    last: int
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class Shortened:
    """A message that a window replaces by a placeholder: its `seq`, its tokens, and those saved."""

    seq: int
    tokens: int
    saved: int


@dataclass(frozen=True, slots=True)
class Window:
    """What the model will see of a chat, oldest first: summaries, then the messages that follow them.

    `tokens` is what both cost. It exceeds `budget` only when the part that is always kept does, and
    `over_budget` is then set. `budget` is None for a window that is limited by count. Of `messages`, those
    that are `shortened` have placeholders for content; the log has their words.
    """

    messages: tuple[Message, ...]
    summaries: tuple[Summary, ...]
    tokens: int
    budget: int | None
    omitted: tuple[Omission, ...]
    shortened: tuple[Shortened, ...] = ()

    __repr__ = brief

    @property
    def over_budget(self) -> bool:
        """Whether the part that is always kept was larger than the budget."""
        return self.budget is not None and self.tokens > self.budget


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt ready to be sent: system text, messages in a model's chat format, and the tokens of each part.

    `tokens` maps `system`, `known`, `recalled`, `window`, `total`, `budget` and `free` to token counts;
    `over` to what the total exceeds the budget by; `room` to what the budget leaves to the chat and to what
    was recalled, which is the budget to compact for; and `unchanged` to the tokens at its beginning that are
    those of the last prompt of this chat through the same open memory. `omitted` counts the records that had
    no room in the prompt, by kind and target, such as "fact/user": recall finds them. `degraded` is that of
    what was recalled (see `Hits`), and `recalled` the text of the message that shows it, "" for none.
    """

    system: str
    # Any: each client has typed dicts of its own for messages, and no other type passes for all of them; so a
    # type checker takes these for what OpenAI's and Anthropic's clients send, which are not imported.
    messages: list[Any] = field(hash=False)
    window: Window
    hits: tuple[Hit, ...]
    tokens: Mapping[str, int] = field(hash=False)
    omitted: Mapping[str, int] = field(default_factory=dict, hash=False)
    degraded: str | None = None
    recalled: str = ""

    __repr__ = brief


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an answered prompt was made of: names, numbers and digests, no words.

    `seq` is the message that answered it, `at` when the prompt was made. `version` is the snapshot that it
    showed, and `shared` the same of what the tenant shares. `policy` and `parameters` are how its window was
    chosen. `system` and `query` are the SHA-256 of these two texts, "" where there was none, or where the
    query was erased. `summaries` are the ids of those in its window; `hits` name what was recalled, as
    `Message.shown` does: records by their id, messages as `chat#seq` or, of another space, `space|chat#seq`.
    What was erased since in the space of the chat is no longer named.
    """

    seq: int
    at: datetime
    version: int
    shared: int
    budget: int
    policy: str
    parameters: Mapping[str, object] = field(hash=False)
    system: str
    query: str
    summaries: tuple[str, ...]
    hits: tuple[str, ...]
