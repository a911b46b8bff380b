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
        (" \n\t\r\n ", ""),
        ("\x00\x1b\x7f", ""),
        ("plain words", "plain words"),
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
        ("```x = 1```", "[code]"),
        ("~~~\nx\n~~~", "[code]"),
        ("I fixed it:\n```py\nx = 1\n\n# y\n```\nTests pass.", "I fixed it: Tests pass."),
        ("It hangs here\n```\nwhile True: pass", "It hangs here"),
        ("Like this: ```python\nx = 1\n```\nAnd run it.", "Like this: And run it."),
        ("```py\nx = 1```\nAnd run it.", "And run it."),
        ("Run ```ls -la``` there", "Run there"),
        ("````md\n```\nx\n```\n````\nThat is it.", "That is it."),
        ("```\n~~~\n```\nThat is it.", "That is it."),
        ("> ```\n> x\n> ```\n> quoted", "quoted"),
        ("- ```\n  x\n  ```\n- second", "second"),
        ("7. ```\n   x\n   ```", "[code]"),
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
        ("`over\ntwo lines`", "over two lines"),
        ("**`bold code`**", "bold code"),
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
        ("**[bold](x)**", "bold"),
        ("看[文档](https://a.b)吧", "看文档吧"),
        ("See https://a.b/d_e_f", "See https://a.b/d_e_f"),
        ("![a cat](cat.png) sleeps", "a cat sleeps"),
        ("![](data:image/png;base64,AAAA) What is it?", "[image] What is it?"),
        ("[![build](b.svg)](https://ci) [![](b.svg)](https://ci)", "build [image]"),
        ("[](x)", "[](x)"),
        ("handlers[name](event) and a[0][1] and [ ] (x)", "handlers[name](event) and a[0][1] and [ ] (x)"),
    ],
)
def test_links_and_images_are_what_they_show(text: str, line: str) -> None:
    assert gist(text) == line


@each(
    ("text", "line"),
    [
        ("**bold**, *it* and _it_", "bold, it and it"),
        ("***both*** and **bold *it***", "both and bold it"),
        ("**over\ntwo lines**", "over two lines"),
        ("这是**粗体**文字，和*斜体*。", "这是粗体文字，和斜体。"),
        ("un**frigging**believable **Note:** x", "un**frigging**believable Note: x"),
        ("2 * 3 * 4 and 2*3*4 and x**2 + y**2", "2 * 3 * 4 and 2*3*4 and x**2 + y**2"),
        ("f(**a) and g(**b), *args, **kwargs", "f(**a) and g(**b), *args, **kwargs"),
        ("*.py,*.md src/**/*.py tests/**/*.py **/x **/y", "*.py,*.md src/**/*.py tests/**/*.py **/x **/y"),
        ("snake_case_name, _private and __init__.py", "snake_case_name, _private and __init__.py"),
        ("**open and *open", "**open and *open"),
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
        ("- 1. nested\n    - deeper", "nested; deeper"),
        ("3. May is fine", "3. May is fine"),  # no list begins so
        ("2) yes\n3) no", "2) yes 3) no"),
        ("-5 degrees, +3 tomorrow", "-5 degrees, +3 tomorrow"),
        ("### Learn C#\n## Why?\nBecause", "Learn C#: Why? Because"),
        ("#tag and #12", "#tag and #12"),
        ("Title\n=====\nText\n\n---\n\nmore * * *\n* * *", "Title Text more * * *"),
        ("> quoted\n>> twice\n> > more", "quoted twice more"),
        (">= 3 items", ">= 3 items"),
        ("Sizes\n| a | b |\n|---|:-:|\n| `x|y` | 2 |\n\nEnd", "Sizes: a, b; x|y, 2; End"),
        ("ls | grep x | wc", "ls | grep x | wc"),
        ("---", "---"),
        ("***", "***"),
        ("# ", "#"),
        (":)", ":)"),
    ],
)
def test_markers_of_blocks_become_punctuation(text: str, line: str) -> None:
    assert gist(text) == line


