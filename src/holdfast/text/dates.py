"""Dates in a query, such as "in July 2022", "on 9 November", "2023-10-04", "3. März" or "2024年3月5日"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from holdfast.text.analyze import fold
from holdfast.text.late_pattern import late_pattern
from holdfast.text.units import MONTHS

_END_OF_TIME = 253_402_300_800_000_000  # the end of the year 9999, the last one that `datetime` knows
# Of several languages, without accents; some are other words as well.
_MONTHS = {fold(name): number for name, number in MONTHS.items() if len(name) > 2}
_AMBIGUOUS = frozenset("may mai mars mar set sun marca maja".split())
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY = r"(\d{1,2})(?:st|nd|rd|th|\.(?= ))?"
# Characters of other scripts may stand right beside a number.
_ISO = late_pattern(r"\b((?:19|20)\d\d)-(\d{1,2})(?:-(\d{1,2}))?(?!\d)", re.ASCII)
_DOTTED = late_pattern(r"\b(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)\b", re.ASCII)
_UNSPACED = late_pattern(
    r"(?<!\d)(?:((?:19|20)\d\d)\s?[年년]\s?)?(\d{1,2})\s?[月월](?:份|\s?(\d{1,2})\s?[日号號일])?"
)
_WRITTEN = late_pattern(
    rf"\b(?:{_DAY}\s+(?:(?:of|de)\s+)?)?({_MONTH})\b\.?(?(1)|(?:\s+{_DAY}\b(?!\d))?)(?:,?\s*(?:of\s+)?((?:19"
    rf"|20)\d\d)\b)?"
)
# As in the United States, unless only the second number can be a month.
_SLASHED = late_pattern(r"(?<![\d/])(\d{1,2})/(\d{1,2})/((?:19|20)\d\d)(?![\d/])", re.ASCII)
_YEAR = late_pattern(r"\b((?:19|20)\d\d)\b", re.ASCII)
# "may" is mostly a verb: it is a month after one of these, or beside a day or a year.
_BEFORE_MONTH = late_pattern(
    r"\b(?:in|of|on|since|during|until|till|by|before|after|last|this|next|early|late|mid|im|seit|bis|ab)\s+$"
)
_LEAP_YEAR = 2000
_REACH = 12  # characters before a month in which to look for one of these


class PartialDate(NamedTuple):
    """A date of which some parts are known."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


def find_dates(text: str) -> list[PartialDate]:
    """Return the dates in a query: ISO 8601, months by name (English, German) or by sign, and bare years.

    >>> find_dates("Where did she travel in July 2022?")
    [PartialDate(year=2022, month=7, day=None)]
    """
    lower = text.lower() if text.isascii() else fold(text)
    by_year = [*_ISO.findall(lower), *_UNSPACED.findall(lower)]
    dates = [_date(year, int(month), day) for year, month, day in by_year]
    dates += [_date(year, int(month), day) for day, month, year in _DOTTED.findall(lower)]
    for first, second, year in _SLASHED.findall(lower):
        month, day = (second, first) if int(first) > 12 else (first, second)
        dates.append(_date(year, int(month), day))
    for match in _WRITTEN.finditer(lower):
        day_before, month, day_after, year = match.groups()
        day = day_before or day_after
        is_other = month in _AMBIGUOUS and not (day or year)
        if not is_other or _BEFORE_MONTH.search(lower[max(0, match.start(2) - _REACH) : match.start(2)]):
            dates.append(_date(year, _MONTHS[month], day))
    if not dates:
        dates = [PartialDate(int(year)) for year in _YEAR.findall(lower)]
    return [date for date in dict.fromkeys(dates) if date is not None]


def _date(year: str | None, month: int, day: str | None) -> PartialDate | None:
    """Return a date; None for one that does not exist, such as 31 February."""
    date = PartialDate(int(year) if year else None, month, int(day) if day else None)
    if not 1 <= month <= 12:
        return None
    # Few queries name a date.
    from calendar import monthrange

    days = monthrange(date.year or _LEAP_YEAR, month)[1]
    return date if date.day is None or 1 <= date.day <= days else None


def month_start(year: int, month: int, zone: tzinfo = UTC) -> int:
    """Return the start of a month in microseconds since the epoch; month 13 is in the next year."""
    return _later(year + (month - 1) // 12, (month - 1) % 12 + 1, 0, zone, _END_OF_TIME)


def _later(year: int, month: int, days: int, zone: tzinfo, otherwise: int) -> int:
    """Return the midnight some days after the start of a month, or something else beyond the calendar."""
    try:
        return int((datetime(year, month, 1, tzinfo=zone) + timedelta(days)).timestamp()) * 1_000_000
    except (OverflowError, ValueError):
        return otherwise


def spans(
    date: PartialDate, first_year: int, last_year: int, zone: tzinfo = UTC
) -> list[tuple[int, int, float]]:
    """Return the spans of a date within some years, as (from, before, weight from 0 to 1).

    With a day: that day 1, three days around it 0.7, the rest of the month 0.4, since people date things
    roughly.
    """
    ranges: list[tuple[int, int, float]] = []
    years = [date.year] if date.year is not None else range(first_year, last_year + 1)
    for year in years:
        if date.month is None:
            ranges.append((month_start(year, 1, zone), month_start(year + 1, 1, zone), 1.0))
            continue
        start, end = month_start(year, date.month, zone), month_start(year, date.month + 1, zone)
        ranges.append((start, end, 1.0 if date.day is None else 0.4))
        if date.day is not None:
            # A day is 23 or 25 hours long where the clock is changed; 29 February is not in every year.
            for days, length, share in ((date.day - 4, 7, 0.7), (date.day - 1, 1, 1.0)):
                begin = _later(year, date.month, days, zone, start)
                ranges.append(
                    (max(start, begin), min(end, _later(year, date.month, days + length, zone, end)), share)
                )
    return ranges
