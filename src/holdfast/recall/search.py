"""Search: a question goes in, hits with their reasons come out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.recall import question as questions
from holdfast.recall import rank
from holdfast.recall.index import Index, Postings
from holdfast.recall.question import Question
from holdfast.store import log, segments
from holdfast.store.rows import EPOCH, from_micros, to_micros
from holdfast.text.dates import spans
from holdfast.types import ROLES, Hit, Message, Scope, Why, check_count, check_name

if TYPE_CHECKING:
    from holdfast.recall.columns import Columns
    from holdfast.store.database import Database

CACHE_BYTES = 512 * 2**20  # of indexes in memory; the least recently used spaces are let go beyond it
_MAX_YEARS = 50  # that a date without a year is looked for in
# Related words that stand in a thousand messages together, or in a hundredth of all, tell nothing further.
_RELATED = 1_000
WEIGHTS = rank.Weights()


@dataclass(frozen=True, slots=True)
class Filter:
    """Which messages may be hits; None lets all pass."""

    chat: str | None
    agent: str
    roles: frozenset[str] | None
    since: int | None
    until: int | None

    @property
    def passes_all(self) -> bool:
        """Say whether nothing is left out."""
        return (
            self.chat is None
            and not self.agent
            and self.roles is None
            and self.since is None
            and self.until is None
        )


@dataclass(frozen=True, slots=True)
class _Found:
    space: str
    doc: int
    score: float
    why: Why


@dataclass(frozen=True, slots=True)
class _Sought:
    written: str
    term: rank.Term


class Search:
    """Search the spaces of a database; keeps the indexes that were used last. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._indexes: OrderedDict[str, Index] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._total = 0
        self._lock = threading.Lock()

    def recall(
        self,
        scope: Scope,
        query: str,
        *,
        chat: str | None,
        roles: Sequence[str] | None,
        since: datetime | None,
        until: datetime | None,
        limit: int,
        min_score: float,
    ) -> list[Hit]:
        """Find messages; see `Memory.recall`."""
        asked = questions.parse(query)
        wanted = _filter(scope, chat, roles, since, until)
        check_count(limit, "limit")
        if not _is_share(min_score):
            raise InvalidInput(f"`min_score` is {min_score!r}.", "Use a number from 0 to 1.")
        spaces = dict.fromkeys((scope.space, scope.shared.space))
        found = [hit for space in spaces for hit in self._search(space, asked, wanted, limit, min_score)]
        found.sort(key=lambda hit: -hit.score)
        return self._fetch(found[:limit])

    def rebuild(self, space: str) -> int:
        """Make the index of a space anew; see `Memory.rebuild`."""
        segments.clear(self._database, space)
        index = self._index(space)
        with index.lock:
            index.refresh()
            return index.covered

    def _index(self, space: str) -> Index:
        with self._lock:
            index = self._indexes.get(space)
            if index is None:
                index = self._indexes[space] = Index(self._database, space)
            self._indexes.move_to_end(space)
        return index

    def _account(self, space: str, size: int) -> None:
        """Note what an index takes, and let go of those not used for longest when all together take too much."""
        with self._lock:
            if space not in self._indexes:
                return
            self._total += size - self._sizes.get(space, 0)
            self._sizes[space] = size
            while self._total > CACHE_BYTES and len(self._indexes) > 1:
                oldest, _ = self._indexes.popitem(last=False)
                self._total -= self._sizes.pop(oldest, 0)

    def _search(
        self, space: str, asked: Question, wanted: Filter, limit: int, min_score: float
    ) -> list[_Found]:
        index = self._index(space)
        with index.lock:
            before = index.covered
            index.refresh()
            grown = index.covered != before
            found = _find(index, space, asked, wanted, limit, min_score) if index.covered and limit else []
        if grown:
            self._account(space, index.nbytes)
        return found

    def _fetch(self, found: list[_Found]) -> list[Hit]:
        messages: dict[tuple[str, int], tuple[str, Message]] = {}
        for space in {hit.space for hit in found}:
            docs = [hit.doc for hit in found if hit.space == space]
            for doc, chat, message in log.by_doc(self._database, space, docs):
                messages[space, doc] = (chat, message)
        return [_hit(hit, *messages[hit.space, hit.doc]) for hit in found if (hit.space, hit.doc) in messages]


def _find(
    index: Index, space: str, asked: Question, wanted: Filter, limit: int, min_score: float
) -> list[_Found]:
    columns = index.columns
    actors = frozenset(number for word in asked.words for number in columns.names.get(word.term, ()))
    sought = _terms(index, asked, named=bool(actors))
    if not sought:
        return []
    focus = rank.Focus(
        actors or _actors_of_roles(columns, asked.roles), asked.asks_time, tuple(_spans(columns, asked))
    )
    scores = rank.score([one.term for one in sought], columns, focus, WEIGHTS)
    shares = scores.total / scores.ceiling
    if not wanted.passes_all:
        shares *= _mask(columns, scores.docs, wanted)
    best = [int(place) for place in rank.top(shares, limit) if shares[place] >= min_score]
    docs = [int(doc) for doc in scores.docs[best]]
    return [
        _Found(space, doc, float(shares[place]), Why(scores.shares(place), words))
        for place, doc, words in zip(best, docs, _matched(sought, docs), strict=True)
    ]


