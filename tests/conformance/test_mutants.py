"""The suite finds what it is for: each of these defects fails a case of the right group."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from mutant import Mutant, altered
from mutants import FAKES, MUTANTS, WRAPPED

from holdfast import Memory
from holdfast.contract import Provider
from holdfast.testing import FakeProvider, case, check
from holdfast.testing.cases import CASES


def find(mutant: Mutant, inner: Callable[[], Provider], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a case of the group fails because of the defect, and none because the mutant is no provider."""
    monkeypatch.setattr(case, "PATIENCE", 0.3)
    report = check(lambda: mutant.make(inner()), groups=(mutant.group,))
    assert report.failed, str(report)
    assert not any(re.match("It raised (Type|Attribute)Error", one.why) for one in report.failed), str(report)


def name(mutant: Mutant) -> str:
    return mutant.defect.replace(" ", "-")


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
