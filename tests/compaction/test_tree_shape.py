"""The shape of the summary tree: few parts, older ones in less detail, no more condensed than is needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from random import Random

import pytest
from compaction_chats import lossless
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tree_checks import check_tree

from holdfast import Chat, CompactionResult, Learning, Limit, Memory, Message, Summary
from soak import cases

LIMITLESS = {"calls": 10**6, "seconds": 1e6}
NOISE = 1.1 / 0.8  # between two summaries that a model filled as it may
SYLLABLES = "ba ko ri ten mal so ver lin dar pe gu nis tor em fal".split()


def sentences(words: int, random: Random) -> str:
    """Write so many words, nearly all of them new."""
    bits, made = random.getrandbits, []
    for n in range(words):
        # As `randint` and `choice` do, in a third of their time.
        while (length := bits(3)) > 3:
            pass
        word = ""
        for _ in range(length + 1):
            while (syllable := bits(4)) == 15:
                pass
            word += SYLLABLES[syllable]
        made.append(f"{word}." if n % 11 == 10 else word)
    return " ".join(made) + "."


def filling(low: float, high: float) -> Callable[[str], str]:
    """Be a model that fills a share of what it is asked for."""
    random = Random(1)

    def answer(prompt: str) -> str:
        asked = re.search(r"at most (\d+) tokens", prompt)
        assert asked
        size = int(4 * int(asked[1]) * random.uniform(low, high))
        return sentences(size // 4 + 10, random)[: size - 1] + "."

    return answer


# What share of what it is asked for a model fills; a new one for each session, so that each can be repeated.
MODELS = {"none": None, "fills": (0.8, 1.1), "is terse": (0.3, 0.3)}


def grown(
    chat: Chat, budget: int, words: tuple[int, int], every: int, model: str, fold: float = 8.0
) -> list[CompactionResult]:
    """Let a session grow to some times the budget, and compact it every so many turns, and in the end."""
    random, policy, done = Random(budget), lossless(budget, **LIMITLESS), list[CompactionResult]()
    shares = MODELS[model]
    llm = filling(*shares) if shares else None
    turns = 0
    while chat.stats().stored_tokens < fold * budget:
        said = [sentences(random.randint(*words), random) for _ in range(2)]
        chat.append([Message("user", said[0]), Message("assistant", said[1])])
        turns += 1
        if turns % every == 0:
            done.append(chat.compact(policy=policy, llm=llm))
            check_order(chat.window(10**9).summaries, model)
    done.append(chat.compact(full=True, policy=policy, llm=llm))
    check_order(chat.window(10**9).summaries, model)
    return [one for one in done if not one.noop]


def check_order(frontier: Iterable[Summary], model: str) -> None:
    """Check that what is older was condensed as often as what is newer, and stands in no more detail.

    What a leaf keeps is for its messages to say, and a model that fills less than it may keeps what it likes.
    """
    for older, newer in pairwise(frontier):
        assert older.depth >= newer.depth
        if older.depth and model != "is terse":
            assert detail(older) <= NOISE * detail(newer)


def detail(summary: Summary) -> float:
    return summary.tokens / summary.source_tokens


def parts_of(tree: Iterable[Summary]) -> Counter[str]:
    return Counter(one.parent for one in tree if one.parent)


def check_parts(chat: Chat, done: Iterable[CompactionResult]) -> None:
    named = {identity for one in done for identity in one.beyond}
    for identity, count in parts_of(chat.tree()).items():
        assert 2 <= count <= 8 or identity in named


def check_fill(chat: Chat, budget: int, done: Iterable[CompactionResult]) -> None:
    """Check that summaries and tail are 85 to 100 % of the target after each compaction, but for a part."""
    target = lossless(budget).compaction.target * budget
    leaves = [one.tokens for one in chat.tree() if not one.depth]
    one_piece = max([*leaves, *(message.tokens for message in chat.history())])
    for result in done:
        assert 0.85 * target - one_piece <= result.tokens_after <= target + one_piece


@pytest.mark.slow
@settings(max_examples=cases(3, 300), suppress_health_check=list(HealthCheck))
@example(budget=6_630, words=(413, 426), every=1, model="none")
@example(budget=6_630, words=(414, 435), every=1, model="fills")
@given(
    budget=st.integers(2_000, 32_000),
    words=st.tuples(st.integers(20, 600), st.integers(20, 600)).map(lambda two: (min(two), max(two))),
    every=st.sampled_from([1, 1, 3, 10**6]),
    model=st.sampled_from(sorted(MODELS)),
)
def test_what_is_older_is_in_less_detail_and_no_more_is_condensed_than_is_needed(
    budget: int, words: tuple[int, int], every: int, model: str
) -> None:
    with Memory(":memory:", user="ada", learning=Learning(limits={"": Limit()})) as memory:
        chat = memory.chat("c")
        done = grown(chat, budget, words, every, model)
        assert done
        check_parts(chat, done)
        if model != "is terse":
            check_fill(chat, budget, done)
        check_tree(chat)
        assert memory.verify().ok


@pytest.mark.slow
def test_no_summary_is_written_again_and_again(memory: Memory) -> None:
    chat, random, written = memory.chat("c"), Random(3), Counter[str]()
    for _ in range(300):
        chat.append([Message("user", sentences(150, random)), Message("assistant", sentences(150, random))])
        written.update(one.id for one in chat.compact(budget=8_000).summaries)
    assert max(parts_of(chat.tree()).values()) <= 8
    assert max(written.values()) <= 10
