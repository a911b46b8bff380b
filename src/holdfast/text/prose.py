"""The form of a message: what is said in it, what a program put out, and the passages of what is said.

Only form counts, no content and no client: who speaks, and what a reader sees at a glance.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import groupby

from holdfast.text.analyze import STOP_WORDS
from holdfast.text.late_pattern import late_pattern

# Characters of a passage of several sentences at most: some forty words.
PASSAGE = 240
# Characters below which a text on one line is one passage; with line breaks, those of a passage.
_ONE_LINE = 360
# Passages of a text; those of a longer one are longer.
MAX_PASSAGES = 1_000
# A result of a tool with no more words, of which one in so many is a stop word, is what a person answered.
_ANSWER_WORDS = 150
_ANSWER_STOPS = 5
# Lines that begin with a number, from which on they are a listing.
_LISTING = 3

_MARKED = late_pattern(r"[<`~{\[\t→|]")
_TAG = late_pattern(r"<(/?)([A-Za-z][\w.:-]*)(?:\s[^<>]*)?>")
_LINE = late_pattern(r"[^\n]*\n?")
_FENCE = late_pattern(r"\s{0,3}(```+|~~~+)")
_NUMBERED = late_pattern(r"\s*\d+\s?[\t→|]")
_WORD = late_pattern(r"[^\W_]+")
_JSON_LINE = late_pattern(r"(?s)\s*(?:[\w.:-]{1,64}\s)?\{.*\}\s*")
_BREAKS = late_pattern(r"\n\s*\n|\n(?=\s*(?:[-*+#>|]|\d+[.)]\s))")
_SENTENCES = late_pattern(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n")


def split(role: str, text: str) -> tuple[str, str]:
    r"""Split a message into what is said and what a program put out; linear.

    Output are the results of tools but for their first line, code and other text between fences, elements
    such as `<tool-use>…</tool-use>`, lines of JSON, and listings with numbered lines. A short result of a
    tool in full sentences is the answer of a person, and said.

    >>> split("assistant", "I ran it.\n```\n3 passed\n```\nAll is well.")
    ('I ran it.\nAll is well.', '```\n3 passed\n```\n')
    """
    if role == "tool":
        if _is_answer(text):
            return text, ""
        first, _, rest = text.strip().partition("\n")
        return first, rest
    if not _MARKED.search(text):
        return text, ""
    said: list[str] = []
    output: list[str] = []
    # Clients wrap what a user says in elements such as <user_query>.
    for part, is_output in _by_elements(text, "-" if role == "user" else "-_"):
        if is_output:
            output.append(part)
            # What stands on both sides of an element is not one word.
            if said and not said[-1][-1:].isspace():
                said.append("\n")
        else:
            for line, put_out in _by_lines(part):
                (output if put_out else said).append(line)
    return "".join(said), "".join(output)


def _is_answer(text: str) -> bool:
    if len(text) > 20 * _ANSWER_WORDS:
        return False
    words = _WORD.findall(text.lower())
    stops = sum(word in STOP_WORDS for word in words)
    return 0 < len(words) <= _ANSWER_WORDS and stops * _ANSWER_STOPS >= len(words)


def _by_elements(text: str, joints: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and whether each is an element whose name has a joint, such as tool-use."""
    tags = [tag for tag in _TAG.finditer(text) if any(joint in tag[2] for joint in joints)]
    ends: dict[str, list[int]] = {}
    for tag in tags:
        if tag[1]:
            ends.setdefault(tag[2], []).append(tag.end())
    position = 0
    for tag in tags:
        closing = ends.get(tag[2], ())
        place = bisect_left(closing, tag.end())
        if tag[1] or tag.start() < position or place == len(closing):
            continue
        yield text[position : tag.start()], False
        position = closing[place]
        yield text[tag.start() : position], True
    yield text[position:], False


def _by_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a text, and whether each is output."""
    lines = _LINE.findall(text)
    runs = _numbered_lines(lines)
    fence = ""
    for place, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            yield line, True
            if mark and mark[1].startswith(fence):
                fence = ""
        elif mark:
            fence = mark[1]
            yield line, True
        else:
            yield line, place in runs or (line.rstrip().endswith("}") and bool(_JSON_LINE.fullmatch(line)))


def _numbered_lines(lines: list[str]) -> set[int]:
    """Return the places of lines in runs of numbered ones."""
    places: set[int] = set()
    for is_numbered, run in groupby(range(len(lines)), key=lambda at: bool(_NUMBERED.match(lines[at]))):
        run_places = list(run)
        if is_numbered and len(run_places) >= _LISTING:
            places.update(run_places)
    return places


def passages(text: str) -> list[str]:
    """Split a text into passages of `PASSAGE` characters or a sentence, at paragraphs and sentences; linear.

    A short text is one passage.
    """
    if len(text) < (PASSAGE if "\n" in text else _ONE_LINE):
        return [text]
    most = max(PASSAGE, len(text) // MAX_PASSAGES)
    gathered: list[str] = []
    current: list[str] = []
    size = 0
    for piece in _pieces(text):
        if size and size + len(piece) > most:
            gathered.append("\n".join(current))
            current, size = [], 0
        current.append(piece)
        size += len(piece)
    gathered.append("\n".join(current))
    return gathered


def _pieces(text: str) -> Iterator[str]:
    for paragraph in _BREAKS.split(text):
        if len(paragraph) <= PASSAGE:
            yield paragraph
        else:
            yield from filter(None, _SENTENCES.split(paragraph))
