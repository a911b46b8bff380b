"""Reading JSON out of answers: whatever stands around it, wherever it breaks off, however hostile it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.llm.json_answers import LONGEST_ANSWER, has, listed, numbers_of, parse, picked, table, text_of
from holdfast.llm.llm_request import Unreadable
from soak import cases
from tables import each

VALUE = {"findings": [{"text": 'Ada\'s dog is called "Rex" {he}.', "messages": [1, 2]}], "insights": []}
WRITTEN = json.dumps(VALUE)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
CONTAINERS = st.lists(VALUES, max_size=4) | st.dictionaries(st.text(), VALUES, max_size=4)


@each(
    "answer",
    [
        f"  \n{WRITTEN}\n",
        f"Sure! {WRITTEN} I hope that helps.",
        f'<think>Maybe {{"findings": ["a longer draft than the answer, {"x" * 200}"]}}?</think>{WRITTEN}',
        f'Let me see {{"a": 1}}</think>\n{WRITTEN}',
        WRITTEN.replace("2]", "2,]").replace("}]", ",\n} , ]").replace("[]}", "[],}"),
        f"\ufeff{WRITTEN}",
    ],
)
def test_what_stands_around_it_does_not_matter(answer: str) -> None:
    assert parse(answer) == VALUE


@given(CONTAINERS)
def test_whatever_is_json_is_read_as_json(value: object) -> None:
    for written in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert parse(written) == value
        assert parse(f"```json\n{written}\n```\nDone.") == value


@each(
    ("answer", "value"),
    [
        ('{"findings": ["One.", "Two and a ha', {"findings": ["One."]}),
        ('{"findings": ["One."], "insights": [{"text": "Cut', {"findings": ["One."], "insights": []}),
        ('{"findings": [{"text": "One."}, {"text": "Two."', {"findings": [{"text": "One."}]}),
        ('{"a": {"b": 1, "c": [1, 23', {"a": {"b": 1, "c": [1]}}),
        ('```json\n["One.", "Two\n```', ["One."]),
    ],
)
def test_of_what_is_cut_off_the_complete_is_kept(answer: str, value: object) -> None:
    assert parse(answer) == value


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (key, *strings(item))
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


@given(CONTAINERS, st.data())
def test_wherever_it_is_cut_off_nothing_is_halved(value: object, data: st.DataObject) -> None:
    written = json.dumps(value)
    cut = written[: data.draw(st.integers(0, len(written) - 1))]
    try:
        found = parse(cut)
    except Unreadable:
        return
    assert set(strings(found)) <= set(strings(value))


@each(
    "answer",
    [
        "Nothing to save.",
        "```json\n```",
        "{oops}",
        "<think>{}</think>",
        '["\\x"]',
        f"[{'9' * 5_000}]",
    ],
)
def test_an_answer_without_json_is_unreadable(answer: str) -> None:
    with pytest.raises(Unreadable, match="no JSON"):
        parse(answer)


@each("answer", ["{", "[", '{"findings": [', '{"findings": [], "insights": ["We fou', "```json\n{\n```"])
def test_what_is_cut_off_too_early_is_not_taken_for_nothing(answer: str) -> None:
    with pytest.raises(Unreadable, match="breaks off") as raised:
        parse(answer)
    assert "fou" not in str(raised.value)


@pytest.mark.slow
@each("part", ["[", "{", "```", '["', '{"a":', "{```", "<think>", "[1,", '"', "\\", '["\\x"', "]", "[ "])
def test_a_hostile_answer_takes_no_time_and_no_stack(part: str) -> None:
    hostile = part * 100_000
    for answer in (hostile, f"```json\n{hostile}x\n```"):
        with suppress(Unreadable):
            assert parse(answer)


@settings(max_examples=cases(75, 600))
@given(st.text('{}[]",:\\`1a \n') | st.text())
def test_any_answer_is_read_or_unreadable(answer: str) -> None:
    with suppress(Unreadable):
        assert isinstance(parse(answer), list | dict)


# What was asked for


def test_an_object_is_taken_also_out_of_a_list() -> None:
    assert table({"a": 1}, "It") == table([{"a": 1}], "It") == {"a": 1}
    wrong: list[object] = [None, "a", 1, [], [1], [{}, {}]]
    for value in wrong:
        with pytest.raises(Unreadable, match=r"the answer is not an object\."):
            table(value, "the answer")


@each("key", ["findings", "finding", " FINDING ", "other"])
def test_a_key_is_found_in_any_case_and_number(key: str) -> None:
    is_there = key != "other"
    assert picked({"more": 0, key: 1}, "findings") == picked({key: 1}, "finding") == (1 if is_there else None)
    assert has({key: None}, "finding") is is_there


@each(("value", "items"), [([1, 2], [1, 2]), ("one", ["one"]), ({"a": 1}, [{"a": 1}]), (3, [3]), (None, [])])
def test_a_list(value: object, items: list[object]) -> None:
    assert listed(value) == items


@each(
    ("value", "text"),
    [
        (3, "3"),
        (None, ""),
        ({"finding": "a", "text": None}, "a"),
        ("a\x00\ud800", "a\ufffd\ufffd"),
    ],
)
def test_a_text(value: object, text: str) -> None:
    assert text_of(value, "finding") == text


@each("value", [True, [], ["a"], {}, {"other": "a"}, {"text": ["a"]}])
def test_what_is_no_text_is_unreadable(value: object) -> None:
    with pytest.raises(Unreadable):
        text_of(value)


@each(
    ("value", "numbers"),
    [
        (3, [3]),
        ([3, 5], [3, 5]),
        ("3-5", [3, 5]),
        ({"first": 3, "last": "5"}, [3, 5]),
        (None, []),
        (float("inf"), []),
        ("9" * 10_000, []),
    ],
)
def test_numbers(value: object, numbers: list[int]) -> None:
    assert numbers_of(value) == numbers


def test_an_answer_that_is_far_too_long_is_not_scanned() -> None:
    with pytest.raises(Unreadable, match=r"1,000,001 characters"):
        parse("[1]" + " " * (LONGEST_ANSWER - 2))
    assert parse("[1]" + " " * (LONGEST_ANSWER - 3)) == [1]
