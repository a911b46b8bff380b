"""The timeline of a space: messages by chat and day, and the changes of records between them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidInput, shown
from holdfast.safety.guard import mask
from holdfast.store import record_changes, sessions
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.text.titles import title_from
from holdfast.text.zones import local
from holdfast.types.timeline import ChatDay, Timeline, TimelineDay

if TYPE_CHECKING:
    from datetime import tzinfo

    from holdfast.store.database import Reader
    from holdfast.types import Change, Scope

_CURSOR = re.compile(r"(-?[0-9]{1,20})\.([0-9]{1,20})\.(.*)", re.DOTALL)
_SAID = 3  # requests of a chat on a day
_READ = 12  # messages that are read for them
_CHATS = f"""
    SELECT chat, oldest FROM sessions
    WHERE space = :space AND newest >= :since AND oldest < :until AND {sessions.OF_AGENT}"""
_TIMES = f"""
    SELECT at, seq FROM messages WHERE space = :space AND chat = :chat AND at >= :since AND at < :until
    {sessions.ON_BRANCH} ORDER BY at, seq"""
_REQUESTS = f"""
    SELECT content FROM messages WHERE space = :space AND chat = :chat AND seq BETWEEN :first AND :last
    AND role = 'user' AND at >= :since AND at < :until {sessions.ON_BRANCH} ORDER BY seq LIMIT :limit"""


class Place(NamedTuple):
    """The place of an entry in the order of a timeline: its time, and a version or else a chat."""

    at: int
    version: int = 0
    chat: str = ""


class _Entry(NamedTuple):
    """A change, or the first and the last message of a chat on a day, and their number."""

    place: Place
    change: Change | None = None
    first: int = 0
    last: int = 0
    messages: int = 0


def read_cursor(cursor: str) -> Place:
    """Return the place of the last entry before a cursor.

    Raises:
        InvalidInput: it is none that a timeline gave.

    """
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise InvalidInput(f"{shown(cursor)} is no cursor of a timeline.", "Pass that of the page before.")
    return Place(int(parts[1]), int(parts[2]), parts[3])


def read(
    db: Reader, scope: Scope, since: int, until: int, zone: tzinfo, after: Place | None, limit: int
) -> Timeline:
    """Return the entries of a timeline after a place, at most `limit` of them, by the days of a zone.

    Reads the times of the messages of chats that went on then, and the words of those that it returns.
    """
    # The messages of a day count from its beginning, whichever of them were on the page before.
    begins = since if after is None else max(since, _midnight(after.at, zone))
    span = {"since": begins, "until": until}
    changes = record_changes.written(db, scope, begins, until)
    learned = (_Entry(Place(to_micros(change.at), change.version), change) for change in changes)
    rows = db.all(_CHATS, space=scope.space, **span, **sessions.agent_values(scope.agent))
    # Each chat is read when its beginning has come.
    in_order = merge(learned, *(_days_of(db, scope, chat, oldest, span, zone) for chat, oldest in rows))
    following = (
        entry for entry in in_order if entry.place.version >= 0 and (not after or entry.place > after)
    )
    *page, more = [*islice(following, limit), next(following, None)]
    days = []
    for day, group in groupby(page, lambda entry: _day(entry.place.at, zone)):
        entries = list(group)
        chats = [_chat_day(db, scope, entry, zone) for entry in entries if not entry.change]
        known = tuple(entry.change for entry in entries if entry.change)
        days.append(TimelineDay(day, tuple(chats), known))
    last = page[-1].place if page and more else None
    return Timeline(days, f"{last.at}.{last.version}.{last.chat}" if last else None)


def _days_of(
    db: Reader, scope: Scope, chat: str, oldest: int, span: dict[str, int], zone: tzinfo
) -> Iterator[_Entry]:
    """Yield the beginning of a chat, which comes before its first day, and then the entry of each day."""
    yield _Entry(Place(oldest, -1, chat))
    times = db.all(_TIMES, space=scope.space, chat=chat, **span)
    begin = 0
    while begin < len(times):
        at = times[begin][0]
        end = bisect_left(times, _midnight(at, zone, 1), begin + 1, key=itemgetter(0))
        numbers = [seq for _, seq in times[begin:end]]
        yield _Entry(Place(at, chat=chat), None, min(numbers), max(numbers), end - begin)
        begin = end


def _chat_day(db: Reader, scope: Scope, entry: _Entry, zone: tzinfo) -> ChatDay:
    at, chat = entry.place.at, entry.place.chat
    where = {"first": entry.first, "last": entry.last, "since": at, "until": _midnight(at, zone, 1)}
    requests = db.all(_REQUESTS, space=scope.space, chat=chat, limit=_READ, **where)
    said: list[str] = []
    for (text,) in requests:
        title = title_from([text], mask) if len(said) < _SAID else ""
        said += [title] if title and title not in said else []
    info = sessions.info(db, scope, chat, zone)
    title, agent = (info.title, info.agent) if info else ("", "")
    numbers = entry.first, entry.last, entry.messages
    return ChatDay(chat, title, agent, from_micros(at), *numbers, tuple(said))


def _day(at: int, zone: tzinfo) -> date:
    return local(from_micros(at), zone).date()


def _midnight(at: int, zone: tzinfo, days: int = 0) -> int:
    """Return the beginning of the day of a time, or of one some days later, as far as the calendar goes."""
    try:
        return to_micros(datetime.combine(_day(at, zone) + timedelta(days), time(), zone))
    except OverflowError:
        return at + days
