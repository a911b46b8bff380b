"""Sessions of known size to compact, and models that remember what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from handles import memory_of
from holdfast import CompactionResult, Memory, Message, Summary
from holdfast.aio import AsyncChat
from holdfast.chat import Chat
from holdfast.llm.model import LLM
from holdfast.prompt.window import Compaction, Lossless
from llm_server import Server

START = datetime(2025, 3, 1, 9, tzinfo=UTC)
_FILLER = "Then it rests for a while. "
PATIENCE = 30  # seconds until a test that hangs says so
WAYS = ["called", "awaited"]


@pytest.fixture
def chat() -> Iterator[Chat]:
    """Return an empty chat, for modules that assign it to a name of theirs."""
    with Memory(":memory:", user="ada", admin=True) as memory:
        yield memory.chat("c")


def words(n: int, tokens: int) -> str:
    """Write a text that is a message of exactly so many tokens."""
    size = 4 * (tokens - 4)
    text = f"Crane{n} lifts box{n} to pier{n}. " + _FILLER * (size // len(_FILLER) + 1)
    return text[: size - 1] + "."


def minute(n: int) -> datetime:
    return START + timedelta(minutes=n)


def tell(chat: Chat, count: int, tokens: int = 50, first: int = 1) -> list[Message]:
    """Append messages of a user and an assistant in turn; the one with the number n is said at minute n."""
    return chat.append(
        [
            Message("user" if n % 2 else "assistant", words(n, tokens), at=minute(n))
            for n in range(first, first + count)
        ]
    )


class Scribe:
    """Be a model: answer what `answer` makes of a prompt, or always the same, and keep the prompts."""

    def __init__(self, answer: Callable[[str], str] | str = "Cranes lifted boxes to piers.") -> None:
        self.answer = answer
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.answer if isinstance(self.answer, str) else self.answer(prompt)


def in_turn(*answers: str) -> Callable[[str], str]:
    """Answer one after the other, and then the last again and again."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def policy(
    budget: int = 1_000,
    *,
    threshold: float = 0.75,
    target: float = 0.6,
    turns: int = 1,
    tail: float = 0.1,
    keep: int = 1,
    leaf_source: int = 200,
    fan_in: tuple[int, int] = (8, 4),
    previous: int = 2,
    passes: int = 12,
    seconds: float = 120.0,
    patience: float = 60.0,
    calls: int = 1_000,
    spend: int | None = None,
) -> Lossless:
    """Make a policy under which leaves are small: of four messages of 50 tokens."""
    how = Compaction(
        threshold=threshold,
        target=target,
        turns=turns,
        tail=tail,
        keep=keep,
        leaf_source=leaf_source,
        leaf_target=max(
            64, budget // 8
        ),  # what a leaf may take of such a budget, so its source is not scaled down
        fan_in=fan_in,
        previous=previous,
        passes=passes,
        seconds=seconds,
        patience=patience,
        calls=calls,
        spend=spend,
    )
    return Lossless(budget, how)


def section(prompt: str, tag: str) -> str:
    """Give what stands between two tags of a prompt; both must be there once, each on its own line."""
    lines = prompt.splitlines()
    assert lines.count(f"<{tag}>") == lines.count(f"</{tag}>") == 1, prompt
    return "\n".join(lines[lines.index(f"<{tag}>") + 1 : lines.index(f"</{tag}>")])


def ranges(summaries: Iterable[Summary]) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in summaries]


def seqs(messages: Iterable[Message]) -> list[int]:
    return [message.seq for message in messages]


def leaves(chat: Chat) -> list[Summary]:
    return [one for one in chat.tree() if one.kind == "leaf"]


def check_tree(chat: Chat) -> None:
    """Check what holds of every tree of summaries, whatever was compacted how."""
    tree = {one.id: one for one in chat.tree()}
    assert len(tree) == len(chat.tree())
    history = chat.history()
    at_bottom = [one for one in tree.values() if one.depth == 0]
    covered = [seq for one in at_bottom for seq in range(one.first, one.last + 1)]
    assert covered == list(range(1, len(covered) + 1)), "each message is in one leaf, from the first on"
    for one in at_bottom:
        check_counts(one, [message for message in history if one.first <= message.seq <= one.last])
    for one in tree.values():
        parts = [part for part in tree.values() if part.parent == one.id]
        assert bool(parts) == (one.depth > 0)
        if parts:
            assert {part.depth for part in parts} == {one.depth - 1}
            assert (parts[0].first, parts[-1].last) == (one.first, one.last)
            assert all(left.last + 1 == right.first for left, right in pairwise(parts)), (
                "its parts are neighbours"
            )
            check_counts(one, [message for message in history if one.first <= message.seq <= one.last])
    frontier = sorted((one for one in tree.values() if not one.parent), key=lambda one: one.first)
    assert ranges(frontier) == ranges(chat.window(10**9).summaries)
    check_pairs(chat, [one.last for one in at_bottom])
    check_stats(chat, frontier, history[len(covered) :])


def check_counts(one: Summary, messages: Sequence[Message]) -> None:
    assert one.messages == len(messages)
    assert one.source_tokens == sum(message.tokens for message in messages)
    times = [message.at for message in messages if message.at]
    assert (one.since, one.until) == (min(times), max(times))
    assert one.text.strip()
    assert one.tokens > 0


def check_stats(chat: Chat, frontier: Sequence[Summary], rest: Sequence[Message]) -> None:
    stats = chat.stats()
    assert stats.summarised == sum(one.messages for one in frontier)
    assert stats.context_tokens == sum(one.tokens for one in frontier) + sum(one.tokens for one in rest)
    assert stats.stored_tokens == sum(message.tokens for message in chat.history())


def check_pairs(chat: Chat, ends: Sequence[int]) -> None:
    """Check that no leaf ends between a call and its result."""
    made: dict[str, int] = {}
    for message in chat.history():
        for call in message.answers:
            assert not any(made[call] <= end < message.seq for end in ends), (made[call], message.seq, ends)
        made.update((call.id, message.seq) for call in message.calls)


def awaited(chat: Chat) -> AsyncChat:
    return memory_of(chat).aio.chat(chat.id)


def compact(way: str, chat: Chat, llm: LLM, **options: Any) -> CompactionResult:
    """Compact a session fully, in one way or the other."""
    how = policy(**options)
    if way == "called":
        return chat.compact(full=True, llm=llm, policy=how)

    async def main() -> CompactionResult:
        async with asyncio.timeout(PATIENCE):
            return await awaited(chat).compact(full=True, llm=llm, policy=how)

    return asyncio.run(main())


class AsyncScribe(Scribe):
    async def __call__(self, prompt: str) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().__call__(prompt)


def served(server: Server) -> OpenAIChatModel:
    provider = OpenAIProvider(base_url=server.url, api_key="key")
    return OpenAIChatModel("served", provider=provider)
