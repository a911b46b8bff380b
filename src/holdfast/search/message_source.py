"""Messages as a source: how they are indexed, and the best of them for a query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from holdfast.search import rank
from holdfast.search.columns import Mask, MessageColumns, Numbers
from holdfast.search.filters import Filters
from holdfast.search.meaning import DEPTH, explained, ranking
from holdfast.search.segment import IndexedDocument
from holdfast.search.source import Document, SearchSource, SourceView, parsed, texts_in, time_masks
from holdfast.store import log, segments
from holdfast.store.message_rows import EPOCH, from_micros
from holdfast.text import prose
from holdfast.text.dates import spans
from holdfast.text.references import read_reference
from holdfast.types import MAX_COUNT, Hit, Message, Why
from holdfast.types.messages import flags_like

if TYPE_CHECKING:
    from holdfast.search.postings import QueryTerm
    from holdfast.search.query import Query
    from holdfast.store.database import Database
    from holdfast.store.records import AsOf

# Years in which a date without a year is looked for.
_MAX_YEARS = 50


def find(
    view: SourceView[MessageColumns], query: Query, terms: Sequence[QueryTerm], filters: Filters
) -> list[Hit]:
    """Return the messages that match a query, best first."""
    columns = view.columns
    # A single character of a name stands in many other words.
    whole = (word for word in query.words if word.weight >= 1)
    named = frozenset(actor for word in whole for actor in columns.names.get(word.term, ()))
    focus = rank.Focus(
        named or _actors_of_roles(columns, query.roles),
        query.asks_time,
        _date_spans(columns, query),
        filters.later,
    )
    limit = max(filters.limit, DEPTH) if view.near else filters.limit
    scores = rank.score(terms, columns, focus, _mask(view, filters), limit)
    passing = partial(_masks, view, filters=filters)
    best = ranking(view, scores.docs, scores.shares, passing, filters.limit)[:]
    docs = (one.doc for one in best)
    reasons = dict(zip(docs, explained(view, scores, best, filters.min_score), strict=False))
    found = log.by_docs(view.database, view.space, list(reasons))
    stored = {doc: (chat, message) for doc, chat, message in found}
    return [message_hit(*reason, *stored[doc]) for doc, reason in reasons.items() if doc in stored]


def message_hit(score: float, why: Why, chat: str, message: Message) -> Hit:
    """Return a message as a hit; one without text shows its tool calls, a line each."""
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
    )


def _visible(columns: MessageColumns, _agent: str, as_of: AsOf) -> Mask | None:
    """Return which messages there were at a version; None for all.

    Those of other agents count for the rarity of words.
    """
    size = columns.last + 1
    if as_of.doc >= columns.last and as_of.until == MAX_COUNT:
        return None
    there = np.arange(size) <= as_of.doc
    # Place 0 stands for no message.
    there[0] = False
    there &= columns.at[:size] < as_of.until
    return there


def _actors_of_roles(columns: MessageColumns, roles: frozenset[str]) -> frozenset[int]:
    """Return the actors of the roles that pronouns name, where more than one role speaks."""
    if len({role for role, _ in columns.actors}) < 2:
        return frozenset()
    return frozenset(number for (role, _), number in columns.actors.items() if role in roles)


def _date_spans(columns: MessageColumns, query: Query) -> tuple[tuple[int, int, float], ...]:
    if not query.dates:
        return ()
    times = columns.at[1 : columns.last + 1]
    first, last = (from_micros(int(time)).year for time in (times.min(), times.max()))
    first = max(first, last - _MAX_YEARS)
    return tuple(span for date in query.dates for span in spans(date, first, last))


def _mask(view: SourceView[MessageColumns], filters: Filters) -> Mask | None:
    """Return which messages pass the filters; None for all."""
    masks = [mask for _, mask in _masks(view, slice(view.columns.last + 1), filters)]
    return np.logical_and.reduce(masks) if masks else None


def _masks(
    view: SourceView[MessageColumns], docs: Numbers | slice, filters: Filters
) -> Iterator[tuple[str, Mask]]:
    """Yield which of some messages pass each filter; without any, which of them the view shows."""
    columns = view.columns
    allowed = [owner == view.agent for _, owner in columns.chats] if view.agent else []
    if not all(allowed):
        yield "agent", np.array(allowed, bool).take(columns.chat[docs])
    if filters.chat is not None:
        allowed = [chat == filters.chat for chat, _ in columns.chats]
        yield "chat", np.array(allowed, bool).take(columns.chat[docs])
    if filters.roles is not None:
        allowed = [role in filters.roles for role, _ in columns.actors]
        yield "roles", np.array(allowed, bool).take(columns.actor[docs])
    yield from time_masks(columns.at[docs], filters)
    if view.visible is not None:
        # A neighbour of a message that was there may be a later one.
        yield "version", view.visible[docs]


def _look_up(view: SourceView[MessageColumns], reference: str, _filters: Filters) -> Document | None:
    """Return the message that `chat#seq` names."""
    meant = read_reference(reference)
    if meant is None or meant.first != meant.last:
        return None
    for doc, message in log.by_seq(view.database, view.space, meant.chat, meant.first):
        if all(mask.all() for _, mask in _masks(view, np.array([doc]), Filters())):
            return Document(doc, message_hit(0.0, Why({}), meant.chat, message))
    return None


def _read(database: Database, space: str, after: int, limit: int) -> Iterator[IndexedDocument]:
    """Yield messages as documents; the names and arguments of their calls are output."""
    rows = segments.documents(database, space, after, limit)
    for doc, chat, agent, role, name, at, content, calls in rows:
        said, output = prose.split(role, content)
        if calls is not None:
            output = "\n".join([output, *texts_in(parsed(calls))])
        yield IndexedDocument(doc, chat, agent, role, name or "", at, prose.passages(said), output)


MESSAGES = SearchSource("message", MessageColumns, _read, _visible, find, _masks, _look_up)
