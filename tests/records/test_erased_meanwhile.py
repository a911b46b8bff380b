"""Erasures between what a write reads and what it writes: it begins again, and what it reports is there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast import Memory, Record
from holdfast.dedup import merge
from holdfast.store import learned_texts


class Gap:
    """Stop the first call of a function when it has its answer, until something else is done."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._reached, self._passed = threading.Event(), threading.Event()

    def __call__(self, *given: Any, **named: Any) -> Any:
        answer = self._function(*given, **named)
        if not self._reached.is_set():
            self._reached.set()
            assert self._passed.wait(60)
        return answer

    def during(self, work: Callable[[], Any], between: Callable[[], object]) -> Any:
        """Do some work, and something else in the gap."""
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(work)
            assert self._reached.wait(60)
            try:
                between()
            finally:
                self._passed.set()
            return done.result()


def there(memory: Memory) -> list[Record]:
    assert memory.verify().ok
    return memory.records()


@pytest.mark.parametrize("text", ["The user resides in Berlin.", "User has moved to Lisbon"])
def test_what_a_text_repeats_or_replaces_is_erased(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    first = memory.remember("User lives in Berlin")
    gap = Gap(merge.relate)
    monkeypatch.setattr(merge, "relate", gap)
    stored = gap.during(lambda: memory.remember(text), lambda: memory.erase(record=first.id))
    assert (stored.action, stored.text) == ("add", text)
    assert there(memory) == [stored]


@pytest.mark.parametrize("erased", [True, False])
def test_what_was_learned_before_is_erased_or_learned_at_once(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, erased: bool
) -> None:
    def learn() -> Record:
        return memory.remember("The build needs pnpm", "finding", source="GOAL:build", by="reflect")

    first = learn() if erased else None
    gap = Gap(learned_texts.find)
    monkeypatch.setattr(learned_texts, "find", gap)
    stored = gap.during(learn, (lambda: memory.erase(record=first.id)) if first else learn)
    assert there(memory) == [stored]
    assert first is None or stored.id != first.id
