from __future__ import annotations

import doctest
import unicodedata
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.text import analyze, dates, function_words, synonyms, unspaced
from soak import cases
from tables import each

FORMS = ("NFC", "NFD")


def terms(text: str) -> list[int]:
    return [term for token in analyze.tokens(text) for term in analyze.analyze(token).terms]


# Tokens


@each(
    ("text", "tokens"),
    [
        ("", []),
        ("?!… — *", []),
        ("Ordered 🍕😀, 👍🏽!", ["Ordered", "🍕", "😀", "👍"]),
        ("one.Two", ["one.Two"]),
        ("parse_http_header()", ["parse_http_header"]),
        ("src/a/b.py:12", ["src/a/b.py:12"]),
        ("v1.2.3.", ["v1.2.3"]),
        ("anna.k@example.com", ["anna.k@example.com"]),
        ("https://a.b/c?d=e#f", ["https://a.b/c", "d", "e", "f"]),
        ("don't 'quoted' O’Brien", ["don't", "quoted", "O’Brien"]),
        ("100% a+b C++", ["100", "a", "b", "C"]),
        ("cafe\u0301", ["café"]),
        ("\u0301", []),
        ("東京タワー、きれい。", ["東京タワー", "きれい"]),
        ("a\ud800b", ["a", "b"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert analyze.tokens(text) == tokens


# Words


@each(
    ("token", "words"),
    [
        ("Hello", ["hello"]),
        ("parse_http_header", ["parse", "http", "header"]),
        ("parse-http.header/x:y@z", ["parse", "http", "header", "x", "y", "z"]),
        ("HTTPServer", ["http", "server"]),
        ("iPhone", ["i", "phone"]),
        ("McDonald", ["mc", "donald"]),
        ("HTTP2Server", ["http2", "server"]),
        ("7", ["7"]),
        ("Anna’s", ["anna"]),
        ("don't", ["not"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー", "東", "京", "タ", "ワ", "ー"]),
        ("O'Brien", ["o", "brien"]),
        ("rock'n'roll", ["rock", "n", "roll"]),
        ("手机iPhone", ["手机", "手", "机", "iphone"]),
        ("３月", ["3", "3月", "月"]),
        ("2024年3月", ["2024", "2024年", "年", "3", "3月", "月"]),
        ("13812345678的", ["13812345678", "的"]),
    ],
)
def test_split(token: str, words: list[str]) -> None:
    assert analyze.split(token) == words


@each(
    ("token", "whole"),
    [
        ("Hello", None),
        ("KX7", None),
        ("Anna's", None),
        ("parse_http_header", "parse_http_header"),
        ("KX7-PLM42", "kx7-plm42"),
        ("Anna.K@Example.com", "anna.k@example.com"),
        ("HTTPServer", analyze.normal("httpserver")),
        ("iPhones", analyze.normal("iphone")),
        ("O'Brien", "o'brien"),
        ("東京", None),
        ("東京-大阪", "東京-大阪"),
    ],
)
def test_whole_term(token: str, whole: str | None) -> None:
    assert analyze.whole_term(token) == whole


@each(
    ("text", "folded"),
    [
        ("Straße", "strasse"),
        ("İ", "i"),
        ("ﬁ", "fi"),
        ("ＡＢＣ１２３", "abc123"),
        ("ｶﾞ", "ガ"),
        ("Ё", "е"),
        ("Łódź", "lodz"),
        ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
        ("مُحَمَّد", "محمد"),
        ("שָׁלוֹם", "שלום"),
        ("हिंदी", "हिंदी"),
        ("", ""),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert analyze.fold(text) == folded
    for form in FORMS:
        assert analyze.fold(unicodedata.normalize(form, text)) == folded  # type: ignore[arg-type]


@each(
    ("word", "other"),
    [
        ("running", "runs"),
        ("went", "go"),
        ("bought", "buying"),
        ("children", "child"),
        ("was", "is"),
        ("taught", "teaches"),
        ("sang", "singing"),
    ],
)
def test_all_forms_of_a_word_are_one(word: str, other: str) -> None:
    assert analyze.normal(word) == analyze.normal(other)


@pytest.mark.parametrize(("word", "other"), [("paris", "pair"), ("4312", "4313"), ("swimming", "swinging")])
def test_words_that_only_look_alike_are_not_one(word: str, other: str) -> None:
    assert analyze.normal(word) != analyze.normal(other)


# Terms


@each("word", ["YouTube", "iPhone", "HTTPServer", "McDonalds"])
def test_a_name_with_capitals_inside_has_the_term_of_the_plain_word(word: str) -> None:
    assert set(terms(word.lower())) <= set(terms(word))
    assert set(terms(word.upper())) <= set(terms(word))


@each(
    ("text", "words"),
    [
        ("the marathon", 1),
        ("to be or not to be", 0),
        ("parse_http_header", 3),
        ("HTTPServer", 2),
        ("don't", 0),
        ("東京", 1),
        ("東", 1),
        ("我表妹的生日", 5),
        ("的", 0),
    ],
)
def test_stop_words_count_for_no_length(text: str, words: int) -> None:
    assert sum(analyze.analyze(token).words for token in analyze.tokens(text)) == words
    assert terms(text), "a stop word has a term all the same"


@each(
    "word",
    [
        "yesterday",
        "Monday",
        "2023",
        "last_week",
        "昨天下午去了",
        "3月5日",
        "어제",
    ],
)
def test_words_that_tell_a_time(word: str) -> None:
    assert analyze.analyze(word).tells_time


@each("word", ["marathon", "20235", "123", "the", "Mondays?", "東京", "有一点"])
def test_words_that_tell_no_time(word: str) -> None:
    assert not analyze.analyze(word).tells_time


@each(("one", "other"), [("Müller", "Mueller"), ("GRÜSSE", "Gruesse"), ("Müller", "muller"), ("Öl", "oel")])
def test_points_above_a_letter_may_be_spelled_out_or_left_out(one: str, other: str) -> None:
    assert set(terms(other)) <= set(terms(one))


def test_a_word_of_a_run_that_says_nothing_counts_for_little() -> None:
    weights = dict(analyze.weigh("我表妹的生日是什么时候"))
    assert {word for word, weight in weights.items() if weight == 1} == {"表妹", "生日"}
    assert {word for word, weight in weights.items() if weight == unspaced.SINGLE} == set("表妹生日")
    assert max(weights[word] for word in ("妹的", "日是", "什么", "时候")) == unspaced.TOUCHING
    assert weights["的"] == 0


def test_a_particle_at_the_end_of_a_korean_word_counts_for_little() -> None:
    assert dict(analyze.weigh("서울에서"))["서울"] == 1
    assert dict(analyze.weigh("서울에서"))["울에"] == unspaced.TOUCHING
    assert dict(analyze.weigh("가족이"))["가족"] == 1


# Any text


@settings(max_examples=cases(75, 600))
@given(st.text())
def test_any_text_can_be_analysed(text: str) -> None:
    for token in analyze.tokens(text):
        assert token
        found = analyze.analyze(token)
        assert 0 <= found.words <= len(found.terms)
        assert all(0 <= term < 2**64 for term in found.terms)
        assert analyze.split(token)


@settings(max_examples=cases(75, 600))
@given(st.text())
def test_composed_and_decomposed_texts_have_the_same_terms(text: str) -> None:
    expected = terms(text)
    for form in FORMS:
        assert terms(unicodedata.normalize(form, text)) == expected  # type: ignore[arg-type]


@settings(max_examples=cases(75, 600))
@given(st.text(alphabet=st.characters(max_codepoint=0x7F)))
def test_plain_text_does_not_depend_on_what_stands_beside_it(text: str) -> None:
    assert terms(text + " é")[: len(terms(text))] == terms(text)


# What the documentation says


@each("module", [analyze, dates, function_words, synonyms, unspaced])
def test_the_examples_of_the_documentation_are_true(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0
    assert doctest.testmod(module).attempted > 0
