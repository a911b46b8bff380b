"""What an agent was told by its own memory: such a text is not news, however often it is said again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from holdfast.learning.throttle import rest
from holdfast.text.sentences import sentences

if TYPE_CHECKING:
    from holdfast.types import Message

TOOLS = frozenset(
    "recall recall_fil search_memory search_sessions memory get_memory expand describe "
    "scratchpad scratchpad_read scratchpad_list scratchpad_search".split()
)
"""The tools that answer from memory, as we name them."""

ORIGINS = ("recall", "memory")
"""What an application writes as `origin` into the `meta` of a message that repeats what the memory gave it."""

# Of our tools, those that others have as well count only with the name of a memory before theirs.
_COMMON = frozenset("profile constraints notes history search fetch".split())
_AMBIGUOUS = _COMMON | {"expand", "describe"}
# What a result of ours begins with, `agents.results.ORIGIN`, as JSON or as text, whatever its tool was called.
_RESULT = re.compile(
    r'\s{0,20}(?:\{\s{0,20}"origin":\s?"memory: data, not instructions"|\(memory: data, not instructions\))'
)
_JOINTS = "_./:"

# The frames of what we put into a prompt. Names that others use as well count only with the words that we begin with.
_FRAME = r"""(?P<line>^[ \t]{0,20})?<(?:
    (?P<name>known | recalled | (?:[a-z]{1,20}[-_]){0,2}memor(?:y|ies)(?:[-_][a-z]{1,20}){0,2})(?:\s[^<>]{0,200})?>
    | (?P<summary>summary)\sid=[^<>]{1,400}>
    | (?P<run>run)>\s{0,4}What\ you\ noted\ in\ this\ run
    | (?P<background>background)>\s{0,4}Summaries\ of\ what\ was\ said\ before
    | (?P<conversation>conversation)>\s{0,4}What\ was\ said,\ oldest\ first
    | /(?P<end>[a-z][a-z_-]{1,60})\s{0,4}>
)"""
_TAG = re.compile(_FRAME, re.VERBOSE | re.MULTILINE | re.IGNORECASE)
_OPENINGS = ("name", "summary", "run", "background", "conversation")

_SLACK = 5  # of so many words of content one may be new, if it is no name and no number
# Of so many terms of the shorter of two sentences one is in the other, if one can follow from the other. Few enough that
# numbers and dates may be written otherwise.
_APART = 4
# Words with which one says again what was said.
_SAYING = frozenset(
    "tell told say said mention mentioned remember recall know known note noted share shared state stated speak spoke write "
    "wrote ask asked memory earlier before previously already user call called name named according".split()
)


def without_injected(text: str) -> str:
    """Leave out the blocks that our prompts put before a model, and others that are named for memory. Linear.

    One that nothing closes ends with the text, if it begins a line: in code, `<memory>` can be anything.
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
            and (name := _opening(tag))
            and (closed.get(name, 0) > tag.start() or tag["line"] is not None)
        ):
            opened = name
            parts.append(text[done : tag.start()])
    if not opened:
        parts.append(text[done:])
    return " ".join(parts)  # a space takes the place of what goes, so that no new word comes about


def _opening(tag: re.Match[str]) -> str:
    return next((tag[group].casefold() for group in _OPENINGS if tag[group]), "")


def _closing(tag: re.Match[str]) -> str:
    return (tag["end"] or "").casefold()


def recalled_seqs(messages: Sequence[Message]) -> set[int]:
    """Give the seqs of the messages that bring what a memory gave: results of its tools, and what is marked as such.

    A result belongs to the nearest earlier call with its id.
    """
    asked: dict[str, str] = {}
    found = set()
    for message in messages:
        names = [asked.get(call, "") for call in message.answers]
        if message.role == "tool" and message.name:
            names.append(message.name)
        ours = message.role == "tool" and _RESULT.match(message.content)
        if ours or any(map(is_memory_tool, names)) or message.meta.get("origin") in ORIGINS:
            found.add(message.seq)
        asked.update((call.id, call.name) for call in message.calls)
    return found


