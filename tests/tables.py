"""Tables of cases: one run of a test for all its rows, where a run of its own costs more than the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any

Test = Callable[..., None]


def each(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Call a test with each row of a table in one run, and report every row that fails.

    It takes names and rows as `pytest.mark.parametrize` does. All rows share the fixtures of the test, so it
    suits tests that leave nothing in them.
    """
    names = (names,) if isinstance(names, str) else names
    table = [(row,) if len(names) == 1 else tuple(row) for row in rows]
    assert table, "A table without rows checks nothing."

    def decorate(test: Test) -> Test:
        @wraps(test, updated=())
        def run(*instance: object, **fixtures: object) -> None:
            failures = []
            for row in table:
                try:
                    test(*instance, **fixtures, **dict(zip(names, row, strict=True)))
                except Exception as error:  # noqa: BLE001 - whatever a row raises is reported below
                    error.add_note(f"The row: {', '.join(map(repr, row))}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        own = signature(test)
        left = [parameter for name, parameter in own.parameters.items() if name not in names]
        vars(run).update(
            __signature__=own.replace(parameters=left), pytestmark=getattr(test, "pytestmark", [])
        )
        return run

    return decorate
