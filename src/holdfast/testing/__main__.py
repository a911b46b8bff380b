"""Check a provider from the command line: `python -m holdfast.testing package.module:factory`.

Groups of cases, such as `core` or `search`, may follow; then only these are run. With
`reopen=package.module:function`, which makes a second provider over the storage of one that was closed, the
suite also checks that what was stored lasts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from operator import attrgetter

from holdfast.contract import Provider
from holdfast.errors import InvalidInput
from holdfast.testing.conformance import check

USAGE = "python -m holdfast.testing package.module:factory [reopen=package.module:function] [group ...]"
_REOPEN = "reopen="


def factory(path: str) -> Callable[..., Provider]:
    """Return the callable at a path such as `package.module:Provider`.

    Raises:
        InvalidInput: the module or the name does not exist, or is not callable.

    """
    module, _, name = path.partition(":")
    try:
        target: object = attrgetter(name)(import_module(module))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(f"Cannot import {path!r}: {error}.", f"Use {USAGE}.") from error
    if not callable(target):
        raise InvalidInput(f"{path!r} is not callable.", "Name a class or a function that makes a provider.")
    return target


def main(arguments: Sequence[str]) -> int:
    """Check a provider, print the report, and return 0 if it conforms, 1 if not, 2 for wrong arguments."""
    if not arguments:
        sys.stderr.write(f"Usage: {USAGE}\n")
        return 2
    path, *more = arguments
    groups = [argument for argument in more if not argument.startswith(_REOPEN)]
    again = [argument.removeprefix(_REOPEN) for argument in more if argument.startswith(_REOPEN)]
    try:
        report = check(factory(path), groups=groups, reopen=factory(again[-1]) if again else None)
    except InvalidInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{report}\n")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
