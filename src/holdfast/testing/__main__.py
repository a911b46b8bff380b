"""`python -m holdfast.testing package.module:factory`: check a provider from the command line.

Groups of cases, such as `core` or `search`, may follow; then only these are checked.
`reopen=package.module:function` names what makes a second provider over the storage of one that was closed:
then it is checked as well that what was stored lasts.
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
    path, *more = arguments
    groups = [one for one in more if not one.startswith(_REOPEN)]
    again = [one.removeprefix(_REOPEN) for one in more if one.startswith(_REOPEN)]
    try:
        report = check(factory(path), groups=groups, reopen=factory(again[-1]) if again else None)
    except InvalidInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{report}\n")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
