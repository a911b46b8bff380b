from __future__ import annotations

import time
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.one_line import cut, flat, gist, shows
from soak import cases
from tables import each

ANY_TEXT = st.text(st.characters())  # with control characters and lone surrogates
MARKED = st.lists(
    st.sampled_from(
        [*"`*_~[]()!#>-|.:1ax é。\n\t\ud800\ufdd0", "```", "**", "](", "![", "Sure, ", "- ", "1. "]
    )
).map("".join)
# Visible characters of one code point and of several.
VISIBLE = [
    "a",
    "語",
    "é",
    "e\u0301",
    "👍🏽",
    "👩‍👩‍👧‍👦",
    "🇩🇪",
    "❤️",
    "한",
    "क्षि",
    "1️⃣",
    "\U0001f3f4\U000e0067\U000e007f",
]


# What is left of a text


@each(
    ("text", "line"),
    [
        ("", ""),
        ("\x00\x1b\x7f", ""),
        (
            "  several\n\nlines\tand   spaces\r\nin\u2028one\u3000line ",
            "several lines and spaces in one line",
        ),
        ("a\x00b\x1bc\x85d", "a b c d"),
        ("a\ud83d\ude00b\ud800", "a😀b\ufffd"),
        ("日本語とcafé 👩‍👩‍👧‍👦", "日本語とcafé 👩‍👩‍👧‍👦"),
    ],
)
def test_a_text_becomes_one_line(text: str, line: str) -> None:
    assert gist(text) == line


@each(
    ("text", "line"),
    [
        ("```\nx = 1\n```", "[code]"),
        ("```python\nx = 1", "[code]"),
        ("```", "[code]"),
        ("~~~\nx\n~~~", "[code]"),
        ("I fixed it:\n```py\nx = 1\n\n# y\n```\nTests pass.", "I fixed it: Tests pass."),
        ("Run ```ls -la``` there", "Run there"),
        ("> ```\n> x\n> ```\n> quoted", "quoted"),
        ("One.\n```\na\n```\nTwo.\n```\nb\n```", "One. Two."),
    ],
)
def test_code_in_fences_goes(text: str, line: str) -> None:
    assert gist(text) == line


@each(
    ("text", "line"),
    [
        ("Call `run()` in `main.py`", "Call run() in main.py"),
        ("Override `__init__`, not `a*b*c` or `[x](y)`", "Override __init__, not a*b*c or [x](y)"),
        ("``a ` b`` and ` c `", "a ` b and c"),
        ("one ` alone", "one ` alone"),
    ],
)
def test_inline_code_stays_without_its_backticks(text: str, line: str) -> None:
    assert gist(text) == line


@each(
    ("text", "line"),
    [
        ("See [the docs](https://a.b/c).", "See the docs."),
        ('See [the docs](https://a.b/c "Title") now', "See the docs now"),
        ("[Foo](https://w.org/Foo_(bar)) and [Bar [2]](x)", "Foo and Bar [2]"),
        ("![a cat](cat.png) sleeps", "a cat sleeps"),
        ("![](data:image/png;base64,AAAA) What is it?", "[image] What is it?"),
        ("[![build](b.svg)](https://ci) [![](b.svg)](https://ci)", "build [image]"),
        ("handlers[name](event) and a[0][1] and [ ] (x)", "handlers[name](event) and a[0][1] and [ ] (x)"),
    ],
)
def test_links_and_images_are_what_they_show(text: str, line: str) -> None:
    assert gist(text) == line


@each(
    ("text", "line"),
    [
        ("**bold**, *it* and _it_", "bold, it and it"),
        ("un**frigging**believable **Note:** x", "un**frigging**believable Note: x"),
        ("2 * 3 * 4 and 2*3*4 and x**2 + y**2", "2 * 3 * 4 and 2*3*4 and x**2 + y**2"),
        ("*.py,*.md src/**/*.py tests/**/*.py **/x **/y", "*.py,*.md src/**/*.py tests/**/*.py **/x **/y"),
        ("****four****", "****four****"),
    ],
)
def test_paired_markers_of_emphasis_go_and_other_stars_stay(text: str, line: str) -> None:
    assert gist(text) == line


@each(
    ("text", "line"),
    [
        ("# Plan\n\n- read\n- **write**\n- run", "Plan: read; write; run"),
        ("Steps\n1. Install it.\n2. Run it\n10) Stop it", "Steps: Install it. Run it; Stop it"),
        ("- over\n  two lines\n\nand a paragraph", "over two lines; and a paragraph"),
        ("#tag and #12", "#tag and #12"),
        ("Title\n=====\nText\n\n---\n\nmore * * *\n* * *", "Title Text more * * *"),
        ("> quoted\n>> twice\n> > more", "quoted twice more"),
        ("Sizes\n| a | b |\n|---|:-:|\n| `x|y` | 2 |\n\nEnd", "Sizes: a, b; x|y, 2; End"),
        ("---", "---"),
        ("# ", "#"),
    ],
)
def test_markers_of_blocks_become_punctuation(text: str, line: str) -> None:
    assert gist(text) == line


