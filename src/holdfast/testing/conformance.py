"""The conformance suite: it shows whether a provider does what the contract says, in all that it claims to do.

What a provider claims are the capabilities whose methods it has; what it does not claim is skipped, by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Literal
from unittest import SkipTest

from holdfast.contract import CAPABILITIES, Capability, Provider, capabilities, check_provider
from holdfast.errors import InvalidInput
from holdfast.testing.case import Broken, Case, Factory, Group, Reopen
from holdfast.testing.cases import CASES
from holdfast.text.shorten import shorten_line

_RAISED = (Exception, SystemExit)  # by a provider


class Conformance:
    """Run the suite with pytest: a method is a case. Subclass it, and make a provider that is fresh and empty.

    >>> class TestMine(Conformance):
    ...     def make(self) -> Provider:
    ...         return MinimalProvider()

    With a method `reopen(self, provider)`, which makes a second provider over the storage of one that was
    closed, the suite also checks that what was stored lasts; without one, these cases are skipped. With
    unittest, subclass `unittest.TestCase` as well. The suite closes each provider that it was given. It asks
    for other users and agents by `scoped`, where that is claimed, of a provider that must be allowed to scope to any.
    """

    def make(self) -> Provider:
        """Make a provider, fresh and empty at each call.

        Raises:
            NotImplementedError: the subclass does not say how.

        """
        raise NotImplementedError("Say in a method `make` how to make a provider.")

    reopen: Reopen | None = None
    """A method that opens the storage of a provider that was closed: without it, what has to last is skipped."""


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
    outcome: Literal["passed", "failed", "skipped"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The claims of a provider, and the result of each case; it prints as text."""

    provider: str
    claims: tuple[Capability, ...]
    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        """Return whether no case failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[Result, ...]:
        """List the cases that failed."""
        return self._those("failed")

    @property
    def passed(self) -> tuple[Result, ...]:
        """List the cases that passed."""
        return self._those("passed")

    @property
    def skipped(self) -> tuple[Result, ...]:
        """List the cases that were not run."""
        return self._those("skipped")

    def _those(self, outcome: str) -> tuple[Result, ...]:
        return tuple(one for one in self.results if one.outcome == outcome)

    def __str__(self) -> str:
        missing = [name for name in CAPABILITIES if name not in self.claims]
        lines = [
            f"{self.provider}: {len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped",
            f"claims the core{''.join(f', {name}' for name in self.claims)}",
        ]
        if missing:
            lines.append(f"does not claim {', '.join(missing)}")
        lines += [f"FAILED  {one.group}: {_phrase(one.case)}\n        {one.why}" for one in self.failed]
        reasons = Counter(one.why for one in self.skipped)
        lines += [f"skipped {count}: {why}" for why, count in reasons.items()]
        return "\n".join(lines)


def _phrase(name: str) -> str:
    return name.replace("_", " ")


def check(make: Factory, *, groups: Iterable[str] = (), reopen: Reopen | None = None) -> Report:
    """Run the suite, and report what became of it; nothing is raised for a case that fails, whatever the provider raises.

    >>> from holdfast.testing import MinimalProvider, check
    >>> check(MinimalProvider).ok
    True

    Args:
        make: makes a provider, fresh and empty at each call. Each one is closed after its case.
        groups: only the cases of these: "core", capabilities, or "tools", those that are made of a provider;
            all, if none is named.
        reopen: makes a second provider over the storage of one that was closed. Without it, what has to last
            is skipped.

    Raises:
        InvalidInput: there is no such group, or what is passed makes no provider.

    """
    cases = _cases(tuple(groups))
    if not callable(make):
        raise InvalidInput(
            "The suite needs a fresh provider for each case.", "Pass what makes one, such as its class."
        )
    name, claimed = _introduced(make)
    claims = tuple(one for one in CAPABILITIES if one in claimed)
    return Report(name, claims, tuple(_result(case, make, reopen) for case in cases))


def _introduced(make: Factory) -> tuple[str, frozenset[Capability]]:
    """Ask a provider what it is called, and what it claims; of one that raises then, the cases will say so."""
    try:
        provider = make()
    except _RAISED:  # each case will say what it was
        return "a provider that cannot be made", frozenset()
    check_provider(provider)
    try:
        return provider.name, capabilities(provider)
    except _RAISED:  # as above
        return type(provider).__name__, frozenset()
    finally:
        with suppress(*_RAISED):  # as above
            provider.close()


def _cases(groups: Sequence[str]) -> Sequence[Case]:
    known = dict.fromkeys(case.group for case in CASES)
    if unknown := [name for name in groups if name not in known]:
        raise InvalidInput(f"There are no cases of {', '.join(unknown)}.", f"Use some of {', '.join(known)}.")
    return [case for case in CASES if case.group in groups] if groups else CASES


def _result(case: Case, make: Factory, reopen: Reopen | None) -> Result:
    try:
        case.run(make, reopen)
    except SkipTest as skipped:
        return Result(case.group, case.name, "skipped", str(skipped))
    except Broken as broken:
        return Result(case.group, case.name, "failed", str(broken))
    except _RAISED as error:  # whatever a provider raises is a result here
        why = shorten_line(f"It raised {_said(error)}", 500)
        return Result(case.group, case.name, "failed", f"{why} ({_place(error)})")
    return Result(case.group, case.name, "passed")


def _said(error: BaseException) -> str:
    """Return the name and the words of an error, as far as it has words."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an error of the provider's own may not even be shown
        return type(error).__name__


def _place(error: BaseException) -> str:
    """Return where an error was raised, so that an author finds it without a debugger."""
    *_, last = extract_tb(error.__traceback__)
    return f"{Path(last.filename).name}, line {last.lineno}"
