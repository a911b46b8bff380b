"""What a session decided, found by the words that decisions are made with: rules alone, no model."""

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

SHORTEST = 50  # characters of a message, or a closing note, that says what it is about
_FEWEST_WORDS = 4  # of a sentence that says what was decided: "That was important" and "Agreed" do not
LONGEST = 2_000  # characters
CLOSING = 100  # characters; an assistant's last message has more than that if it sums up
_ELLIPSIS = "..."
_WHOLE = 100_000  # characters: more than are left of any message

_TRIGGER = re.compile(
    r"\b(?:decided|conclusion|important|remember|note that|key insight|learned that|(?:will|should|we['’]ll) use|agreed|"
    r"entschieden|beschlossen|vereinbart|wichtig ist|merke? dir|"
    r"(?:décidé|convenu) (?:de|que)|notez que|nous utiliserons|"
    r"(?:decidimos|hemos decidido|acordamos|recuerda que|ten en cuenta|usaremos))(?!\w)",
    re.IGNORECASE,
)
_REMEMBERING = re.compile(
    r"\b(?:I|we|you|he|she|they)(?: (?:can|could|will|still|always|also|just|vaguely)|['’](?:ll|d))* $",
    re.IGNORECASE,
)
# What is negated up to two words before says the opposite, or nothing.
_NEGATED = re.compile(
    r"(?:\b(?:not|no|never|cannot|without|nothing|less|hardly|barely|nicht|keine?|pas|nunca)|n['’]t)"
    r"(?:[ /](?!but\b|and\b|so\b|we\b|I\b)[\w'’]{1,20}){0,2}[ /]$",
    re.IGNORECASE,
)
_BEFORE = 60  # characters that are looked at for who remembers, and for a negation
_CODE = re.compile(r"`[^`]*`")
_LEANING = re.compile(
    r"(?:It|It['’]s|Its|That|That['’]s|This|These|Those|They|They['’]re|He|She|Which|Das|Dies|Er|Sie|Es|Cela|Eso|Esto)\b",
)
_QUESTION = ("?", "？", "؟")
_COURTESY = re.compile(
    r"(?:(?:many )?thanks?\b|I appreciate\b|you['’]re (?:very |most )?welcome|no (?:problem|worries)\b|feel free|safe travels|"
    r"have a (?:great|nice|good)|if you (?:have|need) any|(?:please )?(?:let me know|don['’]t hesitate)|I['’]m here\b)",
    re.IGNORECASE,
)
_NEXT_STEP = re.compile(
    r".{0,100}?\blet me\b|(?:(?:now|next|first|then),? )?(?:I['’]ll|I will|I['’]m going to)\b|"
    r"(?:now|next|first|then),? (?:add|update|fix|write|run|create|remove|delete|check|verify|wire|look|implement|edit|build|"
    r"test|rewrite|change|move|replace|read|integrate)\b",
    re.IGNORECASE,
)
_TOOL_USE = re.compile(r"\s{0,40}<(?:tool[-_](?:use|call|result)|function_calls|function_results)\b")
_WORD = re.compile(r"\w+")

# What programs write into a user's messages. A tag that begins no line, or that nothing closes, is text.
_PROGRAM_TAG = re.compile(
    r"^[ \t]{0,16}<(local-command-\w{1,20}|command-\w{1,20}|bash-\w{1,20}|system-reminder|task-notification|user_info)>",
    re.MULTILINE,
)
_NOTICE = re.compile(
    r"\[(?:Request interrupted by user[^\[\]\n]{0,40}|Image(?: #\d{1,4}|: [^\[\]\n]{0,400})?)\]"
)
_COMMAND = re.compile(r"/[a-z][\w:-]{0,40}(?: [^\s/]{1,40}){0,2}")
_CONTINUED = "This session is being continued from a previous conversation"


@dataclass(frozen=True, slots=True)
class Decision:
    """Hold one thing that a session decided or found: what was said, in which message, and by whom."""

    text: str
    seq: int
    speaker: str


class Spoken(NamedTuple):
    """A message and the prose in it; see `said`."""

    message: Message
    prose: str


def decisions(messages: Sequence[Message]) -> list[Decision]:
    """Find what a session decided, in the order in which it was said, and last its closing note.

    A text is from a message of 50 characters or more and has at most 2,000, and no two are the same but for case, spaces and punctuation. The closing note is
    the assistant's last message that has more than 100 characters of prose, unless the decisions say it already.
    """
    told = list(spoken(messages))
    found = decided(told)
    note = _closing(told, [_key(one.text) for one in found])
    return [*found, note] if note else found


