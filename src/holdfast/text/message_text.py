"""Old messages as passages of plain text: what can be said again of each, without reasoning, payloads and orders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from holdfast.safety import guard
from holdfast.safety.masking import FLAG, mask, mask_name, masked_call
from holdfast.text.sentences import one_line, sentences
from holdfast.types import Message, ToolCall

PREVIEW = 300  # characters of a call's arguments and of a tool's result
EXPAND = "Expand for: "
UNDATED = "Undated"
BARE = "- "  # begins a line of a summary that nobody in particular said
MONTHS = "January February March April May June July August September October November December".split()

_LONGEST_NAME = 40
_MARKS = str.maketrans(":[]|", "    ")  # what stands around a name in our lines
_HEAD, _TAIL = 8_000, 4_000  # characters that are read of a longer text
_FLAGS = frozenset(("instruction", "disguise", "invisible", "secret"))
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
    r"</?(?:[a-z]+(?:[-_][a-z]+)+|details|summary|div|span|p|br|b|i|em|strong|sub|sup|kbd|ul|ol|li)(?: [^<>\n]{0,300})?/?>"
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DAY_LINE = re.compile(rf"(\d{{1,2}}) ({'|'.join(MONTHS)}) (\d{{1,4}})")
_SAID = re.compile(rf"([^:\n]{{1,{_LONGEST_NAME}}}): (\S.*)")


@dataclass(frozen=True, slots=True)
class Passage:
    """Hold one turn as text: who said it, when, and in which role; "" for a speaker or a role that nobody knows."""

    text: str
    speaker: str = ""
    at: datetime | None = None
    role: str = ""


def passages(messages: Sequence[Message]) -> list[Passage]:
    """Turn messages into passages, one for each that has something to say.

    Calls and results of tools are previewed. Reasoning and binary payloads are left out, and of messages that the
    guard flagged, the sentences that carry the danger.
    """
    made = []
    for message in map(_masked, messages):  # before anything is cut: half a credential is not known for one
        text = _tool_result(message) if message.role == "tool" else _said(message)
        if text and not _FLAGS.isdisjoint(message.flags):
            text = harmless(text)
        if text:
            made.append(Passage(text, _name(message.actor), message.at, message.role))
    return made


def _masked(message: Message) -> Message:
    """Mask the credentials of a message: those that were found when it was stored, and those in its calls."""
    calls = tuple(map(masked_call, message.calls))
    content = mask(message.content) if FLAG in message.flags else message.content
    if (content, calls) == (message.content, message.calls):
        return message
    return replace(message, content=content, calls=calls)


def _name(actor: str) -> str:
    """Bring a name to what cannot be taken for anything else in a line of a summary."""
    name = one_line(mask_name(actor).translate(_MARKS))[:_LONGEST_NAME].strip(" -") or "unnamed"
    return f"_{name}" if f"{name}: " == EXPAND else name


def _said(message: Message) -> str:
    parts = [_prose(message.content)] if message.content else []
    parts.extend(_call(call) for call in message.calls)
    return "\n".join(part for part in parts if part)


def _prose(text: str) -> str:
    """Leave out what nobody reads again, and shorten code and rendered tool use to their beginnings.

    A space takes the place of what goes, so that no new word comes about, which the guard never saw.
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "<" in text:
        text = without_reasoning(text)
        text = _COMMENT.sub(" ", text)
        if whole := _TOOL_MESSAGE.fullmatch(text.strip()):
            return _quoted(whole[2]).strip()
        text = _without_tool_use(text)
    elif "[" in text:
        text = _PLACEHOLDER.sub(" ", text)
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(lambda match: _quoted(match[2]), text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    return _ends(without_payloads(text).strip())


def _ends(text: str) -> str:
    """Keep the beginning and the end of a text that is longer than anybody writes or reads: pastes and dumps are."""
    if len(text) <= _HEAD + _TAIL:
        return text
    return f"{text[:_HEAD].rsplit(None, 1)[0]}\n{text[-_TAIL:].split(None, 1)[-1]}"


def _without_tool_use(text: str) -> str:
    """Put tool use that is written into a text on one line each; a tag that nothing closes is text."""
    parts: list[str] = []
    done, opened, start = 0, "", 0
    for tag in _TOOL_TAG.finditer(text):
        if tag[1] and not opened:
            opened, start = tag[1], tag.start()
        elif opened and tag[2] == opened:
            parts += text[done:start], _quoted(text[start : tag.start()])
            done, opened = tag.end(), ""
    return "".join((*parts, text[done:]))


def without_reasoning(text: str) -> str:
    """Leave out blocks of reasoning, also one that never ends or whose beginning was cut off."""
    text = _PLACEHOLDER.sub(" ", _THOUGHT.sub(" ", text))
    ends = list(_THOUGHT_END.finditer(text))
    return text[ends[-1].end() :] if ends else text


def without_payloads(text: str) -> str:
    """Leave out data URIs and long runs of base64 or hexadecimal digits."""
    if len(text) >= _SHORTEST_BLOB:
        text = _WRAPPED.sub(lambda match: " " if _is_blob(match[0]) else match[0], text)
    if "data:" in text:
        text = _DATA_URI.sub(" ", text)
    if len(text) < _SHORTEST_BLOB:
        return text
    return _HEX.sub(" ", _BLOB.sub(lambda match: " " if _is_blob(match[0]) else match[0], text))


def _is_blob(run: str) -> bool:
    """Tell base64 from a long path or identifier: it mixes cases and digits, and has few separators."""
    if len(run) < _SHORTEST_BLOB:
        return False
    capitals, smalls = sum(map(str.isupper, run)), sum(map(str.islower, run))
    separators = run.count("/") + run.count("_") + run.count("-")
    mixed = min(capitals, smalls) * 6 > len(run) or any(map(str.isdigit, run))
    return mixed and capitals > 0 and smalls > 0 and separators * 10 < len(run)


def _quoted(text: str) -> str:
    """Put code and its like on one line between backticks, which keeps it in one piece."""
    inner = _TAG.sub(" ", text).replace("```", " ")
    return f"\n`{_preview(inner).replace('`', ' ').strip()}`\n" if inner.strip() else "\n"


def readable(text: str) -> str:
    """Bring the beginning of a text to one line that can be read, about four times as long as a preview."""
    return one_line(without_payloads(_ANSI.sub("", text[: 4 * PREVIEW])))


def _preview(text: str) -> str:
    line = readable(text)
    size = len(text.strip())
    return line if size <= PREVIEW else f"{line[:PREVIEW].rstrip()}… ({size:,} characters)"


def _tool_result(message: Message) -> str:
    return _preview(without_reasoning(message.content)) if message.content.strip() else ""


def _call(call: ToolCall) -> str:
    given = call.arguments
    if isinstance(given, Mapping):
        shown = ", ".join(f"{name}={_argument(value)}" for name, value in given.items())
    else:
        shown = without_payloads(given[: 4 * PREVIEW])
    line = one_line(shown)
    return f"calls {one_line(call.name)}({line if len(line) <= PREVIEW else line[:PREVIEW] + '…'})"


def _argument(value: object) -> str:
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return without_payloads(value[: 4 * PREVIEW])


def harmless(text: str) -> str:
    """Drop the sentences of a text in which the guard finds something grave, beside the others or alone."""
    alone = [sentence for sentence in _harmless_together(sentences(text)) if not grave(sentence)]
    return "\n".join(_harmless_together(alone))  # without one between them, two may say what none does


def _harmless_together(kept: Sequence[str]) -> Sequence[str]:
    while spans := grave("\n".join(kept)):
        bad, start = set(), 0
        for number, sentence in enumerate(kept):
            if any(first <= start + len(sentence) and start <= last for first, last in spans):
                bad.add(number)
            start += len(sentence) + 1
        if not bad:
            return []
        kept = [sentence for number, sentence in enumerate(kept) if number not in bad]
    return kept


def grave(text: str) -> list[tuple[int, int]]:
    """Give the first and the last position of each part of a text that may do grave harm."""
    return [(found.start, found.end) for found in guard.scan(text) if found.severity == "high"]


def from_summary(text: str) -> list[Passage]:
    """Read back the passages of a summary that `extract` wrote; of any other text, its lines, said by nobody.

    The line that says what to expand for is dropped: a new summary makes its own.
    """
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(EXPAND.strip())]
    if not lines:
        return []
    ours = lines[0] == UNDATED or _DAY_LINE.fullmatch(lines[0]) is not None
    return list(_read_back(lines)) if ours else [Passage(line.removeprefix(BARE)) for line in lines]


def _read_back(lines: Sequence[str]) -> Iterator[Passage]:
    at: datetime | None = None
    speaker = ""
    for line in lines:
        if line == UNDATED or _DAY_LINE.fullmatch(line):
            at, speaker = _day(line), ""
        elif not line.startswith(BARE) and (match := _SAID.fullmatch(line)):
            speaker = match[1]
            yield Passage(match[2], speaker, at, speaker)
        else:
            yield Passage(line.removeprefix(BARE), speaker, at, speaker)


def _day(line: str) -> datetime | None:
    match = _DAY_LINE.fullmatch(line)
    if match is None:
        return None
    try:
        return datetime(int(match[3]), MONTHS.index(match[2]) + 1, int(match[1]), tzinfo=UTC)
    except ValueError:
        return None