@each(
    ("text", "line"),
    [
        ("Sure, I can.", "I can."),
        ("sure thing! done", "done"),
        ("Of course! Here it is.", "Here it is."),
        ("Great question. It depends.", "It depends."),
        ("That's a good point! It does.", "It does."),
        ("Okay, so the build fails", "the build fails"),
        ("OK so the build fails", "the build fails"),
        ("Alright, then: go", "go"),
        ("Got it — renaming.", "renaming."),
        ("I’d be happy to help with that! Send it.", "Send it."),
        ("Thanks, that works", "that works"),
        ("Hi there, fix it", "fix it"),
        ("**Sure!** I can.", "I can."),
        ("Sure:\n- a\n- b", "a; b"),
        ("好的，我来修复。", "我来修复。"),
        ("Natürlich! Das geht.", "Das geht."),
        ("Sure, okay, yes", "okay, yes"),  # one only
        ("Sure!", "Sure!"),
        ("Of course.", "Of course."),
        ("Sure! 👍", "Sure! 👍"),
        ("Thanks!\n```\nx\n```", "Thanks!"),
        ("Let me look at it.", "Let me look at it."),
        ("Yes, it does.", "Yes, it does."),
        ("Hello, world is printed", "Hello, world is printed"),
        ("Thanks for the file, it works", "Thanks for the file, it works"),
        ("Great-looking page", "Great-looking page"),
        ("Surely, it works. So did I.", "Surely, it works. So did I."),
        ("ok.md is a file", "ok.md is a file"),
        ("Well-known ports", "Well-known ports"),
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
        ("It works. The rest of it follows later.", 20, "It works. The rest…"),  # before half
        ("Does it work?! (Yes.) It does", 23, "Does it work?! (Yes.)"),
        ("He said “it works.” Then he left", 24, "He said “it works.”"),
        ("We use a cache, e.g. Redis or so", 24, "We use a cache, e.g.…"),
        ("I asked nobody but Dr. Smith there", 25, "I asked nobody but Dr.…"),
        ("The release that is v1.2 has it", 24, "The release that is…"),
        ("The release is now v1.2. It has it", 26, "The release is now v1.2."),
        ("Read the chapter No. 5 of it", 23, "Read the chapter No. 5…"),
        ("I would rather say no. And you?", 24, "I would rather say no."),
        ("It was written by J. Smith", 22, "It was written by J.…"),
        ("First wait for it... then go on", 24, "First wait for it..."),
        ("これは動きます。次のものはまだです", 10, "これは動きます。"),
        ("他说「可以了。」然后走了", 9, "他说「可以了。」"),
        ("动了！然后呢？不知道为什么", 8, "动了！然后呢？"),
        ("यह काम करता है। बाकी बाद में", 18, "यह काम करता है।"),
        ("one, two, three", 10, "one, two…"),
        ("a" * 30, 10, "a" * 9 + "…"),
        ("a bbbbbbbbbbbbbbbbbbbbbbbb", 10, "a bbbbbbb…"),
        ("ééééé", 4, "ééé…"),
        ("日本語日本語", 4, "日本語…"),
        ("abe\u0301xyz", 4, "ab…"),
        ("ab👩‍👩‍👧‍👦cd", 6, "ab…"),
        ("🇩🇪🇫🇷🇪🇸", 4, "🇩🇪…"),
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


@given(ANY_TEXT)
def test_flat_text_keeps_its_length_and_breaks_no_line(text: str) -> None:
    assert len(flat(text)) <= len(text)
    assert len(flat(text).splitlines()) <= 1


# For hostile texts

MEGA = cases(100_000, 1_000_000)


MARKS = [
    "`",
    "` ",
    "``` a ",
    "```\n",
    "[",
    "![a",
    "[a](",
    "[a](b(c)",
    "[x[a]",
    "*",
    "*a ",
    "**a *b ",
    "_a ",
]
OTHERS = [
    "(",
    "|a",
    "- ",
    "1. ",
    "# ",
    "> ",
    "\n",
    " ",
    ".",
    "e.g. ",
    "sure, ",
    "\x00",
    "\u0301",
    "🇩",
]


@pytest.mark.scaled
@pytest.mark.slow
@each("part", [*MARKS, *OTHERS])
def test_a_megabyte_takes_linear_time(part: str) -> None:
    text = "x " + part * (MEGA // len(part)) + " y"
    started = time.perf_counter()
    gist(text)
    assert time.perf_counter() - started < 10  # less than one second; hours if it were quadratic


@pytest.mark.scaled
@pytest.mark.parametrize("unit", ["[a](x)", "(x)", "[a]"])
def test_brackets_that_never_close_take_linear_time(unit: str) -> None:
    started = time.perf_counter()
    gist("[[b](" + unit * (MEGA // len(unit)))
    assert time.perf_counter() - started < 10


def test_runs_of_backticks_of_all_lengths_take_linear_time() -> None:
    started = time.perf_counter()
    gist(" ".join("`" * size for size in range(1, 1400)))
    assert time.perf_counter() - started < 10
