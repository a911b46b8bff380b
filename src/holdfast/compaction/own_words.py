"""The own words of a user in a message, apart from pasted documents and the output of programs."""

from __future__ import annotations

import re

# Characters of a message that may be a pasted document, and of one that nobody types.
_LONG, _LONGEST = 1_500, 6_000
# Characters of a paragraph that introduces a pasted document.
_PARAGRAPH = 300
# Lines of the form of a document that make a long message one.
_FORMAL = 3
# The share of signs from which lines are the output of a program.
_SIGNS = 0.09

_ELEMENT = re.compile(r"<([a-z]+(?:[-_][a-z]+)+)\b[^<>]{0,200}>.*?(?:</\1>|\Z)", re.DOTALL)
_FENCE = re.compile(
    r"^[ \t]{0,8}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]{0,8}\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_QUOTE = re.compile(r"^[ \t]{0,8}>.*$", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t]*\n")
_FORMAL_LINE = re.compile(r"^[ \t]*(?:#{1,6} \S|\|.*\||[^\n]{2,60}:[ \t]*$)", re.MULTILINE)
_SIGN = re.compile(r"[^\w\s.,;'’\"“”!?()-]")


def own_words(text: str) -> tuple[str, str]:
    """Return the own words of a user in a message, and the document pasted into it, "" for none.

    Elements of clients, code, quotations and apparent output of programs are left out of both.
    """
    if "<" in text:
        text = _ELEMENT.sub("\n\n", text)
    text = _QUOTE.sub("", _FENCE.sub("\n\n", text))
    parts = [part for part in _BLANK.split(text) if part.strip() and not _is_output(part)]
    whole = "\n\n".join(parts)
    formal = len(_FORMAL_LINE.findall(whole)) >= _FORMAL
    if len(whole) <= _LONG or (len(whole) <= _LONGEST and not formal):
        return whole, ""
    introduced = len(parts[0]) <= _PARAGRAPH and not _FORMAL_LINE.match(parts[0])
    return (parts[0], "\n\n".join(parts[1:])) if introduced else ("", whole)


def _is_output(part: str) -> bool:
    return part.strip().count("\n") > 1 and len(_SIGN.findall(part)) > _SIGNS * len(part)
