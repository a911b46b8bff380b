"""Make a prompt of what is known, the window of a session, and what was recalled, within one token budget.

What changes least stands first, because providers cache a prompt as far as it begins like an earlier one: the system
text, then the session as it was, and only before the newest user message what was recalled for it.
"""

from __future__ import annotations

import math
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.messages.anthropic import INSTRUCTIONS, alternate, to_anthropic
from holdfast.messages.openai import to_openai
from holdfast.prompt.recall_block import fit, write
from holdfast.prompt.summary_block import summary_message
from holdfast.prompt.window_selection import NO_RESULT, UNKNOWN_CALL
from holdfast.text.tokens import MESSAGE_OVERHEAD, estimate_tokens
from holdfast.types import MAX_COUNT, Prompt, check_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.prompt.cache_prefix import Fingerprint
    from holdfast.prompt.recall_block import Block, Entry
    from holdfast.prompt.window import Select
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Hit, Message, Window

# Of the room, for the live conversation beside what was recalled: the least and the most; and between them the room's
# part of so many tokens, because what recall adds falls from hit to hit.
CONVERSATION = (1 / 4, 1 / 2)
_ROOMY = 16_000
# Of the room, that summaries take of that: a leaf, which has an eighth at most, and its frame.
SUMMARIES = 1 / 7
LEAST = 1 / 8  # of the budget that the recent messages get in any case
STEP = 1 / 8  # of the budget, in which the start of a long conversation moves: most turns leave it in place
_PAUSE = timedelta(hours=6)  # of silence, after which a conversation is a new one, as recall has it


class Part(NamedTuple):
    """One message of a prompt: a hash of what it is made of, its tokens, its text for a model, and whose it is."""

    identity: int
    tokens: int
    item: dict[str, object]
    role: str


class _Shape(NamedTuple):
    """Say how messages are written."""

    images: bool = True
    anthropic: bool = False

    def write(self, message: Message, *, thinking: bool) -> list[dict[str, object]]:
        """Write a message; `thinking` where it belongs to the turn that goes on, of which Anthropic wants its reasoning back."""
        if not self.anthropic:
            return to_openai(message, images=self.images)
        if message.role in INSTRUCTIONS:
            return []
        return to_anthropic(message, images=self.images, thinking=thinking)


def build(
    select: Select,
    hits: Sequence[Hit],
    *,
    chat: str,
    budget: int = 8_000,
    system: str = "",
    known: str = "",
    share: float | None = None,
    masked: bool = True,
    expand: bool = False,
    count: CountTokens = estimate_tokens,
    unchanged: Callable[[Fingerprint], int] = lambda _: 0,
    images: bool = True,
    anthropic: bool = False,
) -> Prompt:
    """Make the prompt for the next turn of `chat`.

    `select` makes the window for a number of tokens, and `hits` are what was recalled, best first. `system` comes
    first in the system text, unchanged, and then `known`, what every prompt says. The window keeps a turn that goes on
    whole and the rest of the live conversation, back to the last pause, with the newest summaries, as far as this leaves
    `share` (0 to 1) of the room; None for what hits are worth: three quarters of up to 4,000 tokens, falling to half of
    8,000. Then as many hits follow as fit, and if all do, summaries and older messages take what is left. Without hits it has all of the
    room, but that its start moves in steps. A turn that is in the
    window is not repeated. The total exceeds the budget only when `system`, `known` and the part of the window that
    is always kept do, and then nothing is recalled. Credentials in summaries are `masked`, and with
    `expand` they name this tool.

    `tokens["known"]` and `tokens["recalled"]` are the cost of these two parts and `tokens["system"]` that of all other
    system text, and `tokens["room"]` what those leave to the session and to what was recalled. `unchanged` is given the fingerprint of the prompt, and its answer is `tokens["unchanged"]`. Calls
    `select` a few times. Without `images`, placeholders stand for all that is not text. The messages have OpenAI's form,
    or with `anthropic` that of Anthropic, in which the system messages of the window end the system text.

    Raises:
        InvalidInput: `budget` is not an int of 0 or more, or `share` is not between 0 and 1.

    """
    check_count(budget, "budget")
    if share is not None and not 0 <= share <= 1:
        raise InvalidInput(f"`share` is {share}.", "Pass a fraction between 0 and 1.")
    text = "\n\n".join(part for part in (system, known) if part)
    reserved = _cost(text, count)
    room = max(0, budget - reserved)
    most = conversation(room) if share is None else int(room * (1 - share))
    entries, recalled, window = _settle(select, hits, chat, room, most, count)
    spent = MESSAGE_OVERHEAD + count(recalled) if recalled else 0
    shown = min(_cost(known, count), reserved)  # parts are rounded up, and together must be the whole
    total = reserved + spent + window.tokens
    told = [one for one in window.messages if anthropic and one.role in INSTRUCTIONS]
    text = "\n\n".join(part for part in (text, *(one.content for one in told)) if part)
    shape = _Shape(images, anthropic)
    parts = _with_recalled(_parts(window, shape, masked=masked, expand=expand), recalled, spent)
    first = (hash((text, anthropic)), reserved + sum(one.tokens for one in told))
    fingerprint = (first, *((part.identity, part.tokens) for part in parts))
    account = {
        "system": reserved - shown,
        "known": shown,
        "recalled": spent,
        "window": window.tokens,
        "total": total,
        "unchanged": unchanged(fingerprint),
        "budget": budget,
        "room": room,
        "free": max(0, budget - total),
        "over": max(0, total - budget),
    }
    found = tuple(entry.hit for entry in entries)
    items = (part.item for part in parts)
    return Prompt(text, list(alternate(items) if anthropic else items), window, found, account)


