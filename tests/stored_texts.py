"""What a memory holds, as tests compare it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from holdfast import Erasure, Memory, Record


def text_of(record: Record | None) -> str:
    """Return the text of a record; "" if there is none."""
    return "" if record is None else record.text


def erasures_of(memory: Memory) -> list[Erasure]:
    """Return the receipts of erasures, the oldest first."""
    found = [change.erasure for change in reversed(memory.changes(kind="erasure"))]
    return [receipt for receipt in found if receipt is not None]


def whole(value: object) -> str:
    """Return all that a value holds as text, also where its `repr` is short."""
    if isinstance(value, type) or not is_dataclass(value):
        if isinstance(value, Mapping):
            return f"{{{', '.join(f'{whole(key)}: {whole(one)}' for key, one in value.items())}}}"
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(whole, value))}]"
        return repr(value)
    parts = (f"{one.name}={whole(getattr(value, one.name))}" for one in fields(value))
    return f"{type(value).__name__}({', '.join(parts)})"
