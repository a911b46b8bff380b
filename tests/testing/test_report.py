"""What the suite tells of a provider: the report, the command, and the example in the docstrings."""

from __future__ import annotations

import doctest
import unittest

import pytest
from mutant import memory

import holdfast.testing.case
import holdfast.testing.cases
import holdfast.testing.conformance
import holdfast.testing.minimal
from holdfast import InvalidInput, Memory, Message
from holdfast.contract import CAPABILITIES
from holdfast.testing import Conformance, MinimalProvider, Report, check
from holdfast.testing.__main__ import main
from holdfast.testing.case import NOT_REOPENED
from holdfast.testing.cases import CASES
from holdfast.testing.minimal import MinimalChat
from tables import each


class ForgetfulChat(MinimalChat):
    def append(self, messages: object, /) -> list[Message]:
        raise RuntimeError("the disk is full")


class Forgetful(MinimalProvider):
    name = "forgetful"

    def chat(self, name: str, /) -> MinimalChat:
        return ForgetfulChat(name, self._logs, self._lock)


@pytest.mark.slow
def test_a_report_tells_what_is_claimed_and_what_became_of_it() -> None:
    report = check(memory)
    assert report.ok
    assert report.provider == "holdfast"
    assert report.claims == CAPABILITIES
    assert len(report.results) == len(CASES) == len(report.passed) + len(report.skipped)
    assert str(report).startswith(
        f"holdfast: {len(report.passed)} passed, 0 failed, {len(report.skipped)} skipped\n"
    )


def test_what_is_not_claimed_is_skipped_by_name() -> None:
    report = check(MinimalProvider)
    assert report.ok
    assert report.claims == ()
    assert {one.group for one in report.passed} == {"core", "tools"}
    assert f"does not claim {', '.join(CAPABILITIES)}" in str(report)
    for one in report.skipped:
        if one.why == NOT_REOPENED:
            continue
        assert one.why.removeprefix("not claimed: ") in CAPABILITIES
        assert one.group == "tools" or one.why == f"not claimed: {one.group}"


def test_only_some_groups_are_checked_when_named() -> None:
    report = check(memory, groups=("search", "scratchpad"))
    assert {one.group for one in report.results} == {"search", "scratchpad"}
    with pytest.raises(InvalidInput, match=r"Unknown groups of cases: nothing\. Use some of core, "):
        check(memory, groups=["nothing"])


def test_each_capability_has_cases() -> None:
    assert {*CAPABILITIES, "core"} <= {one.group for one in CASES}
    assert len({(one.group, one.name) for one in CASES}) == len(CASES)


def test_the_suite_runs_without_pytest_as_well() -> None:
    class TestMinimal(Conformance, unittest.TestCase):
        def make(self) -> MinimalProvider:
            return MinimalProvider()

    class TestForgetful(Conformance, unittest.TestCase):
        def make(self) -> Forgetful:
            return Forgetful()

    load = unittest.defaultTestLoader.loadTestsFromTestCase
    right, wrong = (load(one).run(unittest.TestResult()) for one in (TestMinimal, TestForgetful))
    assert right.testsRun == wrong.testsRun == len(CASES)
    assert right.wasSuccessful()
    assert not wrong.wasSuccessful()
    assert len(wrong.skipped) == len(CASES) - sum(not one.needs and not one.lasts for one in CASES)


# The command


def another(_: object) -> Memory:
    return memory()


@each(
    ("arguments", "code", "told"),
    [
        (["holdfast.testing:MinimalProvider"], 0, f"{check(MinimalProvider)}\n"),
        (["mutant:memory", "search"], 0, f"{check(memory, groups=['search'])}\n"),
        (["mutant:memory", "scratchpad"], 0, "NOT CHECKED whether anything lasts"),
        ([f"{__name__}:Forgetful"], 1, "FAILED  core: "),
        (["mutant:memory", f"reopen={__name__}:another", "scratchpad"], 1, "FAILED  scratchpad: scratchpads"),
        ([], 2, "package.module:factory"),
    ],
)
def test_the_command_prints_the_report_and_ends_with_a_code(
    arguments: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert told in (err if code == 2 else out)
    assert not (out if code == 2 else err)


# The examples


@each("module", [holdfast.testing, holdfast.testing.conformance, holdfast.testing.minimal])
def test_the_examples_are_true(module: object) -> None:
    names: dict[str, object] = {"MinimalProvider": MinimalProvider, "Report": Report}
    result = doctest.testmod(module, extraglobs=names)  # type: ignore[arg-type]  # a module is what it is
    assert result.attempted
    assert not result.failed
