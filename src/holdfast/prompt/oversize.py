"""Placeholders for what is too large to be shown again: in turns that are over, or that do not fit.

The words stay in the log. The placeholder of a result says how many tokens it takes, how it begins, and how
to read it; it answers the same call, so that a model takes it as the result. Of what a user pasted, and of
an answer that takes half of a budget, the beginning and the end stay, around a line that says the same; so
of the newest step of a turn, where this does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from holdfast.messages.anthropic import sent_parts
from holdfast.messages.formats import texts_of
from holdfast.messages.media import media, media_tokens
from holdfast.messages.message_tokens import message_tokens
from holdfast.safety.guard import mask
from holdfast.text.clean import each_text
from holdfast.text.shorten import shorten_line, shorten_middle
from holdfast.types import MAX_COUNT, Message
from holdfast.types.messages import flags_like
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.text.tokens import CountTokens

# Of the budget, as of a leaf: a larger result is too large whatever a policy says.
SHARE = 1 / 8
# The same for what a model said or called, or a system message: it is shortened only where little else fits.
SAID = 1 / 2
# Words that people write by hand take fewer tokens: where a budget is small, they are no paste.
_PASTE = 250
# What is read of a result: enough that no credential in what is shown of it is cut or lacks its surroundings.
_AROUND = 8_000
_READ = re.compile(r"[\s\S]{0,2000}\S{0,6000}")


class Shorten(Protocol):
    """A function that shortens messages."""

    def __call__(self, message: Message, limit: int, /, *, fit: bool = False) -> Message:
        """Return a message with placeholders in place of what takes more than `limit` tokens.

        With `fit` the beginning and the end of each text stay, as much as fits `limit` tokens.
        """


@dataclass(frozen=True, slots=True)
class Oversize:
    """Which messages are placeholders: those of over `limit` tokens, older than what is kept.

    Of what is neither a result nor from a user, those of over `said` tokens.

    Kept are what was said from the newest user message on, the newest `keep` messages, and the newest `turns`
    turns as far as `cap` tokens. What a window does not guarantee is kept only while it fits with all that
    was said since, and not again once this became a placeholder. How far a window goes is measured by what
    was so before the newest `fresh` tokens were said.
    """

    limit: int
    shorten: Shorten
    fresh: int = 0
    keep: int = 0
    turns: int = 0
    cap: int = 0
    said: int = MAX_COUNT

    def most(self, message: Message) -> int:
        """Return the tokens above which a message is a placeholder."""
        return self.limit if message.role in ("tool", "user") else self.said

    def shortest(self, request: Message, *, fit: bool = False) -> Message:
        """Return a request as it is shown where it lacks room for its turn, to `fit` if it is large."""
        fit = fit and request.tokens > self.said
        return min(request, self.shorten(request, self.limit, fit=fit), key=lambda message: message.tokens)

    def is_any_large(self, groups: Iterable[list[Message]], room: int) -> bool:
        """Return whether a message or a step may have to be shortened in a window of `room` tokens."""
        costs = [[message.tokens for message in group] for group in groups]
        return any(max(cost) > self.limit or sum(cost) > min(self.said, room) for cost in costs)

    def shorten_groups(
        self, groups: Iterable[list[Message]], originals: dict[int, Message], room: int, guaranteed: int
    ) -> Iterator[list[Message]]:
        """Yield the groups of messages, newest first, with placeholders.

        `originals` gets what they stand for, by seq. The window has `room` tokens, and its newest
        `guaranteed` messages whatever they cost; where that is one, its step is made to fit.
        """
        spent = count = users = 0
        for number, group in enumerate(groups):
            spent += sum([message.tokens for message in group])
            if self.fresh and spent <= self.fresh:
                yield group
                continue
            is_turn_kept = users < self.turns and spent - self.fresh <= self.cap
            is_kept = is_turn_kept or count < self.keep
            # The newest message is there, but only words of a user stay whole whatever they cost.
            is_whole = guaranteed > 1 or group[0].role == "user"
            lacks_room = spent > room and not (is_turn_kept or (is_whole and count < guaranteed))
            if lacks_room and not number:
                # Less than half: no window begins with its turn to leave out all that is older.
                self._fit(group, min(self.said - self.limit, room), originals)
            elif lacks_room or (users and not is_kept):
                for place, message in enumerate(group):
                    if message.tokens > self.most(message) and message.seq not in originals:
                        group[place] = self._put_placeholder(message, self.most(message), originals)
                if lacks_room and sum([message.tokens for message in group]) > self.said:
                    self._fit(group, self.limit, originals)
            count += len(group)
            users += sum([message.role == "user" for message in group])
            yield group

    def _fit(self, group: list[Message], room: int, originals: dict[int, Message]) -> None:
        """Shorten the largest messages of a step so that it fits, each to the same size."""
        places = sorted(range(len(group)), key=lambda place: group[place].tokens)
        for left, place in zip(range(len(group), 0, -1), places, strict=True):
            if group[place].tokens > room // left:
                group[place] = self._put_placeholder(group[place], room // left, originals, fit=True)
            room = max(0, room - group[place].tokens)

    def _put_placeholder(
        self, message: Message, limit: int, originals: dict[int, Message], *, fit: bool = False
    ) -> Message:
        original = originals.get(message.seq, message)
        short = self.shorten(original, limit, fit=fit)
        if short.tokens >= message.tokens:
            return message
        originals[message.seq] = original
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

    def __call__(self, message: Message, limit: int, /, *, fit: bool = False) -> Message:
        """Return the message with placeholders in place of what takes more than `limit` tokens.

        What else is in the message stays: a user may have said something beside the results of several calls.
        Of a message that is no result, half of the limit stays, and its images; all of it, if its words take
        no more than the limit, or than a paste at least does. To `fit`, of every text the beginning and the
        end stay, and the message takes at most the limit, if its texts are what it takes more.
        """
        if fit:
            most = limit
            while (short := self._cut(message, most, "")).tokens > limit and most > 0:
                most = min(most - 1, most * limit // short.tokens)
            return short
        if message.role != "tool":
            words = message_tokens(message, self.count, images=False)
            return self._cut(message, limit // 2, " again") if words > max(limit, _PASTE) else message
        return self._with_results(message, limit, partial(self._text, message))

    def _with_results(self, message: Message, limit: int, write: Callable[[str, int], str]) -> Message:
        """Return a result with other texts; of several in one message those of more than `limit` tokens."""
        parts = sent_parts(message)
        if any(_is_result(part) for part in parts):
            return self._with_content(message, [self._part(part, limit, write) for part in parts])
        return self._with_content(message, write(message.content, message.tokens))

    def _with_content(self, message: Message, written: object, **changes: Any) -> Message:
        """Return a message with other content, a text or parts, and other changes, counted anew."""
        content = written if isinstance(written, str) else texts_of(written)
        changes |= {"content": content, "raw": _with_content(message.raw, written)}
        changes["flags"] = flags_like(message)
        tokens = message_tokens(replace(message, **changes), self.count, images=self.images)
        return replace(message, tokens=tokens, **changes)

    def _part(self, part: object, limit: int, write: Callable[[str, int], str]) -> object:
        if not isinstance(part, Mapping) or not _is_result(part):
            return part
        text = texts_of([part])
        tokens = self.count(text) + (media_tokens({"content": [part]}, self.count) if self.images else 0)
        return {**part, "content": write(text, tokens)} if tokens > limit else part

    def _text(self, message: Message, text: str, tokens: int) -> str:
        begins = _beginning(text)
        said = f"This result of {tokens:,} tokens is not shown again; {self._how(message)}."
        return f"[{said} It begins:]\n{begins}" if begins else f"[{said}]"

    def _cut(self, message: Message, most: int, again: str) -> Message:
        """Return a message of which the beginning and the end stay, and so of each text in its calls."""
        said = f"most of this message of {message.tokens:,} tokens is not shown{again}"
        line = f"[… {said}; {self._how(message)} …]"

        def cut(text: str, _: int = 0) -> str:
            # Two tokens a character are the most that is estimated.
            if 2 * len(text) <= most or self.count(text) <= most:
                return text
            return shorten_middle(_ends(text, most), most, self.count, line) or line

        if message.role == "tool":
            return self._with_results(message, most, cut)
        calls = [
            replace(call, arguments=cast("Mapping[str, object] | str", each_text(call.arguments, cut)))
            for call in message.calls
        ]
        parts, written = sent_parts(message), list[object]()
        if seen := [part for part in parts if any(media([part]))]:
            words = texts_of([part for part in parts if part not in seen])
            written = [{"type": "text", "text": cut(words)}, *seen]
        return self._with_content(message, written or cut(message.content), calls=tuple(calls))

    def _how(self, message: Message) -> str:
        reference = write_reference(self.chat, message.seq)
        return f"`expand` with the id {reference} gives it" if self.expand else f"it is message {reference}"


def _ends(text: str, most: int) -> str:
    """Return the two ends of a text, more than is shown of them, without credentials."""
    size = 8 * most + _AROUND
    return mask(text) if len(text) <= 2 * size else f"{mask(text[:size])}{mask(text[-size:])}"


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
