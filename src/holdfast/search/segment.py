"""A segment: the immutable index of a run of documents, as arrays that are stored and loaded as they stand."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.text import analyze

VERSION = analyze.VERSION * 100 + 1  # the analysis, and the layout below
_MAGIC = b"HFSEG\x00\x00\x01"
MAX_FREQUENCY = 255  # what a byte holds; how often a term stands in a document is not counted further
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999  # the times that a message can have

_Kind = TypeVar("_Kind", bound=np.generic)


class Document(NamedTuple):
    """What the index needs of a message."""

    number: int  # its document number: 1, 2, 3 … within the space
    chat: str
    agent: str
    role: str
    name: str
    at: int  # microseconds since the epoch
    text: str


class BadSegment(ValueError):
    """A stored segment is damaged."""


@dataclass(frozen=True, eq=False)
class Segment:
    """Index documents `first` … `last`.

    Postings: `terms` are sorted hashes; those of term i are `docs[offsets[i]:offsets[i + 1]]`, rising and relative to
    `first`, with as many `frequencies`. Columns: one entry per document; `chat` and `actor` point into `chats`
    (chat, agent) and `actors` (role, name).
    """

    first: int
    terms: NDArray[np.uint64]
    offsets: NDArray[np.uint32]
    docs: NDArray[np.uint32]
    frequencies: NDArray[np.uint8]
    words: NDArray[np.uint32]
    at: NDArray[np.int64]
    chat: NDArray[np.uint32]
    actor: NDArray[np.uint32]
    tells_time: NDArray[np.uint8]
    chats: tuple[tuple[str, str], ...]
    actors: tuple[tuple[str, str], ...]

    @property
    def count(self) -> int:
        """The number of documents."""
        return len(self.words)

    @property
    def last(self) -> int:
        """The number of the last document."""
        return self.first + self.count - 1

    @property
    def nbytes(self) -> int:
        """The memory that the arrays take."""
        return sum(array.nbytes for array in self._arrays())

    def spans(self, terms: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Say for each term where its postings begin and end in `docs` and `frequencies`; at 0 and 0 if it has none."""
        if not len(self.terms):
            return np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
        places = np.minimum(self.terms.searchsorted(terms), len(self.terms) - 1)
        has = self.terms.take(places) == terms
        return self.offsets.take(places) * has, self.offsets.take(places + 1) * has

    def _arrays(self) -> tuple[NDArray[np.generic], ...]:
        return (
            self.terms,
            self.at,
            self.offsets,
            self.docs,
            self.words,
            self.chat,
            self.actor,
            self.frequencies,
            self.tells_time,
        )

    def encode(self) -> bytes:
        """Write the segment as bytes."""
        header = json.dumps(
            {
                "first": self.first,
                "count": self.count,
                "terms": len(self.terms),
                "postings": len(self.docs),
                "chats": self.chats,
                "actors": self.actors,
            }
        ).encode()
        head = _MAGIC + len(header).to_bytes(8, "little") + header
        padding = b" " * (-len(head) % 8)  # the 8-byte arrays come first and stay aligned
        return b"".join(
            [
                head,
                padding,
                *(array.astype(array.dtype.newbyteorder("<")).tobytes() for array in self._arrays()),
            ]
        )

    @classmethod
    def decode(cls, body: bytes) -> Segment:
        """Read a segment and check that all of it is in range: a file may come from anybody.

        Raises:
            BadSegment: anything is not as `encode` writes it.

        """
        try:
            return _decode(body)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise BadSegment(str(error)) from error

    def same_as(self, other: Segment) -> bool:
        """Say whether both hold exactly the same."""
        return (
            self.first == other.first
            and self.chats == other.chats
            and self.actors == other.actors
            and all(np.array_equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True))
        )


def checksum(body: bytes) -> int:
    """Sum up a stored segment, so that a changed byte is noticed (CRC-32)."""
    return zlib.crc32(body)


def _decode(body: bytes) -> Segment:
    if body[:8] != _MAGIC:
        raise BadSegment("it does not begin as a segment does")
    size = int.from_bytes(body[8:16], "little")
    header = json.loads(body[16 : 16 + size])
    count, n_terms, n_postings = (int(header[key]) for key in ("count", "terms", "postings"))
    position = 16 + size + -(16 + size) % 8

    def take(kind: type[_Kind], length: int) -> NDArray[_Kind]:
        nonlocal position
        array = np.frombuffer(body, np.dtype(kind).newbyteorder("<"), length, position)
        position += array.nbytes
        return array

    terms, at = take(np.uint64, n_terms), take(np.int64, count)
    offsets, docs = take(np.uint32, n_terms + 1), take(np.uint32, n_postings)
    words, chat, actor = take(np.uint32, count), take(np.uint32, count), take(np.uint32, count)
    frequencies, tells_time = take(np.uint8, n_postings), take(np.uint8, count)
    chats = tuple((str(name), str(agent)) for name, agent in header["chats"])
    actors = tuple((str(role), str(name)) for role, name in header["actors"])
    steps = np.diff(offsets.astype(np.int64))
    sound = (
        position == len(body)
        and count > 0
        and int(header["first"]) > 0
        and bool(np.all(terms[1:] > terms[:-1]))
        and int(offsets[0]) == 0
        and int(offsets[-1]) == n_postings
        and bool(np.all(steps > 0))
        and (not n_postings or int(docs.max()) < count)
        and int(chat.max()) < len(chats)
        and int(actor.max()) < len(actors)
        and int(at.min()) >= _EARLIEST
        and int(at.max()) <= _LATEST
        and _rise(docs, offsets)
    )
    if not sound:
        raise BadSegment("its parts do not fit together")
    return Segment(
        int(header["first"]),
        terms,
        offsets,
        docs,
        frequencies,
        words,
        at,
        chat,
        actor,
        tells_time,
        chats,
        actors,
    )


