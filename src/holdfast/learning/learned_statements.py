"""What a chat says that is worth keeping, told by its form: each as a text that is understood alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast.learning.speeches import SHORTEST, Speech, shortened, speeches_of
from holdfast.learning.throttle import rest
from holdfast.text.statement_forms import of_dialog
from holdfast.text.statements import WORTH, Context, JudgedStatement, StatementKind, statements
from holdfast.types import Message, Range

MOST_FACTS = 5  # of a session; what there is more of is a finding
_BESIDE = 0.1  # from which worth on a statement goes along with the one beside it, on code or among people
_MOST_JOINED = 3  # statements
_FEWEST_WORDS = 4  # of what stands alone; of a wish one less
_EARLY = 3  # statements of a message among which an answer stands
_SHORT = 8  # words of an answer that is not understood without its question
_LONGEST_PASTE = 1_500  # characters of what a person types
_LONGEST = 600  # characters that statements are joined to
_LEANING = re.compile(
    r"\W*(?:it|it['’]s|its|that|that['’]s|this|these|those|they|they['’]re|he|she|which|so|because|both|same|"
    r"das|dies|er|sie|es|weil|cela|ça|c['’]est|eso|esto|porque)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\W*(?:because|since|otherwise|the reason|that way|so that|reason|weil|sonst|grund|parce|sinon|porque|"
    r"si no)\b",
    re.IGNORECASE,
)
_PLAY = re.compile(
    r"\W*(?:(?:please |can you |could you |i want you to |let['’]s )?(?:act as|role-?play|pretend|"
    r"play the role|write (?:me )?an? (?:[\w-]{1,30} ){0,4}"
    r"(?:story|poem|essay|song|scene|script|speech|letter))|"
    r"you are (?:now )?an? |you['’]re (?:now )?an? |imagine (?:that )?you|from now on,? you are)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`\n]{1,200}`|\w\(\)|[\w-]/[\w.-]{1,80}\.[a-z]{1,5}\b")
_QUOTED = re.compile(r"^[ \t]{0,8}(?:>|```|~~~)|<[a-z-]{2,30}>", re.MULTILINE)
_NEAR = 12  # messages after a user's in which the assistant answers
_LONGEST_ANSWER = 400  # characters of a message that is one answer
_MOST_ANSWERED = 5  # statements of it
_CONSENT = re.compile(
    r"\b(?:yes|yup|yeah|yep|ok|okay|k|sure|please|pls|and|then|thanks?|you|go|ahead|do|it|that|this|"
    r"now|the|a|"
    r"sounds?|looks?|good|great|perfect|nice|cool|fine|all|done|ja|bitte|gut|danke|sí|vale|gracias|"
    r"oui|merci)\b",
    re.IGNORECASE,
)
_NO_CHOICE = re.compile(
    r"[?？]|\b(?:proceed|continue|carry on|keep going|go on|next step|let me|i['’]ll|uhh+|still|screenshot|"
    r"image|(?:do|does|did|is|are|was|ca)n['’]?t (?:work|understand|see|know|get|show|seem)\w*)\b|"
    r"[\u2500-\u259f✓✗●]|^[$>%#]",
    re.IGNORECASE | re.MULTILINE,
)
_ORDINAL = re.compile(
    r"\b(?:(first|1st)|(second|2nd)|(third|3rd)|(fourth|4th)|(?:option|number|variant) #?(\d))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\u4e00-\u9fff]|\w+?(?=[\u4e00-\u9fff]|\b)")
_RECORDS = {"decision": "insight", "instruction": "insight", "correction": "lesson"}


class LearnedStatement(NamedTuple):
    """Something worth keeping: what it says, and the messages that it is from; see `learned_kind`.

    `speaker` is who said it, `is_typed` whether a person typed it and pasted nothing beside it.
    """

    kind: StatementKind
    text: str
    messages: Range
    speaker: str
    worth: float
    is_typed: bool


class _Turn(NamedTuple):
    """A message with what was said before it by the other side, and what is known around it."""

    speech: Speech
    before: Speech | None
    context: Context


def learned_statements(messages: Sequence[Message]) -> list[LearnedStatement]:
    """Return what is worth keeping of a chat, in its order; no two say the same.

    Questions, courtesy, offers, next steps and role-play are nothing. A statement takes its reason along, and
    what it leans on: the sentence before it, or the question that it answers.
    """
    found: dict[str, LearnedStatement] = {}
    for turn in _turns(messages):
        rest()
        for one in _of_turn(turn):
            found.setdefault(" ".join(_WORD.findall(one.text.casefold())), one)
    return list(found.values())


def contexts(speeches: Sequence[Speech]) -> list[Context]:
    """Return what is around each of some messages."""
    return [turn.context for turn in _placed(speeches)]


def record_kinds(found: Sequence[LearnedStatement], *, facts: bool) -> list[tuple[str, str]]:
    """Return the kind and the target of the record that each statement becomes; without `facts`, of no fact.

    What the user says that stands is a constraint, if it was typed. The five facts that are most likely worth
    it are facts, and the others findings.
    """
    candidates = [one for one in found if facts and _fact_target(one)]
    chosen = set(sorted(candidates, key=lambda one: -one.worth)[:MOST_FACTS])
    return [_record_kind(one, is_fact=one in chosen) for one in found]


def _record_kind(one: LearnedStatement, *, is_fact: bool) -> tuple[str, str]:
    if one.kind == "instruction" and one.speaker == "user" and one.is_typed:
        return "constraint", ""
    if is_fact:
        return "fact", _fact_target(one)
    return _RECORDS.get(one.kind, "finding"), ""


def _fact_target(one: LearnedStatement) -> str:
    if one.kind == "environment":
        return "env"
    return "user" if one.kind in ("preference", "personal") and one.speaker == "user" else ""


def _turns(messages: Sequence[Message]) -> Iterator[_Turn]:
    """Yield the messages, without role-play: what a user asks to be played, and what is played."""
    is_play = False
    for turn in _placed([one for one in speeches_of(messages) if one.prose]):
        if turn.speech.message.role == "user":
            is_play = _PLAY.match(turn.speech.prose) is not None
        if not is_play:
            yield turn


def _placed(speeches: Sequence[Speech]) -> Iterator[_Turn]:
    is_work = any(_CODE.search(one.prose) for one in speeches)
    among_people = len(speeches) > 1 and all(one.message.role == "user" for one in speeches)
    assistant: Speech | None = None
    for index, speech in enumerate(speeches):
        role = speech.message.role
        last = speeches[index - 1] if index else None
        # A user's answer may come in several messages, an assistant's with its work between them.
        other = assistant if role == "user" else last if last and last.message.role == "user" else None
        following = speeches[index + 1] if index + 1 < len(speeches) else None
        asked = other is not None and "?" in other.prose[-400:]
        concludes = following is None or following.message.role != role
        dialog: frozenset[str] = frozenset()
        if role != "user":
            assistant = speech
        elif not among_people:
            after = (one.prose for one in speeches[index + 1 : index + _NEAR] if one.message.role != "user")
            dialog = of_dialog(other.prose if other else "", next(after, ""))
        yield _Turn(speech, other, Context(asked, concludes, is_work, among_people, dialog))


def _of_turn(turn: _Turn) -> Iterator[LearnedStatement]:
    message, prose = turn.speech
    said = statements(message.role, prose, turn.context)
    is_typed = is_all_typed(message, prose)
    places = {one.start: place for place, one in enumerate(said)}
    beside = _BESIDE if turn.context.is_work or turn.context.among_people else WORTH
    for run in [said] if _is_choice(turn, said) else _runs(said, beside):
        best = max(run, key=lambda one: one.worth)
        first = message.seq
        text = _with_reason(prose, said, places, run)
        if turn.before and places[run[0].start] < _EARLY and _leans_on_question(turn, run, prose):
            accepted = _accepted(turn.before, text)
            text, first = (f"{accepted} {text}", turn.before.message.seq) if accepted else (text, first)
        fewest = _FEWEST_WORDS - (best.kind in ("instruction", "preference"))
        if len(_WORD.findall(text)) >= fewest or len(text) >= SHORTEST:
            span = (first, message.seq)
            yield LearnedStatement(best.kind, shortened(text), span, message.actor, best.worth, is_typed)


def is_all_typed(message: Message, prose: str) -> bool:
    """Return whether a person typed a message, and pasted nothing into it, as far as that shows."""
    return len(prose) <= _LONGEST_PASTE and _QUOTED.search(message.content) is None


def _is_choice(turn: _Turn, said: Sequence[JudgedStatement]) -> bool:
    """Return whether a user answers a question about code in few words, and not just with a consent."""
    prose, context = turn.speech.prose, turn.context
    if turn.speech.message.role != "user" or not (context.is_work and context.answers):
        return False
    is_brief = len(prose) <= _LONGEST_ANSWER and len(said) <= _MOST_ANSWERED
    return is_brief and not _NO_CHOICE.search(prose) and len(_WORD.findall(_CONSENT.sub(" ", prose))) > 1


def _runs(said: Sequence[JudgedStatement], beside: float) -> Iterator[list[JudgedStatement]]:
    """Yield what is worth keeping, each with those beside it that are nearly so."""
    run: list[JudgedStatement] = []
    for one in said:
        is_second = one.worth >= WORTH and any(other.worth >= WORTH for other in run)
        fits = not run or (len(run) < _MOST_JOINED and one.end - run[0].start <= _LONGEST and not is_second)
        if one.worth < beside or not fits:
            yield from _kept(run)
            run = []
        if one.worth >= beside:
            run.append(one)
    yield from _kept(run)


def _kept(run: list[JudgedStatement]) -> Iterator[list[JudgedStatement]]:
    if any(one.worth >= WORTH for one in run):
        yield run


def _with_reason(
    prose: str, said: Sequence[JudgedStatement], places: Mapping[int, int], run: Sequence[JudgedStatement]
) -> str:
    """Return the statements of a run, with the one before that it leans on and the reason after it."""
    first, last = places[run[0].start], places[run[-1].start]
    if first and _LEANING.match(prose, run[0].start) and _near(prose, said[first - 1], run[0]):
        first -= 1
    if last + 1 < len(said) and _REASON.match(prose, said[last + 1].start):
        last += 1
    return " ".join(prose[one.start : one.end] for one in said[first : last + 1])


def _near(prose: str, before: JudgedStatement, one: JudgedStatement) -> bool:
    between = prose[before.end : one.start]
    return "\n\n" not in between and one.end - before.start <= _LONGEST


def _leans_on_question(turn: _Turn, run: Sequence[JudgedStatement], prose: str) -> bool:
    words = sum(len(_WORD.findall(prose[one.start : one.end])) for one in run)
    return turn.context.answers and turn.speech.message.role == "user" and words <= _SHORT


def _accepted(before: Speech, answer: str) -> str:
    """Return what an answer accepts: the option that it names by its number, else the last question."""
    said = statements(before.message.role, before.prose)
    named = _ORDINAL.search(answer)
    if named:
        number = int(named[5]) if named[5] else (named.lastindex or 1)
        item = rf"^[ \t]{{0,8}}(?:\*\*)?(?:[Oo]ption )?{number}[.):] ?(.+)$"
        listed = re.findall(item, before.prose, re.MULTILINE)
        if listed:
            return str(listed[-1])
    asked = [one for one in said if before.prose[one.start : one.end].rstrip("*_ ").endswith("?")]
    return before.prose[asked[-1].start : asked[-1].end] if asked else ""
