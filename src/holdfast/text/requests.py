"""The part of a prompt that asks, among greetings, a setting, and what was pasted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress
from operator import not_
from typing import NamedTuple

from holdfast.text.analyze import STOP_WORDS, tokens
from holdfast.text.analyze import split as words_of
from holdfast.text.late_pattern import late_pattern
from holdfast.text.prose import split
from holdfast.text.sentences import is_question, sentences, without_filler

# A question by its last word, in Chinese and Japanese.
_PARTICLE = late_pattern(r"[吗嗎呢か][。!！]?$")
# A request to be told something, and a question without its mark.
_TELL_ME = late_pattern(
    r"(?:please |kindly |can you |could you |just |now |so |and |then )*(?:(?:tell|remind|show) me\b|"
    r"i(?:'d| would) like to know\b|i(?:'m| am| was) wondering\b|sag mir\b|zeig mir\b|erinnere mich\b|"
    r"dime\b|recuérdame\b|dis-moi\b|rappelle-moi\b|dimmi\b|ricordami\b)",
    re.IGNORECASE,
)
_ASKS = late_pattern(r"(?:so |and |but )?(?:what|when|where|who|whose|which|why|how)\b", re.IGNORECASE)
# What points back at the sentences before it.
_POINTS_BACK = late_pattern(
    r"\b(?:this|these|those|it|them|such|above|same)\b|\bthat(?=\W*$|\W+(?:is|was|one|get|up|set|look|work)\b)",
    re.IGNORECASE,
)
# The words of a question that asks nothing of a memory: how are you, can I ask you a quick question?
_COURTESY = frozenset(
    "hi hey hello dear friend good morning afternoon evening day today going doing feeling thing things up s "
    "okay ok well so quick question questions ask something anything minute moment second sec help me please "
    "thanks thank could would can may got get one more little let know about here there again".split()
)
# Lines of a block that may be pasted, the marks of code and logs, and how rare they are in prose.
_FEWEST, _ONE_MARK_IN = 3, 9
_TRACE = "Traceback (most recent call last)"
_MARKS = late_pattern(r"[0-9_/\\{}()\[\]<>=|:;#*@$%^~+-]")
_WORDS = 4  # of a line among them that is a sentence
# What a text of several parts has: an end before its end.
_SEVERAL = late_pattern(r"[.!?…:;–—。！？\n]\s*\S|`")
# What leads to a question in the same sentence: "Quick question for you: where …?"
_LEAD = late_pattern(r"^[^:–—]{1,60}(?::|\s[–—-])\s+(?=\S)")


class Request(NamedTuple):
    """The parts of a prompt: the sentences that ask, the others, and both; all "" if there is one part only.

    Where the request points back, `said` has the first and the last line of what was pasted as well.
    """

    asking: str = ""
    setting: str = ""
    said: str = ""


class Parts(NamedTuple):
    """Whether a text asks, and what it tells."""

    asks: bool
    told: str


def split_request(text: str) -> Request:
    """Return the sentences of a prompt that ask, and all others.

    A question mark, or words that ask to be told, make a sentence ask; one of nothing but courtesy does not.
    What was pasted, such as a trace, is in neither. Where nothing asks, all that is said does.

    >>> split_request("Hi, how are you? The weather is awful. Where does Anna live?")[:2]
    ('Where does Anna live?', 'Hi, how are you? The weather is awful.')
    """
    if not _SEVERAL.search(text.strip()):
        return Request()
    said, pasted = apart(text)
    every = sentences(said)
    asking = _asking(every)
    requests = [_without_lead(sentence) for sentence in compress(every, asking)]
    others = list(compress(every, map(not_, asking)))
    if pasted and not requests:
        requests, others = every, []
    if not requests or (not pasted and requests == every):
        return Request()
    asked = " ".join(requests)
    said = "\n".join((said, pasted[0], pasted[-1])) if pasted and points_back(asked) else said
    return Request(asked, " ".join(others), said)


def parts_of(text: str) -> Parts:
    """Return whether what a person wrote in a text asks, and the sentences of it that do not.

    >>> parts_of("Why is the test flaky? It fails on Mondays.")
    Parts(asks=True, told='It fails on Mondays.')
    """
    every = sentences(apart(text)[0])
    asking = _asking(every)
    return Parts(any(asking), " ".join(compress(every, map(not_, asking))))


def _asking(every: Sequence[str]) -> list[bool]:
    """Return which sentences ask; where none has a question mark or the like, which begin as questions do."""
    asking = list(map(_asks, every))
    return asking if any(asking) else [_ASKS.match(without_filler(said)) is not None for said in every]


def apart(text: str) -> tuple[str, list[str]]:
    """Return what a person wrote of a prompt, and the lines of what was pasted: code, a trace, a log.

    Of a block that mostly looks as a program wrote it, a person wrote the sentences.
    """
    said, output = split("user", text)
    written: list[str] = []
    pasted = [line for line in output.splitlines() if line.strip()]
    for block in said.split("\n\n"):
        lines = block.split("\n")
        if len(lines) >= _FEWEST and 2 * sum(map(is_by_program, lines)) >= len(lines):
            pasted += (line for line in lines if not _is_sentence(line))
            lines = list(filter(_is_sentence, lines))
        written += (*lines, "")
    return "\n".join(written), pasted


def _is_sentence(line: str) -> bool:
    ends = line.rstrip("\"'”’)]* ").endswith((*".?!？。！",))
    return ends and line[:1].isalpha() and len(line.split()) >= _WORDS and not is_by_program(line)


def is_by_program(line: str) -> bool:
    """Return whether a line looks as a program wrote it: indented, or with many marks and digits."""
    marks = len(_MARKS.findall(line))
    return marks * _ONE_MARK_IN > len(line) or line.startswith((*" \t", _TRACE))


def points_back(request: str) -> bool:
    """Return whether a request is about what stands before it, as "how do I fix it?" is."""
    return _POINTS_BACK.search(request) is not None


def _asks(sentence: str) -> bool:
    request = without_filler(sentence)
    asks = is_question(sentence) or _PARTICLE.search(sentence) or _TELL_ME.match(request)
    return bool(asks) and not is_courtesy(request)


def _without_lead(sentence: str) -> str:
    request = without_filler(sentence)
    lead = _LEAD.match(request)
    return request[lead.end() :] if lead and is_courtesy(lead[0]) else request


def is_courtesy(text: str) -> bool:
    """Return whether a sentence has nothing but courtesy, such as "Hi, can you help me, please?"."""
    words = [word for token in tokens(text) for word in words_of(token)]
    return all(word in STOP_WORDS or word in _COURTESY for word in words)
