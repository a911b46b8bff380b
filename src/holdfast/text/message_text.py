"""The readable text of a message, without reasoning, binary payloads and markup."""

from __future__ import annotations

import re

from holdfast.text.sentences import one_line

PREVIEW = 300  # characters of a call's arguments and of a tool's result
_HEAD, _TAIL = 8_000, 4_000  # characters that are read of a longer text
_THOUGHT = re.compile(r"<(think|thinking|reasoning)\b[^<>]{0,200}>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\[reasoning\]", re.IGNORECASE)
_DATA_URI = re.compile(r"data:[\w.+-]{0,80}+/?+[\w.+-]{0,80}+(?:;[\w=.-]{0,80}+)*+,[A-Za-z0-9+/=_%-]*+")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{56,}={0,2}")
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_SHORTEST_BLOB = 56  # characters
_HEX = re.compile(r"[0-9a-fA-F]{65,}")  # longer than any digest that one refers to by
_WRAPPED = re.compile(
    r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{40,}={0,2}[ \t\r]*\n)+"
    r"(?:(?:[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{1,20}={1,2})(?=\s|$))?"
)
_TOOL = r"<(tool[-_]use|tool[-_]call|tool[-_]result|function_calls|function_results)\b[^<>]{0,400}>"
_TOOL_TAG = re.compile(rf"{_TOOL}|</([a-z_-]{{1,20}})>")
_TOOL_MESSAGE = re.compile(rf"{_TOOL}(.*)</\1>", re.DOTALL)  # which may show a text that has such blocks
_FENCE = re.compile(
    r"^[ \t]{0,12}(`{3,}+|~{3,}+)[^\n]*\n(.*?)(?:^[ \t]{0,12}\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_TAG = re.compile(
    r"</?(?:[a-z]+(?:[-_][a-z]+)+|details|summary|div|span|p|br|b|i|em|strong|sub|sup|kbd|ul|ol|li)(?: "
    r"[^<>\n]{0,300})?/?>"
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def prose(text: str) -> str:
    """Return the prose of a message, with code and rendered tool use shortened to their beginnings.

    Reasoning, comments, tags and payloads are replaced by a space, so that no new word arises that the guard
    never saw.
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "<" in text:
        text = without_reasoning(text)
        text = _COMMENT.sub(" ", text)
        if whole := _TOOL_MESSAGE.fullmatch(text.strip()):
            return _quoted_line(whole[2]).strip()
        text = _without_tool_use(text)
    elif "[" in text:
        text = _PLACEHOLDER.sub(" ", text)
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(lambda match: _quoted_line(match[2]), text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    text = without_payloads(text).strip()
    if len(text) <= _HEAD + _TAIL:
        return text
    # What stands between the head and the tail of a paste or a dump keeps the end of the one and the
    # beginning of the other from reading as a sentence that nobody said.
    return f"{text[:_HEAD].rsplit(None, 1)[0]}\n\n[…]\n\n{text[-_TAIL:].split(None, 1)[-1]}"


def _without_tool_use(text: str) -> str:
    """Put each tool use that is written into a text on one line; a tag that nothing closes is text."""
    parts: list[str] = []
    done, opened, start = 0, "", 0
    for tag in _TOOL_TAG.finditer(text):
        if tag[1] and not opened:
            opened, start = tag[1], tag.start()
        elif opened and tag[2] == opened:
            parts += text[done:start], _quoted_line(text[start : tag.start()])
            done, opened = tag.end(), ""
    return "".join((*parts, text[done:]))


def without_reasoning(text: str) -> str:
    """Remove blocks of reasoning, including one that never ends or whose beginning was cut off."""
    text = _PLACEHOLDER.sub(" ", _THOUGHT.sub(" ", text))
    ends = list(_THOUGHT_END.finditer(text))
    return text[ends[-1].end() :] if ends else text


def without_payloads(text: str) -> str:
    """Remove data URIs and long runs of base64 or hexadecimal digits."""
    if len(text) >= _SHORTEST_BLOB:
        text = _WRAPPED.sub(lambda match: " " if _is_blob(match[0]) else match[0], text)
    if "data:" in text:
        text = _DATA_URI.sub(" ", text)
    if len(text) < _SHORTEST_BLOB:
        return text
    return _HEX.sub(" ", _BLOB.sub(lambda match: " " if _is_blob(match[0]) else match[0], text))


def _is_blob(run: str) -> bool:
    """Return whether a run is base64, not a path or identifier: mixed cases and digits, few separators."""
    if len(run) < _SHORTEST_BLOB:
        return False
    capitals, smalls = sum(map(str.isupper, run)), sum(map(str.islower, run))
    separators = run.count("/") + run.count("_") + run.count("-")
    mixed = min(capitals, smalls) * 6 > len(run) or any(map(str.isdigit, run))
    return mixed and capitals > 0 and smalls > 0 and separators * 10 < len(run)


def _quoted_line(text: str) -> str:
    """Put code on one line between backticks, which keeps it in one piece."""
    inner = _TAG.sub(" ", text).replace("```", " ")
    return f"\n`{preview(inner).replace('`', ' ').strip()}`\n" if inner.strip() else "\n"


def readable(text: str) -> str:
    """Return the beginning of a text as one readable line, up to four times as long as a preview."""
    return one_line(without_payloads(_ANSI.sub("", text[: 4 * PREVIEW])))


def preview(text: str) -> str:
    """Return the beginning of a text as one line, with its size where that is longer."""
    line = readable(text)
    size = len(text.strip())
    return line if size <= PREVIEW else f"{line[:PREVIEW].rstrip()}… ({size:,} characters)"
