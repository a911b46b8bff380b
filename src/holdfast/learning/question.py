"""The question about a session or a text: its transcript for a model, and the request; pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cache
from html import escape
from itertools import chain
from typing import NamedTuple, TypeVar
from unicodedata import normalize

from holdfast.kinds import FIL, Kind
from holdfast.learning.echo_match import recalled_seqs, without_injected
from holdfast.learning.workers import rest
from holdfast.llm.llm_request import LLMRequest, exactly
from holdfast.llm.prompt_files import PromptTemplate
from holdfast.messages.passages import grave, harmless, passages
from holdfast.text.clean import clean
from holdfast.text.message_text import without_payloads, without_reasoning
from holdfast.text.sentences import one_line
from holdfast.text.shorten import shorten_line
from holdfast.text.tokens import CountTokens
from holdfast.types import Message, Role

T = TypeVar("T")
FACT = "fact"
SHORTEST = 50  # characters, without white space around them, of what is worth extracting from
_ANSWERS = {"observe": 1_500, "episode": 600, "profile": 300}  # tokens, about
_NONE = "(nothing)"
_USE = 100  # characters of a tool's call or result: what for and how it went
_CALL = "calls "  # begins the line of a call
# What begins a message that has a time.
_TIMED = re.compile(r"^(?P<who>\[\d+\] [^\n:]+?), (?P<hour>\d{4}-\d\d-\d\d \d\d):\d\d: ", re.MULTILINE)
# Where a text is split, and what joins the pieces again.
_BREAKS = (
    (re.compile(r"\n\s*\n"), "\n\n"),
    (re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n"), "\n"),
    (re.compile(r"\s+"), " "),
)
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
# Scripts without spaces are read character by character.
WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_FIELDS: Mapping[str, object] = {
    "text": {"type": "string", "description": "One sentence that stands alone."},
    "messages": {
        "type": "array",
        "items": {"type": "integer"},
        "description": "The numbers of the first and the last message.",
    },
    "quote": {"type": "string", "description": "The words it rests on, copied exactly."},
}
_TARGET: Mapping[str, object] = {"target": {"type": "string", "enum": ["user", "env"]}}
_REPLACES = {"replaces": {"type": "string", "description": "What it replaces, copied exactly."}}
_TEXT, _TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
_EPISODE = exactly({"summary": _TEXT, "files": _TEXTS, "decisions": _TEXTS, "outcome": _TEXT})
_WISHES = """Write down as well, each in a list of its own beside those that are asked for below:
{}
Each item has `text`, `messages` and `quote`, as all others. What fits one of these is in no other list.

