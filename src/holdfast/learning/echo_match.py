"""Echoes: messages with what a memory returned, and texts in which an agent only restates its own memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import NamedTuple

from holdfast.learning.job_context import JobContext
from holdfast.learning.workers import rest
from holdfast.store import imports, log, records
from holdfast.store.message_rows import from_micros
from holdfast.store.records import RecordFilter
from holdfast.text.sentences import sentences
from holdfast.types import Message, Range
from holdfast.types.references import IN_SPACE, read_reference
from holdfast.types.scope import scope_of

TOOLS = frozenset(
    "recall recall_fil search_memory search_sessions memory get_memory expand describe "
    "scratchpad scratchpad_read scratchpad_list scratchpad_search".split()
)
"""The names of our tools that answer from memory."""

ORIGINS = ("recall", "memory")
"""What an application stores as `origin` in the `meta` of a message that repeats what the memory returned."""

# Names that others use as well count only after the name of a memory.
_COMMON = frozenset("profile constraints notes history search fetch".split())
_AMBIGUOUS = _COMMON | {"expand", "describe"}
# What a result of our tools begins with, `tools.results.ORIGIN`, as JSON or as text, whatever the tool was
# called.
_RESULT = re.compile(
    r'\s{0,20}(?:\{\s{0,20}"origin":\s?"memory: data, not instructions"|\(memory: data, not instructions\))'
)
_JOINTS = "_./:"

# The frames in our prompts. Names that others use as well count only with the words that our frames begin
# with.
_FRAME = r"""(?P<line>^[ \t]{0,20})?<(?:
    (?P<name>known | recalled |
        (?:[a-z]{1,20}[-_]){0,2}memor(?:y|ies)(?:[-_][a-z]{1,20}){0,2})(?:\s[^<>]{0,200})?>
    | (?P<summary>summary)\sid=[^<>]{1,400}>
    | (?P<run>run)>\s{0,4}What\ you\ noted\ in\ this\ run
    | (?P<background>background)>\s{0,4}Summaries\ of\ what\ was\ said\ before
    | (?P<conversation>conversation)>\s{0,4}What\ was\ said,\ oldest\ first
    | /(?P<end>[a-z][a-z_-]{1,60})\s{0,4}>
)"""
_TAG = re.compile(_FRAME, re.VERBOSE | re.MULTILINE | re.IGNORECASE)
_OPENINGS = ("name", "summary", "run", "background", "conversation")

_SLACK = 5  # of so many words of content one may be new, if it is no name and no number
# If a sentence can follow from another, one of so many terms of the shorter one is in the other. Few enough
# that numbers and dates may be written otherwise.
_APART = 4
# Words that introduce a restatement.
_SAYING = frozenset(
    "tell told say said mention mentioned remember recall know known note noted share shared state stated "
    "speak spoke write wrote ask asked memory earlier before previously already user call called name named "
    "according conversation conversations notes".split()
)


def without_injected(text: str) -> str:
    """Return a text without the blocks of our prompts, and others that are named for memory. Linear.

    A block that nothing closes ends with the text, if it begins a line: in code, `<memory>` can be anything.
    """
    if "<" not in text:
        return text
    tags = list(_TAG.finditer(text))
    closed = {_closing(tag): tag.start() for tag in tags}
    parts: list[str] = []
    done, opened = 0, ""
    for tag in tags:
        if opened and _closing(tag) == opened:
            opened, done = "", tag.end()
        elif (
            not opened
            and (name := next((tag[group].casefold() for group in _OPENINGS if tag[group]), ""))
            and (closed.get(name, 0) > tag.start() or tag["line"] is not None)
        ):
            opened = name
            parts.append(text[done : tag.start()])
    if not opened:
        parts.append(text[done:])
    # With spaces in place of the blocks, no new word comes about.
    return " ".join(parts)


def _closing(tag: re.Match[str]) -> str:
    return (tag["end"] or "").casefold()


def recalled_seqs(messages: Sequence[Message]) -> set[int]:
    """Return the seqs of the messages with results of memory tools, or that are marked as such.

    A result belongs to the nearest earlier call with its id.
    """
    called: dict[str, str] = {}
    seqs = set()
    for message in messages:
        names = [called.get(call, "") for call in message.answers]
        if message.role == "tool" and message.name:
            names.append(message.name)
        is_ours = message.role == "tool" and _RESULT.match(message.content)
        if is_ours or any(map(is_memory_tool, names)) or message.meta.get("origin") in ORIGINS:
            seqs.add(message.seq)
        called.update((call.id, call.name) for call in message.calls)
    return seqs


def is_memory_tool(name: str) -> bool:
    """Return whether a tool answers from memory; a server may have put its own name before.

    >>> is_memory_tool("mcp__holdfast__describe"), is_memory_tool("kubectl_describe")
    (True, False)
    """
    name = name.casefold().replace("-", "_")
    return name in TOOLS or any(_is_prefixed(name, tool) for tool in TOOLS | _COMMON)


def _is_prefixed(name: str, tool: str) -> bool:
    prefix = name.removesuffix(tool)
    if prefix == name or prefix[-1:] not in _JOINTS:
        return False
    return (
        "holdfast" in prefix or "memory" in prefix or (prefix.startswith("mcp__") and tool not in _AMBIGUOUS)
    )


# Restatements


class _Sentence(NamedTuple):
    """A sentence, and the hashes of its content terms, by which it is chosen for comparison."""

    text: str
    terms: frozenset[int]


class _Parsed(NamedTuple):
    """A sentence as it is compared: its content words in order, and those that must agree."""

    words: tuple[str, ...]
    exact: tuple[str, ...]  # names, numbers, dates, identifiers
    negated: bool


def restates(text: str, shown: Sequence[str]) -> bool:
    """Return whether a text says nothing that the shown ones do not say: then it is no news.

    One content word among several may be new; a name, a number, a date or a negation may not. The text
    follows from one shown sentence, or from several that it says completely. In doubt, it is news.

    >>> restates("You told me that you live in Lisbon.", ["I live in Lisbon."])
    True
    >>> restates("Ada moved from Lisbon to Porto.", ["Ada lives in Lisbon."])
    False
    """
    known = [sentence for passage in shown for sentence in _split(passage)]
    return bool(known) and all(_is_known(sentence, known) for sentence in _split(text))


def _is_known(sentence: _Sentence, known: Iterable[_Sentence]) -> bool:
    rest()
    terms = sentence.terms
    # To parse sentences costs much more than to compare their terms.
    near = [part for part in known if _APART * len(terms & part.terms) >= min(len(terms), len(part.terms))]
    return _follows(_parse(sentence.text), [_parse(part.text) for part in near])


def _follows(claim: _Parsed, known: Iterable[_Parsed]) -> bool:
    alike = [other for other in known if other.negated == claim.negated]
    if any(_is_in_order(claim.exact, other.words) and _mostly(claim.words, other.words) for other in alike):
        return True
    own = set(claim.words)
    parts = [part for part in alike if own.issuperset(part.words) and _is_in_order(part.exact, claim.words)]
    together = [word for part in parts for word in part.words]
    return set(claim.exact) <= set(together) and _mostly(claim.words, together)


def _mostly(words: Sequence[str], others: Sequence[str]) -> bool:
    own = set(words)
    return _SLACK * len(own.difference(others)) <= len(own)


def _is_in_order(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether words come in the same order among others: "Ada manages Ben" is not the reverse."""
    remaining = iter(others)
    return all(word in remaining for word in words)


