from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.text.dates import PartialDate, find_dates, spans
from soak import cases
from tables import each


def micros(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp()) * 1_000_000


def fit(date: PartialDate, at: int, first_year: int = 2020, last_year: int = 2024) -> float:
    """Say how well a moment fits a date: as the best of the spans that it lies in."""
    return max(
        (share for start, end, share in spans(date, first_year, last_year) if start <= at < end), default=0.0
    )


# Finding


@each(
    ("text", "found"),
    [
        # ISO 8601
        ("on 2023-10-04", [(2023, 10, 4)]),
        ("at 2023-10-04T12:30:00Z", [(2023, 10, 4)]),
        # Chinese, Japanese, Korean
        ("我们在2024年3月5日去了哪里", [(2024, 3, 5)]),
        ("2024年", [(2024, None, None)]),
        ("2024년 3월 5일", [(2024, 3, 5)]),
        ("3个月", []),
        # German
        ("am 3. März 2024", [(2024, 3, 3)]),
        ("05.03.2024", [(2024, 3, 5)]),
        ("im Mai", [(None, 5, None)]),
        ("Mai Tai", []),
        # day and month in both orders
        ("November 9", [(None, 11, 9)]),
        ("November 9th, 2022", [(2022, 11, 9)]),
        ("9th of November of 2022", [(2022, 11, 9)]),
        ("1st January, 2nd February and 3rd March", [(None, 1, 1), (None, 2, 2), (None, 3, 3)]),
        # month alone, abbreviated, with a year
        ("Sept. 2022", [(2022, 9, None)]),
        ("Dec. 24", [(None, 12, 24)]),
        ("1 May 9 July 2022", [(None, 5, 1), (2022, 7, 9)]),
        ("July 2022, July 2022", [(2022, 7, None)]),
        # years alone
        ("what happened in 2022?", [(2022, None, None)]),
        # "may" and others that are no months
        ("may I ask", []),
        ("in May", [(None, 5, None)]),
        ("last  May", [(None, 5, None)]),
        ("May 5th", [(None, 5, 5)]),
        ("maybe", []),
        ("dismay 2022", [(2022, None, None)]),
        # no dates
        ("", []),
        ("call 555-2023-99", []),
        ("ERR_2023x", []),
        # no date that a calendar has
        ("31 February", []),
        ("0 March", []),
        ("2023-13-45", []),
        ("2023-02-30", []),
        ("29 February", [(None, 2, 29)]),
        ("29 February 2024", [(2024, 2, 29)]),
        ("29 February 2000", [(2000, 2, 29)]),
        ("31 February, or 2 March", [(None, 3, 2)]),
    ],
)
def test_find_dates(text: str, found: list[tuple[int | None, int | None, int | None]]) -> None:
    assert [tuple(one) for one in find_dates(text)] == found


@settings(max_examples=cases(75, 600))
@given(st.text() | st.text(alphabet="0123456789-/. ofthstndrmayjuneécember"))
def test_any_text_has_dates_or_none(text: str) -> None:
    for found in find_dates(text):
        spans(found, 1, 9999)


@given(
    st.dates(
        min_value=datetime(1900, 1, 1, tzinfo=UTC).date(), max_value=datetime(2099, 12, 31, tzinfo=UTC).date()
    )
)
def test_every_day_is_found_in_every_way_to_write_it(day: date) -> None:
    expected = [PartialDate(day.year, day.month, day.day)]
    name = "January February March April May June July August September October November December".split()[
        day.month - 1
    ]
    for text in (
        f"{day}",
        f"{day.day} {name} {day.year}",
        f"{name} {day.day}, {day.year}",
        f"the {day.day}th of {name.lower()} {day.year}",
        f"{day}T10:00",
    ):
        assert find_dates(text) == expected


@pytest.mark.slow
@each("text", ["may " * 25_000, "1 may " * 16_000, "1" + " " * 100_000, "2023-" * 20_000, "1 of " * 20_000])
def test_long_texts_are_searched_to_the_end(text: str) -> None:
    assert (2022, 7, 9) in find_dates(text + ", 9 july 2022")


# Which times a date speaks of


def test_a_year_and_a_month_speak_of_all_their_days() -> None:
    for whole, end in (
        (PartialDate(2022), micros(2023, 1, 1)),
        (PartialDate(2022, 2), micros(2022, 3, 1)),
        (PartialDate(2022, 12), micros(2023, 1, 1)),
    ):
        assert fit(whole, micros(2022, whole.month or 1, 1)) == fit(whole, end - 1) == 1
        assert fit(whole, end) == 0


@each(("day", "expected"), [(9, 1.0), (8, 0.7), (12, 0.7), (6, 0.7), (5, 0.4), (13, 0.4), (30, 0.4)])
def test_a_day_speaks_of_itself_most_and_less_of_the_days_around(day: int, expected: float) -> None:
    assert fit(PartialDate(2022, 11, 9), micros(2022, 11, day)) == expected


def test_the_last_moment_of_a_day_is_of_that_day() -> None:
    assert fit(PartialDate(2022, 11, 9), micros(2022, 11, 10) - 1) == 1


@pytest.mark.parametrize("day", [1, 30])
def test_a_day_at_the_edge_of_its_month_does_not_speak_of_the_next(day: int) -> None:
    assert fit(PartialDate(2022, 11, day), micros(2022, 10, 31)) == 0
    assert fit(PartialDate(2022, 11, day), micros(2022, 12, 1)) == 0


def test_without_a_year_every_year_counts() -> None:
    fits = [fit(PartialDate(None, 7), micros(year, 7, 9)) for year in range(2019, 2026)]
    assert fits == [0, *[1] * 5, 0]


def test_29_february_is_in_leap_years_only() -> None:
    assert fit(PartialDate(None, 2, 29), micros(2024, 2, 29)) == 1
    assert fit(PartialDate(None, 2, 29), micros(2023, 3, 1)) == 0
    assert fit(PartialDate(None, 2, 29), micros(2023, 2, 28)) == 0.7


@each("date", [PartialDate(None, 12, 31), PartialDate(9999), PartialDate(None, 1, 1), PartialDate(None, 12)])
def test_the_first_and_the_last_year_of_the_calendar_have_spans(date: PartialDate) -> None:
    assert all(start < end for start, end, _ in spans(date, 1, 9999))
