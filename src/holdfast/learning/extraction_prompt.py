"""Observations: what a model is shown of a session or a text, what it is asked, and what is read out of its answer.

All is pure: who asks the model and who stores what it found is elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import cache, lru_cache
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar
from unicodedata import normalize

from holdfast.learning.echo_match import recalled_seqs, without_injected
from holdfast.learning.throttle import rest
from holdfast.llm.json_answers import has, listed, numbers_of, parse, picked, table, text_of
from holdfast.llm.llm_request import LLMRequest, Unreadable, exactly
from holdfast.messages.passages import grave, harmless, passages
from holdfast.safety import guard
from holdfast.text.clean import clean
from holdfast.text.message_text import without_payloads, without_reasoning
from holdfast.text.sentences import one_line, sentences
from holdfast.text.shorten import shorten_line

if TYPE_CHECKING:
    from holdfast.llm.prompt_files import PromptTemplate
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Message, Range, Role

T = TypeVar("T")
ObservationKind = Literal["finding", "insight", "lesson", "fact"]
KINDS: tuple[ObservationKind, ...] = ("finding", "insight", "lesson")
FACT: ObservationKind = "fact"  # what a prompt may ask for as well

SHORTEST = 50  # characters, without white space around them: in less there is nothing to learn
LONGEST = 1_000  # characters of an observation and of a quote
_FEWEST_WORDS = (
    2  # of an observation and of a quote: "none", "n/a" and "5" are what a model writes that found nothing
)
_FREE, _PER = 5, 100  # a part may have this many observations, and one more for each so many characters of it
_SHORTEST_QUOTE = 6  # characters of two or three words; fewer are in every text
# From so many words, or characters of several, a quote may begin and end within a word, as what was cut off does.
_CUT, _LONG_CUT = 4, 20
_ANSWER = 1_500  # tokens, about
_USE = 100  # characters of a call or a result: what for and how it went, which is what is said about it
_CALL = "calls "  # begins the line of a call
_QUOTES = " \t\n\"'“”‘’«»„…"
_CLOSING = f"{_QUOTES})]*_"  # what may stand after a question mark
_LEFT_OUT = re.compile(r"…|\.{3,}")
_TIMES = ("date", "time", "weekday")
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
# Scripts without spaces are read character by character.
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
# Where a text is parted, what is left around the parts, and by what they are joined again.
_BREAKS = (
    (re.compile(r"\n\s*\n"), "\n\n"),
    (re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n"), "\n"),
    (re.compile(r"\s+"), " "),
)
FIELDS: Mapping[str, object] = {
    "text": {"type": "string", "description": "One sentence that stands alone."},
    "messages": {
        "type": "array",
        "items": {"type": "integer"},
        "description": "The numbers of the first and the last message.",
    },
    "quote": {"type": "string", "description": "The words it rests on, copied exactly."},
}
_TARGET: Mapping[str, object] = {"target": {"type": "string", "enum": ["user", "env"]}}


_LISTS: Mapping[str, object] = {f"{kind}s": {"type": "array", "items": exactly(FIELDS)} for kind in KINDS}
SCHEMA = exactly(_LISTS)
SCHEMA_WITH_FACTS = exactly({**_LISTS, "facts": {"type": "array", "items": exactly({**FIELDS, **_TARGET})}})


@dataclass(frozen=True, slots=True)
class Observation:
    """Hold one thing that was learned, in one line.

    `messages` are the seqs of the first and the last message that it was learned from, None for a text. `quote` are the
    words that it rests on, "" where none were found, and `speaker` is the role of the message that they are in, "" if
    that is unknown, or if it is a user's who did not say what was learned. `target` is what a fact is about.
    """

    kind: ObservationKind
    text: str
    messages: Range | None = None
    quote: str = ""
    speaker: Role | Literal[""] = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Hold what a model is shown at once: the seqs of its first and last message, or 0 for a text, and what it costs.

    The transcript is escaped: it cannot leave a frame of tags, and in it no text can pose as a line of ours.
    """

    first: int
    last: int
    transcript: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Hold what was read out of an answer, and how many of its items were dropped, by reason."""

    observations: tuple[Observation, ...]
    dropped: Mapping[str, int] = field(hash=False)


class Line(NamedTuple):
    """A message as it is shown, what of it is text, and the words of that as quotes are looked up in them."""

    seq: int
    role: Role
    written: str
    text: str
    said: str


class _Stated(NamedTuple):
    """The terms of a text without its questions, and whether it tells a time, but in words alone."""

    terms: frozenset[int]
    tells_time: bool


class _Claim(NamedTuple):
    """The words of content of an observation, each as its terms; some are names, numbers or identifiers, and some times."""

    words: tuple[frozenset[int], ...]  # without times
    exact: tuple[frozenset[int], ...]
    times: tuple[frozenset[int], ...]


# What is shown -------------------------------------------------------------------------------------------------------


def parts(messages: Sequence[Message], count: CountTokens, limit: int) -> list[Part]:
    """Part messages of one chat, in their order, into transcripts of at most `limit` tokens.

    A message that alone takes more stands alone. A call stays with its results where all of them fit. What was recalled
    or injected is left out, as is what says nothing. What is said stands there whole; of the use of tools, calls and
    results alike, there is the beginning.
    """
    size = cache(lambda line: count(f"{line.written}\n"))

    def sizes(lines: Iterable[Line]) -> int:
        return sum(map(size, lines))

    told = recalled_seqs(messages)
    groups = (_lines(group, told) for group in _with_results(messages))
    fitting = (piece for group in groups for piece in _packed(group, size, limit))
    together = (list(chain.from_iterable(pieces)) for pieces in _packed(fitting, sizes, limit))
    return [_part(lines, count) for lines in together]


def text_parts(text: str, count: CountTokens, limit: int) -> list[Part]:
    """Part a text without messages into transcripts of at most `limit` tokens.

    It is parted between paragraphs, where one is too long between its sentences, and never within a word: one that
    alone takes more stands alone. Reasoning, payloads, orders, and what was injected are left out.
    """
    said = without_payloads(without_reasoning(without_injected(clean(text)))).strip()
    said = harmless(said) if grave(said) else said
    pieces = _pieces(escape(said, quote=False), count, limit, _BREAKS) if said else ()
    return [Part(0, 0, piece, count(piece)) for piece in pieces]


def _with_results(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Group each call with all up to its last result; every other message is a group of its own."""
    made: dict[str, int] = {}
    reach = list(range(len(messages)))
    for place, message in enumerate(messages):
        for call in message.answers:
            if call in made:
                reach[made[call]] = place
        made.update((call.id, place) for call in message.calls)
    group: list[Message] = []
    furthest = 0
    for place, message in enumerate(messages):
        group.append(message)
        furthest = max(furthest, reach[place])
        if furthest <= place:
            yield group
            group = []


