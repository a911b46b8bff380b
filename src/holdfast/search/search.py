"""Search: a question goes in, hits with their reasons come out."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from holdfast.errors import Unavailable
from holdfast.search import message_source, rank, record_source, summary_source
from holdfast.search import query as questions
from holdfast.search.columns import Columns, Turns, Versions
from holdfast.search.filters import Wanted
from holdfast.search.index import MESSAGES, RECORDS, SUMMARIES, Index, Indexed
from holdfast.search.postings import Kept, Lists, Sought, hashes, match, matched
from holdfast.search.query import Question
from holdfast.store import log, segments, summaries
from holdfast.store.message_rows import EPOCH
from holdfast.store.records import NOW
from holdfast.types import Hit, Message, Record, Scope, Source, Summary, Why

if TYPE_CHECKING:
    from holdfast.store.database import Database

CACHE_BYTES = 512 * 2**20  # of indexes in memory; the least recently used ones are let go beyond it
NEAREST = 256  # records that share most with a text, of which those about the same are compared with it
WEIGHTS = rank.Weights()
_ATTEMPTS = 100  # to begin a read before others have written more than a tail can take in

C = TypeVar("C", bound=Columns)


class _Found(NamedTuple):
    space: str
    doc: int
    score: float
    why: Why
    record: Record | None = None
    summary: Summary | None = None


class Search:
    """Search the spaces of a database; keeps the indexes that were used last. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._indexes: OrderedDict[tuple[str, Source], Index[Any]] = OrderedDict()
        self._sizes: dict[tuple[str, Source], int] = {}
        self._total = 0
        self._lock = threading.Lock()

    def recall(self, scope: Scope, query: str, wanted: Wanted) -> list[Hit]:
        """Find messages, summaries and records; see `Memory.recall`.

        Raises:
            InvalidInput: the query has nothing to search for.

        """
        asked = questions.parse(query)
        with self.one_read(scope, wanted) as read:
            return read.recall(asked, wanted)

    def similar(self, scope: Scope, draft: Record, limit: int) -> list[Record]:
        """Find the records, within the scope's own space, that share most with a draft: of its kind and target, and its agent's.

        Those are chosen among the `NEAREST` of its kind, so that its cost does not grow with what is stored.
        """
        if not questions.has_words(draft.text):
            return []
        wanted = Wanted(
            messages=False,
            kinds=frozenset((draft.kind,)),
            target=draft.target,
            agents=frozenset((scope.agent, "")),
            limit=limit,
            looked=NEAREST,
        )
        with self._one_read((scope.space,), scope.agent, wanted) as read:
            found = read.find(questions.parse(draft.text), wanted)
        return [hit.record for hit in found if hit.record]

    def one_read(self, scope: Scope, wanted: Wanted) -> AbstractContextManager[OneRead]:
        """Open one read of the database for recalls of the sources that are wanted, and for what belongs to them.

        No index is made or stored in the block: that is done before.

        Raises:
            Unavailable: others write so much that the indexes cannot be kept up.

        """
        # A chat is one of its space; the shared one may have another of the same name.
        spaces = dict.fromkeys((scope.space, scope.shared.space if wanted.chat is None else scope.space))
        return self._one_read(spaces, scope.agent, wanted)

    @contextmanager
    def _one_read(self, spaces: Iterable[str], agent: str, wanted: Wanted) -> Iterator[OneRead]:
        sources = ((wanted.messages, MESSAGES), (wanted.summaries, SUMMARIES), (wanted.records, RECORDS))
        asked: list[Indexed[Any]] = [indexed for is_wanted, indexed in sources if is_wanted and wanted.limit]
        indexes = {space: [self._index(space, indexed) for indexed in asked] for space in spaces}
        for _ in range(_ATTEMPTS):
            # In the order in which everybody takes them: the indexes, one after the other, then the database.
            with ExitStack() as locks:
                for index in chain.from_iterable(indexes.values()):
                    locks.enter_context(index.lock)
                with self._database.one_read():
                    if self._take_in(indexes):
                        yield OneRead(self._database, agent, indexes, locks)
                        return
            for space, some in indexes.items():
                for index in some:
                    with (
                        index.lock
                    ):  # what is computed here may take long: nothing but this index waits for it
                        self._refresh(space, index, segments.index_state(self._database, space))
        raise Unavailable("Others write faster than the index can be kept up.", "Try again.")

    def _take_in(self, indexes: Mapping[str, Sequence[Index[Any]]]) -> bool:
        """Bring indexes up to what one read shows, and say whether that was done: not where it would take long."""
        states = {space: segments.index_state(self._database, space) for space, some in indexes.items() if some}
        if not all(index.is_near(states[space]) for space, some in indexes.items() for index in some):
            return False
        for space, some in indexes.items():
            for index in some:
                self._refresh(space, index, states[space])
        return True

    def rebuild(self, space: str) -> int:
        """Make the indexes of a space anew; see `Memory.rebuild`."""
        segments.clear(self._database, space)
        messages, condensations = self._index(space, MESSAGES), self._index(space, SUMMARIES)
        records = self._index(space, RECORDS)
        with messages.lock, condensations.lock, records.lock:
            state = segments.index_state(self._database, space)
            messages.refresh(state)
            condensations.refresh(state)
            records.refresh(state)
            return messages.covered

    def _index(self, space: str, indexed: Indexed[C]) -> Index[C]:
        key = (space, indexed.source)
        with self._lock:
            index = self._indexes.get(key)
            if index is None:
                index = self._indexes[key] = Index(self._database, space, indexed)
            self._indexes.move_to_end(key)
        return index

    def _account(self, space: str, index: Index[C]) -> None:
        """Note what an index takes, and let go of those not used for longest when all together take too much."""
        key, size = (space, index.source), index.nbytes
        with self._lock:
            if key not in self._indexes:
                return
            self._total += size - self._sizes.get(key, 0)
            self._sizes[key] = size
            while self._total > CACHE_BYTES and len(self._indexes) > 1:
                oldest, _ = self._indexes.popitem(last=False)
                self._total -= self._sizes.pop(oldest, 0)

    def _refresh(self, space: str, index: Index[C], state: segments.IndexState) -> None:
        before = index.covered
        index.refresh(state)
        if index.covered != before or (space, index.source) not in self._sizes:
            self._account(space, index)


