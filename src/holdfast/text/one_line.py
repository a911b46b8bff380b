"""The gist of a text in one line, by rules and without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from holdfast.text.clean import REPLACEMENT, clean

LONGEST = 200  # characters
CODE = "[code]"
IMAGE = "[image]"

# Every pattern here is linear: what it repeats is short, cannot contain what begins it, or is possessive.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_HIDDEN = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")  # the controls that are no white space
_SHOWN = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]")
_QUOTE = re.compile(r"(?:\s*+>(?!=))*+\s*+")
_BULLET = re.compile(r"[-*+•‣◦]\s++")
_NUMBER = re.compile(r"(\d{1,3})[.)]\s++")
_HEADING = re.compile(r"#{1,6}(?:\s++|$)")
_FENCE = re.compile(r"(`{3,}+|~{3,}+)[^`]*+$")
_LATE_FENCE = re.compile(r"(`{3,})[\w+#.-]*$")  # behind some prose: "Like this: ```python"
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.{1,500}?)(?<!`)\1(?!`)", re.DOTALL)
# Bold and italic text; no powers (`x**2`), patterns of paths (`src/**/*.py`) or names (`__init__`).
_EMPHASIS = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"(?<![A-Za-z0-9_/\\*])\*\*(?![\s/]|\*\*)(.{1,300}?)(?<!\s)\*\*(?![A-Za-z0-9_/])",
        r"(?<![A-Za-z0-9_/\\*])\*(?![\s/.*])([^*]{1,300})(?<!\s)\*(?![A-Za-z0-9_/*])",
        r"(?<![\w.])_(?![\s_])(.{1,300}?)(?<![\s_])_(?!\w)",
    )
]

_MASK = "\ufdd0"  # replaces inline code while markers are removed; not a character
_TARGET = rf"\((?:[^(){_MASK}]++|\([^(){_MASK}]*+\))*+\)"
_IMAGE = re.compile(rf"!\[((?:[^\[\]]++|\[[^\[\]]*+\])*+)\]{_TARGET}")
# Not behind a letter: `handlers[name](event)` is code that nobody has marked as such.
_LINK = re.compile(rf"(?<![A-Za-z0-9_\])])\[((?:[^\[\]]++|\[[^\[\]]*+\])*+)\]{_TARGET}")

_FILLERS = (
    r"(?:yeah,? )?sure(?: thing)?|of course|certainly|absolutely|definitely|no problem",
    r"(?:that(?:['’]s| is) )?(?:a )?(?:great|good|excellent) (?:question|point|idea)",
    r"great|perfect|excellent|awesome",
    r"ok(?:ay)?(?:,? (?:so|then|well|now))?|al(?:l )?right(?:,? (?:so|then|well|now))?",
    r"got it|understood|sounds good",
    r"thanks(?: a lot| so much)?|thank you(?: very much| so much)?|well|so",
    r"(?:i(?:['’]d be|['’]m|['’]ll be| would be) )?(?:happy|glad) to help(?: you)?(?: with (?:that|this))?",
    r"(?!hello, world)(?:hi|hey|hello)(?: there| again| all| everyone)?",
    r"klar|natürlich|gerne?|selbstverständlich|bien sûr|d['’]accord|claro(?: que sí)?|por supuesto",
    r"certo|конечно|хорошо",
    r"好的|好|当然|當然|もちろん(?:です)?|承知しました|かしこまりました|물론(?:입니다|이죠)?|알겠습니다",
)
_FILLER = re.compile(
    rf"(?:ok(?:ay)?|al(?:l )?right),? (?:so|then|well|now)\s"
    rf"|(?:{'|'.join(_FILLERS)})(?:\s?[,.!:;…–—-]{{1,3}}\s|[，。！、]\s?)",
    re.IGNORECASE,
)
_LONGEST_FILLER = 80

_CLOSERS = "\"'”’»)]」』）】"
# The wide ones need no space behind them.
_END = re.compile(rf"(?:(?P<narrow>[.!?؟۔።։।॥။។]+)|[。！？｡]+)[{re.escape(_CLOSERS)}]*")
_ABBREVIATIONS = frozenset(
    "dr mr mrs ms prof st jr sr inc ltd co corp dept est approx etc vs cf al fig figs eq vol pp ed eds ca "
    "bzw usw bspw evtl ggf inkl nr str mio mrd resp incl excl min max avg jan feb mar apr jun jul aug sep "
    "sept oct nov dec p.s ph.d".split()
)
_INITIALS = re.compile(r"(?:\w\.)*\w|\d\d")  # "e.g", "J", the "12" of a list
# Joiners, colours of skin, the letters of a flag, the second and third part of a Korean syllable.
_JOINED = re.compile("[\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u1160-\u11ff]")
_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_SPOKEN_END = ".,;:!?…。！？：；，、"

_Kind = Literal["text", "heading", "item", "row"]


class _Block(NamedTuple):
    """A part of a text that renders as a line of its own: a paragraph, or a part behind a marker."""

    kind: _Kind
    text: str


def gist(text: str, longest: int = LONGEST) -> str:
    """Return the gist of a text in one line of at most `longest` characters, in its own words.

    Code in fences goes, and is "[code]" where there is nothing else; so do the markers of Markdown, and one
    filler before what matters ("Sure, …"). What is too long ends with a sentence if that keeps more than half
    of the line, else with a word and "…". Empty only for a text that shows nothing. Linear.

    >>> gist("Sure! I renamed `a` to **b**.")
    'I renamed a to b.'
    """
    text = clean(_HIDDEN.sub(" ", text)).replace(_MASK, REPLACEMENT)
    line = _one_line(text, longest + _LONGEST_FILLER)
    if not line:
        line = CODE if "```" in text or "~~~" in text else " ".join(text.split())
    rest = line[filler.end() :].lstrip() if (filler := _FILLER.match(line)) else ""
    return cut(rest if any(map(str.isalnum, rest)) else line, longest)


def shows(text: str) -> bool:
    """Return whether a text has anything but white space and control characters."""
    return _SHOWN.search(text) is not None


def flat(text: str) -> str:
    """Return text with line breaks and control characters replaced by one space each."""
    return clean(_CONTROL.sub(" ", text))


def cut(line: str, longest: int) -> str:
    """Return a line cut at the end of a sentence, else at a word, else between visible characters."""
    if len(line) <= longest:
        return line
    if longest < 1:
        return ""
    end = _sentence_end(line, longest)
    if end:
        return line[:end]
    space = line.rfind(" ", longest // 2, longest)
    at = space if space > 0 else _between_characters(line, longest - 1)
    kept = line[:at].rstrip(" ,;:")
    return kept if kept.endswith(("...", "…")) else kept + "…"


def _one_line(text: str, enough: int) -> str:
    """Return the blocks of a text on one line, with punctuation in place of their markers, up to `enough`."""
    parts: list[str] = []
    size = 0
    last: _Block | None = None
    for block in _blocks(text):
        shown = _Block(block.kind, " ".join(_inline(block).split()))
        if not shown.text:
            continue
        parts += [_glue(last, shown), shown.text] if last else [shown.text]
        last = shown
        size += len(shown.text)
        if size > enough:
            break
    return "".join(parts)


def _glue(before: _Block, after: _Block) -> str:
    if before.text[-1] in _SPOKEN_END:
        return " "
    if before.kind in {"item", "row"}:
        return "; "
    return ": " if before.kind == "heading" or after.kind != "text" else " "


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the blocks of a text; a line without a marker continues the paragraph or item before it."""
    kind: _Kind = "text"
    lines: list[str] = []
    is_list = False
    for line in lines_without_code(text):
        new, rest = _classify(line, is_list=is_list)
        is_list = is_list or new == "item"
        if lines and (not rest or new != "text" or kind in {"heading", "row"}):
            yield _Block(kind, "\n".join(lines))
            lines = []
        if rest:
            kind = kind if lines else new
            lines.append(rest)
    if lines:
        yield _Block(kind, "\n".join(lines))