def decided(told: Iterable[Spoken]) -> list[Decision]:
    """Find the sentences of users and assistants that a decision is made with, without a closing note.

    Questions and negations are none. A sentence that begins with a pronoun takes the one before it along.
    """
    found: dict[str, Decision] = {}
    for message, prose in told:
        if _TRIGGER.search(prose):
            for text in _deciding(_sentences(prose), len(prose.strip())):
                found.setdefault(_key(text), Decision(text, message.seq, message.actor))
    return list(found.values())


def spoken(messages: Iterable[Message]) -> Iterator[Spoken]:
    """Give each message with its prose."""
    for message in messages:
        rest()
        yield Spoken(message, said(message))


def said(message: Message) -> str:
    """Give the prose of a user's or an assistant's message, "" for any other.

    Code, reasoning, the use of tools, and what a program or a memory wrote into the message are left out.
    """
    if message.role not in {"user", "assistant"}:
        return ""
    own = without_injected(message.content)
    own = _by_a_person(own) if message.role == "user" else own
    if not own.strip() or _TOOL_USE.match(own):
        return ""
    lines = [
        line for one in passages([replace(message, content=own, calls=())]) for line in one.text.splitlines()
    ]
    return "\n".join(line for line in lines if not _CODE.fullmatch(line.strip())).strip()


def is_courtesy(sentence: str) -> bool:
    """Say whether a sentence only thanks, greets or offers help."""
    return _COURTESY.match(sentence) is not None


def is_next_step(sentence: str) -> bool:
    """Say whether a sentence announces what its speaker is about to do, which is neither decided nor done."""
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
    """Give the sentences of a text, with those whole again that were cut because they are long."""
    held = ""
    for sentence in sentences(text):
        held = f"{held.removesuffix('…')} {sentence}" if held else sentence
        if not (sentence.endswith("…") and PIECE // 2 < len(sentence) <= PIECE):
            yield held
            held = ""
    if held:
        yield held


def _deciding(told: Iterator[str], said: int) -> Iterator[str]:
    """Give the sentences that decide, each as a text; `said` characters are in the message that they are of."""
    before = ""
    for sentence in told:
        if decides(sentence):
            both = gist(f"{before} {sentence}", _WHOLE) if before and _LEANING.match(sentence) else ""
            text = both if 0 < len(both) <= LONGEST else shortened(sentence)
            tells = said >= SHORTEST and len(_WORD.findall(sentence)) >= _FEWEST_WORDS
            if tells or len(text) >= SHORTEST:
                yield text
        before = sentence


def decides(sentence: str) -> bool:
    """Say whether a sentence has a word that decisions are made with, and neither asks nor denies."""
    if sentence.rstrip("\"'”’)*_ ").endswith(_QUESTION) or is_next_step(sentence):
        return False
    words = _CODE.sub("`", sentence)
    return any(_counts(words, found) for found in _TRIGGER.finditer(words))


def _counts(sentence: str, found: re.Match[str]) -> bool:
    before = sentence[max(0, found.start() - _BEFORE) : found.start()]
    return not (_NEGATED.search(before) or (found[0].lower() == "remember" and _REMEMBERING.search(before)))


def shortened(text: str) -> str:
    """Bring a text to one line without markup, cut at 2,000 characters, on a word."""
    line = gist(text, _WHOLE)
    if len(line) <= LONGEST:
        return line
    return cut(line, LONGEST - len(_ELLIPSIS)).rstrip(".… ") + _ELLIPSIS


def _closing(told: Sequence[Spoken], keys: Sequence[str]) -> Decision | None:
    for message, text in reversed(told):
        if message.role != "assistant":
            continue
        reported = [one for one in sentences(text) if not (is_courtesy(one) or is_next_step(one))]
        if sum(map(len, reported)) > CLOSING:
            new = [one for one in reported if not any(_key(one) in key for key in keys)]
            note = shortened(text)
            said_already = sum(map(len, new)) < SHORTEST or len(note) < SHORTEST or _key(note) in keys
            return None if said_already else Decision(note, message.seq, message.actor)
    return None


def _key(text: str) -> str:
    """Bring a text to its words, in which what says the same in other letters is the same."""
    return " ".join(_WORD.findall(text.casefold()))
