"""Sentences of prose, lists, code and scripts without spaces, and the filler at their start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.text.late_pattern import late_pattern

# Characters of a sentence; a longer one is cut at its clauses, and where it has none, at a space.
LONGEST = 400

_CONTROL = late_pattern(r"[\x00-\x1f\x7f-\x9f]+")
_ITEM = late_pattern(r"[ \t]{0,40}(?:(?:[-*+•‣◦–—>|#]{1,6}|\(?\d{1,3}[.)]|\[[ xX]\])[ \t]{1,20})+")
_HAS_LETTER = late_pattern(r"[^\W_]")
_END = late_pattern(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?:\s+|$)|[。！？｡]+[\"'”’」』）】]*\s*|[؟।۔]+\s+|\s·\s+"
)
_ABBREVIATION = late_pattern(
    r"(?:^|[\s(\"'“‘])(?:[A-Za-z]|[A-Za-z](?:\.[A-Za-z])+|mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|eg|ie|e\.g|i\.e"
    r"|cf|al|no|nos|vol|fig|approx|dept|est|inc|ltd|co|corp|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec"
    r"|bzw|ca|z\.b|d\.h|usw|nr)\.$",
    re.IGNORECASE,
)
_CLAUSE = late_pattern(r"[;,:]\s+|[；，、]\s*|\s[-–—]+\s|\s")
# The end of what is no question, at a glance.
_TOLD = late_pattern(r"(?:!|[^\W\d_]{5}\.)\s|[。！]")
_QUOTED = late_pattern(r"`[^`]*`")
_CALL = late_pattern(r"calls [\w.:/-]{1,80}\(.*\)")
_FILLER = late_pattern(
    r"(?:(?:oh|wow|yeah|yep|yes|yup|hey|hi|hello|well|so|and|but|ok|okay|sure|right|great|good|cool|nice"
    r"|awesome|amazing|perfect|absolutely|definitely|totally|exactly|indeed|actually|anyway|haha|lol|hmm|ah"
    r"|aww|man|thanks|thank you|thx|glad to hear it|of course|no problem|got it|i see|you're right|by the "
    r"way|also|plus)(?: (?:so much|a lot|a bunch|again|guys|too))?(?:,? [A-Z][a-z]{1,11})?\s?(?:,|!|\.\.\.|…"
    r"|\s[-–—]\s)\s*)+(?=\S)",
    re.IGNORECASE,
)
# What may stand after a question mark, and the marks, of Greek and Arabic as well.
_CLOSING = " \n\t\r\"'“”‘’«»„…`」』)）]*_~"
_ASKS = ("?", "？", "؟", "\u037e")
_KEPT_AFTER_FILLER = 12  # characters; what would be left of a shorter sentence says nothing by itself
_JOINABLE = 40  # characters of a line that may have been broken by its width


def one_line(text: str) -> str:
    """Return text on one line, without control characters."""
    line = " ".join(text.split())
    return line if line.isprintable() else " ".join(_CONTROL.sub(" ", line).split())


def sentences(text: str) -> list[str]:
    r"""Return the sentences of a text, each on one line.

    Lines end sentences, but for one that goes on in lower case; what stands between backticks on a line of
    its own, and a tool call, is one sentence.

    >>> sentences("We met Dr. Lee. She uses v1.2 now!\n- buy milk")
    ['We met Dr. Lee.', 'She uses v1.2 now!', 'buy milk']
    """
    pieces: list[str] = []
    for line in _lines(text):
        if not _HAS_LETTER.search(line):
            continue
        if line[0] in "`c" and (_QUOTED.fullmatch(line) or _CALL.fullmatch(line)):
            pieces.append(line)
        else:
            for sentence in _split_line(line):
                pieces.extend(_pieces(sentence))
    return pieces


def _lines(text: str) -> Iterator[str]:
    if "\n" not in text and "\r" not in text:
        item = _ITEM.match(text)
        if line := one_line(text[item.end() :] if item else text):
            yield line
        return
    held = ""
    for raw in text.splitlines():
        item = _ITEM.match(raw)
        line = one_line(raw[item.end() :] if item else raw).strip("| ")
        goes_on = (
            not item and line[:1].islower() and len(held) >= _JOINABLE and held[-1] not in ".!?:;。！？`)"
        )
        if goes_on and not line.startswith("calls "):
            held = f"{held} {line}"
            continue
        if held:
            yield held
        held = line
    if held:
        yield held


def _split_line(line: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(line):
        end = match.end()
        if end < len(line) and match[0][0] == "." and _goes_on(line, start, match):
            continue
        if sentence := line[start:end].strip(" ·"):
            yield sentence
        start = end
    if rest := line[start:].strip():
        yield rest


def _goes_on(line: str, start: int, match: re.Match[str]) -> bool:
    """Return whether a full stop ends an abbreviation or an initial, and not the sentence."""
    following = line[match.end()]
    if following.islower():
        return True
    if match[0][:2].strip() != ".":
        return False
    if line[start : match.start()].strip("*_( ").isdecimal():
        return True  # the number of an item
    before = line[max(start, match.start() - 8) : match.start() + 1]
    return _ABBREVIATION.search(before) is not None and not before.endswith(" I.")


def _pieces(sentence: str) -> Iterator[str]:
    """Yield the pieces of a sentence, a long one cut at the last clause that fits, with the cuts marked."""
    start = 0
    while len(sentence) - start > LONGEST:
        end = 0
        for match in _CLAUSE.finditer(sentence, start + LONGEST // 2, start + LONGEST - 1):
            end = match.end() if match[0].strip() or not end else end
        end = end or start + LONGEST - 1
        yield f"{sentence[start:end].rstrip()}…"
        start = end
    if rest := sentence[start:].strip():
        yield rest


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark, whatever quotes or brackets close it."""
    return sentence.rstrip(_CLOSING).endswith(_ASKS)


def asks_only(text: str) -> bool:
    """Return whether a text is nothing but questions."""
    return is_question(text) and not _TOLD.search(text) and all(map(is_question, sentences(text)))


def without_filler(sentence: str) -> str:
    """Return a sentence without the filler at its start.

    >>> without_filler("Wow, Anna, I moved to Porto last week."), without_filler("Yeah, sure!")
    ('I moved to Porto last week.', 'Yeah, sure!')
    """
    match = _FILLER.match(sentence)
    if match is None or len(sentence) - match.end() < _KEPT_AFTER_FILLER:
        return sentence
    return sentence[match.end() :]
