"""What is refused of policies, and of what compactions are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from compaction_chats import WAYS, Scribe, compact, fresh, tell

from holdfast import InvalidInput
from holdfast.prompt.window import (
    Compaction,
    LastN,
    SummaryBuffer,
)
from tables import each


def test_of_a_policy_without_summaries_nothing_is_summarised() -> None:
    chat = fresh()
    tell(chat, 300)
    assert len(chat.window(policy=LastN(1_000)).messages) == 300
    wrong: Any = LastN(1_000)
    with pytest.raises(InvalidInput, match=r"does not say how to compact.*Use Lossless or SummaryBuf"):
        chat.compact(policy=wrong)
    with pytest.raises(InvalidInput, match="does not say how to compact"):
        chat.needs_compaction(policy=wrong)


NO_SHARES: list[object] = [0, 1.01, 75, float("nan"), True]
WRONG: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    *((SummaryBuffer, {name: no}, "fraction") for name in ("threshold", "target") for no in NO_SHARES),
    *((Compaction, {name: no}, "fraction") for name in ("threshold", "target", "tail") for no in NO_SHARES),
    *((SummaryBuffer, {name: -1}, "") for name in ("budget", "keep")),
    *((Compaction, {name: -1}, "") for name in ("seconds", "patience", "spend", "turns", "calls", "passes")),
    *((Compaction, {name: 0}, "Pass 1 or more") for name in ("leaf_source", "leaf_target")),
    *((Compaction, {"fan_in": value}, "") for value in [(1, 4), (8, 1), (8,)]),
    (Compaction, {"target": 0.9}, "Lower the target"),
    (Compaction, {"seconds": float("nan")}, ""),
    (Compaction, {"pressed": 1}, ""),
]


@each(("make", "options", "what"), WRONG)
def test_a_wrong_policy_is_refused(
    make: Callable[..., object], options: dict[str, object], what: str
) -> None:
    with pytest.raises(InvalidInput, match=what or None):
        make(**options)


@each(
    ("options", "what"),
    [
        ({"llm": "nope:model"}, ""),
        ({"policy": LastN()}, "Use Lossless or SummaryBuffer"),
        ({"prompts": {"observe": "v1"}}, r"Unknown prompt 'observe'. Use one of leaf, condensed, arc."),
        ({"prompts": {"leaf": "v99"}}, "has no version 'v99'"),
        ({"prompts": []}, "Pass a dict of versions by name: leaf, condensed, arc."),
    ],
)
def test_a_wrong_argument_is_refused_before_anything(options: dict[str, Any], what: str) -> None:
    chat = fresh()
    tell(chat, 40)
    for way in WAYS:
        with pytest.raises(InvalidInput, match=what or None):
            compact(way, chat, **({"llm": Scribe()} | options))
    with pytest.raises(InvalidInput, match="fraction"):
        chat.needs_compaction(threshold=75)
    assert chat.tree() == []