"""


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """A part of a transcript that fits one prompt, with the seqs of its first and last message, 0 for a text.

    The transcript is escaped: it cannot leave a frame of tags, and in it no text can pose as a line of ours.
    `cut` are the characters of the use of tools that are left out of it.
    """

    first: int
    last: int
    transcript: str
    cut: int = 0

    @property
    def note(self) -> str:
        """What is left out of the use of tools, "" for nothing."""
        what = "Only the beginnings of calls and results of tools are shown"
        return f"{what}: {self.cut:,} characters are left out." if self.cut else ""

    @property
    def shown(self) -> str:
        """The transcript, after a line that says what is left out of it."""
        return f"({self.note})\n{self.transcript}" if self.cut else self.transcript


class TranscriptLine(NamedTuple):
    """A message as it is shown to a model, its text, and the words in which quotes are looked up.

    `cut` are the characters of the use of tools that are not shown.
    """

    seq: int
    role: Role
    written: str
    text: str
    words: str
    cut: int = 0


# What is shown


def split_messages(messages: Sequence[Message], count: CountTokens, limit: int) -> list[TranscriptPart]:
    """Split the transcript of messages of one chat into parts of at most `limit` tokens.

    A message above the limit is a part of its own. A call stays with its results where all of them fit.
    Recalled and empty messages and injected text are left out. Messages are shown whole, of the use of tools
    only the beginning.
    """
    size = cache(lambda line: count(f"{line.written}\n"))

    def sizes(lines: Iterable[TranscriptLine]) -> int:
        return sum(map(size, lines))

    recalled = recalled_seqs(messages)
    groups = (transcript_lines(group, recalled) for group in _with_results(messages))
    fitting = (piece for group in groups for piece in pack(group, size, limit))
    together = (list(chain.from_iterable(pieces)) for pieces in pack(fitting, sizes, limit))
    return [
        TranscriptPart(
            lines[0].seq,
            lines[-1].seq,
            "\n".join(line.written for line in lines),
            sum(line.cut for line in lines),
        )
        for lines in together
    ]


def split_text(text: str, count: CountTokens, limit: int) -> list[TranscriptPart]:
    """Split a text without messages into parts of at most `limit` tokens.

    It is split between paragraphs, or within long ones between sentences or words; a word above the limit is
    a part of its own. Reasoning, payloads, orders, and injected text are left out.
    """
    prose = without_payloads(without_reasoning(without_injected(clean(text)))).strip()
    prose = harmless(prose) if grave(prose) else prose
    pieces = _pieces(escape(prose, quote=False), count, limit, _BREAKS) if prose else ()
    return [TranscriptPart(0, 0, piece) for piece in pieces]


def transcript_lines(messages: Iterable[Message], recalled: Container[int]) -> list[TranscriptLine]:
    """Return the lines of the messages that are not empty and do not only repeat what was recalled."""
    return [line for message in messages if message.seq not in recalled and (line := _line(message))]


def text_line(part: TranscriptPart) -> TranscriptLine:
    """Return a part of a text as a line."""
    text = unescape(part.transcript)
    return TranscriptLine(0, "user", part.transcript, text, fold_words(text))


def fold_words(text: str) -> str:
    """Return the words of a text between spaces, in lower case, in which quotes are looked up."""
    words = (word.strip("_") for word in WORD.findall(normalize("NFKC", text).casefold()))
    return f" {' '.join(filter(None, words))} "


def unescape(text: str) -> str:
    """Return a text without the escapes of transcripts, which models repeat."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _with_results(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield groups: each call with all up to its last result; every other message is a group of its own."""
    places: dict[str, int] = {}
    reach = list(range(len(messages)))
    for place, message in enumerate(messages):
        for call in message.answers:
            if call in places:
                reach[places[call]] = place
        places.update((call.id, place) for call in message.calls)
    group: list[Message] = []
    furthest = 0
    for place, message in enumerate(messages):
        group.append(message)
        furthest = max(furthest, reach[place])
        if furthest <= place:
            yield group
            group = []


def _line(message: Message) -> TranscriptLine | None:
    """Return a message as a line. Its other lines are indented, so that it cannot pose as another message."""
    rest()
    content = without_injected(message.content)
    if not content.strip() and not message.calls:
        return None
    prose = passages([replace(message, content=content)])
    if not prose:
        return None
    (passage,) = prose
    who = passage.speaker.removeprefix(f"{message.role} ")
    name = f" ({escape(who, quote=False)})" if message.name else ""
    at = f", {passage.at.astimezone(UTC):%Y-%m-%d %H:%M}" if passage.at else ""
    shown = _with_short_uses(message, passage.text.splitlines())
    text = "\n    ".join(escape(line, quote=False) for line in shown)
    content = "\n".join(shown)
    written = f"[{message.seq}] {message.role}{name}{at}: {text}"
    omitted = _omitted_length(message, shown)
    return TranscriptLine(message.seq, message.role, written, content, fold_words(content), omitted)


def _with_short_uses(message: Message, lines: Sequence[str]) -> list[str]:
    """Return the lines of a message, with calls and results of tools cut."""
    # An assistant's message that is one line between backticks says nothing.
    is_quoted = len(lines) == 1 and len(lines[0]) > 1 and lines[0][0] == lines[0][-1] == "`"
    is_use = message.role == "tool" or (message.role == "assistant" and is_quoted)
    return [shorten_line(line, _USE) if is_use or _is_call(message, line) else line for line in lines]


def _is_call(message: Message, line: str) -> bool:
    return bool(message.calls) and line.startswith(_CALL)


