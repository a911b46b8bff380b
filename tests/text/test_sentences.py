"""Sentences: where they end, and what is left off their beginning."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.text.sentences import sentences, without_filler
from soak import cases
from tables import each

TEXTS = st.text(
    st.sampled_from("ab Zé.!?\n\t·-:`|1/漢字。！🎉مر{}()[]<>\"'_=…") | st.characters(), max_size=300
)


def test_a_long_sentence_is_not_cut_within_a_number() -> None:
    told = " and so ".join(f"we open at 10:{n}0 and sell 1,{n}00 loaves" for n in range(10, 30))
    assert re.findall(r"10:\d+|1,\d+", " ".join(sentences(told))) == re.findall(r"10:\d+|1,\d+", told)


@each(
    ("text", "expected"),
    [
        ("We met Dr. Lee, e.g. at 3.5 km. She left!", ["We met Dr. Lee, e.g. at 3.5 km.", "She left!"]),
        ("See https://a.example/b.html?q=1 now. Done.", ["See https://a.example/b.html?q=1 now.", "Done."]),
        ("1. milk\n2) eggs\n- [ ] rye bread", ["milk", "eggs", "rye bread"]),
        ("我们决定了。下一步！好吗？", ["我们决定了。", "下一步！", "好吗？"]),
        ("So did I. We left.", ["So did I.", "We left."]),
        (
            "It was a long line that was broken by its width\nand went on here.",
            ["It was a long line that was broken by its width and went on here."],
        ),
        ("One\nTwo", ["One", "Two"]),
        ("`a. B`", ["`a. B`"]),
        ("----------------------------------------\n| a | b |\n|---|---|", ["a | b"]),
    ],
)
def test_sentences_end_where_they_end(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@settings(max_examples=cases(25, 300))
@given(TEXTS)
def test_sentences_are_single_lines(text: str) -> None:
    assert all(len(one.splitlines()) == 1 and one == one.strip() for one in sentences(text))


def test_fillers_are_left_off() -> None:
    assert without_filler("Wow, Anna, I moved to Porto.") == "I moved to Porto."
    assert without_filler("No, we use Redis for that.") == "No, we use Redis for that."
