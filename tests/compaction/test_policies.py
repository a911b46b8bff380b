"""Policies by their names, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from compaction_chats import WAYS, Scribe, compact, fresh, tell

from holdfast import InvalidInput
from holdfast.prompt.window import (
    Compaction,
    LastN,
    Lossless,
    Policy,
    SummaryBuffer,
    make_policy,
)
from tables import each


@each(
    ("name", "options", "expected"),
    [
        ("last_n", {}, LastN(20)),
        ("summary_buffer", {"budget": 100, "threshold": 0.9, "target": 0.5}, SummaryBuffer(100, 0.9, 0.5)),
        ("lossless", {"budget": 100}, Lossless(100)),
    ],
)
def test_a_policy_is_made_by_its_name(name: str, options: dict[str, float], expected: Policy) -> None:
    assert make_policy(name, **options) == expected


@each("options", [{}, {"name": None}, {"name": "none"}])
def test_without_a_name_all_messages_are_shown_and_nothing_is_summarised(options: dict[str, Any]) -> None:
    chat, showing_all = fresh(), make_policy(**options)
    tell(chat, 300)
    assert len(chat.window(policy=showing_all).messages) == 300
    wrong: Any = showing_all
    with pytest.raises(InvalidInput, match=r"does not say how to compact.*Use Lossless or SummaryBuf"):
        chat.compact(policy=wrong)
    with pytest.raises(InvalidInput, match="does not say how to compact"):
        chat.needs_compaction(policy=wrong)


NO_SHARES: list[object] = [0, 1.01, 75, float("nan"), True]
by_name: Callable[..., Policy] = make_policy
NAMES = "Use one of none, last_n, token_budget, fresh_tail, summary_buffer, lossless"
WRONG: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (by_name, {"name": "Lossless"}, NAMES),
    (by_name, {"name": "none", "n": 5}, ""),
    (by_name, {"name": "lossless", "threshold": 0.5}, ""),
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