def _omitted_length(message: Message, shown: Sequence[str]) -> int:
    """Return the characters of the use of tools in a message that are not shown, about."""
    if message.role == "tool":
        return max(0, len(message.content) - sum(map(len, shown)))
    calls = sum(len(line) for line in shown if _is_call(message, line))
    return max(0, sum(len(str(call.arguments)) for call in message.calls) - calls)


def _pieces(
    text: str, count: CountTokens, limit: int, breaks: Sequence[tuple[re.Pattern[str], str]]
) -> list[str]:
    if not breaks or count(text) <= limit:
        return [text]
    (pattern, joint), *finer = breaks
    small = [
        piece for some in pattern.split(text) if some.strip() for piece in _pieces(some, count, limit, finer)
    ]
    return [joint.join(some) for some in pack(small, lambda piece: count(f"{piece}{joint}"), limit)]


def pack(items: Iterable[T], cost: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Yield runs of neighbouring items that fit a limit; a larger item is a run of its own."""
    run: list[T] = []
    used = 0
    for item in items:
        size = cost(item)
        if run and used + size > limit:
            yield run
            run, used = [], 0
        run.append(item)
        used += size
    if run:
        yield run


# What is asked for


def request(
    purpose: str,
    part: TranscriptPart,
    prompt: PromptTemplate,
    parts: Collection[str],
    places: Mapping[str, str],
    wished: Sequence[Kind] = (),
) -> LLMRequest:
    """Return the request for what can be learned from a part of a transcript.

    It asks for `parts`: "observe", "facts", "episode" and "profile". `places` are the texts in the frames of
    the prompt; a frame without one is left out. Each `wished` kind has a list of its own in the answer.
    """
    shown = {name: text for name, text in places.items() if text}
    own = prompt.only({*parts, *shown})
    filled = {"transcript": _with_changed_times(part.shown), "step": "unnamed", "type": "session", **shown}
    wishes = _WISHES.format("\n".join(map(_wish, wished))) if wished else ""
    text = f"{wishes}{own.fill(**{name: filled.get(name, _NONE) for name in own.places})}"
    lists: dict[str, Mapping[str, object]] = {}
    if "observe" in parts:
        lists |= {f"{kind}s": _FIELDS for kind in FIL}
    lists |= {kind.name: _FIELDS for kind in wished}
    lists |= {"facts": {**_FIELDS, **_TARGET}} if "facts" in parts else {}
    lists |= {"profile": {**_FIELDS, **_REPLACES}} if "profile" in parts else {}
    schema: dict[str, object] = {
        name: {"type": "array", "items": exactly(fields)} for name, fields in lists.items()
    }
    schema |= {"episode": _EPISODE} if "episode" in parts else {}
    tokens = sum(number for name, number in _ANSWERS.items() if name in parts)
    return LLMRequest(purpose, text, exactly(schema), prompt.label, tokens)


def _with_changed_times(transcript: str) -> str:
    """Return a transcript with a time only where the hour changes."""
    before = ""

    def thin(line: re.Match[str]) -> str:
        nonlocal before
        last, before = before, line["hour"]
        return f"{line['who']}: " if line["hour"] == last else line[0]

    return _TIMED.sub(thin, transcript)


def _wish(kind: Kind) -> str:
    """Return the line of a prompt that describes a kind to learn, with its examples."""
    examples = "; ".join(f'"{to_line(example)}"' for example in kind.examples)
    return f'- "{to_line(kind.name)}": {to_line(kind.learn)}' + (f", as in {examples}" if examples else "")


def parts_of(prompt: PromptTemplate, parts: Iterable[str]) -> frozenset[str]:
    """Return the parts that a prompt asks for: a prompt of the user's own need not name all."""
    return frozenset(part for part in parts if part == "observe" or f'"{part}"' in prompt.text)


def asks_for_quotes(prompt: PromptTemplate) -> bool:
    """Return whether a prompt names the field of quotes: a prompt of the user's own need not.

    A field is named in marks or before a colon; a rule about what "stands in a quote" names none.
    """
    return re.search(r"""["'`]quote["'`]|\bquote\s?:""", prompt.text) is not None


def to_line(text: str) -> str:
    """Return a text in one line that cannot leave a frame of tags."""
    return escape(one_line(text), quote=False)