class OneRead:
    """Some indexes as of one read of the database, which is open as long as this is in use."""

    def __init__(
        self, database: Database, agent: str, indexes: Mapping[str, Sequence[Index[Any]]], locks: ExitStack
    ) -> None:
        self._database = database
        self._agent = agent
        self._indexes = indexes
        self._locks = locks

    def recall(self, asked: Question, wanted: Wanted) -> list[Hit]:
        """Find messages, summaries and records, the best first; see `Memory.recall`."""
        found = self.find(asked, wanted)
        found.sort(key=lambda hit: -hit.score)
        return self._fetch(found[: wanted.limit])

    def release(self) -> None:
        """Let go of the indexes when all is recalled, so that others need not wait for the end of the read."""
        self._locks.close()

    def find(self, asked: Question, wanted: Wanted) -> list[_Found]:
        """Find the best of each space."""
        if not wanted.limit:
            return []
        return [hit for space in self._indexes for hit in self._search(space, asked, wanted)]

    def _search(self, space: str, asked: Question, wanted: Wanted) -> list[_Found]:
        by_source = {index.source: index for index in self._indexes[space] if index.covered}
        messages = by_source.get("message") if wanted.messages else None
        records = by_source.get("record") if wanted.records else None
        condensations = by_source.get("summary") if wanted.summaries else None
        found = self._find(space, self._agent, asked, wanted, messages, records)
        if condensations:
            found += self._find_summaries(space, self._agent, asked, wanted, condensations)
        return found

    def _find_summaries(
        self, space: str, agent: str, asked: Question, wanted: Wanted, index: Index[Versions]
    ) -> list[_Found]:
        """Find summaries, by the rarity of the words among them: they repeat what messages say."""
        alive = record_source.visible(index.columns, agent, NOW.version, common=False)
        lists = Kept(index.look_up(hashes(asked)), alive)
        (sought,) = match(asked, [(lists, int(alive.sum()))], WEIGHTS)
        if not sought:
            return []
        scores = summary_source.weighed(
            record_source.matching(index.columns, asked, sought, alive, WEIGHTS), WEIGHTS
        )
        places = record_source.ranked(self._database, space, index.columns, scores, wanted)
        if wanted.chat is not None:
            own = summaries.numbers(self._database, space, wanted.chat)
            places = places[np.isin(scores.docs[places], own)]
        rows = list(summary_source.read(self._database, space, scores, places, wanted))
        hits = _explained(space, scores, [place for place, _ in rows], sought)
        return [hit._replace(summary=row) for hit, (_, row) in zip(hits, rows, strict=True)]

    def _find(
        self,
        space: str,
        agent: str,
        asked: Question,
        wanted: Wanted,
        messages: Index[Turns] | None,
        records: Index[Versions] | None,
    ) -> list[_Found]:
        """Look the words up in both sources, so that they weigh the same in each, and score."""
        moment, terms = wanted.moment(space), hashes(asked)
        sources: list[tuple[Lists, int]] = []
        named: frozenset[int] = frozenset()
        names: dict[int, set[int]] = {}
        if messages:
            lists, covered = message_source.look_up(messages, terms, moment)
            named, names = message_source.speakers(messages.columns, asked), messages.columns.names
            sources.append((lists, covered))
        if records:
            alive = record_source.visible(records.columns, agent, moment.version)
            sources.append((Kept(records.look_up(terms), alive), int(alive.sum())))
        sought = match(asked, sources, WEIGHTS, names if named else {})
        found: list[_Found] = []
        if messages and sought[0]:
            scores, best = message_source.best(
                messages.columns, asked, sought[0], named, agent, wanted, moment, WEIGHTS
            )
            found += _explained(space, scores, best, sought[0])
        if records and sought[-1]:
            scores = record_source.matching(records.columns, asked, sought[-1], alive, WEIGHTS)
            places = record_source.ranked(self._database, space, records.columns, scores, wanted)
            rows = list(record_source.read(self._database, space, scores, places, wanted))
            hits = _explained(space, scores, [place for place, _ in rows], sought[-1])
            found += [hit._replace(record=row) for hit, (_, row) in zip(hits, rows, strict=True)]
        return found

    def _fetch(self, found: list[_Found]) -> list[Hit]:
        """Make hits; a message that was erased since is left out."""
        messages: dict[tuple[str, int], tuple[str, Message]] = {}
        said = [hit for hit in found if not hit.record and not hit.summary]
        for space in {hit.space for hit in said}:
            docs = [hit.doc for hit in said if hit.space == space]
            for doc, chat, message in log.by_docs(self._database, space, docs):
                messages[space, doc] = (chat, message)
        hits = []
        for one in found:
            if one.record:
                hits.append(_record_hit(one, one.record))
            elif one.summary:
                hits.append(summary_hit(one.score, one.why, one.summary))
            elif (one.space, one.doc) in messages:
                hits.append(message_hit(one.score, one.why, *messages[one.space, one.doc]))
        return hits