# How the budget is split ----------------------------------------------------------------------------------------------


def conversation(room: int) -> int:
    """Return the tokens that the live conversation may take of `room` tokens, where there is enough to recall."""
    least, most = CONVERSATION
    return int(room * min(most, max(least, room / _ROOMY)))


def _settle(
    select: Select,
    hits: Sequence[Hit],
    chat: str,
    room: int,
    most: int,
    count: CountTokens,
) -> tuple[Sequence[Entry], str, Window]:
    """Choose what was recalled and the window for `room` tokens, so that nothing is in both."""
    if hits:
        tail = _tail(select, room, most)
        block = fit(_unseen(hits, chat, tail), chat, room - tail.tokens - MESSAGE_OVERHEAD, count)
        entries, text, window = block.entries, block.text, tail
        if block.complete:
            fresh = _fresh(tail, most, room)
            entries, text, window = _grown(select, block, tail, chat, room, count, fresh)
        if entries:
            places = {id(hit): place for place, hit in enumerate(hits)}
            return sorted(entries, key=lambda entry: places[id(entry.hit)]), text, window
    return (), "", _alone(select, room)


def _alone(select: Select, room: int) -> Window:
    """Give the window of a prompt that recalls nothing: all that fits, but for what lets its start move in steps."""
    window = select(room)
    fits = not window.shortened or _total(window) <= room
    if (_is_whole(window) and fits) or window.over_budget:
        return window
    reach = max(_stepped(window, room, room), _open_turn(window.messages))
    return select(reach, MAX_COUNT, _fresh(window, room, room))


def _grown(
    select: Select, block: Block, tail: Window, chat: str, room: int, count: CountTokens, fresh: int
) -> tuple[tuple[Entry, ...], str, Window]:
    """Give the window what all the recalled turns leave, and drop those that it then shows."""
    entries, text = block.entries, block.text
    while entries:
        left = room - MESSAGE_OVERHEAD - count(text)
        window = _wider(select, tail, left, room, fresh)
        if window is tail or window.tokens > left:
            return block.entries, block.text, tail
        unseen = {id(hit) for hit in _unseen([entry.hit for entry in entries], chat, window)}
        if len(unseen) == len(entries):
            return entries, text, window
        entries = tuple(entry for entry in entries if id(entry.hit) in unseen)
        text = write(entries)
    return (), "", _alone(select, room)


def _wider(select: Select, tail: Window, left: int, room: int, fresh: int) -> Window:
    """Give a window for what is left: all that stands for the session, else one whose start moves in steps."""
    if tail.summaries and _is_whole(whole := select(left)):
        return whole
    reach = _stepped(tail, left, room)
    return tail if reach <= tail.tokens else select(reach, int(room * SUMMARIES), fresh)


def _tail(select: Select, room: int, most: int) -> Window:
    """Give the window that is kept whatever was recalled.

    It is all of a session that is short enough; else its newest summaries, and after them what was said since a pause,
    else a part whose start moves in steps: all begin with the same message from turn to turn. The turn that goes on is
    whole in any case.
    """
    summaries = int(room * SUMMARIES)
    near = select(most, summaries)
    if _is_whole(near) and not near.shortened:
        return near
    gist = sum(one.tokens for one in near.summaries)
    turn = _open_turn(near.messages) or _open_turn(select(room, summaries).messages)
    if not turn and _goes_on(near.messages):
        # A turn longer than the room: what was done last is worth more to it than what was said long ago.
        most = max(most, int(room * CONVERSATION[1]))
    if since_pause := _since_pause(near.messages, int(room * LEAST)):
        return select(gist + max(since_pause, turn), summaries)
    return select(max(_stepped(near, most, room), gist + turn), summaries, _fresh(near, most, room))


def _is_whole(window: Window) -> bool:
    """Say whether nothing is left out of a session but tool use that no model accepts."""
    return all(one.why in (NO_RESULT, UNKNOWN_CALL) for one in window.omitted)


def _open_turn(messages: Sequence[Message]) -> int:
    """Count the tokens since the newest user message, that included; 0 if there is none, or it has been answered."""
    tokens = 0
    for message in reversed(messages) if _goes_on(messages) else ():
        tokens += message.tokens
        if message.role == "user":
            return tokens
    return 0


