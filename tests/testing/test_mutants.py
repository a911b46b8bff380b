"""The suite finds what it is for: each of these defects fails a case of the right group."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from mutant import Method, Mutant, altered
from mutants import FAKES, MUTANTS, WRAPPED

from fake_provider import FakeProvider
from holdfast import Memory
from holdfast.contract import Provider
from holdfast.testing import case, check
from holdfast.testing.cases import CASES
from tables import each


def find(mutant: Mutant, inner: Callable[[], Provider], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a case of the group fails, and none because the mutant is no provider."""
    monkeypatch.setattr(case, "PATIENCE", 0.3)
    report = check(lambda: mutant.make(inner()), groups=(mutant.group,))
    assert report.failed, str(report)
    assert not any(re.search("It raised (Type|Attribute)Error", one.why) for one in report.failed), str(
        report
    )


def name(mutant: Mutant) -> str:
    return mutant.defect.replace(" ", "-")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [*WRAPPED, *FAKES], ids=name)
def test_a_defect_of_the_fake_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    find(mutant, FakeProvider, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", WRAPPED, ids=name)
def test_a_defect_of_a_memory_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    find(mutant, lambda: Memory(":memory:", user="ada", admin=True), monkeypatch)


def test_there_is_a_defect_for_each_group_of_cases() -> None:
    assert {mutant.group for mutant in MUTANTS} == {one.group for one in CASES}


def test_without_a_defect_nothing_is_found() -> None:
    report = check(lambda: altered(FakeProvider(), {}, {}))
    assert report.ok, str(report)
    assert len(report.passed) > 130


def test_a_provider_that_keeps_nothing_is_found() -> None:
    report = check(FakeProvider, reopen=lambda _: FakeProvider())
    lasting = {one.name for one in CASES if one.lasts}
    assert {one.case for one in report.failed} == lasting
    assert len(lasting) == 5


@pytest.mark.slow
def test_a_provider_that_lasts_passes(tmp_path: Path) -> None:
    numbers, places = count(), dict[int, Path]()

    def make() -> Provider:
        place = tmp_path / f"{next(numbers)}.db"
        memory = Memory(place, user="ada", admin=True, durability="normal")
        places[id(memory)] = place
        return memory

    report = check(
        make,
        reopen=lambda one: Memory(places[id(one)], user="ada", admin=True),
        groups=["core", "records", "scratchpad"],
    )
    assert report.ok, str(report)
    assert "NOT CHECKED" not in str(report)


class Raising(FakeProvider):
    """Raise what nobody expects, where nobody expects it."""

    def __init__(self, where: str, error: BaseException) -> None:
        super().__init__()
        self._where, self._error = where, error

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name == self._where:
            raise self._error
        return super().__getattribute__(name)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("There are no words.")


@pytest.mark.slow
@each("error", [OSError("The disk is gone."), SystemExit(3), Unspeakable()])
@each("where", ["append", "chat", "name", "close"])
def test_whatever_a_provider_raises_is_a_case_that_failed(where: str, error: BaseException) -> None:
    raising: dict[str, Method] = {where: partial(throw, error)}

    def make() -> Provider:
        if where in ("append", "chat"):
            own, of_chats = ({}, raising) if where == "append" else (raising, {})
            return altered(FakeProvider(), own, of_chats)
        return Raising(where, error)

    report = check(make, groups=["core"])
    assert any(type(error).__name__ in one.why for one in report.failed), str(report)


def throw(error: BaseException, *_: object, **__: object) -> object:
    raise error


def test_a_provider_that_cannot_be_made_fails_every_case() -> None:
    def make() -> Provider:
        raise OSError("The disk is gone.")

    report = check(make, groups=["core"])
    assert len(report.failed) == len(report.results) - sum(one.outcome == "skipped" for one in report.results)
    assert "OSError: The disk is gone." in str(report)