@each(
    ("text", "line"),
    [
        ("Sure, I can.", "I can."),
        ("Of course! Here it is.", "Here it is."),
        ("Okay, so the build fails", "the build fails"),
        ("I’d be happy to help with that! Send it.", "Send it."),
        ("Sure:\n- a\n- b", "a; b"),
        ("好的，我来修复。", "我来修复。"),
        ("Sure, okay, yes", "okay, yes"),  # one only
        ("Sure!", "Sure!"),
        ("Thanks!\n```\nx\n```", "Thanks!"),
    ],
)
def test_one_filler_goes_if_something_remains(text: str, line: str) -> None:
    assert gist(text) == line


# Where a line is cut


@each(
    ("text", "longest", "line"),
    [
        ("It works now. The rest follows.", 31, "It works now. The rest follows."),
        ("It works now. The rest follows.", 20, "It works now."),
        ("It works now. The rest follows.", 13, "It works now."),
        ("It works now. The rest follows.", 12, "It works…"),
        ("The release that is v1.2 has it", 24, "The release that is…"),
        ("I would rather say no. And you?", 24, "I would rather say no."),
        ("a" * 30, 10, "a" * 9 + "…"),
        ("abe\u0301xyz", 4, "ab…"),
        ("ab👩‍👩‍👧‍👦cd", 6, "ab…"),
        ("e" + "\u0301" * 20, 4, "e\u0301\u0301…"),  # longer than all that fits
        ("word", 1, "…"),
        ("word", 0, ""),
        ("word", -1, ""),
    ],
)
def test_a_long_line_is_cut_where_it_reads_best(text: str, longest: int, line: str) -> None:
    assert gist(text, longest) == line
    assert cut(text, longest) == line


def test_a_line_has_200_characters_unless_told_otherwise() -> None:
    assert gist("a" * 200) == "a" * 200
    assert gist("a" * 201) == "a" * 199 + "…"
    assert gist("words and " * 100) == "words and " * 19 + "words and…"


def test_an_abbreviation_does_not_make_the_whole_turn_short() -> None:
    text = "We compared several of them, e.g. " + "this one and that one and " * 20
    assert len(gist(text)) > 190


# For every text


@given(st.one_of(ANY_TEXT, MARKED), st.integers(-1, 60))
def test_a_gist_is_one_line_that_fits(text: str, longest: int) -> None:
    line = gist(text, longest)
    assert len(line) <= max(longest, 0)
    assert line == " ".join(line.split())
    assert flat(line) == line
    assert line.encode("utf-8").decode("utf-8") == line


@given(st.one_of(ANY_TEXT, MARKED))
def test_what_shows_something_has_a_gist(text: str) -> None:
    assert bool(gist(text)) == shows(text)


@given(st.text("ab .,;é語。!?\n"), st.integers(1, 40))
def test_a_gist_of_a_gist_is_the_same(text: str, longest: int) -> None:
    assert gist(gist(text, longest), longest) == gist(text, longest)


@given(st.lists(st.sampled_from(VISIBLE)), st.integers(15, 40))
def test_no_visible_character_is_split(characters: list[str], longest: int) -> None:
    line = gist("".join(characters), longest)
    assert line.removesuffix("…") in set(accumulate(characters, initial=""))


# For hostile texts

MEGA = cases(100_000, 1_000_000)
MARKS = [
    "` ",
    "```\n",
    "![a",
    "[a](b(c)",
    "[x[a]",
    "*a ",
    "**a *b ",
    "|a",
    "1. ",
    "> ",
    " ",
    "e.g. ",
    "sure, ",
    "\u0301",
    "🇩",
]
NEVER_CLOSED = ["[[b](" + unit * (MEGA // len(unit)) for unit in ("[a](x)", "(x)", "[a]")]
BACKTICKS = " ".join("`" * size for size in range(1, 1400))


@pytest.mark.scaled
@pytest.mark.slow
@each("text", [*(f"x {part * (MEGA // len(part))} y" for part in MARKS), *NEVER_CLOSED, BACKTICKS])
def test_a_megabyte_takes_linear_time(text: str) -> None:
    started = time.perf_counter()
    gist(text)
    assert time.perf_counter() - started < 10  # less than one second; hours if it were quadratic
