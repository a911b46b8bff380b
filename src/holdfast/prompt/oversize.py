"""Placeholders for results of tools that are too large to be shown again, in turns that are over.

The words stay in the log. The placeholder says how many tokens they take, how they begin, and how to
read them; it answers the same call, so that a model takes it as the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.messages.anthropic import sent_parts
from holdfast.messages.formats import texts_of
from holdfast.messages.media import media_tokens
from holdfast.messages.message_tokens import message_tokens
from holdfast.safety.guard import mask
from holdfast.text.references import write_reference
from holdfast.text.shorten import shorten_line
from holdfast.types.messages import flags_like

if TYPE_CHECKING:
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Message

# Of the budget, as of a leaf: a larger result is too large whatever a policy says.
SHARE = 1 / 8
# What is read of a result: enough that no credential in what is shown of it is cut or lacks its surroundings.
_READ = re.compile(r"[\s\S]{0,2000}\S{0,6000}")

Shorten = Callable[["Message", int], "Message"]
"""Return a message with placeholders in place of its results that take more than so many tokens."""


@dataclass(frozen=True, slots=True)
class Oversize:
    """Which results are placeholders: those of over `limit` tokens, older than what is kept.

    Kept are what was said from the newest user message on, the newest `keep` messages, and the newest `turns`
    turns as far as `cap` tokens. How far a window goes is measured by what was so before the newest `fresh`
    tokens were said.
    """

    limit: int
    shorten: Shorten
    fresh: int = 0
    keep: int = 0
    turns: int = 0
    cap: int = 0

    def keeping(self, keep: int, turns: int = 0, cap: int = 0) -> Oversize:
        """Return the same for a window that keeps this."""
        return replace(self, keep=keep, turns=turns, cap=cap)

    def shorten_groups(
        self, groups: Iterable[list[Message]], originals: dict[int, Message]
    ) -> Iterator[list[Message]]:
        """Yield the groups of messages, newest first, with placeholders.

        `originals` gets what they stand for, by seq.
        """
        tokens = -self.fresh
        count = users = 0
        for group in groups:
            tokens += sum([message.tokens for message in group])
            if self.fresh and tokens <= 0:
                yield group
                continue
            is_kept = count < self.keep or (users < self.turns and tokens <= self.cap)
            count += len(group)
            for place, message in enumerate(group):
                if message.role == "user":
                    users += 1
                elif users and not is_kept and message.tokens > self.limit and message.role == "tool":
                    group[place] = self._shortened(message, originals)
            yield group

    def _shortened(self, message: Message, originals: dict[int, Message]) -> Message:
        if message.seq in originals:
            return message
        short = self.shorten(message, self.limit)
        if short.tokens >= message.tokens:
            return message
        originals[message.seq] = message
        return short


@dataclass(frozen=True, slots=True)
class Placeholders:
    """A writer of placeholders for results in a chat.

    `count` counts tokens, `images` tells whether images are sent, and `expand` whether the model has this
    tool.
    """

    chat: str
    count: CountTokens
    images: bool = True
    expand: bool = False

    def __call__(self, message: Message, limit: int) -> Message:
        """Return the message with placeholders in place of its results that take more than `limit` tokens.

        What else is in the message stays: a user may have said something beside the results of several calls.
        """
        parts, flags = sent_parts(message), flags_like(message)
        if any(_is_result(part) for part in parts):
            written = [self._part(message, part, limit) for part in parts]
            content = texts_of(written)
            short = replace(message, content=content, raw=_with_content(message.raw, written), flags=flags)
        else:
            text = self._text(message, message.content, message.tokens)
            short = replace(message, content=text, raw=_with_content(message.raw, text), flags=flags)
        return replace(short, tokens=message_tokens(short, self.count, images=self.images), flags=flags)

    def _part(self, message: Message, part: object, limit: int) -> object:
        if not isinstance(part, Mapping) or not _is_result(part):
            return part
        text = texts_of([part])
        tokens = self.count(text) + (media_tokens({"content": [part]}, self.count) if self.images else 0)
        return {**part, "content": self._text(message, text, tokens)} if tokens > limit else part

    def _text(self, message: Message, text: str, tokens: int) -> str:
        reference = write_reference(self.chat, message.seq)
        how = f"`expand` with the id {reference} gives it" if self.expand else f"it is message {reference}"
        begins = _beginning(text)
        said = f"This result of {tokens:,} tokens is not shown again; {how}."
        return f"[{said} It begins:]\n{begins}" if begins else f"[{said}]"


def _beginning(text: str) -> str:
    """Return the first words of a result on one line, credentials masked before anything is cut."""
    # The rules take 50 ms to load.
    from holdfast.text.message_text import PREVIEW, readable

    head = _READ.match(text)
    return shorten_line(readable(mask(head[0])), PREVIEW) if head else ""


def _is_result(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "tool_result"


def _with_content(raw: Mapping[str, object] | None, content: object) -> Mapping[str, object] | None:
    """Return a payload of any format with other content."""
    if raw is None:
        return None
    # A line of the log of another program wraps the payload.
    if isinstance(inner := raw.get("message"), Mapping):
        return {**raw, "message": _with_content(inner, content)}
    key = "content" if "content" in raw else "output"
    return {**raw, key: content} if key in raw else raw
