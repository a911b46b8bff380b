"""Placeholders for what is too large to be shown again: in turns that are over, or with its own turn.

The words stay in the log. The placeholder of a result says how many tokens it takes, how it begins, and how
to read it; it answers the same call, so that a model takes it as the result. Of what a user pasted, and of
an answer that takes half of a budget, the beginning and the end stay, around a line that says the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from holdfast.messages.anthropic import sent_parts
from holdfast.messages.formats import texts_of
from holdfast.messages.media import media, media_tokens
from holdfast.messages.message_tokens import message_tokens
from holdfast.safety.guard import mask
from holdfast.text.clean import each_text
from holdfast.text.shorten import shorten_line, shorten_middle
from holdfast.types import MAX_COUNT
from holdfast.types.messages import flags_like
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Message

# Of the budget, as of a leaf: a larger result is too large whatever a policy says.
SHARE = 1 / 8
# The same for what a model said or called, or a system message: it is shortened only where little else fits.
SAID = 1 / 2
# Words that people write by hand take fewer tokens: where a budget is small, they are no paste.
_PASTE = 250
# What is read of a result: enough that no credential in what is shown of it is cut or lacks its surroundings.
_AROUND = 8_000
_READ = re.compile(r"[\s\S]{0,2000}\S{0,6000}")

Shorten = Callable[["Message", int], "Message"]
"""Return a message with placeholders in place of what takes more than so many tokens."""


@dataclass(frozen=True, slots=True)
class Oversize:
    """Which messages are placeholders: those of over `limit` tokens, older than what is kept.

    Of what is neither a result nor from a user, those of over `said` tokens.

    Kept are what was said from the newest user message on, the newest `keep` messages, and the newest `turns`
    turns as far as `cap` tokens, but for the `lost` message: the request of a turn that does not fit with it.
    How far a window goes is measured by what was so before the newest `fresh` tokens were said.
    """

    limit: int
    shorten: Shorten
    fresh: int = 0
    keep: int = 0
    turns: int = 0
    cap: int = 0
    said: int = MAX_COUNT
    lost: int = 0

    def most(self, message: Message) -> int:
        """Return the tokens above which a message is a placeholder."""
        return self.limit if message.role in ("tool", "user") else self.said

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
        count = users = fresh_count = fresh_users = 0
        for group in groups:
            tokens += sum([message.tokens for message in group])
            if self.fresh and tokens <= 0:
                fresh_count += len(group)
                fresh_users += sum([message.role == "user" for message in group])
                yield group
                continue
            newer, turns = count, users
            count += len(group)
            for place, message in enumerate(group):
                # What fills a window was in none as it is, so that no start can be where it was.
                fills = message.tokens > self.said
                is_kept = newer + fills * fresh_count < self.keep or (
                    turns + fills * fresh_users < self.turns and tokens <= self.cap
                )
                is_over = users + fills * fresh_users and not is_kept
                if (is_over or message.seq == self.lost) and message.tokens > self.most(message):
                    group[place] = self._shortened(message, originals)
                users += message.role == "user"
            yield group

    def _shortened(self, message: Message, originals: dict[int, Message]) -> Message:
        if message.seq in originals:
            return message
        short = self.shorten(message, self.most(message))
        if short.tokens >= message.tokens:
            return message
        originals[message.seq] = message
        return short


@dataclass(frozen=True, slots=True)
class Placeholders:
    """A writer of placeholders for what is too large in a chat.

    `count` counts tokens, `images` tells whether images are sent, and `expand` whether the model has this
    tool.
    """

    chat: str
    count: CountTokens
    images: bool = True
    expand: bool = False

    def __call__(self, message: Message, limit: int) -> Message:
        """Return the message with placeholders in place of what takes more than `limit` tokens.

        What else is in the message stays: a user may have said something beside the results of several calls.
        Of a message that is no result, half of the limit stays, and its images; all of it, if its words take
        no more than the limit, or than a paste at least does.
        """
        if message.role != "tool":
            words = message_tokens(message, self.count, images=False)
            return self._cut(message, limit // 2) if words > max(limit, _PASTE) else message
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
        how = self._how(message)
        begins = _beginning(text)
        said = f"This result of {tokens:,} tokens is not shown again; {how}."
        return f"[{said} It begins:]\n{begins}" if begins else f"[{said}]"

    def _cut(self, message: Message, most: int) -> Message:
        """Return a message of which the beginning and the end stay, and so of each text in its calls."""
        said = f"most of this message of {message.tokens:,} tokens is not shown again"
        line = f"[… {said}; {self._how(message)} …]"

        def cut(text: str) -> str:
            # Two tokens a character are the most that is estimated.
            if 2 * len(text) <= most or self.count(text) <= most:
                return text
            return shorten_middle(_ends(text, most), most, self.count, line) or line

        calls = [
            replace(call, arguments=cast("Mapping[str, object] | str", each_text(call.arguments, cut)))
            for call in message.calls
        ]
        flags, parts = flags_like(message), sent_parts(message)
        if seen := [part for part in parts if any(media([part]))]:
            words = texts_of([part for part in parts if part not in seen])
            written: object = [{"type": "text", "text": cut(words)}, *seen]
            content = texts_of(written)
        else:
            written = content = cut(message.content)
        raw = _with_content(message.raw, written)
        short = replace(message, content=content, calls=tuple(calls), raw=raw, flags=flags)
        return replace(short, tokens=message_tokens(short, self.count, images=self.images), flags=flags)

    def _how(self, message: Message) -> str:
        reference = write_reference(self.chat, message.seq)
        return f"`expand` with the id {reference} gives it" if self.expand else f"it is message {reference}"


def _ends(text: str, most: int) -> str:
    """Return the two ends of a text, more than is shown of them, without credentials."""
    size = 8 * most + _AROUND
    if len(text) <= 2 * size:
        return mask(text)
    return f"{mask(text[:size])}{mask(text[-size:])}"


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