def _rise(docs: NDArray[np.uint32], offsets: NDArray[np.uint32]) -> bool:
    """Say whether the documents of each term rise: nothing but the beginning of a term may follow a larger one."""
    falls = np.flatnonzero(docs[1:] <= docs[:-1]) + 1
    return bool(np.isin(falls, offsets, assume_unique=True).all())


def read_words(text: str) -> tuple[list[int], int, bool]:
    """Turn a text into the hashes of its terms, the number of its words, and whether they tell a time."""
    terms: list[int] = []
    words, tells_time = 0, False
    analyze_token = analyze.analyze
    for token in analyze.tokens(text):
        found, counted, tells = analyze_token(token)
        terms.extend(found)
        words += counted
        tells_time = tells_time or tells
    return terms, words, tells_time


def build(documents: Sequence[Document]) -> Segment:
    """Analyse documents, which are numbered without gaps, and index them. Linear in their words, times its logarithm."""
    hashes: list[int] = []
    ends: list[int] = []
    words: list[int] = []
    tells_time: list[bool] = []
    for document in documents:
        terms, length, tells = read_words(document.text)
        hashes.extend(terms)
        ends.append(len(hashes))
        words.append(length)
        tells_time.append(tells)
    starts = np.array([0, *ends], np.int64)
    owners = np.repeat(np.arange(len(documents), dtype=np.uint32), starts[1:] - starts[:-1])
    chats: dict[tuple[str, str], int] = {}
    actors: dict[tuple[str, str], int] = {}
    return _assemble(
        documents[0].number,
        np.array(hashes, np.uint64),
        owners,
        None,
        words=np.array(words, np.uint32),
        at=np.array([document.at for document in documents], np.int64),
        chat=np.array([chats.setdefault((d.chat, d.agent), len(chats)) for d in documents], np.uint32),
        actor=np.array([actors.setdefault((d.role, d.name), len(actors)) for d in documents], np.uint32),
        tells_time=np.array(tells_time, np.uint8),
        chats=tuple(chats),
        actors=tuple(actors),
    )


def merge(parts: Sequence[Segment]) -> Segment:
    """Join segments that follow each other into one, equal to the one that `build` makes of all their documents."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0].first
    chats: dict[tuple[str, str], int] = {}
    actors: dict[tuple[str, str], int] = {}
    chat = [_renumber(part.chat, part.chats, chats) for part in parts]
    actor = [_renumber(part.actor, part.actors, actors) for part in parts]
    return _assemble(
        first,
        np.concatenate([np.repeat(part.terms, part.offsets[1:] - part.offsets[:-1]) for part in parts]),
        np.concatenate([part.docs + np.uint32(part.first - first) for part in parts]),
        np.concatenate([part.frequencies for part in parts]),
        words=np.concatenate([part.words for part in parts]),
        at=np.concatenate([part.at for part in parts]),
        chat=np.concatenate(chat),
        actor=np.concatenate(actor),
        tells_time=np.concatenate([part.tells_time for part in parts]),
        chats=tuple(chats),
        actors=tuple(actors),
    )


def _renumber(
    column: NDArray[np.uint32], names: Iterable[tuple[str, str]], known: dict[tuple[str, str], int]
) -> NDArray[np.uint32]:
    table = np.array([known.setdefault(name, len(known)) for name in names], np.uint32)
    return table[column]


def _assemble(
    first: int,
    hashes: NDArray[np.uint64],
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint8] | None,
    *,
    words: NDArray[np.uint32],
    at: NDArray[np.int64],
    chat: NDArray[np.uint32],
    actor: NDArray[np.uint32],
    tells_time: NDArray[np.uint8],
    chats: tuple[tuple[str, str], ...],
    actors: tuple[tuple[str, str], ...],
) -> Segment:
    """Sort (term, document) pairs into postings; without frequencies, equal pairs are counted."""
    order = np.argsort(hashes, kind="stable")  # documents already rise, and stay in order within a term
    hashes, docs = hashes[order], docs[order]
    if frequencies is None:
        new = np.ones(len(hashes), bool)
        new[1:] = (hashes[1:] != hashes[:-1]) | (docs[1:] != docs[:-1])
        starts = np.flatnonzero(new)
        counts = np.diff(starts, append=len(hashes))
        hashes, docs = hashes[starts], docs[starts]
        frequencies = np.minimum(counts, MAX_FREQUENCY).astype(np.uint8)
    else:
        frequencies = frequencies[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(hashes)), bool), hashes[1:] != hashes[:-1]]))
    offsets = np.append(starts, len(hashes)).astype(np.uint32)
    return Segment(
        first, hashes[starts], offsets, docs, frequencies, words, at, chat, actor, tells_time, chats, actors
    )
