"""The prompt: what is known, the window of a chat, and what was recalled, within one token budget.

What changes least stands first, because providers cache a prompt as far as it begins like an earlier one: the
system text, then the chat as it was, and only before the newest user message what was recalled for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from holdfast.errors import InvalidInput, shown
from holdfast.messages.anthropic import INSTRUCTIONS, alternate, to_anthropic
from holdfast.messages.openai import paired, to_openai
from holdfast.prompt.recall_block import RecallBlock, RecallEntry, fit, write
from holdfast.prompt.summary_block import summary_message
from holdfast.prompt.window_selection import NO_RESULT, UNKNOWN_CALL
from holdfast.safety.guard import Secrets, is_masked
from holdfast.text.shorten import shorten_middle
from holdfast.text.tokens import MESSAGE_OVERHEAD, CountTokens, estimate_tokens
from holdfast.types import MAX_COUNT, Hit, Message, Prompt, Window, check_count, check_flag
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.prompt.prompt_cache import Fingerprint
    from holdfast.prompt.selector import Select
    from holdfast.prompt.window import Policy

# The shares of the room for the live conversation beside the recall block: the least and the most. Between
# them the share is room / _ROOMY, because what recall adds falls from hit to hit.
CONVERSATION = (1 / 4, 1 / 2)
_ROOMY = 16_000
# The share of the room that summaries take of these: a leaf, of an eighth at most, and its frame.
SUMMARIES = 1 / 7
# The share of the room that recent messages get in any case.
LEAST = 1 / 8
# The share of the room by which the start of a long conversation moves: most turns leave it in place.
STEP = 1 / 8
# Silence after which a conversation is a new one, as for recall.
_PAUSE = timedelta(hours=6)


class PromptPart(NamedTuple):
    """One message of a prompt: a hash of its source, its tokens, its payload, and its role."""

    identity: int
    tokens: int
    item: dict[str, object]
    role: str


Images = Literal["keep", "placeholder"]
Format = Literal["openai", "anthropic"]


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """How a prompt is assembled, checked; see `PromptMaker.prompt`."""

    system: str = ""
    limit: int | None = None
    policy: Policy | None = None
    images: Images = "keep"
    secrets: Secrets = "mask"
    format: Format = "openai"
    strict: bool = False
    expand: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.system, str):
            raise InvalidInput(f"`system` must be text, not {type(self.system).__name__}.", "Pass a string.")
        if self.limit is not None:
            check_count(self.limit, "limit")
        for name, choices in (("images", get_args(Images)), ("format", get_args(Format))):
            if (value := getattr(self, name)) not in choices:
                raise InvalidInput(f"`{name}` is {shown(value)}.", f"Use one of {', '.join(choices)}.")
        is_masked(self.secrets)
        check_flag(self.strict, "strict")
        check_flag(self.expand, "expand")

    def write(self, message: Message, *, thinking: bool) -> list[dict[str, object]]:
        """Return a message as it is sent.

        `thinking` is set for a message of the turn that goes on, of which Anthropic wants its reasoning back.
        """
        images = self.images == "keep"
        if self.format == "openai":
            return to_openai(message, images=images)
        return [] if message.role in INSTRUCTIONS else to_anthropic(message, images=images, thinking=thinking)


DEFAULTS = PromptOptions()


def build(
    select: Select,
    hits: Sequence[Hit],
    *,
    chat: str,
    budget: int,
    options: PromptOptions = DEFAULTS,
    space: str = "",
    known: str = "",
    named: bool = False,
    count: CountTokens = estimate_tokens,
    unchanged: Callable[[Fingerprint], int] = lambda _: 0,
    instructions: Callable[[int], Message | None] = lambda _: None,
) -> Prompt:
    """Return the prompt for the next turn of `chat`.

    `chat` is one of the space that hits name as `space`. `select` makes the window for a number of tokens and
    is called a few times; `hits` are what was recalled, best first, `named` by their spaces where several are
    read. The `system` of the options comes first in the system text, then `known`, the knowledge block; in
    Anthropic's form, the system messages of the window end it. Behind `system` stands what `instructions`
    returns for the seq that the window begins with. The total exceeds the budget only when `system`, `known`
    and the part of the window that is always kept do, and then nothing is recalled. `unchanged` returns
    `tokens["unchanged"]` for a fingerprint.
    """
    system, is_anthropic = options.system, options.format == "anthropic"
    room = max(0, check_count(budget, "budget") - _cost(_text(system, known), count))
    division = _Division(select, (space, chat), room, count, named=named)
    words, division, entries, recalled, window = division.divide(hits, system, instructions)
    system = _text(system, words)
    reserved = _cost(_text(system, known), count)
    spent = MESSAGE_OVERHEAD + count(recalled) if recalled else 0
    shown = [message for message in window.messages if is_anthropic and message.role in INSTRUCTIONS]
    text = _text(system, known, *(message.content for message in shown))
    parts = [*_summaries(window, options), *_messages(window.messages, options)]
    parts = _with_recalled(parts, recalled, spent)
    first = (hash((text, is_anthropic)), reserved + sum(message.tokens for message in shown))
    cached = unchanged((first, *((part.identity, part.tokens) for part in parts)))
    # Parts are rounded up, and together must be the whole.
    known_tokens = min(_cost(known, count), reserved)
    costs = {"system": reserved - known_tokens, "known": known_tokens, "recalled": spent}
    tokens = _account({**costs, "window": window.tokens}, cached, budget, division.room)
    messages = (alternate if is_anthropic else paired)(part.item for part in parts)
    return Prompt(text, [*messages], window, tuple(entry.hit for entry in entries), tokens, recalled=recalled)


def _text(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _account(parts: dict[str, int], unchanged: int, budget: int, room: int) -> dict[str, int]:
    total = sum(parts.values())
    return {
        **parts,
        "total": total,
        "unchanged": unchanged,
        "budget": budget,
        "room": room,
        "free": max(0, budget - total),
        "over": max(0, total - budget),
    }


# How the budget is split ------------------------------------------------------------------------------------


def conversation(room: int) -> int:
    """Return the tokens of `room` that the live conversation may take beside the recall block."""
    least, most = CONVERSATION
    return int(room * min(most, max(least, room / _ROOMY)))


class _Division:
    """The division of `room` tokens between the window of a chat and the recall block.

    Nothing is in both. The window keeps a turn that goes on whole and the rest of the live conversation, back
    to the last pause, with the newest summaries, as far as this leaves what hits are worth: three quarters of
    up to 4,000 tokens, falling to half of 8,000. Then as many hits follow as fit, and if all do, summaries
    and older messages take what is left. Without hits it has all of the room, but that its start moves in
    steps.
    """

    def __init__(
        self, select: Select, chat: tuple[str, str], room: int, count: CountTokens, *, named: bool
    ) -> None:
        self._select, self._chat, self.room, self._count = select, chat, room, count
        self._named = named
        self._step = max(1, int(room * STEP))
        self._summaries = int(room * SUMMARIES)

    def of(self, hits: Sequence[Hit]) -> tuple[Sequence[RecallEntry], str, Window]:
        """Return the entries of the recall block, its text, and the window."""
        if hits:
            most = conversation(self.room)
            tail = self._tail(most)
            left = self.room - tail.tokens - MESSAGE_OVERHEAD
            unseen = self._unseen(hits, tail)
            block = fit(unseen, self._chat, left, self._count, named=self._named)
            entries, text, window = block.entries, block.text, tail
            if block.complete:
                entries, text, window = self._grow(block, tail, self._since_step(tail, most))
            if entries:
                ranks = {id(hit): rank for rank, hit in enumerate(hits)}
                return sorted(entries, key=lambda entry: ranks[id(entry.hit)]), text, window
        return (), "", self._alone()

    def divide(
        self, hits: Sequence[Hit], system: str, instructions: Callable[[int], Message | None]
    ) -> tuple[str, _Division, Sequence[RecallEntry], str, Window]:
        """Return the instructions before the window, and the division of what they leave as in `of`.

        There are none where they are in the window or in `system`. They take half of the room at most; what
        the window keeps in any case goes first.
        """
        parts = self.of(hits)
        lost = instructions(parts[-1].messages[0].seq) if parts[-1].messages else None
        shown = (message.content for message in parts[-1].messages if message.role in INSTRUCTIONS)
        if lost is None or lost.content in system or lost.content in shown:
            return "", self, *parts
        most = min(self.room // 2, self.room - self._select(0).tokens) - self._count("\n\n")
        reference = write_reference(self._chat[1], lost.seq)
        line = f"[… the rest of these instructions is in message {reference} …]"
        fits = self._count(lost.content) <= most
        words = lost.content if fits else shorten_middle(lost.content, most, self._count, line)
        left = max(0, self.room - self._count(f"{words}\n\n"))
        rest = _Division(self._select, self._chat, left, self._count, named=self._named)
        return words, rest, *rest.of(hits)

    def _alone(self) -> Window:
        """Return the window of a prompt without hits: all that fits, but its start moves in steps."""
        window = self._select(self.room)
        if _is_whole(window) or window.over_budget:
            return window
        reach = max(self._step_reach(window, self.room), _newest_turn(window.messages, window.messages))
        return self._select(reach, MAX_COUNT, self._since_step(window, self.room))

    def _grow(
        self, block: RecallBlock, tail: Window, fresh: int
    ) -> tuple[tuple[RecallEntry, ...], str, Window]:
        """Return entries, text and a window of what all hits leave, without the entries that it shows."""
        entries, text = block.entries, block.text
        while entries:
            left = self.room - MESSAGE_OVERHEAD - self._count(text)
            window = self._widen(tail, left, fresh)
            if window is tail or window.tokens > left:
                return block.entries, block.text, tail
            unseen = {id(hit) for hit in self._unseen([entry.hit for entry in entries], window)}
            if len(unseen) == len(entries):
                return entries, text, window
            entries = tuple(entry for entry in entries if id(entry.hit) in unseen)
            text = write(entries)
        # A prompt without hits may begin later than the window that shows them all.
        if self._unseen([entry.hit for entry in block.entries], self._alone()):
            return block.entries, block.text, tail
        return (), "", tail

    def _widen(self, tail: Window, left: int, fresh: int) -> Window:
        """Return a window of at most `left` tokens: the whole chat, else one whose start moves in steps."""
        if tail.summaries and _is_whole(whole := self._select(left)):
            return whole
        reach = self._step_reach(tail, left)
        return tail if reach <= tail.tokens else self._select(reach, self._summaries, fresh)

    def _tail(self, most: int) -> Window:
        """Return the window that is kept whatever was recalled.

        It is all of a chat that is short enough; else its newest summaries, and after them what was said
        since a pause, else a part whose start moves in steps: all begin with the same message from turn to
        turn. The turn that goes on is whole in any case.
        """
        near = self._select(most, self._summaries)
        if _is_whole(near) and not near.shortened:
            return near
        summaries = sum(summary.tokens for summary in near.summaries)
        turn = _open_turn(near.messages)
        if near.shortened or not turn or len(near.messages) < 2:
            has_request = any(message.role == "user" for message in near.messages)
            shown = near if has_request else self._select(self.room // 2, self._summaries)
            is_answered = near.messages and not _goes_on(near.messages)
            # Of a turn that goes on the whole room counts, which is read for it alone.
            whole = near if is_answered else self._select(self.room, self._summaries)
            turn = _newest_turn(shown.messages, whole.messages)
        if not turn and _goes_on(near.messages):
            # A turn longer than the room: what was done last is worth more to it than what was said long ago.
            most = max(most, int(self.room * CONVERSATION[1]))
        if since_pause := _since_pause(near.messages, int(self.room * LEAST)):
            return self._select(summaries + max(since_pause, turn), self._summaries)
        reach = max(self._step_reach(near, most), summaries + turn)
        return self._select(reach, self._summaries, self._since_step(near, most))

    def _step_reach(self, window: Window, most: int) -> int:
        """Count the tokens from a multiple of a step to the end of the chat, at most `most`.

        That is from its beginning where it fits. What is left out as broken is in the totals of the chat, but
        not in what a window costs.
        """
        broken = sum(gap.tokens for gap in window.omitted if gap.why in (NO_RESULT, UNKNOWN_CALL))
        steps = max(0, math.ceil((_total(window) - most) / self._step) - broken // self._step)
        return max(0, _total(window) - steps * self._step - broken)

    def _since_step(self, window: Window, most: int) -> int:
        """Count the tokens that were said since the start of a window of `most` tokens last moved."""
        beyond = _total(window) - most
        return (beyond - 1) % self._step + 1 if beyond > 0 else 0

    def _unseen(self, hits: Iterable[Hit], window: Window) -> list[Hit]:
        """Return the hits that the window does not show, each once."""
        shown = {message.seq for message in window.messages} - {short.seq for short in window.shortened}
        # The same id in two spaces is two chats.
        seen: set[tuple[str, str, str, int | str]] = {("message", *self._chat, seq) for seq in shown}
        unseen = []
        for hit in hits:
            place = (hit.chat, hit.seq) if hit.source == "message" else ("", hit.id)
            key = ("message" if hit.source == "message" else "record", hit.space, *place)
            if key not in seen:
                seen.add(key)
                unseen.append(hit)
        return unseen


def _is_whole(window: Window) -> bool:
    """Return whether nothing is left out of a chat but tool use that no model accepts."""
    return all(gap.why in (NO_RESULT, UNKNOWN_CALL) for gap in window.omitted)


def _open_turn(messages: Sequence[Message]) -> int:
    """Count the tokens of the newest turn; 0 if there is none, or it has been answered.

    What a user says between a call and its result begins no turn.
    """
    tokens, waiting = 0, set[str]()
    for message in reversed(messages) if _goes_on(messages) else ():
        tokens += message.tokens
        waiting = waiting.union(message.answers).difference(call.id for call in message.calls)
        if message.role == "user" and not waiting:
            return tokens
    return 0


def _newest_turn(near: Sequence[Message], whole: Sequence[Message]) -> int:
    """Count the tokens of the newest turn that are always shown: all, or once it is answered both its ends.

    What is shown of those is what a window `near` shows, and of a turn that goes on what the `whole` room
    holds.
    """
    if _goes_on(whole):
        return _open_turn(whole)
    request = next((message.tokens for message in reversed(near) if message.role == "user"), 0)
    return request + sum([message.tokens for message in near[-1:]])


def _goes_on(messages: Sequence[Message]) -> bool:
    """Return whether the newest message is no answer."""
    return bool(messages) and (messages[-1].role != "assistant" or bool(messages[-1].calls))


def _since_pause(messages: Sequence[Message], least: int) -> int:
    """Count the tokens since the newest pause that leaves at least `least`; 0 if there is none."""
    tokens = 0
    for after, before in pairwise(reversed(messages)):
        tokens += after.tokens
        if tokens >= least and after.at and before.at and abs(after.at - before.at) > _PAUSE:
            return tokens
    return 0


def _total(window: Window) -> int:
    """Count the tokens of a whole chat, of which summaries stand for a part."""
    left_out = sum(gap.tokens for gap in window.omitted)
    return window.tokens + left_out + sum(short.saved for short in window.shortened)


def _cost(text: str, count: CountTokens) -> int:
    return count(text) if text else 0


# What is sent -----------------------------------------------------------------------------------------------


def _messages(messages: Sequence[Message], options: PromptOptions) -> Iterable[PromptPart]:
    """Yield the messages of a prompt, each result of a call right behind the call.

    Models reject anything between the two, and a log can have it: parallel calls as separate messages, or a
    user who writes while a tool runs.
    """
    groups: list[list[PromptPart]] = []
    calls: dict[object, list[PromptPart]] = {}
    newest_user = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    for place, message in enumerate(messages):
        for number, item in enumerate(options.write(message, thinking=place > newest_user)):
            group = calls.get(_call_of(item))
            if group is None:
                groups.append(group := [])
            blocks = len(content) if isinstance(content := item["content"], list) else 0
            key = hash((message.seq, message.id, number, blocks))
            # All that it costs is counted with the first.
            group.append(PromptPart(key, 0 if number else message.tokens, item, message.role))
            calls.update((call.id, group) for call in message.calls)
    return chain.from_iterable(groups)


def _call_of(item: dict[str, object]) -> object:
    """Return the id of the call that an item answers."""
    content = item["content"]
    block = content[0] if isinstance(content, list) else item
    return item.get("tool_call_id") or block.get("tool_use_id")


def _summaries(window: Window, options: PromptOptions) -> Iterator[PromptPart]:
    expand, masked = options.expand, is_masked(options.secrets)
    for summary in window.summaries:
        item = summary_message(summary, masked=masked, expand=expand)
        key = hash((summary.id, summary.last, summary.tokens, expand))
        yield PromptPart(key, summary.tokens, item, "summary")


def _with_recalled(parts: list[PromptPart], recalled: str, tokens: int) -> list[PromptPart]:
    """Put the recall block before the newest user message, or before all messages.

    It never stands between a call and its result. Summaries stay first: what changes least.
    """
    if not recalled:
        return parts
    users = (place for place in range(len(parts) - 1, -1, -1) if parts[place].role == "user")
    place = next(users, sum(part.role == "summary" for part in parts))
    part = PromptPart(hash(recalled), tokens, {"role": "user", "content": recalled}, "recalled")
    return [*parts[:place], part, *parts[place:]]