def _lines(messages: Iterable[Message], told: Container[int]) -> list[Line]:
    """Write the messages that say anything and are not among those that only repeat what the memory told."""
    return [line for one in messages if one.seq not in told and (line := _line(one))]


def _line(message: Message) -> Line | None:
    """Write a message; only its first line begins at the margin, so that no text can pose as another message."""
    rest()
    content = without_injected(message.content)
    if not content.strip() and not message.calls:
        return None
    said = passages([replace(message, content=content)])
    if not said:
        return None
    (passage,) = said
    named = passage.speaker.removeprefix(f"{message.role} ")
    name = f" ({escape(named, quote=False)})" if message.name else ""
    at = f", {passage.at.astimezone(UTC):%Y-%m-%d %H:%M}" if passage.at else ""
    shown = _with_short_uses(message, passage.text.splitlines())
    text = "\n    ".join(escape(line, quote=False) for line in shown)
    written = f"[{message.seq}] {message.role}{name}{at}: {text}"
    content = "\n".join(shown)
    return Line(message.seq, message.role, written, content, _folded(content))


def reviewed(messages: Iterable[Message]) -> list[Line]:
    """Give messages as a review shows them, for quotes to be looked up in."""
    return [
        Line(one.seq, one.role, "", passage.text, _folded(passage.text))
        for one in messages
        for passage in passages([one])
    ]


