"""The index of one space in memory: segments, and columns over all its documents, kept up with the log.

An append writes only the message. A search first reads what no segment covers yet, so that a message is found as soon
as it is stored, whoever stored it; when enough has gathered, it is frozen into a segment in the database. Segments are
derived: a missing or damaged one is made again from the log.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import HoldfastError, Unavailable
from holdfast.search import segment as segments
from holdfast.search.columns import Columns, Turns, Versions
from holdfast.search.memtable import Tail
from holdfast.search.segment import BadSegment, Document, Segment
from holdfast.store import records, summaries
from holdfast.store import segments as stored
from holdfast.text import analyze

if TYPE_CHECKING:
    from holdfast.store.database import Database, Row
    from holdfast.types import Source

FREEZE = 256  # documents that are worth a segment: analysing as many takes a new process about 10 ms
LARGEST = 262_144  # documents of a segment that is not merged any further: about 40 MB
_BATCH = 16_384  # documents analysed at once, for the sake of memory
BEFORE_ALL = -(2**62)  # a number before every segment, also before one that a hostile database made up

logger = logging.getLogger("holdfast")


class Postings:
    """Where some terms stand: how many documents have each, and on demand which ones, and how often."""

    def __init__(self, terms: Sequence[int], parts: Sequence[Segment], tail: Tail) -> None:
        wanted = np.array(terms, np.uint64)
        self._spans = [(part, *part.spans(wanted)) for part in parts]
        self._newest = [tail.postings(term) for term in terms]
        self.counts = [len(docs) for docs, _ in self._newest]
        for _, starts, ends in self._spans:
            self.counts = [count + int(size) for count, size in zip(self.counts, ends - starts, strict=True)]

    def of(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Give the documents with the n-th term, rising, and how often it stands in each."""
        docs = np.empty(self.counts[n], np.int64)
        frequencies = np.empty(self.counts[n])
        filled = 0
        for part, starts, ends in self._spans:
            span = slice(int(starts[n]), int(ends[n]))
            into = slice(filled, filled + span.stop - span.start)
            np.add(part.docs[span], part.first, out=docs[into])
            frequencies[into] = part.frequencies[span]
            filled = into.stop
        docs[filled:], frequencies[filled:] = self._newest[n]
        return docs, frequencies


_Columns = TypeVar("_Columns", bound=Columns)


@dataclass(frozen=True, slots=True)
class Indexed(Generic[_Columns]):
    """Something that is indexed: how to read it as documents numbered 1, 2, 3 …, and what ranking needs of it."""

    source: Source
    columns: Callable[[], _Columns]
    documents: Callable[
        [Database, str, int, int], list[Document]
    ]  # of a space, from after a number to another one


class Index(Generic[_Columns]):
    """Keep the index of a space; hold `lock` while using it."""

    columns: _Columns

    def __init__(self, database: Database, space: str, indexed: Indexed[_Columns]) -> None:
        self.lock = threading.RLock()
        self._database = database
        self._space = space
        self._indexed = indexed
        self.source = indexed.source
        self._reset(0)

    def _reset(self, epoch: int) -> None:
        self._epoch = epoch
        self._segments: list[Segment] = []  # frozen, in the database or about to be
        self._stored: list[tuple[int, int]] = []  # what the database has, as far as this process knows
        self._unstored: Segment | None = None  # frozen, but the database could not be written
        self._tail = Tail()
        self.columns = self._indexed.columns()

    @property
    def covered(self) -> int:
        """The number of the last document in the index."""
        return self.columns.last

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return sum(segment.nbytes for segment in self.parts) + self._tail.nbytes + self.columns.nbytes

    @property
    def parts(self) -> list[Segment]:
        """All segments, in the order of their documents."""
        unstored = self._unstored  # another thread may store it at this moment
        return [*self._segments, unstored] if unstored else self._segments

    def look_up(self, terms: Sequence[int]) -> Postings:
        """Find some terms, given by their hashes, everywhere at once."""
        return Postings(terms, self.parts, self._tail)

    def is_near(self, state: stored.IndexState) -> bool:
        """Say whether `refresh` has nothing to do but to add a few documents to the tail: no index to make or to store."""
        missing = self._newest(state) - self.covered
        return state.epoch == self._epoch and 0 <= missing < FREEZE - len(self._tail.documents)

    def refresh(self, state: stored.IndexState) -> None:
        """Bring the index up to the newest document that is stored."""
        try:
            self._catch_up(state)
        except HoldfastError:  # from the database, which is asked between two steps
            raise
        except BaseException:  # such as Ctrl-C: no half of a step may stay
            self._reset(self._epoch)
            raise

    def _catch_up(self, state: stored.IndexState) -> None:
        newest = self._newest(state)
        if state.epoch != self._epoch or newest < self.covered:
            self._reset(state.epoch)
        if newest - self.covered > FREEZE:
            self._load()
        while self.covered < newest:
            after, until = self.covered, min(newest, self.covered + _BATCH)
            self._add(self._indexed.documents(self._database, self._space, after, until))

    def _newest(self, state: stored.IndexState) -> int:
        return {"message": state.message, "summary": state.summary, "record": state.record}[self.source]

    def _load(self) -> None:
        """Take over the stored segments; if they do not cover the log from its beginning on, remove them.

        Those of another version of the analysis or the layout are not looked at: another Holdfast reads them.
        """
        rows = self._rows(self.covered or BEFORE_ALL)
        if self.covered and rows and rows[0].first <= self.covered:
            # Another process joined what this one holds in parts.
            self._reset(self._epoch)
            rows = self._rows(BEFORE_ALL)
        if self._tail.documents or self._unstored:
            return
        newest = self._newest(stored.index_state(self._database, self._space))
        for row in rows:
            segment = self._read(row, newest)
            if segment is None:
                stored.clear(self._database, self._space, segments.VERSION)
                self._reset(stored.index_state(self._database, self._space).epoch)
                return
            self._segments.append(segment)
            self._stored.append((row.first, row.last))
            self.columns.extend(segment)

    def _rows(self, after: int) -> list[stored.StoredSegment]:
        return stored.load(self._database, self._space, segments.VERSION, after, self.source)

    def _read(self, row: stored.StoredSegment, newest: int) -> Segment | None:
        try:
            if row.first != self.covered + 1:
                raise BadSegment(f"the one before it ends at {self.covered}")
            if row.last > newest:
                raise BadSegment(f"there is nothing after {newest}")
            if row.checksum != segments.checksum(row.body):
                raise BadSegment("its checksum is wrong")
            segment = Segment.decode(row.body)
            if (segment.first, segment.last) != (row.first, row.last):
                raise BadSegment("it covers other documents than it says")
        except BadSegment as error:
            logger.warning(
                "The index of space %r is made again from the log: the segment of documents %d to %d cannot be used (%s).",
                self._space,
                row.first,
                row.last,
                error,
            )
            return None
        return segment

    def _add(self, documents: list[Document]) -> None:
        """Take in new documents: a few into the tail, or else, together with the tail, as a segment."""
        if len(self._tail.documents) + len(documents) < FREEZE:
            for document in documents:
                self.columns.add(document, *self._tail.add(document))
            return
        new = segments.build(documents)
        before = [segments.build(self._tail.documents)] if self._tail.documents else []
        waiting = [self._unstored] if self._unstored else []
        self.columns.extend(new)
        self._unstored, self._tail = segments.merge([*waiting, *before, new]), Tail()
        self._freeze(self._unstored)

    def _freeze(self, newest: Segment) -> None:
        """Store the newest segment, joined with earlier ones that are not much larger."""
        frozen, kept = newest, list(self._segments)
        while kept and kept[-1].count <= 2 * frozen.count and kept[-1].count + frozen.count <= LARGEST:
            frozen = segments.merge([kept.pop(), frozen])
        body = frozen.encode()
        row = stored.StoredSegment(frozen.first, frozen.last, segments.VERSION, segments.checksum(body), body)
        try:
            done = stored.replace(self._database, self._space, self.source, self._stored, self._epoch, row)
        except Unavailable as error:  # a read needs no writable database: the next one tries again
            logger.info("The index of space %r could not be stored: %s", self._space, error)
            return
        if done:
            self._segments, self._unstored = [*kept, frozen], None
            self._stored = [(part.first, part.last) for part in self._segments]
        else:  # another process stored other segments, or erased what some of these are made of: start from its own
            self._reset(stored.index_state(self._database, self._space).epoch)
            self._load()


