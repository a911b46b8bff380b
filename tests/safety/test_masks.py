"""Masks: what is masked once is masked, other values keep their shape, and nothing is looked at in vain."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.safety import guard
from holdfast.safety.guard import mask, mask_values
from holdfast.types import Finding

KEY = "AKIAQ3EGRGB2M4XPIX5T"


SAID = f"The deploy user of the staging cluster has the key {KEY}, please use it."


MASKED = "The deploy user of the staging cluster has the key [redacted: AWS access key], please use it."


QUERY = "deploy user of the staging cluster"


def told(memory: Memory, text: str = SAID) -> None:
    memory.chat("monday").append(role="user", content=text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_masking_twice_changes_nothing(before: str, after: str) -> None:
    once = mask(f"{before} {KEY} {after}")
    assert KEY not in once
    assert mask(once) == once


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_values_without_one_stay_as_they_are_and_keep_their_shape(value: object) -> None:
    masked = mask_values(value)
    if "redacted" not in repr(masked):
        assert masked == value


def test_hits_that_were_not_flagged_are_not_looked_at(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.chat("monday").append(
        [{"role": "user", "content": f"The quokka {n} ate leaves."} for n in range(50)]
    )
    looked: list[str] = []
    real = guard._find_secrets

    def find(text: str) -> list[Finding]:
        looked.append(text)
        return real(text)

    monkeypatch.setattr(guard, "_find_secrets", find)
    assert len(memory.recall("quokka", limit=50)) == 50
    assert looked == []
    told(memory)
    assert asdict(memory.recall(QUERY, limit=50)[0])["text"] == MASKED
    assert set(looked) <= {SAID, MASKED}
