"""The suite finds what it is for: each of these defects fails a case of the right group."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from mutant import Method, Mutant, altered
from mutants import MUTANTS

from fake_provider import FakeProvider
from holdfast.contract import Provider
from holdfast.testing import case, check
from holdfast.testing.cases import CASES
from tables import each


def name(mutant: Mutant) -> str:
    return mutant.defect.replace(" ", "-")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=name)
def test_a_defect_of_a_provider_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case of its group fails, and none because the mutant is no provider."""
    monkeypatch.setattr(case, "PATIENCE", 0.3)
    report = check(lambda: mutant.make(FakeProvider()), groups=(mutant.group,))
    assert report.failed, str(report)
    raised = [one for one in report.failed if re.search("It raised (Type|Attribute)Error", one.why)]
    assert not raised, str(report)


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
