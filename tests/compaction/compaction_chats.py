"""Sessions of known size to compact, models that remember what they were asked, and single summaries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from handles import memory_of
from holdfast import Chat, CompactionResult, Hit, Memory, Message, Summary
from holdfast.prompt.window import Compaction, Lossless, SummaryBuffer

START = datetime(2025, 3, 1, 9, tzinfo=UTC)
PATIENCE = 30  # seconds until a test that hangs says so
WAYS = ["called", "awaited"]
_FILLER = "Then it rests for a while. "


@pytest.fixture
def chat() -> Iterator[Chat]:
    """Return an empty chat, for modules that assign it to a name of theirs."""
    with Memory(":memory:", user="ada", admin=True) as memory:
        yield memory.chat("c")


def fresh() -> Chat:
    """Open a chat of its own, for a row of a table."""
    return Memory(":memory:", user="ada", admin=True).chat("c")


def words(n: int, tokens: int) -> str:
    """Write a text that is a message of exactly so many tokens."""
    size = 4 * (tokens - 4)
    text = f"Crane{n} lifts box{n} to pier{n}. " + _FILLER * (size // len(_FILLER) + 1)
    return text[: size - 1] + "."


def cost(text: str) -> int:
    """Count the tokens of a text as a memory does without a counter of one's own."""
    with Memory(":memory:") as memory:
        return memory.chat("c").append(Message("user", text)).tokens - 4 if text.strip() else 0


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


class AsyncScribe(Scribe):
    async def __call__(self, prompt: str) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().__call__(prompt)


def in_turn(*answers: str) -> Callable[[str], str]:
    """Answer one after the other, and then the last again and again."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def failing(*at: int, error: type[BaseException] = ConnectionError) -> Scribe:
    """Be a model that fails at some of its calls, counted from 1."""

    def answer(_: str) -> str:
        if len(scribe.prompts) in at:
            raise error
        return "Cranes lifted boxes to piers."

    scribe = Scribe(answer)
    return scribe


def lossless(budget: int, **options: Any) -> Lossless:
    """Make a policy of its own budget and options."""
    return Lossless(budget, Compaction(**options))


def policy(budget: int = 1_000, **options: Any) -> Lossless:
    """Make a policy under which leaves are small: of four messages of 50 tokens."""
    # What a leaf may take of such a budget, so that its source is not scaled down.
    small: dict[str, Any] = {"turns": 1, "tail": 0.1, "leaf_source": 200, "leaf_target": max(64, budget // 8)}
    return lossless(budget, **(small | {"fan_in": (8, 4), "calls": 1_000} | options))


def buffer(budget: int = 1_000, **options: Any) -> SummaryBuffer:
    """Make the policy of one summary that grows."""
    return SummaryBuffer(budget, **options)


def section(prompt: str, tag: str) -> str:
    """Give what stands between two tags of a prompt; both must be there once, each on its own line."""
    lines = prompt.splitlines()
    assert lines.count(f"<{tag}>") == lines.count(f"</{tag}>") == 1, prompt
    return "\n".join(lines[lines.index(f"<{tag}>") + 1 : lines.index(f"</{tag}>")])


def seqs(messages: Iterable[Message | Hit]) -> list[int]:
    return [message.seq for message in messages]


def leaves(chat: Chat) -> list[Summary]:
    return [one for one in chat.tree() if one.kind == "leaf"]


def depths(chat: Chat) -> set[int]:
    return {one.depth for one in chat.tree()}


def compact(way: str, chat: Chat, llm: Any, **options: Any) -> CompactionResult:
    """Compact a session fully, in one way or the other; options of no compaction are those of the call."""
    own = {"full", "progress", "prompts", "policy"} & options.keys()
    how = policy(**{name: value for name, value in options.items() if name not in own})
    arguments = {"full": True, "llm": llm, "policy": how} | {name: options[name] for name in own}
    if way == "called":
        return chat.compact(**arguments)

    async def main() -> CompactionResult:
        async with asyncio.timeout(PATIENCE):
            return await memory_of(chat).aio.chat(chat.id).compact(**arguments)

    return asyncio.run(main())


# Single summaries, within a target


class Counter:
    """Count tokens, but far too many while a test stores a source, so that it is worth a summary."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count, self.most = count, 100_000

    def __call__(self, text: str) -> int:
        is_more = self.most == 100_000 or (self.most and text.startswith("<summary"))
        return self.most if is_more else self._count(text)


def in_quarters(text: str) -> int:
    return (len(text) + 3) // 4


def summary(*messages: Message, target: int = 200, count: Callable[[str], int] = in_quarters) -> str:
    """Return the summary without a model of a session that is one leaf, of `target` tokens at most."""
    counter = Counter(count)
    with Memory(":memory:", count_tokens=counter) as memory:
        chat = memory.chat("c")
        chat.append(messages)
        answered = {answer for message in chat.history() for answer in message.answers}
        waiting = {call.id for message in messages for call in message.calls} - answered
        chat.append([Message("tool", "ok", call_id=call) for call in sorted(waiting)]) if waiting else None
        counter.most = 0
        how = Compaction(0.01, 0.01, turns=0, keep=0, leaf_source=10**9, leaf_target=target)
        chat.compact(full=True, policy=Lossless(8 * target, how))
        (leaf,) = chat.tree()
        assert leaf.messages == len(chat.history())
        return leaf.text


def condensed(*texts: str, target: int = 500) -> str:
    """Return the summary without a model of summaries that say this."""
    counter = Counter(in_quarters)
    with Memory(":memory:", count_tokens=counter) as memory:
        chat = memory.chat("c")
        chat.append([Message("user", text) for text in texts])
        counter.most = 10_000
        how = Compaction(0.001, 0.001, turns=0, keep=0, leaf_source=1, leaf_target=10**6, pressed=99)
        chat.compact(full=True, llm=Scribe(in_turn(*texts)), policy=Lossless(10**7, how))
        assert [one.text for one in chat.tree()] == list(texts)
        counter.most = 0
        how = Compaction(1.0, 1.0, turns=0, keep=0, condensed_target=target, pressed=len(texts))
        chat.compact(full=True, policy=Lossless(8 * target, how))
        return chat.tree()[-1].text


def summarised_again(
    messages: Sequence[Message], *texts: str, target: int, count: Callable[[str], int]
) -> tuple[str, str]:
    """Return the summary without a model of messages, as `summary` does, and of it with those of more texts.

    Whatever the summaries say, no model says it again: of an answer what is harmful, or says nothing, goes.
    """
    counter = Counter(count)
    with Memory(":memory:", count_tokens=counter) as memory:
        chat = memory.chat("c")
        how = Compaction(0.001, 0.001, turns=0, keep=0, leaf_source=10**9, leaf_target=target, pressed=99)
        for said in (messages, *([Message("user", text)] for text in texts)):
            counter.most = 100_000
            chat.append(said)
            counter.most = 10_000
            chat.compact(full=True, policy=Lossless(10**7, how))
        leaves = chat.tree()
        assert [one.depth for one in leaves] == [0] * (1 + len(texts))
        counter.most = 0
        how = Compaction(1.0, 1.0, turns=0, keep=0, condensed_target=target, pressed=len(leaves))
        chat.compact(full=True, policy=Lossless(8 * target, how))
        top = chat.tree()[-1]
        assert (top.depth, top.messages) == (1, len(messages) + len(texts))
        return leaves[0].text, top.text
