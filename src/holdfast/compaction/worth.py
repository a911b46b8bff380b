"""The sentences of a work session, and the worth of each to those who resume it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.messages.passages import PASTED, Passage
from holdfast.text.sentences import sentences, without_filler
from holdfast.text.statement_spans import spans
from holdfast.text.statements import statements

# The worth of a statement of a decision or cause; of a user's words, which may all be requests; of an
# assistant's steps, and of the words that end its turn; of the words of others with a name (in a summary
# these may be users or assistants).
_STATED = 1.0
_LEAST = {"user": 0.6, "assistant": 0.2}
_LAST, _NAMED, _PASTED = 0.4, 0.45, 0.1
# Words of a piece that says too little, if it has no value and no name.
_SCRAP = 4
_VALUE = re.compile(r"\w .*\d|\d.* \w|`[^`]+`|[^\W\d][./_]\w")
# Code, and what programs put in brackets.
_UNSAID = re.compile(r"`[^`]*`|\[.*\]|calls \S.*", re.DOTALL)


def rate_sentences(passages: Sequence[Passage], turn: int) -> Iterator[tuple[str, float]]:
    """Yield the sentences of a passage with the worth of each, from 0 to 1."""
    passage, role = passages[turn], passages[turn].role
    ends = turn + 1 == len(passages) or passages[turn + 1].role != role
    least = _LAST if role == "assistant" and ends else _LEAST.get(role, _NAMED)
    least = _PASTED if role.endswith(PASTED) else least
    stated = {said.start for said in statements(passage.text, by_user=passage.role == "user")}
    for span in spans(passage.text):
        worth = _STATED if span.start in stated else least
        for text in sentences(passage.text[span.start : span.end]):
            yield without_filler(text), _worth(text, worth)


def _worth(text: str, worth: float) -> float:
    scrap = len(text.split()) < _SCRAP and not _VALUE.search(text)
    return 0.0 if scrap or _UNSAID.fullmatch(text) else worth
