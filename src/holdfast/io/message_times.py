"""The times of messages that have none in their file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from holdfast.io.import_items import ImportedMessage, Item
from holdfast.io.sources import SourceFile


def dated(source: SourceFile) -> Iterator[Item]:
    """Yield the items of a file; a message without a time gets that of its neighbour, or of its chat."""
    times: dict[str, datetime | None] = {}
    for item in source.read():
        if not isinstance(item, ImportedMessage):
            yield item
            continue
        at, chat = item.message.at, item.chat.id
        if at is None and item.chat.since:
            times.setdefault(chat, item.chat.since)
        if at is None and chat not in times:
            times = _first_times(source) | times
        times[chat] = at or times.get(chat)
        yield item if at else replace(item, message=replace(item.message, at=times[chat]))


def _first_times(source: SourceFile) -> dict[str, datetime | None]:
    """Return the first time of each chat of a file, None if it has none."""
    first: dict[str, datetime | None] = {}
    for item in source.read():
        if isinstance(item, ImportedMessage) and first.get(item.chat.id) is None:
            first[item.chat.id] = item.message.at
    return first
