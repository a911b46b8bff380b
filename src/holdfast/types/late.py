"""Names of a module that are imported when they are first used, by its `__getattr__`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def importer(module: str, modules: Mapping[str, str], package: str = "") -> Callable[[str], object]:
    """Return the `__getattr__` of a module; `modules` maps modules of its package to its late names in them.

    Without a name of the package, the module is the package.
    """
    module_of = {name: inner for inner, names in modules.items() for name in names.split()}

    def find(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package or module}.{module_of[name]}"), name)
        setattr(sys.modules[module], name, value)
        return value

    return find
