"""The conformance suite: it checks the promises of the contract for all capabilities that a provider claims.

A provider claims the capabilities whose methods it has; the cases of others are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Literal, get_args
from unittest import SkipTest

from holdfast.contract import CAPABILITIES, Capability, Provider, capabilities, check_provider
from holdfast.errors import InvalidInput
from holdfast.port.texts import shorten_line
from holdfast.testing import case as checks
from holdfast.testing.case import Case, Factory, Group, PromiseBroken, Reopen
from holdfast.testing.cases import CASES

Outcome = Literal["passed", "failed", "skipped"]
# What a provider may raise.
_RAISED = (Exception, SystemExit)


class Conformance:
    """Run the suite with pytest, each case as a test. Subclass it, and make a fresh and empty provider.

    >>> class TestMine(Conformance):
    ...     def make(self) -> Provider:
    ...         return MinimalProvider()

    With a method `reopen(self, provider)`, which makes a second provider over the storage of one that was
    closed, the suite also checks that what was stored lasts; without one, these cases are skipped. With
    unittest, subclass `unittest.TestCase` as well. The suite closes each provider. Where `scoped` is claimed,
    the provider must be allowed to scope to any user and agent.
    """

    def make(self) -> Provider:
        """Make a provider, fresh and empty at each call.

        Raises:
            NotImplementedError: the subclass has no such method.

        """
        raise NotImplementedError("Define a method `make` that returns a provider.")

    reopen: Reopen | None = None
    """A method that makes a second provider over the storage of one that was closed."""


def _method(case: Case) -> Callable[[Conformance], None]:
    def test(self: Conformance) -> None:
        case.run(self.make, self.reopen)

    test.__name__ = f"test_{case.group}_{case.name}"
    test.__qualname__ = f"Conformance.{test.__name__}"
    test.__doc__ = case.body.__doc__
    return test


for _case in CASES:
    setattr(Conformance, f"test_{_case.group}_{_case.name}", _method(_case))


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a case; `why` it failed or was skipped."""

    group: Group
    case: str
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The claims of a provider, and the result of each case; it prints as text."""

    provider: str
    claims: tuple[Capability, ...]
    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        """Whether no case failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[Result, ...]:
        """The results of the cases that failed."""
        return self._with_outcome("failed")

    @property
    def passed(self) -> tuple[Result, ...]:
        """The results of the cases that passed."""
        return self._with_outcome("passed")

    @property
    def skipped(self) -> tuple[Result, ...]:
        """The results of the cases that were not run."""
        return self._with_outcome("skipped")

    def _with_outcome(self, outcome: Outcome) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.outcome == outcome)

    def __str__(self) -> str:
        missing = [name for name in CAPABILITIES if name not in self.claims]
        counts = Counter(result.outcome for result in self.results)
        number = ", ".join(f"{counts[outcome]} {outcome}" for outcome in get_args(Outcome))
        lines = [
            f"{self.provider}: {number}",
            f"claims the core{''.join(f', {name}' for name in self.claims)}",
        ]
        if missing:
            lines.append(f"does not claim {', '.join(missing)}")
        lines += [
            f"FAILED  {result.group}: {result.case.replace('_', ' ')}\n        {result.why}"
            for result in self.failed
        ]
        reasons = Counter(result.why for result in self.skipped)
        lines += [f"skipped {count}: {why}" for why, count in reasons.items()]
        return "\n".join(lines)


def check(make: Factory, *, groups: Iterable[str] = (), reopen: Reopen | None = None) -> Report:
    """Run the suite, and return the result of each case, also where the provider raises an error.

    >>> from holdfast.testing import MinimalProvider, check
    >>> check(MinimalProvider).ok
    True

    Args:
        make: makes a provider, fresh and empty at each call. Each one is closed after its case.
        groups: the groups to run: "core", "tools", or capabilities; all by default.
        reopen: makes a second provider over the storage of one that was closed. Without it, cases about what
            lasts are skipped.

    Raises:
        InvalidInput: a group is unknown, or `make` makes no provider.

    """
    cases = _cases(tuple(groups))
    if not callable(make):
        raise InvalidInput(
            "The suite needs a fresh provider for each case.",
            "Pass a callable that makes one, such as its class.",
        )
    name, claimed = _name_and_claims(make)
    claims = tuple(capability for capability in CAPABILITIES if capability in claimed)
    return Report(name, claims, tuple(_result(case, make, reopen) for case in cases))


def _name_and_claims(make: Factory) -> tuple[str, frozenset[Capability]]:
    """Return the name and the capabilities of a provider. What it raises here, each case will report."""
    try:
        provider = make()
    except _RAISED:
        return "a provider that cannot be made", frozenset()
    check_provider(provider)
    try:
        return provider.name, capabilities(provider)
    except _RAISED:
        return type(provider).__name__, frozenset()
    finally:
        with suppress(*_RAISED):
            provider.close()


def _cases(groups: Sequence[str]) -> Sequence[Case]:
    known = dict.fromkeys(case.group for case in CASES)
    if unknown := [name for name in groups if name not in known]:
        raise InvalidInput(
            f"Unknown groups of cases: {', '.join(unknown)}.", f"Use some of {', '.join(known)}."
        )
    return [case for case in CASES if case.group in groups] if groups else CASES


def _result(case: Case, make: Factory, reopen: Reopen | None) -> Result:
    try:
        case.run(make, reopen)
    except SkipTest as skipped:
        return Result(case.group, case.name, "skipped", str(skipped))
    except _RAISED as error:
        problem = str(error) if isinstance(error, PromiseBroken) else f"It raised {_describe(error)}"
        why = f"{case.promise} {shorten_line(problem, 500)}".strip()
        return Result(case.group, case.name, "failed", f"{why} ({_place(error)})")
    return Result(case.group, case.name, "passed")


def _describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an error of the provider may fail to be written
        return type(error).__name__


def _place(error: BaseException) -> str:
    """Return where an error was raised, or which check of a case found it."""
    frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename != checks.__file__]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
