"""Part of `python -m benchmarks context`: what a summary of a coding session keeps for those who resume it.

Each session is compacted to a tenth of its tokens. Decisions, their numbers, outcomes and causes (among the
errors) are those of `tests/data/worth`; what users asked for, files and other errors are found by form.
Something is kept if one line of the summary has most of its words: scattered over many lines it is lost.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.clock import timed
from benchmarks.compacting import Sessions, sessions_in
from benchmarks.keeping import (
    INSTALL,
    SHARE,
    Summarise,
    by_place,
    filled,
    installed,
    lex_rank,
    summary_of,
    terms,
)
from benchmarks.report import Table
from benchmarks.worth import LABELS, Label, Labelled, Session, read_labelled, read_labels, split
from holdfast.compaction.sentence_scoring import history
from holdfast.errors import InvalidInput
from holdfast.messages.passages import passages
from holdfast.text.tokens import estimate_tokens
from holdfast.types import Message

# A tenth of what: of all tokens, or of those without the output of tools, which gives a third of the room.
BASES = ("all", "said")
MEASURES = ("decisions", "numbers", "outcomes", "requests", "files", "errors")
OURS = "Holdfast"
_DECIDED = {"decision", "instruction", "correction", "preference"}
_MOST = 0.75
_HALF = 0.5
# Sentences that LexRank compares with each other: its cost is the square of their number.
_AT_ONCE = 250
# Characters; what is longer is mostly pasted.
_PASTED = 1_500
# Characters of a use of a tool that name what it is used on, and what it wrote.
_HEAD = 600
_NAMED = 3

_RENDERED = re.compile(r"<tool-use .*?(?:</tool-use>|\Z)", re.DOTALL)
_FENCE = re.compile(r"^```.*?(?:^```|\Z)", re.DOTALL | re.MULTILINE)
_URL = re.compile(r"\w+://\S+")
_PATH = re.compile(r"(?<![\w/.-])[\w@~.-]*(?:/[\w@.-]+)*/([\w@-][\w@.-]*\.[A-Za-z]\w{0,4})\b(?![/(])")
_NAME = re.compile(r"(?<![\w/.@-])[\w@-][\w@.-]*\.[A-Za-z]\w{0,4}\b(?![/(])")
# What a client puts in brackets, not the user.
_NOTICE = re.compile(r"\[(?:Image|Request)\b[^\[\]\n]*\]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_ERROR = re.compile(
    r"^\W{0,8}(?:(?:[\w./@-]+:\d+:\d+:|[\w.]*(?:Error|Exception):|--- FAIL:|panic:) \S"
    r"|(?:\w+ ){0,3}(?:error|failed|fatal)(?: \w+){0,3}: \S).*$",
    re.MULTILINE | re.IGNORECASE,
)


Kept = dict[tuple[str, str, str, str], list[bool]]


class Wanted(NamedTuple):
    """What a summary should keep: under which measure, by which words, of which what share, with what."""

    measure: str
    words: frozenset[int]
    share: float
    literal: str = ""

    def kept(self, lines: Sequence[tuple[str, frozenset[int]]]) -> bool:
        """Return whether one line has enough of the words, and the literal as a word of its own."""
        least = self.share * len(self.words)
        return any(len(self.words & found) >= least and self._named(line) for line, found in lines)

    def _named(self, line: str) -> bool:
        if not self.literal or _NUMBER.fullmatch(self.literal):
            # The unit of a number may stand beside it.
            return not self.literal or self.literal in _NUMBER.findall(line)
        return re.search(rf"(?<![\w.]){re.escape(self.literal)}(?!\w|[.,:]\d)", line) is not None


def run_resuming(
    paths: Sequence[Path],
    progress: Callable[[str], None] = lambda _: None,
    *,
    summarise: Summarise = summary_of,
    labels: Path = LABELS,
) -> tuple[dict[str, object], list[Table]]:
    """Measure what summaries keep of the labelled coding sessions, each half apart.

    Raises:
        InvalidInput: none of the paths is the folder of the four collections that were labelled.

    """
    root = next((path for path in paths if (path / "agent_sessions").is_dir()), None)
    if root is None:
        raise InvalidInput(
            "None of these files is a labelled session.", "Give the folder of the collections."
        )
    logs = sessions_in([root / "agent_sessions"], least=0)
    marked = read_labels(labels)
    kept: Kept = {}
    costs: list[float] = []
    for session, judged in read_labelled(root, labels):
        messages = _messages(logs, session)
        if messages is None:
            continue
        progress(f"what summaries keep of {session.id}")
        wanted = [*_labelled(session, judged, marked), *_by_form(messages)]
        for base, target in zip(BASES, _targets(messages), strict=True):
            with timed() as cost:
                ours = summarise(messages, target)
            costs.append(cost.cpu / len(messages))
            for name, text in {OURS: ours, **_others(messages, target)}.items():
                lines = [(line, terms(line)) for line in text.splitlines()]
                for one in wanted:
                    kept.setdefault((base, judged.half, name, one.measure), []).append(one.kept(lines))
    return _report(kept, costs)


def _targets(messages: Sequence[Message]) -> tuple[int, int]:
    everything = sum(estimate_tokens(message.content) for message in messages)
    said = sum(estimate_tokens(passage.text) for passage in passages(messages))
    return everything // SHARE, said // SHARE


def _messages(logs: Sessions, session: Session) -> list[Message] | None:
    return logs.get(f"{session.id}.jsonl") if session.source == "agent" else None


def _labelled(session: Session, judged: Labelled, labels: Sequence[Label]) -> Iterator[Wanted]:
    texts = {message.position: message.text for message in session.messages}
    for one in labels:
        if (one.source, one.session) != (judged.source, judged.session) or one.repeat or not one.settled:
            continue
        text = texts[one.message][one.start : one.end]
        words = terms(text, content=True)
        if not words:
            continue
        if not _DECIDED.isdisjoint(one.kinds):
            yield Wanted("decisions", words, _MOST)
            for number in dict.fromkeys(_NUMBER.findall(text)):
                yield Wanted("numbers", words, _HALF, number)
        elif "cause" in one.kinds:
            yield Wanted("errors", words, _MOST)
        elif "outcome" in one.kinds:
            yield Wanted("outcomes", words, _MOST)


def _by_form(messages: Sequence[Message]) -> Iterator[Wanted]:
    yield from (Wanted("requests", words, _MOST) for words in _requests(messages))
    yield from (Wanted("files", frozenset(), 0, name) for name in _files(messages))
    yield from (Wanted("errors", words, _HALF) for words in _errors(messages))


def _requests(messages: Sequence[Message]) -> Iterator[frozenset[int]]:
    """Yield the words of each sentence of four or more that users said themselves."""
    for message in messages:
        own = message.role == "user" and len(message.content) <= _PASTED
        if own and not message.content.lstrip().startswith("<"):
            said = (terms(one.text, content=True) for one in split(_NOTICE.sub(" ", message.content)))
            yield from (words for words in said if len(words) >= 4)


def _said(message: Message) -> str:
    """Return what a message says and what it uses tools on, without their output and pasted code."""
    if message.role == "tool":
        return ""
    uses = [json.dumps(call.arguments, ensure_ascii=False)[:_HEAD] for call in message.calls]
    for found in _RENDERED.findall(message.content):
        wrote = 'type="write"' in found[:_HEAD]
        uses.append(found[:_HEAD].partition("\n```")[0] + found[-_HEAD:] * wrote)
    prose = _FENCE.sub(" ", _RENDERED.sub(" ", message.content))
    return _URL.sub(" ", "\n".join((prose, *uses)))


def _files(messages: Sequence[Message]) -> list[str]:
    """List the files that three or more messages name; a bare name counts if it has a path somewhere."""
    texts = [_said(message) for message in messages if message.role != "user" or len(message.content) <= 1e4]
    known = {name for text in texts for name in _PATH.findall(text)}
    named = Counter(name for text in texts for name in known & {*_PATH.findall(text), *_NAME.findall(text)})
    return [name for name, times in named.items() if times >= _NAMED]


def _errors(messages: Sequence[Message]) -> Collection[frozenset[int]]:
    """Return the words of each line in the output of tools that has the form of an error, once."""
    found: dict[frozenset[int], None] = {}
    for message in messages:
        shell = message.role == "tool" or 'type="shell"' in message.content[:_HEAD]
        for line in _ERROR.findall(message.content) if shell else ():
            words = terms(re.sub(r"\d+", " ", line[:200]), content=True)
            if len(words) >= 3:
                found[words] = None
    return found


def _others(messages: Sequence[Message], target: int) -> dict[str, str]:
    said = passages(messages)
    units = history(said, trimmed=False).units
    texts = by_place(units, said, target)
    if installed():
        parts = [
            filled(lex_rank(some), some, said, target * len(some) // len(units))
            for some in (units[start : start + _AT_ONCE] for start in range(0, len(units), _AT_ONCE))
        ]
        texts["sumy LexRank"] = "\n".join(parts)
    return texts


def _report(kept: Kept, costs: Sequence[float]) -> tuple[dict[str, object], list[Table]]:
    rows: list[tuple[str, ...]] = []
    figures: dict[str, object] = {
        "share": 1 / SHARE,
        "s per 1,000 messages": [round(one, 2) for one in costs],
    }
    for base, half, name in dict.fromkeys(key[:3] for key in kept):
        held = {one: kept[base, half, name, one] for one in MEASURES if (base, half, name, one) in kept}
        shares = {one: round(100 * sum(of) / len(of), 1) for one, of in held.items()}
        figures[f"{base}, {half}, {name}"] = shares
        if name == OURS:
            rows.append((base, half, "(number of)", *(str(len(held.get(one, ()))) for one in MEASURES)))
        rows.append((base, half, name, *(f"{shares[one]:.1f}" if one in shares else "" for one in MEASURES)))
    if not installed():
        figures["sumy LexRank"] = INSTALL
    slowest = max(costs, default=0.0)
    title = (
        "Coding sessions, what is still in a line of a tenth of the tokens; "
        f"{sum(costs) / max(1, len(costs)):.2f} s CPU for 1,000 messages, at most {slowest:.2f}"
    )
    return figures, [Table(title, ("a tenth of", "half", "summary", *MEASURES), tuple(rows))]