def _goes_on(messages: Sequence[Message]) -> bool:
    """Return whether the newest message is no answer."""
    return bool(messages) and (messages[-1].role != "assistant" or bool(messages[-1].calls))


def _since_pause(messages: Sequence[Message], least: int) -> int:
    """Count the tokens since the newest pause that leaves at least `least`; 0 if there is none."""
    tokens = 0
    for place in range(len(messages) - 1, 0, -1):
        tokens += messages[place].tokens
        if tokens >= least and _paused(messages[place - 1], messages[place]):
            return tokens
    return 0


def _paused(before: Message, after: Message) -> bool:
    return before.at is not None and after.at is not None and abs(after.at - before.at) > _PAUSE


def _stepped(window: Window, most: int, room: int) -> int:
    """Count the tokens from a place of the session to its end: at most `most`, and the place is a multiple of a step.

    That is from its beginning where it fits. What is left out as broken is in the totals of the session, but not in
    what a window costs.
    """
    broken = sum(one.tokens for one in window.omitted if one.why in (NO_RESULT, UNKNOWN_CALL))
    steps = math.ceil(max(0, _total(window) - most) / _step(room))
    return max(0, _total(window) - steps * _step(room) - broken)


def _fresh(window: Window, most: int, room: int) -> int:
    """Count the tokens that were said since the start of a window of `most` tokens last moved."""
    beyond = _total(window) - most
    return (beyond - 1) % _step(room) + 1 if beyond > 0 else 0


def _step(room: int) -> int:
    return max(1, int(room * STEP))


def _total(window: Window) -> int:
    """Count the tokens of a whole session, of which summaries stand for a part."""
    left_out = sum(one.tokens for one in window.omitted)
    return window.tokens + left_out + sum(one.saved for one in window.shortened)


def _unseen(hits: Iterable[Hit], chat: str, window: Window) -> list[Hit]:
    """Leave out the hits that the window shows, and those that are there twice."""
    there = {message.seq for message in window.messages} - {one.seq for one in window.shortened}
    seen: set[tuple[str, str, int | str]] = {("message", chat, seq) for seq in there}
    unseen = []
    for hit in hits:
        key = ("message", hit.chat, hit.seq) if hit.source == "message" else ("record", "", hit.id)
        if key not in seen:
            seen.add(key)
            unseen.append(hit)
    return unseen


def _cost(text: str, count: CountTokens) -> int:
    return count(text) if text else 0


# What is sent ---------------------------------------------------------------------------------------------------------


def to_chat(messages: Iterable[Message]) -> tuple[dict[str, object], ...]:
    """Write messages in the OpenAI chat format, in their order, but each result of a call right behind the call.

    Models reject anything between the two, and a log can have it: parallel calls as separate messages, or a user who
    writes while a tool runs.
    """
    return tuple(part.item for part in _written(tuple(messages), _Shape()))


def _written(messages: Sequence[Message], shape: _Shape) -> Iterable[Part]:
    blocks: list[list[Part]] = []
    calls: dict[object, list[Part]] = {}
    newest_user = max((place for place, one in enumerate(messages) if one.role == "user"), default=-1)
    for place, message in enumerate(messages):
        tokens = message.tokens
        for number, item in enumerate(shape.write(message, thinking=place > newest_user)):
            joined = calls.get(_answered(item))
            if joined is None:
                blocks.append(joined := [])
            blocks_in_it = len(content) if isinstance(content := item["content"], list) else 0
            identity = hash((message.seq, message.id, number, blocks_in_it))
            joined.append(Part(identity, tokens, item, message.role))
            calls.update((call.id, joined) for call in message.calls)
            tokens = 0  # all that it costs is counted with the first
    return chain.from_iterable(blocks)


def _answered(item: dict[str, object]) -> object:
    """Return the id of the call that an item answers."""
    content = item["content"]
    block = content[0] if isinstance(content, list) else item
    return item.get("tool_call_id") or block.get("tool_use_id")


def _parts(window: Window, shape: _Shape, *, masked: bool, expand: bool) -> list[Part]:
    summaries = [
        Part(
            hash((one.id, one.last, one.tokens, expand)),
            one.tokens,
            summary_message(one, masked=masked, expand=expand),
            "summary",
        )
        for one in window.summaries
    ]
    return [*summaries, *_written(window.messages, shape)]


def _with_recalled(parts: list[Part], recalled: str, tokens: int) -> list[Part]:
    """Put what was recalled before the newest user message, which no call and its result are around; else before all.

    Summaries stay first: what changes least.
    """
    if not recalled:
        return parts
    users = (place for place in range(len(parts) - 1, -1, -1) if parts[place].role == "user")
    first = sum(part.role == "summary" for part in parts)
    message: dict[str, object] = {"role": "user", "content": recalled}
    place = next(users, first)
    return [*parts[:place], Part(hash(recalled), tokens, message, "recalled"), *parts[place:]]