def _with_short_uses(message: Message, lines: Sequence[str]) -> list[str]:
    """Cut the lines of a message that are calls or results of tools, as such or as written into it."""
    is_use = message.role == "tool" or (message.role == "assistant" and _is_quoted(lines))
    return [
        shorten_line(line, _USE) if is_use or (message.calls and line.startswith(_CALL)) else line
        for line in lines
    ]


def _is_quoted(lines: Sequence[str]) -> bool:
    """Say whether nothing is said: all that a message has is one line between backticks."""
    return len(lines) == 1 and len(lines[0]) > 1 and lines[0][0] == lines[0][-1] == "`"


def _part(lines: Sequence[Line], count: CountTokens) -> Part:
    transcript = "\n".join(line.written for line in lines)
    return Part(lines[0].seq, lines[-1].seq, transcript, count(transcript))


def _pieces(
    text: str, count: CountTokens, limit: int, breaks: Sequence[tuple[re.Pattern[str], str]]
) -> list[str]:
    if not breaks or count(text) <= limit:
        return [text]
    (pattern, joint), *finer = breaks
    small = [
        piece for some in pattern.split(text) if some.strip() for piece in _pieces(some, count, limit, finer)
    ]
    return [joint.join(some) for some in _packed(small, lambda piece: count(f"{piece}{joint}"), limit)]


