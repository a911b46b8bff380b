"""Filters on metadata in recall and lists: the same as a plain Python evaluator, on every database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Memory
from metadata import FILTERS, METADATA, passes
from soak import cases


def said(memory: Memory, where: dict[str, Any], source: str) -> set[str]:
    hits = memory.recall("invoice", where=where, limit=1_000, sources=[source])  # type: ignore[list-item]
    return {hit.text for hit in hits}


@settings(max_examples=cases(10, 120), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    metadata=st.lists(METADATA, min_size=1, max_size=8),
    of_chats=st.lists(METADATA, min_size=1, max_size=3),
    filters=st.lists(FILTERS, min_size=1, max_size=4),
)
def test_the_same_messages_are_found_as_by_a_plain_evaluator(
    app: Memory,
    metadata: Sequence[dict[str, Any]],
    of_chats: Sequence[dict[str, Any]],
    filters: Sequence[dict[str, Any]],
) -> None:
    memory = app.scoped(user=uuid4().hex)
    # A key with None is taken out of the metadata of a chat.
    labels = [{key: value for key, value in one.items() if value is not None} for one in of_chats]
    stored: list[tuple[str, dict[str, Any], int]] = []
    for round_ in range(2):
        for n, one in enumerate(metadata):
            chat, text = n % len(labels), f"invoice {round_} {n}"
            opened = memory.chat(f"chat {chat}", meta=labels[chat])
            opened.append([{"role": "user", "content": text, "meta": one}])
            stored.append((text, one, chat))
        for where in filters:
            expected = {text for text, one, chat in stored if passes(where, one, labels[chat])}
            assert said(memory, where, "message") == expected
    assert memory.verify().problems == ()


@pytest.mark.slow
@settings(max_examples=cases(10, 120), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    metadata=st.lists(METADATA, min_size=1, max_size=6),
    later=st.lists(METADATA, min_size=1, max_size=6),
    filters=st.lists(FILTERS, min_size=1, max_size=3),
)
def test_the_same_records_are_found_and_listed_now_and_at_an_earlier_version(
    app: Memory,
    metadata: Sequence[dict[str, Any]],
    later: Sequence[dict[str, Any]],
    filters: Sequence[dict[str, Any]],
) -> None:
    memory = app.scoped(user=uuid4().hex)
    records = {
        memory.remember(f"invoice {n}", kind="insight", merge=False, meta=one).id: one
        for n, one in enumerate(metadata)
    }
    before, version = dict(records), memory.version()
    for identity, changed in zip(list(records), later, strict=False):
        memory.replace(identity, f"invoice {identity}", meta=changed)
        # Without any it keeps its own.
        records[identity] = changed or records[identity]
    for where in filters:
        for view, known in ((memory, records), (memory.at(version), before)):
            expected = [identity for identity, one in known.items() if passes(where, one)]
            assert [one.id for one in view.records(where=where)] == expected
            assert [one.id for one in view.records(where=where, kind="insight", limit=2)] == expected[:2]
            assert [one.id for one in view.records(where=where, offset=1)] == expected[1:]
            hits = view.recall("invoice", where=where, limit=1_000)
            assert {hit.id for hit in hits} == set(expected)
    assert memory.verify().problems == ()