def lines_without_code(text: str) -> Iterator[str]:
    """Yield the lines of a text with fenced code replaced by a blank line."""
    fence = ""
    for quoted in text.splitlines():
        line = _QUOTE.sub("", quoted, count=1).rstrip()
        if fence:
            # Closed too where people forget the line break before it.
            fence = "" if line.endswith(fence) else fence
        elif opened := _fence(line):
            fence = opened[1]
            before = line[: opened.start()]
            if _marker(before, is_list=True) < len(before):
                yield before
            yield ""
        else:
            yield line


def _fence(line: str) -> re.Match[str] | None:
    """Return what opens fenced code, behind the marker of a list or behind some prose."""
    first = line.find("```")
    if first < 0 and "~~~" not in line:
        return None
    opened = _FENCE.match(line, _marker(line, is_list=True))
    return opened or (_LATE_FENCE.match(line, first) if first > 0 else None)


def _marker(line: str, *, is_list: bool) -> int:
    """Return the length of the list markers at the start of a line; a list starts with 1."""
    end = 0
    while marker := _BULLET.match(line, end) or _NUMBER.match(line, end):
        if marker.lastindex and not is_list and int(marker[1]) > 1:
            break
        end = marker.end()
    return end


def _classify(line: str, *, is_list: bool) -> tuple[_Kind, str]:
    """Return the kind of a line, and the line without its marker; "" for a horizontal rule."""
    bare = line.replace(" ", "")
    if len(bare) >= 3 and not bare.strip("-=*_|:+") and bare.strip("|:+"):
        return "text", ""
    if heading := _HEADING.match(line):
        return "heading", line[heading.end() :]
    if line.startswith("|") and line.count("|") > 1:
        return "row", line
    end = _marker(line, is_list=is_list)
    return ("item" if end else "text"), line[end:]


