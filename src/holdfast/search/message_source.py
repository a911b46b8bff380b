"""Messages as a source: their documents for the index, and the best of them for a query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.search import rank
from holdfast.search.columns import Mask, MessageColumns, Numbers, passing
from holdfast.search.filters import Filters
from holdfast.search.meaning import DEPTH, probabilities, ranking, reasons
from holdfast.search.segment import IndexedDocument
from holdfast.search.source import (
    Document,
    Matched,
    SearchSource,
    SourceView,
    parse_stored,
    texts_in,
    time_masks,
    where_masks,
)
from holdfast.store import branches, log, segments, sessions
from holdfast.store.message_rows import EPOCH, from_micros
from holdfast.store.records import NOW
from holdfast.text import prose
from holdfast.text.dates import spans
from holdfast.text.sentences import asks_only, is_question
from holdfast.types import Hit, Message, Why
from holdfast.types.messages import flags_like
from holdfast.types.references import read_reference

if TYPE_CHECKING:
    from holdfast.search.fusion import Ranked
    from holdfast.search.query import Query
    from holdfast.store.database import Database

# What is left of the score of a message that is the question itself.
_GIVES_WAY = 0.5
# The number of years in which a date without a year is searched.
_MAX_YEARS = 50


class RankedMessage(NamedTuple):
    """A message that may be a hit: its score, the place of its space, and its rank there."""

    score: float
    place: int
    rank: Ranked


class MessageRanking:
    """The best messages of some spaces for a query; only hits are read."""

    def __init__(self, query: Query, matches: Iterable[Matched], filters: Filters) -> None:
        self._filters = filters
        self._views = [view for view, _ in matches]
        # One more, because the question itself gives way.
        limit = max(filters.limit, DEPTH) if any(view.near for view in self._views) else filters.limit + 1
        self._scores = [rank.score(_corpus(query, match, filters), limit, filters.later) for match in matches]
        # The largest share of the words of the query that a message has, from 0 to 1.
        self.most = max((float(scores.shares.max(initial=0.0)) for scores in self._scores), default=0.0)
        # The messages of each space, best first.
        self.best: list[list[RankedMessage]] = []
        for place, (view, scores) in enumerate(zip(self._views, self._scores, strict=True)):
            own, same = scores.shares, view.columns.same.take(scores.docs)
            if query.same is not None:
                own[same == query.same] *= _GIVES_WAY
            own *= rank.first_of_equals(same, own)
            # How likely the first is depends on the second.
            ranks = ranking(view, scores.docs, own, filters, max(filters.limit, 2)).part()
            likely = probabilities(view, ranks, filters.min_score)
            self.best.append(list(map(RankedMessage, likely, repeat(place), ranks)))

    def read(self, chosen: Sequence[RankedMessage], names: Mapping[str, str]) -> dict[RankedMessage, Hit]:
        """Return messages as hits, with the names of their spaces, without those whose row is lost."""
        hits: dict[RankedMessage, Hit] = {}
        for place, (view, scores) in enumerate(zip(self._views, self._scores, strict=True)):
            if not (own := [ranked for ranked in chosen if ranked.place == place]):
                continue
            docs = [ranked.rank.doc for ranked in own]
            stored = {row[0]: row[1:] for row in log.by_docs(view.database, view.space, docs)}
            copies, name = _copies(view, docs, self._filters), names[view.space]
            for ranked, why in zip(own, reasons(scores, [ranked.rank for ranked in own]), strict=True):
                if (doc := ranked.rank.doc) in stored:
                    hits[ranked] = message_hit(ranked.score, why, *stored[doc], name, **copies.get(doc, {}))
        return hits

    def answers(self, hits: Mapping[RankedMessage, Hit]) -> dict[RankedMessage, Hit]:
        """Return the messages that follow those hits that end with a question.

        They are of somebody else, in the same chat, and said before a pause. Each has the score of its
        question, and the words by which that was found.
        """
        answers: dict[RankedMessage, Hit] = {}
        for place, view in enumerate(self._views):
            columns, roles = view.columns, [role for role, _ in view.columns.actors]
            asked: dict[int, RankedMessage] = {}
            for ranked, hit in hits.items():
                if ranked.place == place and is_question(hit.text):
                    doc = int(columns.next[ranked.rank.doc])
                    while doc and view.visible is not None and not view.visible[doc]:
                        # Of another branch.
                        doc = int(columns.next[doc])
                    role = roles[columns.actor[doc]] if doc else "tool"
                    is_other = columns.actor[doc] != columns.actor[ranked.rank.doc] and role != "tool"
                    # What people tell each other may well end with a question that is a courtesy.
                    if is_other and ("assistant" in (role, hit.role) or asks_only(hit.text)):
                        asked[doc] = ranked
            docs = np.array(sorted(asked), np.int64)
            masks = [mask for _, mask in _masks(view, docs, self._filters)] if asked else []
            docs = docs[np.logical_and.reduce(masks)] if masks else docs
            for doc, chat, message in log.by_docs(view.database, view.space, docs.tolist()):
                if message.content.strip():
                    question = hits[asked[doc]]
                    why = Why({"answers": 1.0}, question.why.words)
                    answers[asked[doc]] = message_hit(question.score, why, chat, message, question.space)
        return answers


def _copies(
    view: SourceView[MessageColumns], docs: Sequence[int], filters: Filters
) -> dict[int, dict[str, Any]]:
    """Return for messages that others repeat how many `times` it was said, and when `last`, for the hit."""
    same = view.columns.same[: view.columns.last + 1]
    own, ends = same[[doc for doc in docs if same[doc]]], np.zeros(2**16, bool)
    # Nearly all are said once: one look at the ends of the hashes of all texts tells.
    ends[own.astype(np.uint16)] = True
    every = np.flatnonzero(ends.take(same.astype(np.uint16)))
    every = every[np.isin(same.take(every), own, kind="sort")]
    if len(every) == len(own):
        return {}
    masks = [mask for _, mask in _masks(view, every, filters)]
    every = every[np.logical_and.reduce(masks)] if masks else every
    told: dict[int, dict[str, Any]] = {}
    for doc in docs:
        of_text = every[same.take(every) == same[doc]]
        if len(of_text) > 1:
            told[doc] = {"times": len(of_text), "last": from_micros(int(view.columns.at.take(of_text).max()))}
    return told


def _corpus(query: Query, match: Matched, filters: Filters) -> rank.Corpus:
    """Return the corpus of a space for scoring."""
    columns = match.view.columns
    # A single character of a name is part of many other words.
    whole = (word for word in query.words if word.weight >= 1)
    named = frozenset(actor for word in whole for actor in columns.names.get(word.term, ()))
    # Pronouns tell something where there are several roles.
    if not named and len({role for role, _ in columns.actors}) > 1:
        named = frozenset(number for (role, _), number in columns.actors.items() if role in query.roles)
    focus = rank.Focus(named, query.asks_time, _date_spans(columns, query))
    masks = [mask for _, mask in _masks(match.view, slice(columns.last + 1), filters)]
    return rank.Corpus(columns, match.terms, focus, np.logical_and.reduce(masks) if masks else None)


def message_hit(score: float, why: Why, chat: str, message: Message, space: str = "", **told: Any) -> Hit:
    """Return a message as a hit; one without text shows its tool calls, a line each.

    `told` are the `times` it was said, and the `last` one, if others repeat it.
    """
    text = message.content
    if not text.strip():
        calls = ((call.name, call.arguments) for call in message.calls)
        text = "\n".join(
            f"{name} {given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)}"
            for name, given in calls
        )
    return Hit(
        "message",
        text,
        score,
        id=message.id,
        chat=chat,
        seq=message.seq,
        role=message.role,
        name=message.name,
        at=message.at or EPOCH,
        why=why,
        flags=flags_like(message),
        space=space,
        **told,
    )


def _date_spans(columns: MessageColumns, query: Query) -> tuple[tuple[int, int, float], ...]:
    if not (query.dates or query.spans):
        return ()
    times = columns.at[1 : columns.last + 1]
    first, last = (from_micros(int(time)).year for time in (times.min(), times.max()))
    first = max(first, last - _MAX_YEARS)
    named = (span for date in query.dates for span in spans(date, first, last, query.zone))
    return (*((start, end, 1.0) for start, end in query.spans), *named)


def _masks(
    view: SourceView[MessageColumns], docs: Numbers | slice, filters: Filters
) -> Iterator[tuple[str, Mask]]:
    """Yield a mask of some messages for each filter, and for what the view shows."""
    columns = view.columns
    allowed = [view.viewer.sees(*chat) for chat in columns.chats] if view.viewer.agent else []
    if not all(allowed):
        yield "agent", passing(allowed, columns.chat[docs])
    if filters.chat is not None:
        yield "chat", passing([chat == filters.chat for chat, _ in columns.chats], columns.chat[docs])
    if filters.outside is not None:
        yield "outside", passing([filters.is_outside(chat) for chat, _ in columns.chats], columns.chat[docs])
    if filters.echo:
        yield "echo", columns.same[docs] != filters.echo
    if filters.roles is not None:
        yield "roles", passing([role in filters.roles for role, _ in columns.actors], columns.actor[docs])
    yield from time_masks(columns.at[docs], filters)
    yield from where_masks(view, docs, filters)
    if view.visible is not None:
        # A neighbour of a visible message may be a later one, or of another branch.
        yield "branch" if view.as_of[1:] == NOW[1:] else "version", view.visible[docs]


def _look_up(view: SourceView[MessageColumns], reference: str, _filters: Filters) -> Document | None:
    """Return the message of a reference `chat#seq`."""
    meant = read_reference(reference)
    if meant is None or meant.first != meant.last:
        return None
    for doc, message in log.by_seq(view.database, view.space, meant.chat, meant.first):
        if all(mask.all() for _, mask in _masks(view, np.array([doc]), Filters())):
            return Document(doc, message_hit(0.0, Why({}), meant.chat, message))
    return None


def _read_messages(database: Database, space: str, after: int, limit: int) -> Iterator[IndexedDocument]:
    """Yield messages as documents; the names and arguments of their calls are output."""
    rows = segments.documents(database, space, after, limit)
    for doc, chat, agent, role, name, at, content, calls in rows:
        said, output = prose.split(role, content)
        if calls is not None:
            output = "\n".join([output, *texts_in(parse_stored(calls))])
        yield IndexedDocument(doc, chat, agent, role, name or "", at, prose.passages(said), output)


MESSAGES = SearchSource(
    "message", MessageColumns, _read_messages, _masks, _look_up, None, sessions.joined, branches.aside_docs
)
