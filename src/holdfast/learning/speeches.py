"""The prose of a chat, without the text of programs and memories, and the statements in it worth keeping.

A statement is a sentence that says so in so many words, and that is understood alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.learning.echo_match import without_injected
from holdfast.learning.workers import rest
from holdfast.messages.passages import passages
from holdfast.text.one_line import cut, gist
from holdfast.text.sentences import without_filler
from holdfast.text.statement_spans import spans
from holdfast.text.statements import StatementKind, is_chat_log, is_reminder, revokes, statements, takes_back
from holdfast.types import Message, Range

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
    lines = [line for passage in prose for line in passage.text.splitlines()]
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


def shorten(text: str) -> str:
    """Return a text in one line without markup, cut at 2,000 characters, on a word."""
    line = gist(text, _WHOLE)
    if len(line) <= LONGEST:
        return line
    return cut(line, LONGEST - len(_ELLIPSIS)).rstrip(".… ") + _ELLIPSIS


# What is worth keeping

_LONGEST_TYPED = 1_500  # characters of what a person types; what is longer was pasted
_PLAY = re.compile(
    r"\W*(?:(?:please |can you |could you |i want you to |let['’]s )?(?:act as|role-?play|pretend|"
    r"play the role|write (?:me )?an? (?:[\w-]{1,30} ){0,4}"
    r"(?:story|poem|essay|song|scene|script|speech|letter))|"
    r"you are (?:now )?an? |you['’]re (?:now )?an? |imagine (?:that )?you|from now on,? you are)\b",
    re.IGNORECASE,
)
_WORK = re.compile(r"`[^`\n]{1,200}`|\w\(\)|[\w-]/[\w.-]{1,80}\.[a-z]{1,5}\b")
_PASTED = re.compile(r"^[ \t]{0,8}(?:>|```|~~~|diff --git|@@ |\++ |#{1,6} )|<[a-z-]{2,30}>", re.MULTILINE)
_LONG_WORD = re.compile(r"\w{4,}")
_VAGUE = frozenset("always never please that this with from have will just them then when what".split())
_NEAR = 2  # long words that a statement has in common with the message that takes it back
_OF_FIRST_PERSON = re.compile(
    r"\b(?:i|i['’]m|my|we|our|ich|mein\w*|yo|mi|je|j['’]\w+|mon|ma|io|mio|mia|ik|mijn|eu|meu|minha)\b|我|私|僕",
    re.IGNORECASE,
)


class LearnedStatement(NamedTuple):
    """A statement worth keeping, and the messages that it is from.

    `speaker` is who said it, `is_typed` whether a person typed it and pasted nothing beside it.
    """

    kind: StatementKind
    text: str
    messages: Range
    speaker: str
    is_typed: bool


def learned_statements(messages: Sequence[Message]) -> list[LearnedStatement]:
    """Return the statements worth keeping of a chat, in its order and without repetitions.

    Questions, role play, pasted text, and statements that their speaker takes back later are left out.
    """
    kept: dict[str, LearnedStatement] = {}
    speeches = [speech for speech in speeches_of(messages) if speech.prose]
    is_work = any(_WORK.search(speech.prose) for speech in speeches)
    # What one person asks of another is not for a memory.
    among_people = len({speech.message.actor for speech in speeches if speech.message.role == "user"}) > 1
    is_play, is_question = False, False
    for message, prose in speeches:
        rest()
        by_user = message.role == "user"
        if by_user:
            is_play = _PLAY.match(prose) is not None
            _withdraw(kept, Speech(message, prose), answers=is_question)
        if not is_play:
            for statement in _find_statements(message, prose, is_work=is_work):
                if not among_people or statement.kind in ("personal", "cause"):
                    kept.setdefault(" ".join(re.findall(r"\w+", statement.text.casefold())), statement)
        is_question = not by_user and "?" in prose[-400:]
    return list(kept.values())


def record_kind(claim: LearnedStatement, *, facts: bool) -> tuple[str, str]:
    """Return the kind and the target of the record that a statement becomes; without `facts`, no fact.

    A standing order that the user typed is a constraint. What an assistant said is a finding.
    """
    if claim.kind == "order":
        return ("constraint", "") if claim.speaker == "user" and claim.is_typed else ("insight", "")
    if claim.kind == "decision":
        return ("finding" if claim.speaker == "assistant" else "insight"), ""
    if claim.kind == "cause" or not facts or claim.speaker != "user":
        return "finding", ""
    return "fact", "user" if claim.kind == "personal" or _OF_FIRST_PERSON.search(claim.text) else "env"


def is_all_typed(message: Message, prose: str) -> bool:
    """Return whether a person typed a message, and pasted nothing into it, as far as that shows."""
    return len(prose) <= _LONGEST_TYPED and not (_PASTED.search(message.content) or is_chat_log(prose))


def _find_statements(message: Message, prose: str, *, is_work: bool) -> Iterator[LearnedStatement]:
    by_user = message.role == "user"
    is_typed = is_all_typed(message, prose)
    span = (message.seq, message.seq)
    if by_user and not is_work and is_reminder(prose):
        yield LearnedStatement("request", shorten(prose), span, message.actor, is_typed)
        return
    hits = statements(prose, by_user=by_user, is_work=is_work)
    texts = [(span.start, prose[span.start : span.end]) for span in spans(prose)] if hits else []
    back = [start for start, text in texts if takes_back(text, "negates", "corrects")]
    ends = [(start, _words(text)) for start, text in texts if revokes(text)]
    for hit in hits:
        is_own = is_typed or not by_user or (hit.kind == "request" and _is_own(message, prose))
        text = shorten(prose[hit.start : hit.end])
        is_ended = any(start >= hit.end and words & _words(text) for start, words in ends)
        if is_own and hit.start >= max(back, default=0) and not is_ended:
            yield LearnedStatement(hit.kind, text, span, message.actor, is_typed)


def _is_own(message: Message, prose: str) -> bool:
    """Return whether a request in a message is its writer's own, though something may be pasted beside it."""
    return len(prose) <= _LONGEST_TYPED and "<" not in message.content and not is_chat_log(prose)


def _withdraw(kept: dict[str, LearnedStatement], speech: Speech, *, answers: bool) -> None:
    """Drop the statements that a message takes back: its writer's last, or earlier ones about the same."""
    message, prose = speech
    texts = [prose[span.start : span.end] for span in spans(prose)]
    back = [text for text in texts if takes_back(text)]
    is_no = not answers and takes_back(prose, "negates")
    ends = _words(" ".join(filter(revokes, texts)))
    if not (back or is_no or ends):
        return
    words = _words(" ".join(back or texts)) if back or is_no else set()
    own = [key for key, statement in kept.items() if statement.speaker == message.actor]
    opens = is_no or (bool(texts) and takes_back(texts[0]))
    last = kept[own[-1]].messages if own and opens else None
    for key in own:
        statement = kept[key]
        is_last = statement.messages == last and message.seq - statement.messages[1] <= 2 * _NEAR
        terms = _words(statement.text)
        if is_last or len(words & terms) >= _NEAR or ends & terms:
            del kept[key]


def _words(text: str) -> set[str]:
    return {*_LONG_WORD.findall(text.casefold())} - _VAGUE