def _explained(
    space: str, scores: rank.Scores, places: Sequence[int], sought: Sequence[Sought]
) -> list[_Found]:
    docs = [int(scores.docs[place]) for place in places]
    return [
        _Found(space, doc, float(scores.total[place] / scores.ceiling), Why(scores.shares(place), words))
        for place, doc, words in zip(places, docs, matched(sought, docs), strict=True)
    ]


def message_hit(score: float, why: Why, chat: str, message: Message) -> Hit:
    """Show a message as a hit."""
    return Hit(
        "message",
        message.content if message.content.strip() else _calls(message),
        score,
        id=message.id,
        chat=chat,
        seq=message.seq,
        role=message.role,
        name=message.name,
        at=message.at or EPOCH,
        why=why,
        flags=message.flags,
    )


def _calls(message: Message) -> str:
    """Write the calls of a message, a line each: the tool and its arguments."""
    return "\n".join(
        f"{call.name} {call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)}"
        for call in message.calls
    )


def summary_hit(score: float, why: Why, summary: Summary) -> Hit:
    """Show a summary as a hit."""
    return Hit(
        "summary",
        summary.text,
        score,
        id=summary.id,
        chat=summary.chat,
        seq=summary.first,
        last=summary.last,
        role="summary",
        name=None,
        at=summary.until,
        why=why,
        kind=summary.kind,
    )


def _record_hit(found: _Found, record: Record) -> Hit:
    first, last = record.messages or (0, 0)
    released = ("released",) if record.trust == "released" else ()
    return Hit(
        "record",
        record.text,
        found.score,
        id=record.id,
        chat=record.chat,
        seq=first,
        last=last,
        role=record.by,
        name=None,
        at=record.at or EPOCH,
        why=found.why,
        kind=record.kind,
        flags=(*record.flags, *released),
        wordings=tuple(dict.fromkeys(one.text for one in record.wordings)),
    )
