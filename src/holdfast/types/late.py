"""Names of a package that are imported when they are first used, by its `__getattr__`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def importer(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package; `modules` maps each of its late names to the module within."""

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
