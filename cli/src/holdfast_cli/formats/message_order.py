"""The messages of a file as they are stored: each with a time, a result after its call."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import chain

from holdfast_cli.formats.import_items import ImportedMessage, Item, Skip
from holdfast_cli.formats.sources import SourceFile

_NO_CALL = "a result whose call is neither in the file nor stored: kept as one of no call"

_Call = tuple[str, str]  # the chat, and the id


def in_order(source: SourceFile, stored: Callable[[str, str], object]) -> Iterator[Item]:
    """Yield the items of a file with their times, each result after its calls.

    A result whose call is neither in the file nor `stored` in the chat is named, and kept as one of no call:
    should the call be stored later, it would stand behind it.
    """

    @cache
    def places() -> dict[_Call, int]:
        return {call: n for n, item in enumerate(_with_times(source)) for call in _calls_of(item)[0]}

    earlier: set[_Call] = set()
    pending: dict[_Call, list[Item]] = defaultdict(list)
    for item in _with_times(source):
        calls, answers = _calls_of(item)
        unknown = [call for call in answers if call not in earlier and not stored(*call)]
        later = [call for call in unknown if call in places()]
        if later != unknown:
            yield Skip(item.line, _NO_CALL)
        if later:
            pending[max(later, key=places().__getitem__)].append(item)
            continue
        earlier.update(calls)
        if unknown and unknown == answers and isinstance(item, ImportedMessage):
            yield replace(item, message=replace(item.message, call_id=None, answers=()))
        else:
            yield item
        for call in calls:
            yield from pending.pop(call, ())
    # Of a file that was replaced between the two reads.
    yield from chain.from_iterable(pending.values())


def _calls_of(item: Item) -> tuple[list[_Call], list[_Call]]:
    """Return the calls that an item makes, and those whose results it has."""
    if not isinstance(item, ImportedMessage):
        return [], []
    # What we have exported says `call_id` alone, and comes back as it was.
    message, chat = item.message, item.chat.id
    return [(chat, call.id) for call in message.calls], [(chat, call) for call in message.answers]


def _with_times(source: SourceFile) -> Iterator[Item]:
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
