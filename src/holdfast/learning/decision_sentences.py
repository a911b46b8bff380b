"""Sentences of a chat that state a decision, found by the words of decisions: by rules, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.learning.echo_match import without_injected
from holdfast.learning.throttle import rest
from holdfast.messages.passages import passages
from holdfast.text.one_line import cut, gist
from holdfast.text.sentences import LONGEST as PIECE
from holdfast.text.sentences import sentences, without_filler
from holdfast.types import Message

SHORTEST = 50  # characters of a message, or a closing note, that stands alone
_FEWEST_WORDS = 4  # of a decision: "That was important" and "Agreed" name none
LONGEST = 2_000  # characters
CLOSING = 100  # characters; an assistant's last message has more than that if it sums up
_ELLIPSIS = "..."
_WHOLE = 100_000  # characters: more than are left of any message

_TRIGGER = re.compile(
    r"\b(?:decided|conclusion|important|remember|note that|key insight|learned that|"
    r"(?:will|should|we['’]ll) use|agreed|"
    r"entschieden|beschlossen|vereinbart|wichtig ist|merke? dir|"
    r"(?:décidé|convenu) (?:de|que)|notez que|nous utiliserons|"
    r"(?:decidimos|hemos decidido|acordamos|recuerda que|ten en cuenta|usaremos))(?!\w)",
    re.IGNORECASE,
)
_REMEMBERING = re.compile(
    r"\b(?:I|we|you|he|she|they)(?: (?:can|could|will|still|always|also|just|vaguely)|['’](?:ll|d))* $",
    re.IGNORECASE,
)
# A negation up to two words before reverses a decision.
_NEGATED = re.compile(
    r"(?:\b(?:not|no|never|cannot|without|nothing|less|hardly|barely|nicht|keine?|pas|nunca)|n['’]t)"
    r"(?:[ /](?!but\b|and\b|so\b|we\b|I\b)[\w'’]{1,20}){0,2}[ /]$",
    re.IGNORECASE,
)
_BEFORE = 60  # characters that are searched for who remembers, and for a negation
_CODE = re.compile(r"`[^`]*`")
_LEANING = re.compile(
    r"(?:It|It['’]s|Its|That|That['’]s|This|These|Those|They|They['’]re|He|She|Which|"
    r"Das|Dies|Er|Sie|Es|Cela|Eso|Esto)\b"
)
_QUESTION = ("?", "？", "؟")
_COURTESY = re.compile(
    r"(?:(?:many )?thanks?\b|I appreciate\b|you['’]re (?:very |most )?welcome|no (?:problem|worries)\b|"
    r"feel free|safe travels|have a (?:great|nice|good)|if you (?:have|need) any|"
    r"(?:please )?(?:let me know|don['’]t hesitate)|I['’]m here\b)",
    re.IGNORECASE,
)
_NEXT_STEP = re.compile(
    r".{0,100}?\blet me\b|(?:(?:now|next|first|then),? )?(?:I['’]ll|I will|I['’]m going to)\b|"
    r"(?:now|next|first|then),? (?:add|update|fix|write|run|create|remove|delete|check|verify|wire|look|"
    r"implement|edit|build|test|rewrite|change|move|replace|read|integrate)\b",
    re.IGNORECASE,
)
_TOOL_USE = re.compile(r"\s{0,40}<(?:tool[-_](?:use|call|result)|function_calls|function_results)\b")
_WORD = re.compile(r"\w+")

# Blocks that programs write into a user's messages. A tag that begins no line, or that nothing closes, is
# text.
_PROGRAM_TAG = re.compile(
    r"^[ \t]{0,16}<(local-command-\w{1,20}|command-\w{1,20}|bash-\w{1,20}|"
    r"system-reminder|task-notification|user_info)>",
    re.MULTILINE,
)
_NOTICE = re.compile(
    r"\[(?:Request interrupted by user[^\[\]\n]{0,40}|Image(?: #\d{1,4}|: [^\[\]\n]{0,400})?)\]"
)
_COMMAND = re.compile(r"/[a-z][\w:-]{0,40}(?: [^\s/]{1,40}){0,2}")
_CONTINUED = "This session is being continued from a previous conversation"


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision or finding of a chat, with the seq of its message and the speaker."""

    text: str
    seq: int
    speaker: str


class Speech(NamedTuple):
    """A message and the prose in it; see `prose_of`."""

    message: Message
    prose: str


def decisions(messages: Sequence[Message]) -> list[Decision]:
    """Return the decisions of a chat in their order, and last its closing note.

    A text is from a message of 50 characters or more and has at most 2,000, and no two are the same but for
    case, spaces and punctuation. The closing note is the assistant's last message that has more than 100
    characters of prose, unless the decisions say it already.
    """
    speeches = list(speeches_of(messages))
    found = decided(speeches)
    note = _closing(speeches, [_key(one.text) for one in found])
    return [*found, note] if note else found


