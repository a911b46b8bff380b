"""The order of calls and results: a call stands before its results, and a result without one is named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain

from holdfast.io.import_items import ImportedMessage, Item, Skip
from holdfast.io.message_times import dated
from holdfast.io.sources import SourceFile

_NO_CALL = "a result whose call is neither in the file nor stored: kept as one of no call"

_Call = tuple[str, str]  # the chat, and the id


def calls_first(source: SourceFile, stored: Callable[[str, str], object]) -> Iterator[Item]:
    """Yield the items of a file with their times, each result after its calls.

    A result whose call is neither in the file nor `stored` in the chat is named, and kept as one of no call:
    should the call be stored later, it would stand behind it.
    """

    @cache
    def places() -> dict[_Call, int]:
        return {call: n for n, item in enumerate(dated(source)) for call in _calls_of(item)[0]}

    made: set[_Call] = set()
    held: dict[_Call, list[Item]] = defaultdict(list)
    for item in dated(source):
        calls, answers = _calls_of(item)
        unknown = [call for call in answers if call not in made and not stored(*call)]
        later = [call for call in unknown if call in places()]
        if later != unknown:
            yield Skip(item.line, _NO_CALL)
        if later:
            held[max(later, key=places().__getitem__)].append(item)
            continue
        made.update(calls)
        if unknown and unknown == answers and isinstance(item, ImportedMessage):
            yield replace(item, message=replace(item.message, call_id=None, answers=()))
        else:
            yield item
        for call in calls:
            yield from held.pop(call, ())
    # Of a file that was replaced between the two reads.
    yield from chain.from_iterable(held.values())


def _calls_of(item: Item) -> tuple[list[_Call], list[_Call]]:
    """Return the calls that an item makes, and those whose results it has."""
    if not isinstance(item, ImportedMessage):
        return [], []
    # What we have exported says `call_id` alone, and comes back as it was.
    message, chat = item.message, item.chat.id
    return [(chat, call.id) for call in message.calls], [(chat, call) for call in message.answers]