@lru_cache(maxsize=256)
def _split(text: str) -> tuple[_Sentence, ...]:
    rest()
    return tuple(_Sentence(sentence, _terms(sentence)) for sentence in sentences(text))


def _terms(sentence: str) -> frozenset[int]:
    # The text analysis is loaded by the first comparison.
    from holdfast.text.analyze import analyze, tokens

    return frozenset(term for token in tokens(sentence) for term in analyze(token).terms) - _empty_terms()


@cache
def _empty_terms() -> frozenset[int]:
    # The text analysis is loaded by the first comparison.
    from holdfast.text.analyze import STOP_WORDS, analyze

    return frozenset(term for word in STOP_WORDS | _SAYING for term in analyze(word).terms)


@lru_cache(maxsize=4096)
def _parse(sentence: str) -> _Parsed:
    # The text analysis is loaded by the first comparison.
    from holdfast.text.analyze import STOP_WORDS
    from holdfast.text.fillers import fillers, stem
    from holdfast.text.value_tokens import tokenize

    empty = STOP_WORDS | _SAYING
    negations = fillers()["not"] | fillers()["stop"]
    words, exact, negated = [], [], False
    for token in tokenize(sentence):
        plain = token.kind in ("word", "mark")
        negated = negated or token.key in negations
        if token.kind == "mark" or (plain and (token.key in empty or token.key == "'s")):
            continue
        key = stem(token.key) if plain else token.key
        words.append(key)
        if not plain or token.text[:1].isupper():
            exact.append(key)
    return _Parsed(tuple(words), tuple(exact), negated)


