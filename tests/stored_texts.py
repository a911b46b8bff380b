"""What a memory holds, as tests compare it."""

from __future__ import annotations

from holdfast import Erasure, Memory, Record


def text_of(record: Record | None) -> str:
    """Return the text of a record; "" if there is none."""
    return "" if record is None else record.text


def erasures_of(memory: Memory) -> list[Erasure]:
    """Return the receipts of erasures, the oldest first."""
    found = [change.erasure for change in reversed(memory.changes(kind="erasure"))]
    return [receipt for receipt in found if receipt is not None]
