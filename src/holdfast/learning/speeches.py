"""What is said in a chat: the prose of its messages, without what programs and memories wrote into them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from holdfast.learning.echo_match import without_injected
from holdfast.learning.workers import rest
from holdfast.messages.passages import passages
from holdfast.text.one_line import cut, gist
from holdfast.text.sentences import without_filler
from holdfast.types import Message

LONGEST = 2_000  # characters
_ELLIPSIS = "..."
_WHOLE = 100_000  # characters: more than are left of any message

_CODE = re.compile(r"`[^`]*`")
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

# Blocks that programs write into a user's messages. A tag that begins no line, or that nothing closes, is
# text.
_PROGRAM_TAG = re.compile(
    r"^[ \t]{0,16}<(local-command-\w{1,20}|command-\w{1,20}|bash-\w{1,20}|"
    r"system-reminder|task-notification|user_info|environment_\w{1,20}|user_instructions|INSTRUCTIONS|"
    r"turn_aborted|session_context|ide_\w{1,20}|user-prompt-submit-hook|new-diagnostics|attached_files|skill)>",
    re.MULTILINE,
)
_NOTICE = re.compile(
    r"\[(?:Request interrupted by user[^\[\]\n]{0,40}|Image(?: #\d{1,4}|: [^\[\]\n]{0,400})?)\]"
)
_COMMAND = re.compile(r"/[a-z][\w:-]{0,40}(?: [^\s/]{1,40}){0,2}")
# How messages begin that a client writes in the name of the user: what it asks its model by itself, and what
# a command or a skill expands to.
_BY_CLIENT = re.compile(
    r"\s{0,20}(?:This session is being continued from a previous conversation|\[[A-Z][A-Z ]{2,40} MODE\b|"
    r"Caveat: The messages below were generated|Base directory for this skill:|# AGENTS\.md instructions|"
    r"Your task is to create a detailed summary of (?:the|this|our) conversation|"
    r"(?:Stop|SubagentStop|PostToolUse|PreToolUse)(?::\w{1,40})? hook |"
    r"Please analy[sz]e this codebase and create a CLAUDE\.md|On branch \S{1,200}\s|"
    r"(?:#{1,3} Context\s{1,8})?(?:[-*!`]{1,3} ?){0,2}(?:Current )?git (?:status|diff|log|branch)\b"
    r"[^\n?]{0,80}:)"
)


class Speech(NamedTuple):
    """A message and the prose in it; see `prose_of`."""

    message: Message
    prose: str


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
    if _BY_CLIENT.match(text) or _COMMAND.fullmatch(text.strip()):
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


def shortened(text: str) -> str:
    """Return a text in one line without markup, cut at 2,000 characters, on a word."""
    line = gist(text, _WHOLE)
    if len(line) <= LONGEST:
        return line
    return cut(line, LONGEST - len(_ELLIPSIS)).rstrip(".… ") + _ELLIPSIS