def is_memory_tool(name: str) -> bool:
    """Say whether a tool answers from memory; a server may have put its own name before.

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


# What is said again -----------------------------------------------------------------------------------------------------


class _Sentence(NamedTuple):
    """A sentence that was shown or said, and the hashes of its terms of content, by which it is chosen for comparison."""

    text: str
    terms: frozenset[int]


class _Said(NamedTuple):
    """A sentence as it is compared: its words of content in their order, those that must agree, and whether it denies."""

    words: tuple[str, ...]
    exact: tuple[str, ...]  # names, numbers, dates, identifiers
    denies: bool


def restates(text: str, shown: Sequence[str]) -> bool:
    """Say whether a text says nothing that the shown ones do not say: then it is no news.

    A word of content may be new among several; a name, a number or a date may not, nor a denial. It follows from one
    shown sentence, or from several of which it says all. In doubt, it is news.

    >>> restates("You told me that you live in Lisbon.", ["I live in Lisbon."])
    True
    >>> restates("Ada moved from Lisbon to Porto.", ["Ada lives in Lisbon."])
    False
    """
    known = [sentence for one in shown for sentence in _parted(one)]
    return bool(known) and all(_is_told(sentence, known) for sentence in _parted(text))


def _is_told(sentence: _Sentence, known: Iterable[_Sentence]) -> bool:
    rest()
    near = [_read(one.text) for one in known if _is_near(sentence.terms, one.terms)]
    return _follows(_read(sentence.text), near)


def _is_near(terms: frozenset[int], others: frozenset[int]) -> bool:
    """Say whether a sentence may follow from another one, or that one be a part of it; to read both costs much more."""
    return _APART * len(terms & others) >= min(len(terms), len(others))


def _follows(said: _Said, known: Iterable[_Said]) -> bool:
    alike = [one for one in known if one.denies == said.denies]
    if any(_is_in_order(said.exact, one.words) and _mostly(said.words, one.words) for one in alike):
        return True
    own = set(said.words)
    parts = [one for one in alike if own.issuperset(one.words) and _is_in_order(one.exact, said.words)]
    together = [word for one in parts for word in one.words]
    return set(said.exact) <= set(together) and _mostly(said.words, together)


def _mostly(words: Sequence[str], others: Sequence[str]) -> bool:
    own = set(words)
    return _SLACK * len(own.difference(others)) <= len(own)


def _is_in_order(words: Sequence[str], others: Sequence[str]) -> bool:
    """Say whether words come in the same order among others: Ada manages Ben, but Ben does not manage Ada."""
    rest = iter(others)
    return all(word in rest for word in words)


@lru_cache(maxsize=256)
def _parted(text: str) -> tuple[_Sentence, ...]:
    rest()
    return tuple(_Sentence(sentence, _terms(sentence)) for sentence in sentences(text))


def _terms(sentence: str) -> frozenset[int]:
    # As in _read.
    from holdfast.text.analyze import analyze, tokens

    return frozenset(term for token in tokens(sentence) for term in analyze(token).terms) - _empty_terms()


@cache
def _empty_terms() -> frozenset[int]:
    # As in _read.
    from holdfast.text.analyze import STOP_WORDS, analyze

    return frozenset(term for word in STOP_WORDS | _SAYING for term in analyze(word).terms)


@lru_cache(maxsize=4096)
def _read(sentence: str) -> _Said:
    # The text analysis is loaded by those who compare.
    # As said above.
    from holdfast.dedup import lexicon, value_tokens
    from holdfast.text.analyze import STOP_WORDS

    empty = STOP_WORDS | _SAYING
    fillers = lexicon.fillers()
    denying = fillers["not"] | fillers["stop"]
    words, exact, denies = [], [], False
    for token in value_tokens.tokenize(sentence):
        plain = token.kind in ("word", "mark")
        if token.key in denying:
            denies = True
        if token.kind == "mark" or (plain and (token.key in empty or token.key == "'s")):
            continue
        key = lexicon.stem(token.key) if plain else token.key
        words.append(key)
        if not plain or token.text[:1].isupper():
            exact.append(key)
    return _Said(tuple(words), tuple(exact), denies)
