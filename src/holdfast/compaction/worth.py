"""The sentences of a work session, and how much each is worth to those who resume it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.messages.passages import PASTED, Passage
from holdfast.text.sentences import sentences, without_filler
from holdfast.text.statements import Context, statements

# The share of the worth of what is no choice, rule or cause.
_OTHERS = {"outcome": 0.7, "environment": 0.7, "personal": 0.7}
# The least worth of what a user says, who may ask for all of it, and of what others do who have a name: in a
# summary these may be users or assistants.
_LEAST = {"user": 0.6, "assistant": 0.0}
_NAMED = 0.45
# Words of a piece that says too little, if it has no value and no name.
_SCRAP = 4
_VALUE = re.compile(r"\w .*\d|\d.* \w|`[^`]+`|[^\W\d][./_]\w")
# Code, and what programs put in brackets.
_UNSAID = re.compile(r"`[^`]*`|\[.*\]|calls \S.*", re.DOTALL)


def judged(passages: Sequence[Passage], turn: int) -> Iterator[tuple[str, float]]:
    """Yield the sentences of a passage with the worth of each, from 0 to 1."""
    one, role = passages[turn], passages[turn].role
    least = 0.0 if role.endswith(PASTED) else _LEAST.get(role, _NAMED)
    before = passages[turn - 1] if turn else one
    answers = before.role != role and "?" in before.text[-400:]
    concludes = turn + 1 == len(passages) or passages[turn + 1].role != role
    for said in statements("user" if least else role, one.text, Context(answers, concludes, is_work=True)):
        worth = said.worth * _OTHERS.get(said.kind, 1.0)
        for text in sentences(one.text[said.start : said.end]):
            yield without_filler(text), _worth(text, least + (1 - least) * worth)


def _worth(text: str, worth: float) -> float:
    scrap = len(text.split()) < _SCRAP and not _VALUE.search(text)
    return 0.0 if scrap or _UNSAID.fullmatch(text) else worth
