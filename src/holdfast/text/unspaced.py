"""Scripts without spaces between words: a run of characters as search terms.

A word of such a script is mostly two characters, so a run is read as its overlapping pairs. A character of a
longer run counts for less, and so does a pair that touches a word that says nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.text.function_words import inside_runs
from holdfast.text.late_pattern import late_pattern

# And Hangul, whose particles are written to the word.
RUN = late_pattern(
    r"[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    r"\U0001b000-\U0001b16f\U00020000-\U000323af]+"
)
_HAN = late_pattern("[\u3400-\u9fff]")
# What a character of a longer run counts in a query, against a pair of them.
SINGLE = 0.3
# What a pair counts that touches a word that says nothing by itself.
TOUCHING = 0.2
_LONGEST_COUNT = 4  # digits of a number that are read with the unit behind them: 3月, 2024年

_TIME = late_pattern(
    r"[昨今明前后後]天|昨日|今日|明日|今[年早晚朝夜]|去年|明年|[上下这這本][个個]?[周週月]|周[一二三四五六日末]"
    r"|週[一二三四五六日末]|星期|礼拜|禮拜|早上|上午|中午|下午|傍晚|晚上|凌晨|最近|以前|之前|以后|之后"
    r"|来週|先週|来月|先月|来年|曜日|午前|午後|어제|오늘|내일|모레|요일|작년|올해|내년|지난|다음|오전|오후"
    r"|[0-9一二三四五六七八九十][年月日号號时時년월일시]|[0-9两兩二三四五六七八九十][点點]"
)


def split(run: str) -> Iterator[tuple[str, float]]:
    """Yield the pairs and the characters of a run, folded, with what each counts in a query.

    >>> list(split("的猫"))
    [('的猫', 0.2), ('的', 0), ('猫', 0.3)]
    """
    empty = [False] * len(run)
    for match in inside_runs().finditer(run):
        empty[match.start() : match.end()] = [True] * len(match[0])
    for n in range(len(run) - 1):
        yield run[n : n + 2], TOUCHING if empty[n] or empty[n + 1] else 1.0
    for character, says_nothing in zip(run, empty, strict=True):
        yield character, 0 if says_nothing else SINGLE if len(run) > 1 else 1.0


def is_chance_pair(term: str) -> bool:
    """Return whether a term is a pair with a Chinese character, which may stand together in no other text."""
    return len(term) == 2 and bool(_HAN.search(term))


def split_mixed(folded: str) -> Iterator[tuple[str, float]]:
    """Yield the words of folded text of several scripts; a number also together with the unit behind it.

    >>> [piece for piece, _ in (*split_mixed("iphone手机"), *split_mixed("3月"))]
    ['iphone', '手机', '手', '机', '3', '3月', '月']
    """
    position = 0
    for run in RUN.finditer(folded):
        before = folded[position : run.start()]
        if before:
            yield before, 1.0
        counts = before.isdigit() and len(before) <= _LONGEST_COUNT
        if counts:
            yield before + run[0][0], 1.0
        for piece, weight in split(run[0]):
            yield piece, min(weight, SINGLE) if counts and len(piece) == 1 else weight
        position = run.end()
    if position < len(folded):
        yield folded[position:], 1.0


def tells_time(text: str) -> bool:
    """Return whether a text in such a script names a time: a day, an hour, a part of the day."""
    return _TIME.search(text) is not None