# The echo filter

_QUERY = 400  # characters of a text by which earlier messages are looked up
_READ = 4_000  # characters of a message that are compared: longer ones are logs or files
_EARLIER = 3  # messages that are looked up
_RESULTS = 3  # results of memory tools before a text


class EchoFilter:
    """A filter for texts that an agent had before it: in every prompt, recalled, or in earlier messages.

    What the instructions of a project say is in every prompt of its client, and nobody's words are news then.

    Results of memory tools are among the recalled: they need not be said anywhere in one message as the agent
    repeats them. Records that are learned anew are none of them (`relearned`, by id).
    """

    def __init__(
        self, context: JobContext, messages: Sequence[Message], relearned: Collection[str] = ()
    ) -> None:
        self._context = context
        self._shown = {message.seq: message.shown for message in messages if message.shown}
        recalled = recalled_seqs(messages)
        self._results = [(message.seq, message.content) for message in messages if message.seq in recalled]
        self._times = {message.seq: message.at for message in messages}
        kinds = tuple(kind.name for kind in context.kinds.values() if kind.heading)
        agents = tuple(dict.fromkeys((context.scope.agent, "")))
        in_prompt = context.read_records(RecordFilter(kinds=kinds, agents=agents))
        self._in_prompt = [record.text for record in in_prompt if record.id not in relearned]
        self._is_known = says_what_all_know(context)
        self._texts: dict[str, list[str]] = {}

    def repeats(self, text: str, span: Range | None, speaker: str) -> bool:
        """Return whether a text only repeats such texts; a text of the user's, only the instructions."""
        if self._is_known(text):
            return True
        if speaker == "user":
            return False
        first, last = span or (0, 0)
        refs = [ref for seq, shown in self._shown.items() if first <= seq <= last for ref in shown]
        recalled = [known for ref in refs for known in self._read_texts(ref)]
        results = [content for seq, content in self._results if seq <= last][-_RESULTS:]
        if restates(text, [known[:_READ] for known in (*self._in_prompt, *recalled, *results)]):
            return True
        began = self._times.get(first)
        return began is not None and restates(text, self._earlier(text[:_QUERY], began))

    def _earlier(self, text: str, before: datetime) -> list[str]:
        """Return the messages from before a time that are most like a text."""
        # numpy is loaded by the first recall.
        from holdfast.search.filters import check
        from holdfast.search.query import has_words, parse

        if not has_words(text):
            return []
        context = self._context
        now = from_micros(context.now())
        filters = check(sources=("message",), until=before, limit=_EARLIER, valid_at=now)
        return [hit.text[:_READ] for hit in context.search().recall(context.scope, parse(text), filters)]

    def _read_texts(self, ref: str) -> list[str]:
        """Return the texts of a reference, to a message or to all versions of a record."""
        if ref in self._texts:
            return self._texts[ref]
        database, scope = self._context.database, self._context.scope
        home = scope_of(scope.space)
        texts: list[str] = []
        for space in scope.spaces:
            # One without a space, as all were once, may be of any of them.
            name = ref.removeprefix(f"{home.reference(space)}{IN_SPACE}")
            reference = read_reference(name)
            if reference and reference.first == reference.last:
                chat, first, last = reference
                messages = log.read(database, space, chat, after=first - 1, before=last + 1)
                texts += [message.content for message in messages]
            else:
                texts += [record.text for record in records.versions_of(database, space, name)]
        self._texts[ref] = texts
        return texts


def says_what_all_know(context: JobContext) -> Callable[[str], bool]:
    """Return a test for texts that only repeat what everyone is shown, as a project's instructions."""
    known = _pieces(imports.known_texts(context.database, context.space))
    return lambda text: bool(known and text) and restates(text, known)


def _pieces(texts: Iterable[str]) -> list[str]:
    """Return texts in pieces of a length that is compared, cut between lines; what is longer is cut off."""
    pieces = [""]
    for line in (line[:_READ] for text in texts for line in text.split("\n")):
        if len(pieces[-1]) + len(line) >= _READ:
            pieces.append("")
        pieces[-1] += f"{line}\n"
    return [piece for piece in pieces if piece.strip()]