def _terms(index: Index, asked: Question, *, named: bool) -> list[_Sought]:
    """Look up the terms of a question; a name that points at a speaker counts less as a word.

    The words related to a word are looked up as if they were one.
    """
    hashes = [word.term for word in asked.words]
    postings = index.look_up([*hashes, *(term for word in asked.words for term, _ in word.related)])
    present = [n for n in range(len(hashes)) if postings.counts[n]]
    present = sorted(present, key=lambda n: postings.counts[n])[: questions.MAX_TERMS]
    sought = []
    for n in sorted(present):
        word = asked.words[n]
        factor = WEIGHTS.name_as_word if named and word.term in index.columns.names else 1.0
        sought.append(_Sought(word.written, rank.Term(*postings.of(n), word.weight * factor)))
    share = WEIGHTS.related * min(1.0, WEIGHTS.short / len(hashes))
    first = len(hashes)
    for word in asked.words:
        group = _group(postings, range(first, first + len(word.related)), index.covered)
        first += len(word.related)
        if group is not None:
            sought.append(_Sought(f"like {word.written}", rank.Term(*group, share * word.weight)))
    return sought


def _group(postings: Postings, terms: range, documents: int) -> tuple[rank.Numbers, rank.Floats] | None:
    """Join the postings of the words related to one, the likeliest first, while they are few enough to tell anything."""
    room = max(_RELATED, documents * _RELATED // 100_000)
    chosen = []
    for n in terms:
        if 0 < postings.counts[n] <= room:
            chosen.append(postings.of(n))
            room -= postings.counts[n]
    if len(chosen) < 2:
        return chosen[0] if chosen else None
    sums, having = np.zeros(documents + 1), np.zeros(documents + 1, bool)
    for docs, frequencies in chosen:
        sums[docs] += frequencies
        having[docs] = True
    found = np.flatnonzero(having)
    return found, sums[found]


def _actors_of_roles(columns: Columns, roles: frozenset[str]) -> frozenset[int]:
    """Take pronouns as naming a role, where more than one role speaks."""
    if len({role for role, _ in columns.actors}) < 2:
        return frozenset()
    return frozenset(number for (role, _), number in columns.actors.items() if role in roles)


def _spans(columns: Columns, asked: Question) -> list[tuple[int, int, float]]:
    if not asked.dates:
        return []
    times = columns.at[1 : columns.last + 1]
    first, last = (from_micros(int(time)).year for time in (times.min(), times.max()))
    first = max(first, last - _MAX_YEARS)
    return [span for date in asked.dates for span in spans(date, first, last)]


def _mask(columns: Columns, docs: rank.Numbers, wanted: Filter) -> NDArray[np.bool_]:
    """Say which of some documents pass a filter."""
    mask = np.ones(len(docs), bool)
    if wanted.chat is not None or wanted.agent:
        allowed = [
            wanted.chat in (None, chat) and wanted.agent in ("", agent) for chat, agent in columns.chats
        ]
        mask &= np.array(allowed, bool).take(columns.chat.take(docs))
    if wanted.roles is not None:
        allowed = [role in wanted.roles for role, _ in columns.actors]
        mask &= np.array(allowed, bool).take(columns.actor.take(docs))
    at = columns.at.take(docs)
    if wanted.since is not None:
        mask &= at >= wanted.since
    if wanted.until is not None:
        mask &= at < wanted.until
    return mask


def _matched(sought: list[_Sought], docs: list[int]) -> list[tuple[str, ...]]:
    """Name the words of the question that stand in each document itself."""
    found: list[list[str]] = [[] for _ in docs]
    for one in sought:
        places = np.minimum(one.term.docs.searchsorted(docs), len(one.term.docs) - 1)
        for place in np.flatnonzero(one.term.docs.take(places) == docs):
            found[place].append(one.written)
    return [tuple(words) for words in found]


def _filter(
    scope: Scope,
    chat: str | None,
    roles: Sequence[str] | None,
    since: datetime | None,
    until: datetime | None,
) -> Filter:
    if chat is not None:
        check_name(chat, "The id of a chat")
    if roles is not None and not _are_roles(roles):
        raise InvalidInput(f"`roles` is {roles!r}.", f"Pass a list of some of {', '.join(ROLES)}.")
    for time in (since, until):
        if time is not None and not isinstance(time, datetime):
            raise InvalidInput(f"{time!r} is not a time.", "Pass a datetime.")
    return Filter(
        chat,
        scope.agent,
        None if roles is None else frozenset(roles),
        None if since is None else to_micros(since),
        None if until is None else to_micros(until),
    )


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _are_roles(value: object) -> bool:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        return False
    return all(isinstance(role, str) and role in ROLES for role in value)


def _hit(found: _Found, chat: str, message: Message) -> Hit:
    return Hit(
        "message",
        message.content,
        found.score,
        id=message.id,
        chat=chat,
        seq=message.seq,
        role=message.role,
        name=message.name,
        at=message.at or EPOCH,
        why=found.why,
    )
