"""Columns: the values of every document of a space that ranking needs besides words, in growing arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice, pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.segment import Segment, renumber
from holdfast.store.records import AsOf
from holdfast.text import analyze
from holdfast.types import MAX_COUNT

# Microseconds without a message in a chat after which a new block begins.
PAUSE = 6 * 3600 * 1_000_000
# Messages of a block at most, so that a chat without pauses is not one block.
BLOCK = 128
# Documents linked at once: each operation on more than 128 KB would allocate new memory.
_LINKED = 8192

# What is of an assistant's turn; 0 is of somebody else's.
ANSWER = 2
_TURN = {"assistant": ANSWER, "tool": 1}

_Scalar = TypeVar("_Scalar", bound=np.generic)
Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.integer[Any]]
Mask: TypeAlias = NDArray[np.bool_]

NO_NUMBERS: Integers = np.empty(0, np.int64)


class TermPostings(NamedTuple):
    """The documents with a term, rising, and its frequency in each.

    `passages` are the places and frequencies within those documents that have several passages.
    """

    docs: Numbers
    frequencies: Floats
    passages: tuple[Numbers, Floats] = (NO_NUMBERS, np.empty(0))


class Viewer(NamedTuple):
    """An agent, "" for all agents, and what it sees of others: some names, and maybe what belongs to none."""

    agent: str
    joined: frozenset[str]
    shared: bool

    def sees(self, name: str, owner: str) -> bool:
        """Return whether the agent sees what has a name and an owner."""
        return self.agent in ("", owner) or name in self.joined or (self.shared and not owner)


class Columns(ABC):
    """One entry per document, at the place of its number; place 0 stands for no document.

    `chat` and `actor` point into `chats` (chat, agent) and `actors` (role, name). `same` is equal for texts
    that say the same, 0 for an empty one. The arrays of the classes tell the types of the columns, those of
    an object hold them.
    """

    words = np.empty(0, np.uint32)
    at = np.empty(0, np.int64)
    same = np.empty(0, np.uint64)
    chat = np.empty(0, np.int32)
    actor = np.empty(0, np.int32)
    tells_time = np.empty(0, np.bool_)

    def __init__(self) -> None:
        self.last = self.total_words = 0
        # The number of words of output, and of documents with output.
        self.total_output = self.outputs = 0
        self.chats: dict[tuple[str, str], int] = {}
        self.actors: dict[tuple[str, str], int] = {}
        # Hash of a word of a name → the actors with it.
        self.names: dict[int, set[int]] = {}
        # The newest document of each chat.
        self._newest = np.zeros(64, np.int32)
        self._allocate(64)

    def documents(self, places: Numbers) -> Numbers:
        """Return the documents of passages; here each document is one passage."""
        return places

    def by_document(self, places: Numbers, frequencies: Floats, sizes: Sequence[int]) -> list[TermPostings]:
        """Return the postings of documents for those of passages, of several terms one after the other.

        `sizes` are the numbers of postings of each term; here each document is one passage.
        """
        bounds = [0, *accumulate(sizes)]
        return [TermPostings(places[i:j], frequencies[i:j]) for i, j in pairwise(bounds)]

    def _allocate(self, size: int) -> None:
        for name in dir(type(self)):
            if isinstance(getattr(type(self), name), np.ndarray):
                setattr(self, name, _grow(getattr(self, name), size))

    @property
    def nbytes(self) -> int:
        """The memory that the columns take, in bytes."""
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    def extend(self, segment: Segment) -> None:
        """Add the documents of a segment, which must follow the last one.

        Linear, but for sorting them by chat.
        """
        first, last = segment.first, segment.last
        if last >= len(self.words):
            self._allocate(last + 1)
        new = slice(first, last + 1)
        passages = segment.passages.astype(np.int64)
        words = np.add.reduceat(segment.words, np.cumsum(passages) - passages)
        self.words[new], self.at[new], self.tells_time[new] = words, segment.at, segment.tells_time
        self.same[new] = segment.same
        self.chat[new] = renumber(segment.chat, segment.chats, self.chats)
        known = len(self.actors)
        self.actor[new] = renumber(segment.actor, segment.actors, self.actors)
        self._add_names(islice(self.actors.items(), known, None))
        self.last = last
        self.total_words += int(np.maximum(words, 1).sum(dtype=np.int64))
        self._newest = _grow(self._newest, len(self.chats))
        for start in range(first, last + 1, _LINKED):
            chats = self.chat[start : min(start + _LINKED, last + 1)]
            order = np.argsort(chats, kind="stable").astype(np.int64) + start
            chat = self.chat[order]
            begins, ends, before = np.ones(len(chat), bool), np.ones(len(chat), bool), np.zeros_like(order)
            begins[1:] = ends[:-1] = chat[1:] != chat[:-1]
            # The document before each in its chat, 0 for none.
            before[1:] = order[:-1]
            before[begins] = self._newest[chat[begins]]
            self._newest[chat[ends]] = order[ends]
            self._link(order, begins, before)

    @abstractmethod
    def visible(self, viewer: Viewer, as_of: AsOf) -> Mask | None:
        """Return a mask of the documents that an agent sees at a version, None for all."""

    @abstractmethod
    def _link(self, order: Integers, begins: Mask, before: Integers) -> None:
        """Link documents, sorted by chat, to those before them; a mask tells where a chat begins."""

    def _add_names(self, actors: Iterable[tuple[tuple[str, str], int]]) -> None:
        """Store the words of the names of new actors."""
        for (role, name), number in actors:
            # A query asks about people, not about tools; the kind of a record is no role.
            if name and role in ("user", "assistant"):
                for token in analyze.tokens(name):
                    for term in analyze.analyze(token).terms:
                        self.names.setdefault(term, set()).add(number)


class RecordColumns(Columns):
    """The columns of records: each document is a version.

    `chats` are (record, agent), `actors` (kind, ""). `ended` is the version that replaced each, or a
    number beyond all versions.
    """

    ended = np.empty(0, np.int64)

    def visible(self, viewer: Viewer, as_of: AsOf) -> Mask:
        """Return a mask of the records with words that were alive at a version and that an agent may see."""
        size, version = self.last + 1, as_of.version
        alive = self.ended[:size] > version
        alive &= self.words[:size] > 0
        alive[min(version, self.last) + 1 :] = False
        if viewer.agent and self.chats:
            alive &= passing([viewer.sees(*chat) for chat in self.chats], self.chat[:size])
        return alive

    def newest(self, identity: str, version: int, viewer: Viewer) -> int:
        """Return the newest document of an id up to a version that an agent may see, 0 for none."""
        chats = self.chats.items()
        numbers = [number for chat, number in chats if chat[0] == identity and viewer.sees(*chat)]
        docs = np.flatnonzero(np.isin(self.chat[1 : min(version, self.last) + 1], numbers))
        return int(docs[-1]) + 1 if len(docs) else 0

    def _link(self, order: Integers, begins: Mask, before: Integers) -> None:
        del begins
        self.ended[order] = MAX_COUNT
        self.ended[before[before > 0]] = order[before > 0]


class MessageColumns(Columns):
    """The columns of messages.

    `previous` and `next` are the neighbours in the same chat, 0 where there is none or a pause lies between.
    `block` is the part of a chat, between pauses, that a document belongs to. `run` counts from the last
    pause. `output` are the words of output, `turn` who is speaking, and `several` whether there are several
    passages; `passage_words` are those at each place, and `owner` its document. `context_share` is the share
    of the neighbours in the score.
    """

    # These index arrays without a conversion, for every posting.
    previous = np.empty(0, np.int64)
    next = np.empty(0, np.int64)
    block = np.empty(0, np.int64)
    run = np.empty(0, np.int32)
    output = np.empty(0, np.uint32)
    turn = np.empty(0, np.uint8)
    several = np.empty(0, np.bool_)
    context_share = np.empty(0, np.float64)

    def __init__(self) -> None:
        super().__init__()
        # `places` is the last place; with the document and the words of each.
        self.blocks = self.places = 0
        self._block_words = np.zeros(64, np.int64)
        self.owner = np.zeros(64, np.int64)
        # Of each chat whether an assistant speaks in it.
        self.assisted = np.zeros(64, bool)
        self._jumps: list[NDArray[np.int64]] = []
        self.passage_words = np.zeros(64, np.uint32)

    @property
    def block_words(self) -> NDArray[np.int64]:
        """The words of each block."""
        return self._block_words[: self.blocks]

    def documents(self, places: Numbers) -> Numbers:
        """Return the documents of passages."""
        return places if self.places == self.last else self.owner.take(places)

    def by_document(self, places: Numbers, frequencies: Floats, sizes: Sequence[int]) -> list[TermPostings]:
        """Return the postings of documents for those of passages, of several terms one after the other."""
        if self.places == self.last or not len(places):
            return super().by_document(places, frequencies, sizes)
        docs, bounds = self.owner.take(places), np.cumsum([0, *sizes])
        new = np.ones(len(docs), bool)
        np.not_equal(docs[1:], docs[:-1], out=new[1:])
        new[bounds[:-1][bounds[:-1] < len(docs)]] = True
        first, again = np.flatnonzero(new), np.flatnonzero(~new)
        within = np.flatnonzero(self.several.take(docs))
        passages = places[within], frequencies[within]
        inside = within.searchsorted(bounds).tolist()
        ends = first.searchsorted(bounds)
        docs, frequencies, several = docs[first], frequencies[first], frequencies
        np.add.at(frequencies, first.searchsorted(again, "right") - 1, several[again])
        return [
            TermPostings(docs[i:j], frequencies[i:j], (passages[0][k:m], passages[1][k:m]))
            for (i, j), (k, m) in zip(pairwise(ends.tolist()), pairwise(inside), strict=True)
        ]

    def visible(self, viewer: Viewer, as_of: AsOf) -> Mask | None:
        """Return a mask of the messages that existed at a version; None for all.

        Messages of other agents are included, since they count for the rarity of words.
        """
        del viewer
        if as_of.doc >= self.last and as_of.until == MAX_COUNT:
            return None
        there = np.arange(self.last + 1) <= as_of.doc
        # Place 0 stands for no message.
        there[0] = False
        there &= self.at[: len(there)] < as_of.until
        return there

    def jumps(self) -> Integers:
        """Return the documents whose previous one in the chat is not stored right before them."""
        jumps = self._jumps[0] if len(self._jumps) == 1 else np.concatenate([NO_NUMBERS, *self._jumps])
        self._jumps = [jumps]
        return jumps

    def around(self, docs: Numbers) -> tuple[Numbers, ...]:
        """Return documents, those before and after each, and those two before and after; 0 for none."""
        before, after = self.previous.take(docs), self.next.take(docs)
        return docs, before, after, self.previous.take(before), self.next.take(after)

    def concludes(self, docs: Numbers) -> Mask:
        """Return a mask of the documents that are an assistant's last one of several in a turn."""
        before, after = self.turn.take(self.previous.take(docs)), self.turn.take(self.next.take(docs))
        answers: Mask = (self.turn.take(docs) == ANSWER) & (before > 0) & (after == 0)
        return answers

    def extend(self, segment: Segment) -> None:
        """Add the documents of a segment, which must follow the last one."""
        super().extend(segment)
        new, start = slice(segment.first, segment.last + 1), self.places + 1
        self.places += len(segment.words)
        self.owner = _grow(self.owner, self.places + 1)
        self.passage_words = _grow(self.passage_words, self.places + 1)
        self.owner[start : self.places + 1] = np.repeat(np.arange(new.start, new.stop), segment.passages)
        self.passage_words[start : self.places + 1] = segment.words
        self.assisted = _grow(self.assisted, len(self.chats))
        self.turn[new] = np.array([_TURN.get(role, 0) for role, _ in segment.actors]).take(segment.actor)
        self.assisted[self.chat[new][self.turn[new] == ANSWER]] = True
        self.several[new] = segment.passages > 1
        w = weights.WEIGHTS
        self.context_share[new] = w.context / (1 + self.words[new] / w.context_words)
        self.output[new] = segment.output
        self.total_output += int(segment.output.sum())
        self.outputs += int(np.count_nonzero(segment.output))

    def _link(self, order: Integers, begins: Mask, before: Integers) -> None:
        """Set the neighbours and the block of documents."""
        paused = (before == 0) | (np.abs(self.at[order] - self.at[before]) > PAUSE)
        place = np.arange(len(order))
        # The place where the count at each place began: after the last pause, or where the chat begins here.
        start = np.maximum.accumulate(np.where(paused | begins, place, 0))
        carried = np.where(paused, 0, self.run[before] + 1)
        self.run[order] = place - start + carried[start]
        joined = np.where(paused, 0, before)
        self.previous[order] = joined
        self.next[joined] = order
        self.next[0] = 0
        self._jumps.append(order[(joined > 0) & (joined != order - 1)])
        fresh = self.run[order] % BLOCK == 0
        source = np.maximum.accumulate(np.where(fresh | begins, place, 0))
        number = np.where(fresh, self.blocks + np.cumsum(fresh) - 1, self.block[before])
        self.block[order] = number[source]
        self.blocks += int(fresh.sum())
        self._block_words = _grow(self._block_words, self.blocks)
        np.add.at(self._block_words, self.block[order], self.words[order].astype(np.int64))


def passing(allowed: Sequence[bool], numbers: Numbers) -> Mask:
    """Return a mask of documents by the numbers of their chats or actors, some of which are allowed."""
    return np.array(allowed, bool).take(numbers)


def _grow(array: NDArray[_Scalar], size: int) -> NDArray[_Scalar]:
    """Return an array with at least `size` places, the new ones zero."""
    if size <= len(array):
        return array
    larger = np.zeros(max(size, len(array) * 3 // 2), array.dtype)
    larger[: len(array)] = array
    return larger
