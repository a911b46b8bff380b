"""What stops a compaction: limits, and models that fail; and what its account says of it."""

from __future__ import annotations

from typing import Any

import pytest
from compaction_chats import (
    WAYS,
    AsyncScribe,
    Scribe,
    buffer,
    compact,
    cost,
    failing,
    fresh,
    in_turn,
    policy,
    tell,
)
from tree_checks import Policy, check_tree

from holdfast import ModelFailed
from tables import each

BUFFER = buffer()
BOXES = "Cranes lifted boxes to piers."


# Limits, each of which says so


@each("way", WAYS)
@each(
    ("spend", "answer"),
    [(600, BOXES), (1_500, BOXES), (3_000, BOXES), (3_000, "Cranes lifted some more boxes. " * 40)],
)
def test_it_spends_no_more_than_it_may(way: str, spend: int, answer: str) -> None:
    chat = fresh()
    tell(chat, 60)
    result = compact(way, chat, AsyncScribe(answer), spend=spend)
    # Nobody knows an answer to be so long before it is there.
    overrun = (4 if way == "awaited" else 1) * len(answer) // 4 if len(answer) > 100 else 0
    assert result.prompt_tokens + result.answer_tokens - overrun <= spend
    assert result.why == f"The limit of {spend:,} tokens for the model allows no further summary."
    assert (spend >= 1_500) is bool(result.calls) is not result.noop


# The account


@each("way", WAYS)
def test_an_account_is_true_and_told_after_each_summary(way: str) -> None:
    chat = fresh()
    tell(chat, 60)
    told: list[tuple[Any, int]] = []
    scribe = AsyncScribe(in_turn("far too long. " * 500, "Cranes.", "Cranes lifted boxes."))
    result = compact(
        way, chat, scribe, fan_in=(3, 2), progress=lambda so_far: told.append((so_far, len(chat.tree())))
    )
    assert result.calls == len(scribe.prompts)
    assert result.prompt_tokens == sum(map(cost, scribe.prompts))
    assert result.answer_tokens == 1_750 + 2 + 5 * (result.calls - 2)
    assert [one.level for one in result.summaries].count("aggressive") == 1
    assert {one.model for one in result.summaries} == {"AsyncScribe"}
    assert all(len(so_far.summaries) == stored for so_far, stored in told)
    asked = [so_far.why for so_far, _ in told if so_far.why]
    assert asked[0].startswith("AsyncScribe summarises messages c#1-")
    for name in ("calls", "prompt_tokens", "answer_tokens", "messages", "seconds"):
        values = [*(getattr(so_far, name) for so_far, _ in told), getattr(result, name)]
        assert values == sorted(values)
    assert {so_far.tokens_before for so_far, _ in told} == {result.tokens_before} == {3_000}


# What fails


class RateLimitError(Exception):
    status_code = 429


class AuthenticationError(Exception):
    status_code = 401


@each(
    ("how", "at", "error", "reason"),
    [
        (policy(), 1, ConnectionError, "unavailable"),
        (policy(), 2, TimeoutError, "timeout"),
        (policy(), 3, RateLimitError, "quota"),
        (BUFFER, 1, AuthenticationError, "authentication"),
        (BUFFER, 2, ConnectionError, "unavailable"),
    ],
)
def test_when_the_model_fails_nothing_is_stored_by_halves(
    how: Policy, at: int, error: type[Exception], reason: str
) -> None:
    chat = fresh()
    tell(chat, 40)
    if how is BUFFER:
        chat.compact(llm=Scribe(), policy=how)
        tell(chat, 20, first=41)
    before = chat.window(policy=how), chat.stats(), chat.tree()
    with pytest.raises(ModelFailed) as caught:
        chat.compact(full=True, llm=failing(at, error=error), policy=how)
    stored = len(chat.tree()) - len(before[2])
    assert caught.value.reason == reason
    assert isinstance(caught.value.__cause__, Exception)
    many = "1 summary was" if stored == 1 else f"{stored} summaries were"
    assert caught.value.what.endswith(f" {many} stored before.") is bool(stored)
    assert stored or (chat.window(policy=how), chat.stats(), chat.tree()) == before
    assert stored == at - 1 or how is BUFFER
    check_tree(chat)
    assert not chat.compact(full=True, llm=Scribe(), policy=how).noop, "it is tried again"
