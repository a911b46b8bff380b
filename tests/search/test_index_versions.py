"""Two versions of the index on one database, as in a rolling upgrade: each keeps its own."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from holdfast import Memory
from holdfast.search import index
from holdfast.search import segment as segments
from holdfast.store import segments as stored
from recall_corpora import Said, ask_all, tell

SAID = [Said(f"chat{n // 4 % 4}", f"word{n} berlin {'marathon ' * (n % 3)}", minutes=n) for n in range(60)]
QUERIES = ("berlin", "word7 marathon", "word59")
VERSIONS = (segments.VERSION, segments.VERSION + 1)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "FREEZE", 8)
    monkeypatch.setattr(index, "WORTH_STORING", 8)
    monkeypatch.setattr(index, "LARGEST", 16)


def segments_of(memory: Memory, version: int) -> list[stored.StoredSegment]:
    return stored.load(memory._runtime.database, memory.scope.space, version, index.BEFORE_ALL)


def epoch(memory: Memory) -> int:
    return stored.index_state(memory._runtime.database, memory.scope.space).epoch


@pytest.fixture
def two_versions(reopen: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A space whose messages two versions of Holdfast have indexed."""
    memory = reopen()
    tell(memory, SAID)
    for version in VERSIONS:
        monkeypatch.setattr(segments, "VERSION", version)
        reopen().recall("berlin")
    monkeypatch.setattr(segments, "VERSION", VERSIONS[0])
    return memory


def test_two_versions_that_take_turns_do_not_make_each_others_index_again(
    two_versions: Memory,
    reopen: Callable[[], Memory],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = [segments_of(two_versions, version) for version in VERSIONS]
    assert all(before)
    epoch_before = epoch(two_versions)
    expected = ask_all(two_versions, QUERIES)
    for turn in range(20):
        monkeypatch.setattr(segments, "VERSION", VERSIONS[turn % 2])
        assert ask_all(reopen() if turn < 4 else two_versions, QUERIES) == expected
    assert [segments_of(two_versions, version) for version in VERSIONS] == before
    assert epoch(two_versions) == epoch_before
    assert caplog.text == ""


def test_damage_to_the_index_of_one_version_leaves_that_of_the_other(
    two_versions: Memory, reopen: Callable[[], Memory], caplog: pytest.LogCaptureFixture
) -> None:
    kept = segments_of(two_versions, VERSIONS[1])
    with two_versions._runtime.database.writing() as tx:
        tx.all(
            "UPDATE segments SET checksum = 0 WHERE space = :space AND version = :version",
            space=two_versions.scope.space,
            version=VERSIONS[0],
        )
    with caplog.at_level(logging.WARNING, "holdfast"):
        reopen().recall("berlin")
    assert "made again from the log" in caplog.text
    assert segments_of(two_versions, VERSIONS[1]) == kept
    assert two_versions.verify().ok


def test_verify_proves_the_own_version_and_a_rebuild_removes_others(
    two_versions: Memory,
) -> None:
    counted = two_versions.verify().checked["index segments"]
    assert counted == len(segments_of(two_versions, VERSIONS[0]))
    two_versions.verify(repair=True)
    assert segments_of(two_versions, VERSIONS[1]) == []
    assert segments_of(two_versions, VERSIONS[0])
