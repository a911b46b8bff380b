from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.clean import clean
from tables import each

ANY_TEXT = st.text(st.characters())  # with NUL and lone surrogates


def test_nul_becomes_the_replacement_character() -> None:
    assert clean("a\x00b\x00") == "a\ufffdb\ufffd"


@each("lone", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_a_lone_surrogate_becomes_the_replacement_character(lone: int) -> None:
    assert clean(f"é{chr(lone)}z") == "é\ufffdz"


def test_surrogates_in_the_wrong_order_are_both_lone() -> None:
    assert clean("\ude00\ud83d") == "\ufffd\ufffd"


def test_the_halves_of_a_pair_become_the_character_that_they_encode() -> None:
    assert clean("a\ud83d\ude00b") == "a😀b"


def test_a_high_surrogate_before_a_pair_leaves_the_pair_whole() -> None:
    assert clean("\ud83d\ud83d\ude00") == "\ufffd😀"


@each(
    "text",
    ["", "plain", "línea\r\n\t", "日本語", "👩‍👩‍👧‍👦", "\ufeffbom", "\x01\x1f\x7f\x80", "\ufffd", "\u2028"],
)
def test_text_that_both_databases_store_stays_as_it_is(text: str) -> None:
    assert clean(text) is text


@given(ANY_TEXT)
def test_cleaned_text_is_unicode_without_nul(text: str) -> None:
    assert "\x00" not in clean(text).encode("utf-8").decode("utf-8")


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_cleaning_keeps_all_other_text(text: str) -> None:
    assert clean(text) == text