def _packed(items: Iterable[T], cost: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Put neighbours together as far as they fit a limit; what alone is larger stands alone."""
    taken: list[T] = []
    used = 0
    for item in items:
        size = cost(item)
        if taken and used + size > limit:
            yield taken
            taken, used = [], 0
        taken.append(item)
        used += size
    if taken:
        yield taken


# What is asked -------------------------------------------------------------------------------------------------------


def question(
    part: Part,
    prompt: PromptTemplate,
    *,
    step: str,
    type: str,
    known: Sequence[str] = (),
) -> LLMRequest:
    """Ask what can be learned from a part of a step of a type, "" for a session; `known` need not be found again.

    Raises:
        InvalidInput: the prompt has other places than `$step`, `$type`, `$known` and `$transcript`.

    """
    filled = prompt.fill(
        step=_escaped(step) or "unnamed",
        type=_escaped(type) or "session",
        known="\n".join(f"- {_escaped(text)}" for text in known) or "(nothing)",
        transcript=part.transcript,
    )
    schema = SCHEMA_WITH_FACTS if asks_for_facts(prompt) else SCHEMA
    return LLMRequest("observe", filled, schema, prompt.label, _ANSWER)


def asks_for_facts(prompt: PromptTemplate) -> bool:
    """Return whether a prompt names the list that facts come in."""
    return '"facts"' in prompt.text


def asks_for_quotes(prompt: PromptTemplate, field: str = "quote") -> bool:
    """Return whether a prompt names the field that quotes come in, which one of the user's own need not.

    A field is named in marks or before a colon; a rule about what "stands in a quote" names none.
    """
    return re.search(rf"""["'`]{field}["'`]|\b{field}\s?:""", prompt.text) is not None


def _escaped(text: str) -> str:
    return escape(one_line(text), quote=False)


# What is answered ----------------------------------------------------------------------------------------------------


def read(answer: str, part: Part, messages: Sequence[Message], *, facts: bool = False) -> Reading:
    """Read the observations in the answer of a model that was shown a part; `messages` are those it was made of, or more.

    With `facts`, it was asked for them as well; a text that is one is nothing else.

    Each is one line. What is blank, too short or too long, repeated, or no text is dropped, and so is what comes after
    as many as a part of that length may have: five, and one for each 100 characters. A quote that is in none of the messages
    is no quote: its words must stand there in their order, whatever their case and what is between them; "…" stands for
    some that were left out. It is the user's if it is in a message of the user that states what was learned, and that message is the
    range then; else it is that of the message that has most of the words. A range that is not within the part, or has not
    the quote in it, gives way to the message of the quote; without a quote, one that is not within the part to the whole.

    Raises:
        Unreadable: there are no lists of observations in it.

    """
    within = (one for one in messages if part.first <= one.seq <= part.last)
    said = _lines(within, recalled_seqs(messages)) if part.last else [_text_line(part)]
    span = (part.first, part.last) if part.last else None
    most = _FREE + len(part.transcript) // _PER
    found: dict[str, Observation] = {}
    dropped: Counter[str] = Counter()
    for kind, item in _items(parse(answer), (FACT, *KINDS) if facts else KINDS):
        try:
            text = _plain(text_of(item, kind))
        except Unreadable:
            dropped["no text"] += 1
            continue
        reason = _flaw(text, found) or ("too many" if len(found) >= most else "")
        if reason:
            dropped[reason] += 1
        else:
            one = observation(kind, text, item, span, said)
            found[text.casefold()] = replace(one, target=_target(item)) if kind == FACT else one
    return Reading(tuple(found.values()), dict(dropped))


def _items(value: object, kinds: Sequence[ObservationKind]) -> Iterator[tuple[ObservationKind, object]]:
    """Give the items of an answer with their kinds; those of a bare list are findings."""
    if isinstance(value, list):
        for one in value:
            yield from _items(one, kinds) if _has_any(one, kinds) else (("finding", one),)
        return
    given = table(value, "the answer")
    if given and not _has_any(given, kinds):
        raise Unreadable("it has none of the lists findings, insights and lessons.")
    for kind in kinds:
        yield from ((kind, item) for item in listed(picked(given, kind)))


def _has_any(value: object, kinds: Sequence[ObservationKind]) -> bool:
    return isinstance(value, Mapping) and any(has(value, kind) for kind in kinds)


def _flaw(text: str, found: Mapping[str, Observation]) -> str:
    if not text:
        return "blank"
    if len(text) > LONGEST:
        return "too long"
    if says_too_little(text):
        return "too short"
    return "repeated" if text.casefold() in found else ""


def says_too_little(text: str) -> bool:
    """Return whether a text has fewer than two words, or only letters: what a model writes that found nothing."""
    words = [word for word in _WORD.findall(text) if any(map(str.isalpha, word))]
    return len(words) < _FEWEST_WORDS or all(word.isascii() and len(word) == 1 for word in words)


def observation(
    kind: ObservationKind, text: str, item: object, span: Range | None, said: Sequence[Line]
) -> Observation:
    """Ground what was learned in the lines that were shown, as `read` says; they reach over a span, or are a text."""
    quote = _quote(picked(item, "quote")) if isinstance(item, Mapping) else ""
    if span is None:
        return Observation(kind, text, None, quote if _is_in(quote, said[0].said) else "")
    given = _range(item, span)
    source = _source(text, quote, said, given)
    if source is None:
        return Observation(kind, text, given or span)
    own = (source.seq, source.seq)
    if source.role == "user" and _states(source, text):
        return Observation(kind, text, own, quote, "user")
    within = given if given and given[0] <= source.seq <= given[1] else own
    return Observation(kind, text, within, quote, "" if source.role == "user" else source.role)


def quoted_from_user(quotes: Iterable[object], said: Iterable[Line]) -> list[str]:
    """Return those quotes that stand in what the user said, each once."""
    own = [line.said for line in said if line.role == "user"]
    told = dict.fromkeys(filter(None, map(_quote, quotes)))
    return [quote for quote in told if any(_is_in(quote, text) for text in own)]


def grounds(found: Observation) -> dict[str, object]:
    """Return what an observation rests on, as its record has it: who said it, and in which words."""
    named: dict[str, object] = {"speaker": found.speaker} if found.speaker else {}
    return {**named, "quote": redacted(found.quote)} if found.quote else named


def redacted(quote: str) -> str:
    """Cut the credentials out of a quote: no record may hold them."""
    return guard.redact(quote, guard.scan(quote))


def _target(item: object) -> str:
    target = picked(item, "target") if isinstance(item, Mapping) else None
    return "user" if target is None else str(target).strip().casefold()


def _text_line(part: Part) -> Line:
    text = unescaped(part.transcript)
    return Line(0, "user", part.transcript, text, _folded(text))


def _quote(value: object) -> str:
    try:
        return _plain(text_of(value)).strip(_QUOTES)
    except Unreadable:  # an observation is worth keeping without one
        return ""


def _source(text: str, quote: str, said: Sequence[Line], given: Range | None) -> Line | None:
    """Find the message that a quote is in: a user's that states the text before all others, else the one that fits best.

    Those of the `given` range come before others.
    """
    lines = [line for line in said if _is_in(quote, line.said)]
    own = [line for line in lines if line.role == "user" and _states(line, text)]
    within = [line for line in lines if given and given[0] <= line.seq <= given[1]]
    return max(
        own or within or lines, key=lambda line: (_shared(line, text), line.role != "user"), default=None
    )


def _states(line: Line, text: str) -> bool:
    """Say whether a message states a text: its names and numbers, and at least half of its words. Questions state nothing.

    With a capital at its beginning, a text may name whom the message calls "I"; and a time may be one that the message
    tells otherwise, as in "yesterday".
    """
    claim, there = _claim(text), _stated(line.text)
    times = () if there.tells_time else claim.times
    is_exact = all(terms <= there.terms for terms in (*claim.exact, *times))
    return is_exact and 0 < len(claim.words) <= 2 * _shared(line, text)


def _shared(line: Line, text: str) -> int:
    there = _stated(line.text).terms
    return sum(terms <= there for terms in _claim(text).words)


@lru_cache(maxsize=64)
def _stated(text: str) -> _Stated:
    # Loaded by those who compare.
    from holdfast.text.analyze import analyze, tokens

    rest()
    stated = [one for one in sentences(text) if not one.rstrip(_CLOSING).endswith(("?", "？"))]
    found = [analyze(token) for one in stated for token in tokens(one)]
    terms = frozenset(term for token in found for term in token.terms)
    has_digits = any(map(str.isdigit, "".join(stated)))
    return _Stated(terms, not has_digits and any(token.tells_time for token in found))


@lru_cache(maxsize=64)
def _claim(text: str) -> _Claim:
    from holdfast.dedup import value_tokens
    from holdfast.text.analyze import STOP_WORDS, analyze, tokens

    words, exact, times = [], [], []
    begins = True
    for token in value_tokens.tokenize(text):
        is_name = token.text[:1].isupper()
        begins = begins and (is_name or token.kind == "mark")
        terms = frozenset(term for one in tokens(token.text) for term in analyze(one).terms)
        if not terms or begins or token.key in STOP_WORDS or token.key in ("'s", "user"):
            continue
        if token.kind in _TIMES:
            times.append(terms)
            continue
        words.append(terms)
        if is_name or token.kind not in ("word", "cjk"):
            exact.append(terms)
    return _Claim(tuple(words), tuple(exact), tuple(times))


def _is_in(quote: str, text: str) -> bool:
    """Say whether the words of a quote, two at least, stand in a folded text, what it leaves out between them aside."""
    pieces = [words for one in _LEFT_OUT.split(quote) if (words := _folded(one)).strip()]
    most = max((len(words.split()) for words in pieces), default=0)
    if len(quote) > LONGEST or most < _FEWEST_WORDS or (most < _CUT and len(quote) < _SHORTEST_QUOTE):
        return False
    may_be_cut = len(" ".join(pieces).split()) >= _CUT or len(quote) >= _LONG_CUT
    end = 0
    for words in pieces:
        start = text.find(words, end)
        if start < 0 and may_be_cut and words in (pieces[0], pieces[-1]):
            start = text.find(words.strip(), end)
        if start < 0:
            return False
        end = start + len(words.strip())
    return True


def _folded(text: str) -> str:
    """Bring a text to what quotes are compared in: its words between spaces, whatever their case and what is between them."""
    words = (word.strip("_") for word in _WORD.findall(normalize("NFKC", text).casefold()))
    return f" {' '.join(filter(None, words))} "


def _range(item: object, span: Range) -> Range | None:
    numbers = numbers_of(picked(item, "messages")) if isinstance(item, Mapping) else []
    if not numbers or not span[0] <= numbers[0] <= numbers[-1] <= span[1]:
        return None
    return (numbers[0], numbers[-1])


def _plain(text: str) -> str:
    return one_line(unescaped(text))


def unescaped(text: str) -> str:
    """Undo what transcripts are escaped with, which models repeat, and nothing else."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
