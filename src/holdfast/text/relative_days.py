"""Days that a query names by the clock: yesterday, last week, vor drei Tagen, 上周, in spring."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import chain

from holdfast.errors import InvalidInput, shown
from holdfast.text.analyze import fold
from holdfast.text.dates import PartialDate, find_dates, spans
from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import headed_lists
from holdfast.text.units import NUMBER_WORDS, WEEKDAYS
from holdfast.types import to_time

_ONE = ("a", "an", "ein", "eine", "einem", "einer", "un", "une", "una")
_WEEK = late_pattern(r"(\d{4})-?W(\d{1,2})", re.IGNORECASE | re.ASCII)
_OPTIONAL = re.compile(r"\(\?[^()]*\)\??|\[[^]]*\]|.\?")


def find_spans(text: str, now: datetime) -> list[tuple[int, int]]:
    """Return the spans of time that a query names by the clock, as (from, before) in microseconds.

    `now` is the time of the query, in the zone whose days are meant. A week begins on Monday, a season with
    its first month, north of the equator; a weekday is the last one before today.
    """
    lower = text.lower() if text.isascii() else fold(text)
    # Most queries name no day: only patterns whose key is there are looked for.
    named = dict.fromkeys(chain.from_iterable(some for key, some in _patterns().items() if key in lower))
    days = dict.fromkeys(span for pattern, kind in named for span in _spans_of(pattern, kind, lower, now))
    return list(days)


def named_span(text: str, now: datetime) -> tuple[int, int] | None:
    """Return the span that a text names, as (from, before) in microseconds; None for none.

    A day, month or year by its date ("2026-03-14", "14 March", the last one until today), a week by its
    number ("2026-W11"), or what `find_spans` finds ("yesterday", "last week"). `now` is as there.

    >>> named_span("1970-W01", datetime(2026, 3, 14, tzinfo=UTC))
    (-259200000000, 345600000000)
    """
    with suppress(OverflowError, ValueError):
        if week := _WEEK.fullmatch(text):
            monday = date.fromisocalendar(int(week[1]), int(week[2]), 1)
            return _micros(monday, now), _micros(monday + timedelta(7), now)
        # A weekday alone is the last one.
        if relative := find_spans(text, now) or find_spans(f"on {text}", now):
            return relative[0]
        for named in find_dates(text)[:1]:
            return _of_date(named, now)
    return None


def time_named(value: object, now: datetime, *, ends: bool = False) -> datetime:
    """Return a time, its ISO 8601 text, or the beginning of a span by its name; or its end.

    Raises:
        InvalidInput: it is none of these.

    """
    name = value.strip() if isinstance(value, str) else ""
    # A week is more than the Monday that ISO 8601 takes it for.
    with suppress(InvalidInput):
        if not _WEEK.fullmatch(name):
            return to_time(value, "time", now.tzinfo or UTC, ends=ends)
    if span := named_span(name, now):
        return datetime.fromtimestamp(span[ends] / 1_000_000, UTC)
    raise InvalidInput(
        f"{shown(value)} names no time.",
        "Pass one, a day or a week: 2026-03-14, 14 March, yesterday, last week, 2026-W11.",
    )


def _of_date(named: PartialDate, now: datetime) -> tuple[int, int]:
    """Return the span of a date; without a year, the last one that has begun."""
    today, (_, month, day) = now.date(), named
    if named.year is None:
        years = (y for y in range(today.year, today.year - 9, -1) if not (day == 29 and month == 2 and y % 4))
        year = next(y for y in years if (y, month, day or 1) <= (today.year, today.month, today.day))
        named = named._replace(year=year)
    first, before, _ = spans(named, 0, 0, now.tzinfo or UTC)[-1]
    return first, before


@cache
def _patterns() -> dict[str, list[tuple[re.Pattern[str], str]]]:
    """Return the patterns of `relative_days.txt` and what each names, by texts of which it needs one."""
    days = sorted((day for day in WEEKDAYS if len(day) > 3), key=len, reverse=True)
    number = "|".join([r"\d{1,4}", *NUMBER_WORDS, *_ONE])
    patterns: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for (kind, *_), listed in headed_lists("holdfast.text", "relative_days.txt"):
        for written in map(fold, listed):
            # What is not optional.
            literal = _OPTIONAL.sub(" ", written).replace("number", " ").split()
            filled = written.replace("number", f"({number})").replace("weekday", f"({'|'.join(days)})")
            edge = r"\b" if written[0].isascii() else ""
            keys = days if kind == "weekday" else [max(literal, key=len)]
            for key in keys:
                patterns.setdefault(key, []).append((late_pattern(f"{edge}{filled}{edge}"), kind))
    return patterns


def _spans_of(pattern: re.Pattern[str], kind: str, text: str, now: datetime) -> Iterator[tuple[int, int]]:
    today = now.date()
    for match in pattern.finditer(text):
        given = match[1] if pattern.groups else ""
        count = int(given) if given.isdigit() else int(NUMBER_WORDS.get(given, 1))
        # Beyond the years that a calendar has there is nothing.
        with suppress(OverflowError, ValueError):
            first, last = _span(kind, WEEKDAYS[given] if kind == "weekday" else count, today)
            yield _micros(first, now), _micros(last, now)


def _span(kind: str, count: int, today: date) -> tuple[date, date]:
    """Return the first day of a span, and the day after it; `count` is the number in it, or a weekday."""
    unit, _, back = kind.partition("-")
    ago = count if back == "n" else int(back or 0)
    if unit == "weekday":
        unit, ago = "day", (today.weekday() - count - 1) % 7 + 1
    if unit in _DAYS:
        monday = today.weekday() + 7 * ago
        days = {"week": monday, "weekend": monday - 5}.get(unit, ago)
        return today - timedelta(days), today - timedelta(days - (_DAYS[unit] or days + 1))
    months, length = ago, 1
    if unit == "year":
        months, length = today.month - 1 + 12 * ago, 12
    elif unit in _SEASONS:
        # The one that began last.
        since, length = today.month - _SEASONS[unit], 3
        months = since % 12 + (12 * ago if 0 <= since < 3 else 0)
    return _month(today, months), _month(today, months - length)


# The days of a span; 0 for one that lasts until today.
_DAYS = {"day": 1, "since": 0, "week": 7, "weekend": 2}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}


def _month(today: date, ago: int) -> date:
    # The calendar begins with the year 1.
    months = max(12, 12 * today.year + today.month - 1 - ago)
    return date(months // 12, months % 12 + 1, 1)


def _micros(day: date, now: datetime) -> int:
    return int(datetime.combine(day, time(), now.tzinfo).timestamp()) * 1_000_000
