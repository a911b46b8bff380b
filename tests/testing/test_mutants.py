"""The suite finds what it is for: each of these defects fails a case of the right group."""

from __future__ import annotations

import re

import pytest
from mutant import Mutant, altered, memory
from mutants import MUTANTS

from holdfast import Memory
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
    report = check(lambda: mutant.make(memory()), groups=(mutant.group,))
    assert report.failed, str(report)
    raised = [one for one in report.failed if re.search("It raised (Type|Attribute)Error", one.why)]
    assert not raised, str(report)


def test_there_is_a_defect_for_each_group_of_cases() -> None:
    assert {mutant.group for mutant in MUTANTS} == {one.group for one in CASES}


@pytest.mark.slow
def test_without_another_defect_only_that_nothing_lasts_is_found() -> None:
    report = check(lambda: altered(memory(), {}, {}), reopen=lambda _: memory())
    lasting = {one.name for one in CASES if one.lasts}
    assert {one.case for one in report.failed} == lasting, str(report)
    assert len(lasting) == 5
    assert len(report.passed) > 130


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("There are no words.")


@pytest.mark.slow
@each("error", [OSError("The disk is gone."), SystemExit(3), Unspeakable()])
@each("where", ["append", "chat", "name", "close"])
def test_whatever_a_provider_raises_is_a_case_that_failed(where: str, error: BaseException) -> None:
    def throw(inner: Memory, *_: object, **__: object) -> None:
        if where == "close":
            inner.close()
        raise error

    alone = {where: property(throw) if where == "name" else throw}
    own, of_chats = ({}, alone) if where == "append" else (alone, {})
    report = check(lambda: altered(memory(), own, of_chats), groups=["core"])
    assert any(type(error).__name__ in one.why for one in report.failed), str(report)
