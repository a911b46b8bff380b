"""What a chat says in so many words that is worth keeping: each as a sentence that is understood alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.learning.speeches import Speech, shortened, speeches_of
from holdfast.learning.workers import rest
from holdfast.text.statement_spans import spans
from holdfast.text.statements import StatementKind, is_chat_log, is_reminder, revokes, statements, takes_back
from holdfast.types import Message, Range

_LONGEST_TYPED = 1_500  # characters of what a person types; what is longer was pasted
_PLAY = re.compile(
    r"\W*(?:(?:please |can you |could you |i want you to |let['’]s )?(?:act as|role-?play|pretend|"
    r"play the role|write (?:me )?an? (?:[\w-]{1,30} ){0,4}"
    r"(?:story|poem|essay|song|scene|script|speech|letter))|"
    r"you are (?:now )?an? |you['’]re (?:now )?an? |imagine (?:that )?you|from now on,? you are)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`\n]{1,200}`|\w\(\)|[\w-]/[\w.-]{1,80}\.[a-z]{1,5}\b")
_PASTED = re.compile(r"^[ \t]{0,8}(?:>|```|~~~|diff --git|@@ |\++ |#{1,6} )|<[a-z-]{2,30}>", re.MULTILINE)
_WORD = re.compile(r"\w{4,}")
_VAGUE = frozenset("always never please that this with from have will just them then when what".split())
_NEAR = 2  # long words that what is taken back later has in common with what takes it back
_OF_FIRST_PERSON = re.compile(
    r"\b(?:i|i['’]m|my|we|our|ich|mein\w*|yo|mi|je|j['’]\w+|mon|ma|io|mio|mia|ik|mijn|eu|meu|minha)\b|我|私|僕",
    re.IGNORECASE,
)


class LearnedStatement(NamedTuple):
    """Something worth keeping: what it says, and the messages that it is from.

    `speaker` is who said it, `is_typed` whether a person typed it and pasted nothing beside it.
    """

    kind: StatementKind
    text: str
    messages: Range
    speaker: str
    is_typed: bool


def learned_statements(messages: Sequence[Message]) -> list[LearnedStatement]:
    """Return what is worth keeping of a chat, in its order; no two say the same.

    What is asked, played, or pasted is nothing, and neither is what its speaker takes back later.
    """
    found: dict[str, LearnedStatement] = {}
    speeches = [one for one in speeches_of(messages) if one.prose]
    is_work = any(_CODE.search(one.prose) for one in speeches)
    # What one person asks of another is not for a memory.
    among_people = len({one.message.actor for one in speeches if one.message.role == "user"}) > 1
    is_play, asked = False, False
    for message, prose in speeches:
        rest()
        by_user = message.role == "user"
        if by_user:
            is_play = _PLAY.match(prose) is not None
            _withdraw(found, Speech(message, prose), answers=asked)
        if not is_play:
            for one in _stated(message, prose, is_work=is_work):
                if not among_people or one.kind in ("personal", "cause"):
                    found.setdefault(" ".join(re.findall(r"\w+", one.text.casefold())), one)
        asked = not by_user and "?" in prose[-400:]
    return list(found.values())


def record_kind(one: LearnedStatement, *, facts: bool) -> tuple[str, str]:
    """Return the kind and the target of the record that a statement becomes; without `facts`, no fact.

    A standing order that the user typed is a constraint. What an assistant said is a finding.
    """
    if one.kind == "order":
        return ("constraint", "") if one.speaker == "user" and one.is_typed else ("insight", "")
    if one.kind == "decision":
        return ("finding" if one.speaker == "assistant" else "insight"), ""
    if one.kind == "cause" or not facts or one.speaker != "user":
        return "finding", ""
    return "fact", "user" if one.kind == "personal" or _OF_FIRST_PERSON.search(one.text) else "env"


def is_all_typed(message: Message, prose: str) -> bool:
    """Return whether a person typed a message, and pasted nothing into it, as far as that shows."""
    return len(prose) <= _LONGEST_TYPED and not (_PASTED.search(message.content) or is_chat_log(prose))


def _stated(message: Message, prose: str, *, is_work: bool) -> Iterator[LearnedStatement]:
    by_user = message.role == "user"
    is_typed = is_all_typed(message, prose)
    span = (message.seq, message.seq)
    if by_user and not is_work and is_reminder(prose):
        yield LearnedStatement("request", shortened(prose), span, message.actor, is_typed)
        return
    found = statements(prose, by_user=by_user, is_work=is_work)
    said = [*spans(prose)] if found else []
    back = [one.start for one in said if takes_back(prose[one.start : one.end], "negates", "corrects")]
    ends = [
        (one.start, _words(prose[one.start : one.end])) for one in said if revokes(prose[one.start : one.end])
    ]
    for one in found:
        is_own = is_typed or not by_user or (one.kind == "request" and _is_own(message, prose))
        text = shortened(prose[one.start : one.end])
        is_ended = any(start >= one.end and words & _words(text) for start, words in ends)
        if is_own and one.start >= max(back, default=0) and not is_ended:
            yield LearnedStatement(one.kind, text, span, message.actor, is_typed)


def _is_own(message: Message, prose: str) -> bool:
    """Return whether a message has so much beside what was pasted that a request in it is its writer's."""
    return len(prose) <= _LONGEST_TYPED and "<" not in message.content and not is_chat_log(prose)


def _withdraw(found: dict[str, LearnedStatement], speech: Speech, *, answers: bool) -> None:
    """Drop what a message takes back: what its writer said just before, or about the same earlier."""
    message, prose = speech
    said = [prose[span.start : span.end] for span in spans(prose)]
    back = [one for one in said if takes_back(one)]
    is_no = not answers and takes_back(prose, "negates")
    ends = _words(" ".join(filter(revokes, said)))
    if not (back or is_no or ends):
        return
    words = _words(" ".join(back or said)) if back or is_no else set()
    own = [key for key, one in found.items() if one.speaker == message.actor]
    opens = is_no or (bool(said) and takes_back(said[0]))
    last = found[own[-1]].messages if own and opens else None
    for key in own:
        one = found[key]
        is_last = one.messages == last and message.seq - one.messages[1] <= 2 * _NEAR
        named = _words(one.text)
        if is_last or len(words & named) >= _NEAR or ends & named:
            del found[key]


def _words(text: str) -> set[str]:
    return {*_WORD.findall(text.casefold())} - _VAGUE
