"""`python -m holdfast.testing package.module:factory`: check a provider from the command line.

Groups of cases, such as `core` or `search`, may follow; then only these are checked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from operator import attrgetter

from holdfast.errors import InvalidInput
from holdfast.testing.case import Factory
from holdfast.testing.conformance import check

USAGE = "python -m holdfast.testing package.module:factory [group ...]"


def factory(path: str) -> Factory:
    """Find what makes a provider by its path, such as `package.module:Provider`.

    Raises:
        InvalidInput: there is no such module, or nothing in it that can be called under this name.

    """
    module, _, name = path.partition(":")
    try:
        found: object = attrgetter(name)(import_module(module))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(f"There is no {path!r}: {error}.", f"Use {USAGE}.") from error
    if not callable(found):
        raise InvalidInput(f"{path!r} cannot be called.", "Name a class or a function that makes a provider.")
    return found


def main(arguments: Sequence[str]) -> int:
    """Check the provider that the first argument names, print the report, and return 0 if it is right, 1 if it is not, else 2."""
    if not arguments:
        sys.stderr.write(f"Usage: {USAGE}\n")
        return 2
    path, *groups = arguments
    try:
        report = check(factory(path), groups=groups)
    except InvalidInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{report}\n")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
