"""The order of calls and results: a call stands before its results, and a result without one is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from holdfast.io.import_items import ImportedMessage, Item, Skip
from holdfast.io.message_times import dated
from holdfast.io.sources import SourceFile

_NO_CALL = "a result whose call is neither in the file nor stored: kept as one of no call"

_Call = tuple[str, str]  # the chat, and the id


def calls_first(source: SourceFile, stored: Callable[[str, str], object]) -> Iterator[Item]:
    """Yield the items of a file with their times, and each call before its results.

    A result whose call is neither in the file nor `stored` in the chat is named, and kept as one of no call:
    should the call be stored later, it would stand behind it.
    """
    made: set[_Call] = set()
    late: dict[_Call, ImportedMessage] | None = None
    for item in dated(source):
        calls, answers = _calls_of(item)
        if late and calls and made.issuperset(calls) and late.pop(calls[0], None) == item:
            continue
        unknown = [call for call in answers if call not in made and not stored(*call)]
        if unknown and late is None:
            late = _late_calls(source)
        lost = []
        for call in unknown:
            if late and (first := late.get(call)):
                yield from () if call in made else [first]
                made.update(_calls_of(first)[0])
            else:
                lost.append(call)
        made.update(calls)
        if lost:
            yield Skip(item.line, _NO_CALL)
        if lost and lost == answers and isinstance(item, ImportedMessage):
            yield replace(item, message=replace(item.message, call_id=None, answers=()))
        else:
            yield item


def _calls_of(item: Item) -> tuple[list[_Call], list[_Call]]:
    """Return the calls that an item makes, and those whose results it has."""
    if not isinstance(item, ImportedMessage):
        return [], []
    # What we have exported says `call_id` alone, and comes back as it was.
    message, chat = item.message, item.chat.id
    return [(chat, call.id) for call in message.calls], [(chat, call) for call in message.answers]


def _late_calls(source: SourceFile) -> dict[_Call, ImportedMessage]:
    """Return the calls that come after a result of theirs, with their messages."""
    made: set[_Call] = set()
    early: set[_Call] = set()
    late: dict[_Call, ImportedMessage] = {}
    for item in dated(source):
        calls, answers = _calls_of(item)
        if isinstance(item, ImportedMessage) and not early.isdisjoint(calls):
            for call in calls:
                late.setdefault(call, item)
        made.update(calls)
        early.update(call for call in answers if call not in made)
    return late
