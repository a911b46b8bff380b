"""The public API as text: every exported name, with the signatures of its methods; and its size."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

import holdfast
from handles import FACETS, TWINS
from holdfast.aio import AsyncChat, AsyncMemory
from holdfast.records.options import NewRecord
from tables import each

SNAPSHOT = Path(__file__).parent / "data" / "public_api.txt"
AWAITED = tuple(TWINS.values())
OPTIONS: list[type] = [NewRecord]
EXPORTED: list[type] = [
    value for name in holdfast.__all__ if isinstance(value := getattr(holdfast, name), type)
]
MOST = {holdfast.Memory: 34, AsyncMemory: 33, holdfast.Chat: 29, AsyncChat: 29}


def public(kind: type) -> list[str]:
    return sorted(name for name in dir(kind) if not name.startswith("_"))


def lines_of(kind: type, label: str) -> Iterator[str]:
    """Yield a class with its fields or its signature, and each public name of it."""
    fields = getattr(kind, "__annotations__", {})
    if kind in OPTIONS:
        yield f"{label}: {', '.join(f'{name}: {type_}' for name, type_ in sorted(fields.items()))}"
        return
    yield f"{label}{inspect.signature(kind)}"
    for name in public(kind):
        if issubclass(kind, BaseException) and name in dir(BaseException):
            continue
        value = inspect.getattr_static(kind, name)
        if inspect.isroutine(value):
            yield f"{label}.{name}{inspect.signature(getattr(kind, name))}"
        else:
            yield f"{label}.{name}"


def written() -> str:
    """Return the whole of it, a line for each name."""
    parts = [("holdfast", EXPORTED), ("facets", FACETS), ("awaited", AWAITED), ("options", OPTIONS)]
    lines = []
    for title, kinds in parts:
        lines += [f"# {title}", ""]
        for kind in kinds:
            lines += [*lines_of(kind, kind.__name__), ""]
    others = [name for name in holdfast.__all__ if not isinstance(getattr(holdfast, name), type)]
    text = "\n".join([*lines, "# other names", "", *others, ""])
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def test_the_public_api_is_the_one_that_was_agreed_on() -> None:
    if os.environ.get("RENEW_PUBLIC_API"):
        SNAPSHOT.write_text(written(), "utf-8")
    assert written() == SNAPSHOT.read_text("utf-8"), (
        "The public API changed. If that is meant: RENEW_PUBLIC_API=1 pytest tests/test_public_api.py, and "
        "say so in "
        "the changelog."
    )


@each("kind", [*EXPORTED, *FACETS, *AWAITED])
def test_a_class_fits_in_the_head(kind: type) -> None:
    methods = public(kind)
    if issubclass(kind, BaseException):
        methods = [name for name in methods if name not in dir(BaseException)]
    if hasattr(kind, "__dataclass_fields__"):
        methods = [name for name in methods if name not in kind.__dataclass_fields__]
    assert len(methods) <= MOST.get(kind, 20)