def decided(speeches: Iterable[Speech]) -> list[Decision]:
    """Return the sentences of users and assistants that decide something, without a closing note.

    Questions and negations decide nothing. A sentence that begins with a pronoun takes the one before it
    along.
    """
    found: dict[str, Decision] = {}
    for message, prose in speeches:
        if _TRIGGER.search(prose):
            for text in _deciding(_sentences(prose), len(prose.strip())):
                found.setdefault(_key(text), Decision(text, message.seq, message.actor))
    return list(found.values())


def speeches_of(messages: Iterable[Message]) -> Iterator[Speech]:
    """Yield each message with its prose."""
    for message in messages:
        rest()
        yield Speech(message, prose_of(message))


def prose_of(message: Message) -> str:
    """Return the prose of a user's or an assistant's message, "" for any other.

    Code, reasoning, the use of tools, and what a program or a memory wrote into the message are left out.
    """
    if message.role not in {"user", "assistant"}:
        return ""
    own = without_injected(message.content)
    own = _by_a_person(own) if message.role == "user" else own
    if not own.strip() or _TOOL_USE.match(own):
        return ""
    prose = passages([replace(message, content=own, calls=())])
    lines = [line for one in prose for line in one.text.splitlines()]
    return "\n".join(line for line in lines if not _CODE.fullmatch(line.strip())).strip()


def is_courtesy(sentence: str) -> bool:
    """Return whether a sentence only thanks, greets or offers help."""
    return _COURTESY.match(sentence) is not None


def is_next_step(sentence: str) -> bool:
    """Return whether a sentence announces what its speaker is about to do: that is no decision."""
    return not is_courtesy(sentence) and _NEXT_STEP.match(without_filler(sentence)) is not None


def _by_a_person(text: str) -> str:
    if text.startswith(_CONTINUED) or _COMMAND.fullmatch(text.strip()):
        return ""
    return _NOTICE.sub(" ", _without_programs(text))


def _without_programs(text: str) -> str:
    parts: list[str] = []
    unclosed: set[str] = set()
    done = 0
    for tag in _PROGRAM_TAG.finditer(text):
        if tag.start() < done or tag[1] in unclosed:
            continue
        closing = f"</{tag[1]}>"
        end = text.find(closing, tag.end())
        if end < 0:
            unclosed.add(tag[1])
        else:
            parts.append(text[done : tag.start()])
            done = end + len(closing)
    return "".join((*parts, text[done:]))


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, with those whole again that were cut because they are long."""
    held = ""
    for sentence in sentences(text):
        held = f"{held.removesuffix('…')} {sentence}" if held else sentence
        if not (sentence.endswith("…") and PIECE // 2 < len(sentence) <= PIECE):
            yield held
            held = ""
    if held:
        yield held


def _deciding(said: Iterator[str], size: int) -> Iterator[str]:
    """Yield the sentences that decide something, each as a text, out of a message of so many characters."""
    before = ""
    for sentence in said:
        if decides(sentence):
            both = gist(f"{before} {sentence}", _WHOLE) if before and _LEANING.match(sentence) else ""
            text = both if 0 < len(both) <= LONGEST else shortened(sentence)
            is_complete = size >= SHORTEST and len(_WORD.findall(sentence)) >= _FEWEST_WORDS
            if is_complete or len(text) >= SHORTEST:
                yield text
        before = sentence


def decides(sentence: str) -> bool:
    """Return whether a sentence has a word of decisions, and is neither a question nor negated."""
    if sentence.rstrip("\"'”’)*_ ").endswith(_QUESTION) or is_next_step(sentence):
        return False
    words = _CODE.sub("`", sentence)
    return any(_counts(words, found) for found in _TRIGGER.finditer(words))


def _counts(sentence: str, found: re.Match[str]) -> bool:
    before = sentence[max(0, found.start() - _BEFORE) : found.start()]
    return not (_NEGATED.search(before) or (found[0].lower() == "remember" and _REMEMBERING.search(before)))


def shortened(text: str) -> str:
    """Return a text in one line without markup, cut at 2,000 characters, on a word."""
    line = gist(text, _WHOLE)
    if len(line) <= LONGEST:
        return line
    return cut(line, LONGEST - len(_ELLIPSIS)).rstrip(".… ") + _ELLIPSIS


def _closing(speeches: Sequence[Speech], keys: Sequence[str]) -> Decision | None:
    for message, text in reversed(speeches):
        if message.role != "assistant":
            continue
        reported = [one for one in sentences(text) if not (is_courtesy(one) or is_next_step(one))]
        if sum(map(len, reported)) > CLOSING:
            new = [one for one in reported if not any(_key(one) in key for key in keys)]
            note = shortened(text)
            is_known = sum(map(len, new)) < SHORTEST or len(note) < SHORTEST or _key(note) in keys
            return None if is_known else Decision(note, message.seq, message.actor)
    return None


def _key(text: str) -> str:
    """Return the words of a text, whatever their case and what is between them."""
    return " ".join(_WORD.findall(text.casefold()))
