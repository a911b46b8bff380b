"""How a question is taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.search.query import SHORT, is_searchable, parse
from holdfast.text import analyze
from soak import cases
from tables import each


def words(query: str) -> dict[str, float]:
    """Give the words of a question as they were written, with their weights."""
    return {word.written: word.weight for word in parse(query).words}


@each(
    ("query", "expected"),
    [
        ("berlin", {"berlin": 1}),
        ("Which race is she preparing for?", {"race": 1, "preparing": 1}),
        ("berlin Berlin BERLIN", {"berlin": 3}),
        ("what is the", {"what": 1, "is": 1, "the": 1}),
        ("don't", {"not": 1}),
        ("parse_http_header", {"parse": 1, "http": 1, "header": 1, "parse_http_header": 1}),
        ("東京", {"東京": 1, "東": 0.3, "京": 0.3}),
        ("Wann hat meine Schwester den Termin?", {"schwester": 1, "termin": 1}),
        ("did Anna die in the war", {"anna": 1, "die": 1, "war": 1}),
        ("die war", {"die": 1, "war": 1}),
        ("Müller", {"muller": 1, "Müller": 0.3}),
        ("and/or", {"and/or": 1}),
    ],
)
def test_the_words_of_a_question(query: str, expected: dict[str, float]) -> None:
    assert words(query) == expected


@settings(max_examples=cases(50, 600))
@given(st.text())
def test_the_terms_of_a_question_are_those_of_a_message_of_the_same_text(text: str) -> None:
    message = {term for token in analyze.tokens(text) for term in analyze.analyze(token).terms}
    if is_searchable(text):
        assert {word.term for word in parse(text).words} <= message
    else:
        with pytest.raises(InvalidInput):
            parse(text)


@each(
    ("query", "roles"),
    [
        ("where do I live", {"user"}),
        ("what I'm reading", {"user"}),
        ("did you like it", {"assistant"}),
        ("did you see my garden", {"user", "assistant"}),
        ("hi mine", {"user"}),
        ("我的猫叫什么", {"user"}),
        ("你还记得我表妹的生日吗", {"user"}),
        ("我们的公司", set()),
        ("私の誕生日", {"user"}),
        ("hast du das gesagt", {"assistant"}),
    ],
)
def test_pronouns_point_at_roles(query: str, roles: set[str]) -> None:
    assert parse(query).roles == roles


def test_the_pronouns_of_a_long_text_point_at_nobody() -> None:
    assert parse("my " + " ".join(f"w{n}" for n in range(SHORT))).roles == {"user"}
    assert parse("my " + " ".join(f"w{n}" for n in range(SHORT + 1))).roles == set()


@each(
    "query",
    [
        "When did she go?",
        "how long was it",
        "what date is it",
        "我表妹的生日是什么时候？",
        "いつ会った？",
        "Wann ist die Feier?",
        "¿Cuándo es?",
    ],
)
def test_questions_for_a_time(query: str) -> None:
    assert parse(query).asks_time


@each("query", ["whenever", "how many cats", "what colour", "how are you", "which one", "他几岁", "有多少人"])
def test_questions_for_something_else(query: str) -> None:
    assert not parse(query).asks_time


def test_the_dates_of_a_question() -> None:
    assert parse("in July 2022 or on 2023-10-04").dates == ((2023, 10, 4), (2022, 7, None))


def test_a_question_can_be_kept_and_compared() -> None:
    assert parse("Berlin?") == parse("berlin?")
    assert parse("berlin!") == parse("Berlin")
    assert hash(parse("berlin")) == hash(parse("berlin"))
