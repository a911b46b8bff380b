from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.text import analyze
from holdfast.text.prose import MAX_PASSAGES, PASSAGE, passages, split
from tables import each

SAID = "We keep the index in one file."
LISTING = "  1\tdef f():\n  2\t    return 1\n  3\tf()\n"
CALLS = [
    f"{SAID}\n```python\nx = 1\n```\n",
    f"{SAID}\n~~~\nx = 1\n~~~~\n",
    f"{SAID}\n```\nx = 1 and no end",
    f'{SAID}\n<tool-use data-type="read">x = 1</tool-use>\n',
    f"{SAID}\n<function_calls>x = 1\n<invoke>y</invoke></function_calls>\n",
    f'{SAID}\nBash {{"command": "x = 1"}}\n',
    f'{SAID}\n{{"x": 1}}\n',
    f"{SAID}\n{LISTING}",
    f"{SAID}\n{LISTING.replace(chr(9), '→')}",
]
MARKUP = [
    "```",
    "~~~",
    "\n",
    "<a-b>",
    "</a-b>",
    "<a-b c='d'>",
    "1\tx\n",
    '{"a": 1}',
    "word. ",
    "東京。",
    "<",
    ">",
]


def terms(text: str) -> Counter[str]:
    return Counter(analyze.tokens(text))


@each("text", CALLS)
def test_what_a_program_put_out_is_apart_from_what_is_said(text: str) -> None:
    said, output = split("assistant", text)
    assert said.strip() == SAID
    assert output


def test_the_first_line_of_a_result_is_said() -> None:
    assert split("tool", "\n3 passed\n2.1 s\n") == ("3 passed", "2.1 s")


def test_a_short_result_in_sentences_is_the_answer_of_a_person() -> None:
    answer = "No, do not do that.\nWe have it in the other file, and it is what I want."
    assert split("tool", answer) == (answer, "")


@each(
    "text",
    [
        SAID,
        "a < b and b > a, {x} and `f`",
        "1 | 2",
        "<b>bold</b> and <br> it goes on",
        "<tool-use> that never ends",
        "</tool-use> that never begins",
    ],
)
@each("role", ["user", "assistant", "system"])
def test_plain_words_are_said(role: str, text: str) -> None:
    assert split(role, text) == (text, "")


def test_a_short_text_is_one_passage() -> None:
    assert passages("") == [""]
    assert passages("word " * 50) == ["word " * 50]


def test_a_long_text_is_cut_at_sentences_and_paragraphs() -> None:
    sentence = "Here are a few words that say something. "
    found = passages(sentence * 40)
    assert len(found) > 5
    assert all(len(one) <= PASSAGE + 10 for one in found)
    assert all(one.strip().endswith(".") for one in found)
    assert passages("a b\n\n" + "c d " * 100)[0] == "a b"


def test_a_text_has_a_thousand_passages_at_most() -> None:
    assert len(passages("A few words here. " * 100_000)) <= MAX_PASSAGES + 1


@example("0<a-b></a-b>1\tx\n", "user")
@given(
    st.lists(st.sampled_from(MARKUP) | st.text(max_size=9), max_size=60).map("".join),
    st.sampled_from(["user", "tool"]),
)
def test_every_word_is_said_or_put_out_and_stands_in_a_passage(text: str, role: str) -> None:
    said, output = split(role, text)
    assert sum((terms(part) for part in (*passages(said), output)), Counter()) == terms(text)


@pytest.mark.slow
@each(
    "text",
    [
        "<a-b>" * 200_000,
        "<a-b " * 200_000,
        "`" * 1_000_000,
        "1\t\n" * 300_000,
        ("{" * 1000 + "\n") * 1000,
        "\n" * 1_000_000,
        "." * 1_000_000,
    ],
)
def test_hostile_texts_are_split_in_linear_time(text: str) -> None:
    """Quadratic time would be hours."""
    said, _ = split("assistant", text)
    passages(said)
