"""The index of a source of a space in memory: segments, and columns over all documents.

An append writes only the message. A recall first reads the documents that no segment covers yet, so that a
message is found as soon as it is stored by any process; enough of them are frozen into one segment in the
database. Segments are derived: a missing or damaged one is made again from the log.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic

import numpy as np

from holdfast.errors import Denied, HoldfastError, Unavailable
from holdfast.events import Event, Events, Indexing
from holdfast.search import segment as segments
from holdfast.search.columns import Viewer
from holdfast.search.meta_masks import MetaMasks
from holdfast.search.postings import Postings
from holdfast.search.segment import BadSegment, IndexedDocument, Segment
from holdfast.search.source import C, SearchSource, SourceView
from holdfast.store import segments as stored
from holdfast.store.records import NOW, AsOf
from holdfast.types.scope import scope_of

if TYPE_CHECKING:
    from holdfast.search.vectors import VectorCache
    from holdfast.store.database import Database
    from holdfast.store.vectors import VectorSet

# As many documents that came one by one are stored as a segment.
FREEZE = 256
# As many that were analysed at once are stored, so that the next process need not: that takes it about 5 ms.
WORTH_STORING = 32
# The segments of fewer documents that are searched one by one.
_PARTS = 8
# Documents of a segment that is not merged any further: about 40 MB.
LARGEST = 262_144
# Documents analysed at once, before it is told how far that has come.
_BATCH = 512
_UNSTORED = "The index of space %r could not be stored: %s"
_UNUSABLE = (
    "The index of space %r is made again from the log: the segment of documents %d to %d cannot be used (%s)."
)
# A number before every segment, also before one that a hostile database made up.
BEFORE_ALL = -(2**62)


class Index(Generic[C]):
    """The index of a source of a space; hold `lock` while using it."""

    columns: C

    def __init__(self, database: Database, space: str, source: SearchSource[C], events: Events) -> None:
        self.lock = threading.RLock()
        self._database = database
        self._events = events
        self.space = space
        self.source = source
        # The memory for which it was counted by who keeps it, in bytes.
        self.counted = 0
        self._place = database, space, source.name
        # Summaries have no metadata.
        self.meta = None if source.name == "summary" else MetaMasks(database, space, source.name)
        self._reset(0)

    def _reset(self, epoch: int) -> None:
        self._epoch = epoch
        # Frozen and stored, or about to be.
        self._segments: list[Segment] = []
        # Frozen, but the database could not be written.
        self._unstored: Segment | None = None
        # Too few documents to be frozen.
        self._newest: list[Segment] = []
        self.columns = self.source.columns()
        # The documents of other branches, as of so many moves of heads.
        self._heads, self._aside = 0, np.empty(0, np.int64)
        # Those of the embedder of this process after its first use; they may include erased documents.
        self.vectors: VectorCache | None = None

    @property
    def covered(self) -> int:
        """The number of the last document that the index covers."""
        return self.columns.last

    @property
    def nbytes(self) -> int:
        """The memory that the index takes, in bytes."""
        of_vectors = self.vectors.matrix.nbytes if self.vectors else 0
        return sum(segment.nbytes for segment in self.parts) + self.columns.nbytes + of_vectors

    @property
    def parts(self) -> list[Segment]:
        """All segments, in the order of their documents."""
        return [*self._segments, *filter(None, [self._unstored]), *self._newest]

    def view(self, terms: Sequence[int], agent: str, as_of: AsOf, *, branches: bool = False) -> SourceView[C]:
        """Return the view of an agent as of a version, with the postings of terms given by their hashes.

        It has all branches of chats if these are wanted, or it is as of an earlier version.
        """
        joined = self.source.joined(self._database, self.space, agent)
        viewer = Viewer(agent, joined, shared=self.source.shared)
        as_of = as_of if self.source.versioned else NOW
        visible = self.columns.visible(viewer, as_of)
        if len(self._aside) and not branches and as_of[1:] == NOW[1:]:
            visible = np.arange(self.covered + 1) > 0 if visible is None else visible
            visible[self._aside] = False
        postings = Postings(terms, self.parts, self.columns, visible)
        of_space = self.source, self._database, self.space, viewer, as_of
        return SourceView(*of_space, self.columns, visible, postings, self.meta)

    def refresh_vectors(self, stored: VectorSet) -> None:
        """Load newly stored vectors, after `refresh`."""
        self._vectors_of(stored.model).refresh(stored, self.columns)

    def _vectors_of(self, model: str) -> VectorCache:
        if self.vectors is None:
            # Loaded only where there is an embedder.
            from holdfast.search.vectors import VectorCache

            self.vectors = VectorCache(*self._place, model)
        return self.vectors

    def is_behind(self, state: stored.IndexState) -> bool:
        """Return whether there is anything to `refresh`, or to count."""
        is_other = (state.epoch, state.heads) != (self._epoch, self._heads)
        return not self.counted or is_other or self._last(state) != self.covered

    def is_near(self, state: stored.IndexState, vectors: VectorSet | None) -> bool:
        """Return whether to refresh only has to add a few documents and vectors, and freezes none."""
        newest = self._last(state)
        most = min(WORTH_STORING, FREEZE - _count(self._newest))
        if state.epoch != self._epoch or not 0 <= newest - self.covered < most:
            return False
        return vectors is None or self._vectors_of(vectors.model).is_near(vectors, newest)

    def refresh(self, state: stored.IndexState) -> None:
        """Bring the index up to the newest stored document."""
        try:
            self._catch_up(state)
        except HoldfastError:
            # From the database, which is read between two steps.
            raise
        except BaseException:
            # Such as Ctrl-C: no unfinished step may stay.
            self._reset(self._epoch)
            raise

    def freeze(self) -> None:
        """Store the newest documents, however few, for processes that recall once and end."""
        if self.source.stored and self._newest and self.covered >= WORTH_STORING:
            self._freeze()

    def _catch_up(self, state: stored.IndexState) -> None:
        newest = self._last(state)
        if state.epoch != self._epoch or newest < self.covered:
            self._reset(state.epoch)
        if self.source.stored and newest - self.covered >= WORTH_STORING:
            self._load()
        before, total = self.covered, 0
        if newest - before > _BATCH:
            # Erased documents leave gaps in the numbers.
            total = stored.count_after(*self._place, before)
            self._tell(0.0, total)
        while self.covered < newest:
            after, until = self.covered, min(newest, self.covered + _BATCH)
            self._add(self.source.documents(self._database, self.space, after, until))
            if newest - before > _BATCH:
                self._tell((self.covered - before) / (newest - before), total)
            if self.covered == newest and newest - before >= WORTH_STORING:
                # Where another process was quicker, it goes on from the segments of that.
                self.freeze()
        if state.heads != self._heads:
            self._aside = np.array(self.source.aside(self._database, self.space), np.int64)
            self._heads = state.heads

    def _tell(self, share: float, total: int) -> None:
        """Report the share of the uncovered documents that is done, as an event."""
        # Another process may have stored or erased some meanwhile.
        told = Indexing(self.source.name, int(total * min(1.0, max(0.0, share))), total)
        self._events.tell(Event("indexing", scope_of(self.space), indexing=told))

    def _last(self, state: stored.IndexState) -> int:
        return int(getattr(state, self.source.name))

    def _load(self) -> None:
        """Load the stored segments; remove them if they do not cover the log from its beginning on.

        Segments of another version of the analysis or the layout stay: another Holdfast reads them.
        """
        rows = self._rows(self.covered or BEFORE_ALL)
        if self.covered and rows and rows[0].first <= self.covered:
            # Another process merged segments that this one has in parts.
            self._reset(self._epoch)
            rows = self._rows(BEFORE_ALL)
        if self._newest or self._unstored:
            return
        newest = self._last(stored.index_state(self._database, self.space))
        for row in rows:
            segment = self._decode(row, newest)
            if segment is None:
                stored.clear(self._database, self.space, segments.VERSION)
                self._reset(stored.index_state(self._database, self.space).epoch)
                return
            self._segments.append(segment)
            self.columns.extend(segment)

    def _rows(self, after: int) -> list[stored.StoredSegment]:
        return stored.load(self._database, self.space, segments.VERSION, after, self.source.name)

    def _decode(self, row: stored.StoredSegment, newest: int) -> Segment | None:
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
            import logging  # Few have something to tell.

            place = self.space, row.first, row.last
            logging.getLogger("holdfast").warning(_UNUSABLE, *place, error)
            return None
        return segment

    def _add(self, documents: list[IndexedDocument]) -> None:
        """Add new documents, and freeze the newest ones when they are enough."""
        new = segments.build(documents)
        self.columns.extend(new)
        self._newest.append(new)
        if _count(self._newest) >= FREEZE:
            self._freeze()
        elif len(self._newest) > _PARTS:
            self._newest = [segments.merge(self._newest)]

    def _freeze(self) -> None:
        """Store the newest documents as a segment, merged with earlier ones that are not much larger."""
        self._unstored = segments.merge([*filter(None, [self._unstored]), *self._newest])
        self._newest = []
        parts = [*self._segments, self._unstored]
        while len(parts) > 1 and parts[-2].count <= 2 * parts[-1].count and _count(parts[-2:]) <= LARGEST:
            parts[-2:] = [segments.merge(parts[-2:])]
        if self.source.stored and not self._store(parts[-1]):
            return
        self._segments, self._unstored = parts, None

    def _store(self, frozen: Segment) -> bool:
        """Store a segment in place of those that it covers, and return whether that was done."""
        body = frozen.encode()
        row = stored.StoredSegment(frozen.first, frozen.last, segments.VERSION, segments.checksum(body), body)
        known = [(part.first, part.last) for part in self._segments]
        try:
            done = stored.replace(*self._place, known, self._epoch, row)
        except (Denied, Unavailable) as error:
            import logging

            # A read needs no writable database: the next one tries again.
            logging.getLogger("holdfast").info(_UNSTORED, self.space, error)
            return False
        if not done:
            # Another process stored other segments, or erased documents of these: start from its segments.
            self._reset(stored.index_state(self._database, self.space).epoch)
            self._load()
        return done


def _count(parts: Sequence[Segment]) -> int:
    return sum(part.count for part in parts)
