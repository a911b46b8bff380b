"""Segments: the immutable index of a range of documents, as arrays that are stored unchanged."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.search.vocabulary import Vocabulary, words_of
from holdfast.text import analyze
from holdfast.text.word_forms import forms, languages

# The analysis, and the layout below.
VERSION = analyze.VERSION * 100 + 4
_MAGIC = b"HFSEG\x00\x00\x01"
# The most that a byte holds; a higher frequency of a term in a document is stored as this.
MAX_FREQUENCY = 255
# The times that a message can have, in microseconds.
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
# The arrays in the order of storage, each with the count of the header that is its length. Those of 8 bytes
# come first and stay aligned.
_LAYOUT: tuple[tuple[str, type[np.generic], str], ...] = (
    ("terms", np.uint64, "terms"),
    ("at", np.int64, "count"),
    ("same", np.uint64, "count"),
    ("offsets", np.uint32, "offsets"),
    ("places", np.uint32, "postings"),
    ("words", np.uint32, "passages"),
    ("passages", np.uint32, "count"),
    ("output", np.uint32, "count"),
    ("chat", np.uint32, "count"),
    ("actor", np.uint32, "count"),
    ("frequencies", np.uint8, "postings"),
    ("tells_time", np.uint8, "count"),
    ("letters", np.uint8, "letters"),
)


class IndexedDocument(NamedTuple):
    """A message, a summary or a version of a record, with the values that the index needs.

    `number` counts 1, 2, 3 … within the space, `at` is in microseconds since the epoch. `passages` are the
    parts of its text, at least one; `output` is that of a program, which is searched separately.
    """

    number: int
    chat: str
    agent: str
    role: str
    name: str
    at: int
    passages: Sequence[str]
    output: str = ""


class BadSegment(ValueError):
    """A stored segment is damaged."""


@dataclass(frozen=True, eq=False)
class Segment:
    """The index of the documents `first` … `last`.

    Postings: `terms` are sorted hashes; those of term i are `places[offsets[i]:offsets[i + 1]]`, rising, with
    as many `frequencies`. A place is that of a passage among all passages of the documents, and `words` are
    those of each. The terms of output are marked with `analyze.OUTPUT`, and have the place of the first
    passage. Columns: one entry per document; `output` are its words of output, `chat` and `actor` point into
    `chats` (chat, agent) and `actors` (role, name), and `same` is equal for texts that say the same.
    `letters` are the words that may be looked up by their letters, as lines in UTF-8.
    """

    first: int
    terms: NDArray[np.uint64]
    offsets: NDArray[np.uint32]
    places: NDArray[np.uint32]
    frequencies: NDArray[np.uint8]
    words: NDArray[np.uint32]
    passages: NDArray[np.uint32]
    output: NDArray[np.uint32]
    at: NDArray[np.int64]
    same: NDArray[np.uint64]
    chat: NDArray[np.uint32]
    actor: NDArray[np.uint32]
    tells_time: NDArray[np.uint8]
    letters: NDArray[np.uint8]
    chats: tuple[tuple[str, str], ...]
    actors: tuple[tuple[str, str], ...]

    @property
    def count(self) -> int:
        """The number of documents."""
        return len(self.passages)

    @property
    def last(self) -> int:
        """The number of the last document."""
        return self.first + self.count - 1

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words that may be looked up by their letters, in order."""
        return Vocabulary(self.letters.tobytes().decode().split())

    @cached_property
    def nbytes(self) -> int:
        """The memory that the arrays take, in bytes."""
        return sum(array.nbytes for array in self._arrays())

    def spans(self, terms: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the begin and the end of the postings of each term in `places`; 0 and 0 for none."""
        if not len(self.terms):
            return np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
        places = np.minimum(self.terms.searchsorted(terms), len(self.terms) - 1)
        has = self.terms.take(places) == terms
        return self.offsets.take(places) * has, self.offsets.take(places + 1) * has

    def _arrays(self) -> list[NDArray[np.generic]]:
        return [getattr(self, name) for name, _, _ in _LAYOUT]

    def encode(self) -> bytes:
        """Return the segment as bytes."""
        lengths = {length: len(getattr(self, name)) for name, _, length in _LAYOUT if length != "offsets"}
        names = {"chats": self.chats, "actors": self.actors}
        header = json.dumps({"first": self.first, **lengths, **names}).encode()
        head = _MAGIC + len(header).to_bytes(8, "little") + header
        padding = b" " * (-len(head) % 8)
        arrays = (array.astype(array.dtype.newbyteorder("<")).tobytes() for array in self._arrays())
        return b"".join([head, padding, *arrays])

    @classmethod
    def decode(cls, body: bytes) -> Segment:
        """Return a segment from bytes, checked completely, because a file may come from anybody.

        Raises:
            BadSegment: the bytes differ from what `encode` writes.

        """
        try:
            segment, end = _decode(body)
            sound = end == len(body) and _is_sound(segment)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise BadSegment(str(error)) from error
        if not sound:
            raise BadSegment("its parts do not fit together")
        return segment


def checksum(body: bytes) -> int:
    """Return the CRC-32 of a stored segment."""
    return zlib.crc32(body)


def _decode(body: bytes) -> tuple[Segment, int]:
    """Return the segment at the beginning of some bytes, unchecked, and its end."""
    if body[:8] != _MAGIC:
        raise BadSegment("it does not begin as a segment does")
    size = int.from_bytes(body[8:16], "little")
    header = json.loads(body[16 : 16 + size])
    lengths = {length: int(header[length]) for _, _, length in _LAYOUT if length != "offsets"}
    lengths["offsets"] = lengths["terms"] + 1
    position = 16 + size + -(16 + size) % 8
    arrays: dict[str, Any] = {}
    for name, kind, length in _LAYOUT:
        arrays[name] = np.frombuffer(body, np.dtype(kind).newbyteorder("<"), lengths[length], position)
        position += arrays[name].nbytes
    arrays["letters"].tobytes().decode()
    chats = tuple((str(name), str(agent)) for name, agent in header["chats"])
    actors = tuple((str(role), str(name)) for role, name in header["actors"])
    return Segment(first=int(header["first"]), chats=chats, actors=actors, **arrays), position


def _is_sound(segment: Segment) -> bool:
    """Return whether all numbers of a segment are in range."""
    offsets = segment.offsets
    return (
        segment.count > 0
        and segment.first > 0
        and bool(np.all(segment.terms[1:] > segment.terms[:-1]))
        and int(offsets[0]) == 0
        and int(offsets[-1]) == len(segment.places)
        and bool(np.all(offsets[1:] > offsets[:-1]))
        and (not len(segment.places) or int(segment.places.max()) < len(segment.words))
        and int(segment.passages.min()) > 0
        and int(segment.passages.sum(dtype=np.uint64)) == len(segment.words)
        and int(segment.chat.max()) < len(segment.chats)
        and int(segment.actor.max()) < len(segment.actors)
        and int(segment.at.min()) >= _EARLIEST
        and int(segment.at.max()) <= _LATEST
        and _rise(segment.places, offsets)
    )


def _rise(places: NDArray[np.uint32], offsets: NDArray[np.uint32]) -> bool:
    """Return whether the places of each term rise; only the first of a term may follow a larger one."""
    rise = places[1:] > places[:-1]
    rise[offsets[1:-1] - 1] = True
    return bool(rise.all())


def read_words(text: str, every: Sequence[str], plain: Sequence[str]) -> tuple[list[int], int, bool]:
    """Return the hashes of the terms of a text, the number of its words, and whether one tells a time."""
    terms: list[int] = []
    words, tells_time = 0, False
    analyze_token = analyze.analyze
    spoken = languages(every, plain)
    is_english = text.isascii() and not spoken
    for token in every:
        hashes, counted, tells = analyze_token(token)
        terms.extend(hashes)
        if not is_english:
            terms.extend(forms(token, spoken))
        words += counted
        tells_time = tells_time or tells
    terms.extend(map(analyze.hash_term, analyze.joined_numbers(text)))
    return terms, words, tells_time


class DocumentTerms(NamedTuple):
    """The hashes of the terms of each passage and of the output, the words of each, and that of all of it."""

    passages: list[list[int]]
    words: list[int]
    output: list[int]
    output_words: int
    tells_time: bool
    same: int
    vocabulary: set[str]


def read_document(document: IndexedDocument) -> DocumentTerms:
    """Return the terms of a document, those of its output marked; linear in its words."""
    every = [analyze.tokens(passage) for passage in document.passages]
    plain = list(map(analyze.plain_tokens, every))
    said = list(map(read_words, document.passages, every, plain))
    put_out = analyze.tokens(document.output)
    output, output_words, _ = read_words(document.output, put_out, analyze.plain_tokens(put_out))
    words = list(chain.from_iterable(plain))
    return DocumentTerms(
        [terms for terms, _, _ in said],
        [words for _, words, _ in said],
        [term ^ analyze.OUTPUT for term in output],
        output_words,
        any(tells_time for _, _, tells_time in said),
        analyze.hash_same(document.passages[-1], document.output, words),
        words_of(words),
    )


def build(documents: Sequence[IndexedDocument]) -> Segment:
    """Return the segment of documents that are numbered without gaps.

    Takes n log n in their words.
    """
    entries = [read_document(document) for document in documents]
    # The terms of each text, with their place.
    texts: list[tuple[int, list[int]]] = []
    first = 0
    for entry in entries:
        texts += [*enumerate(entry.passages, first), (first, entry.output)]
        first += len(entry.passages)
    chats: dict[tuple[str, str], int] = {}
    actors: dict[tuple[str, str], int] = {}
    return _assemble(
        documents[0].number,
        np.array(list(chain.from_iterable(terms for _, terms in texts)), np.uint64),
        np.repeat(np.array([place for place, _ in texts], np.uint32), [len(terms) for _, terms in texts]),
        None,
        words=np.array([words for entry in entries for words in entry.words], np.uint32),
        passages=np.array([len(entry.passages) for entry in entries], np.uint32),
        output=np.array([entry.output_words for entry in entries], np.uint32),
        at=np.array([document.at for document in documents], np.int64),
        chat=np.array([chats.setdefault((d.chat, d.agent), len(chats)) for d in documents], np.uint32),
        actor=np.array([actors.setdefault((d.role, d.name), len(actors)) for d in documents], np.uint32),
        tells_time=np.array([entry.tells_time for entry in entries], np.uint8),
        same=np.array([entry.same for entry in entries], np.uint64),
        letters=_letters(set().union(*(entry.vocabulary for entry in entries))),
        chats=tuple(chats),
        actors=tuple(actors),
    )


def _letters(words: set[str]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(sorted(words)).encode(), np.uint8)


def merge(parts: Sequence[Segment]) -> Segment:
    """Return the segment of several that follow each other, equal to `build` of all documents."""
    if len(parts) == 1:
        return parts[0]
    chats: dict[tuple[str, str], int] = {}
    actors: dict[tuple[str, str], int] = {}
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("words", "passages", "output", "at", "same", "tells_time")
    }
    before = np.cumsum([0, *(len(part.words) for part in parts)], dtype=np.uint32)
    return _assemble(
        parts[0].first,
        np.concatenate([np.repeat(part.terms, part.offsets[1:] - part.offsets[:-1]) for part in parts]),
        np.concatenate([part.places + start for part, start in zip(parts, before, strict=False)]),
        np.concatenate([part.frequencies for part in parts]),
        **columns,
        letters=_letters(set().union(*(part.vocabulary.words for part in parts))),
        chat=np.concatenate([renumber(part.chat, part.chats, chats) for part in parts]),
        actor=np.concatenate([renumber(part.actor, part.actors, actors) for part in parts]),
        chats=tuple(chats),
        actors=tuple(actors),
    )


def renumber(
    column: NDArray[np.uint32], names: Iterable[tuple[str, str]], numbers: dict[tuple[str, str], int]
) -> NDArray[np.uint32]:
    """Return a column of numbers of names, with those that the names have, or get, in `numbers`."""
    table = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.uint32)
    return table[column]


def _assemble(
    first: int,
    hashes: NDArray[np.uint64],
    places: NDArray[np.uint32],
    frequencies: NDArray[np.uint8] | None,
    **columns: Any,
) -> Segment:
    """Sort (term, place) pairs into postings; without frequencies, equal pairs are counted."""
    # Places already rise, and stay in order within a term.
    order = np.argsort(hashes, kind="stable")
    hashes, places = hashes[order], places[order]
    if frequencies is None:
        new = np.ones(len(hashes), bool)
        new[1:] = (hashes[1:] != hashes[:-1]) | (places[1:] != places[:-1])
        starts = np.flatnonzero(new)
        counts = np.diff(starts, append=len(hashes))
        hashes, places = hashes[starts], places[starts]
        frequencies = np.minimum(counts, MAX_FREQUENCY).astype(np.uint8)
    else:
        frequencies = frequencies[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(hashes)), bool), hashes[1:] != hashes[:-1]]))
    offsets = np.append(starts, len(hashes)).astype(np.uint32)
    return Segment(first, hashes[starts], offsets, places, frequencies, **columns)
