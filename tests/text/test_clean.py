from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.clean import clean
from tables import each

ANY_TEXT = st.text(st.characters())  # with NUL and lone surrogates


@each(
    ("text", "cleaned"),
    [
        ("a\x00b\x00", "a\ufffdb\ufffd"),
        *((f"é{chr(lone)}z", "é\ufffdz") for lone in (0xD800, 0xDBFF, 0xDC00, 0xDFFF)),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("a\ud83d\ude00b", "a😀b"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
    ],
)
def test_nul_and_lone_surrogates_become_the_replacement_character(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_cleaning_keeps_all_other_text(text: str) -> None:
    assert clean(text) == text