def _inline(block: _Block) -> str:
    codes: list[str] = []

    def mask(span: re.Match[str]) -> str:
        # Three backticks are a fence in one line.
        codes.append(" " if len(span[1]) > 2 else span[2].strip())
        return _MASK

    text = _CODE_SPAN.sub(mask, block.text)
    if block.kind == "row":
        text = ", ".join(cell.strip() for cell in text.split("|") if cell.strip())
    text = _IMAGE.sub(lambda image: image[1] or IMAGE, text)
    text = _LINK.sub(r"\1", text)
    for marked in _EMPHASIS:
        text = marked.sub(r"\1", text)
    rest = iter(codes)
    return re.sub(_MASK, lambda _: next(rest), text)


def _sentence_end(line: str, longest: int) -> int:
    """Return the last end of a sentence in the second half of the line; 0 if there is none."""
    best = 0
    for stop in _END.finditer(line, longest // 2, longest):
        end = stop.end()
        if 2 * end > longest and _ends_sentence(line, stop, end) and not _is_inside(line, end):
            best = end
    return best


def _ends_sentence(line: str, stop: re.Match[str], end: int) -> bool:
    mark, after = stop["narrow"], line[end]
    if mark is None:
        return after not in _CLOSERS + "。！？｡"
    if not after.isspace() or ".." in mark:
        return False
    if mark != ".":
        return True
    start = stop.start()
    word = line[line.rfind(" ", max(0, start - 20), start) + 1 : start].lstrip("([{\"'“‘«").lower()
    if word in _ABBREVIATIONS or _INITIALS.fullmatch(word):
        return False
    return not (word == "no" and line[end + 1 : end + 2].isdigit())


def _between_characters(line: str, at: int) -> int:
    """Return the start of the visible character at a place; the place itself, if that start is 0."""
    place = at
    while place > 0 and _is_inside(line, place):
        place -= 1
    return place or at


def _is_inside(line: str, at: int) -> bool:
    """Return whether the character at a place belongs to the visible character before it."""
    char, before = line[at], line[at - 1]
    return (
        unicodedata.category(char).startswith("M")
        or _JOINED.match(char) is not None
        or before == "\u200d"
        or (unicodedata.combining(before) == 9 and char.isalpha())  # a virama joins two consonants
        # Half a flag.
        or (char in _FLAGS and (at - len(line[:at].rstrip(_FLAGS))) % 2 == 1)
    )