def messages_as_documents(db: Database, space: str, after: int, until: int) -> list[Document]:
    """Read the messages that follow a number, up to another one.

    Where a damaged log has no message, or one was erased, an empty document keeps the numbers of those behind it right.
    """
    rows = stored.documents(db, space, after, until - after)
    found = {row[0]: _to_document(row) for row in rows}
    return _without_gaps(found, after, until)


def records_as_documents(db: Database, space: str, after: int, until: int) -> list[Document]:
    """Read the versions of records that follow a number, up to another one; each is a document of its own."""
    rows = records.documents(db, space, after, until - after)
    found = {
        version: Document(version, identity, agent, kind, "", at, _said(text, wordings))
        for version, identity, agent, kind, at, text, wordings in rows
    }
    return _without_gaps(found, after, until)


def summaries_as_documents(db: Database, space: str, after: int, until: int) -> list[Document]:
    """Read the summaries that follow a number, up to another one; one that has grown since is a document as well."""
    rows = summaries.documents(db, space, after, until - after)
    found = {
        number: Document(number, identity, agent, "summary", "", at, text)
        for number, identity, agent, at, text in rows
    }
    return _without_gaps(found, after, until)


MESSAGES = Indexed("message", Turns, messages_as_documents)
SUMMARIES = Indexed("summary", Versions, summaries_as_documents)
RECORDS = Indexed("record", Versions, records_as_documents)


def _without_gaps(found: dict[int, Document], after: int, until: int) -> list[Document]:
    return [
        found.get(number) or Document(number, "", "", "", "", 0, "") for number in range(after + 1, until + 1)
    ]


def _to_document(row: Row) -> Document:
    doc, chat, agent, role, name, at, content, calls = row
    text = content if calls is None else "\n".join([content, *_call_texts(_parsed(calls))])
    return Document(doc, chat, agent, role, name or "", at, text)


def _said(text: str, wordings: str | None) -> str:
    """Return the words of a record: those of its text, and those that other wordings add, so that repetitions weigh nothing."""
    if not wordings:
        return text
    seen = {analyze.fold(word) for word in analyze.tokens(text)}
    added: dict[str, str] = {}
    parsed = _parsed(wordings)
    for other in _call_texts([one[:1] for one in parsed] if isinstance(parsed, list) else wordings):
        added |= {analyze.fold(word): word for word in analyze.tokens(other)}
    return " ".join([text, *(word for folded, word in added.items() if folded not in seen)])


def _parsed(calls: str) -> object:
    """Read stored calls; damaged ones are found by their words, and reading their message says what is wrong."""
    try:
        return json.loads(calls)
    except ValueError:
        return calls


def _call_texts(value: object) -> Iterator[str]:
    """Give all texts in the stored calls of a message: names and arguments, without JSON's escapes."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _call_texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _call_texts(item)
