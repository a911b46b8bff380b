"""Messages as passages of plain text, without reasoning, payloads and injections."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from holdfast.safety.guard import FLAG, mask, mask_name, masked_call, scan
from holdfast.text.message_text import PREVIEW, preview, prose, without_payloads, without_reasoning
from holdfast.text.sentences import one_line, sentences
from holdfast.types import Message, ToolCall

EXPAND = "Expand for: "  # begins the last line of a summary
# The role of a line of a summary for steps of the work, not for words.
STEPS = "steps"
# The role of a document that somebody pasted; it follows the name.
PASTED = ", pasted"
LONGEST_NAME = 40
_NAME_MARKS = str.maketrans(":[]|", "    ")  # the characters around a name in a line
_FLAGS = frozenset(("instruction", "disguise", "invisible", "secret"))


@dataclass(frozen=True, slots=True)
class Passage:
    """A message as text, with its speaker, time and role; "" for a speaker or a role that is unknown.

    `seq` is that of the message, 0 for none, and `mark` what stands before its lines in a summary.
    `number` is that of the message where a summary shall name it, in work sessions; 0 elsewhere.
    """

    text: str
    speaker: str = ""
    at: datetime | None = None
    role: str = ""
    number: int = 0
    seq: int = 0
    mark: str = ""


def passages(messages: Sequence[Message]) -> list[Passage]:
    """Return the passages of messages, one for each that has any text.

    Calls and results of tools are previewed. Reasoning and binary payloads are left out, and so are the
    harmful sentences of messages that the guard flagged.
    """
    kept = []
    # Masked before anything is cut: half a credential is not recognised.
    for message in map(masked, messages):
        if message.role == "tool":
            text = preview(without_reasoning(message.content))
        else:
            text = "\n".join(filter(None, (prose(message.content), *map(_call, message.calls))))
        if text and not _FLAGS.isdisjoint(message.flags):
            text = harmless(text)
        if text:
            kept.append(Passage(text, _name(message.actor), message.at, message.role, seq=message.seq))
    return kept


def masked(message: Message) -> Message:
    """Return a message without credentials: those found when it was stored, and those in its calls."""
    calls = tuple(map(masked_call, message.calls))
    content = mask(message.content) if FLAG in message.flags else message.content
    if (content, calls) == (message.content, message.calls):
        return message
    return replace(message, content=content, calls=calls)


def _name(actor: str) -> str:
    """Return the name of a speaker without characters that have a meaning in a line of a summary."""
    name = one_line(mask_name(actor).translate(_NAME_MARKS))[:LONGEST_NAME].strip(" -") or "unnamed"
    return f"_{name}" if f"{name}: " == EXPAND else name


def _call(call: ToolCall) -> str:
    if isinstance(call.arguments, Mapping):
        arguments = ", ".join(f"{name}={_argument(value)}" for name, value in call.arguments.items())
    else:
        arguments = _argument(call.arguments)
    line = one_line(arguments)
    return f"calls {one_line(call.name)}({line if len(line) <= PREVIEW else line[:PREVIEW] + '…'})"


def _argument(value: object) -> str:
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return without_payloads(value[: 4 * PREVIEW])


def harmless(text: str) -> str:
    """Drop the sentences of a text that the guard finds harmful, among the others or alone."""
    alone = [sentence for sentence in _harmless_together(sentences(text)) if not grave(sentence)]
    # Without a sentence between them, two may form an order that neither is.
    return "\n".join(_harmless_together(alone))


def _harmless_together(kept: Sequence[str]) -> Sequence[str]:
    """Drop sentences until the guard finds nothing harmful in the rest as one text."""
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
    """Return the start and the end of each part of a text that the guard finds harmful."""
    return [(finding.start, finding.end) for finding in scan(text)]
