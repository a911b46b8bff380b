"""The reasons why a document is a hit of a query or not; scores and filters are those of recall itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.errors import InvalidInput, shown
from holdfast.search.columns import MessageColumns, Numbers
from holdfast.search.filters import ONLY_OF, Filters
from holdfast.search.postings import LIKE, QueryTerm
from holdfast.search.query import MAX_TERMS, Query, parse
from holdfast.search.search import Search, SearchReader, key_of
from holdfast.text.analyze import hash_same
from holdfast.types import MAX_NAME, SOURCES, ExplainedWord, Explanation, Hit, Scope, check_name
from holdfast.types.messages import changed
from holdfast.types.references import split_space, write_reference

if TYPE_CHECKING:
    from holdfast.search.meaning import QueryVector
    from holdfast.search.source import Document, Matched, SourceView
    from holdfast.types.explanations import Place

# The number of hits above a document that are returned.
_ABOVE = 5
# The number of hits that are searched for a document at first.
_FIRST = 100


class Candidate(NamedTuple):
    """A document, the query, and the sources searched together; `place` is that of the document's source."""

    document: Document
    space: str
    query: Query
    group: list[Matched]
    place: int

    @property
    def view(self) -> SourceView[Any]:
        """The view that shows the document."""
        return self.group[self.place].view


def explain(
    search: Search,
    scope: Scope,
    query: str,
    what: Hit | str,
    filters: Filters,
    meaning: QueryVector | None = None,
    now: datetime | None = None,
) -> Explanation:
    """Return the reasons why a document is a hit of a query or not; see `Memory.explain`.

    Raises:
        InvalidInput: the query has nothing to search for, or the scope has no such document.

    """
    parsed = parse(query, now, filters.since, filters.until)
    searched = Filters(sources=frozenset(SOURCES), trust=filters.trust, where=filters.where)
    with search.one_read(scope, searched, meaning) as reader:
        candidate = _look_up(reader, parsed, what, filters)
        words, excluded = _words(candidate), _failed_filters(candidate, filters, reader.spaces[0])
        hit, label = candidate.document.hit, reader.scope.reference(candidate.space)
        hit = changed(hit, space=label)
        near = candidate.view.near or parsed.dates or parsed.spans
        has_rank = bool(near or any(word.places for word in words) or _is_beside_a_match(candidate))
        hits, rank = _find_rank(reader, parsed, filters, hit if has_rank and not excluded else None)
    hit = hits[rank - 1] if rank else hit
    if not rank and not excluded and any(map(partial(_says_the_same, hit), hits)):
        excluded = ("said again",)
    if rank and hit.score < filters.min_score:
        excluded = ("min_score",)
    within = [other for other in hits[: filters.limit] if other.score >= filters.min_score]
    return Explanation(
        query,
        hit,
        rank=rank,
        limit=filters.limit,
        excluded=excluded,
        words=words,
        outranked_by=tuple((hits[: rank - 1] if rank else within)[:_ABOVE]),
        last_score=within[-1].score if within else None,
    )


def _look_up(reader: SearchReader, query: Query, what: Hit | str, filters: Filters) -> Candidate:
    """Return the document of a reference; a hidden one counts as missing."""
    identity = None
    # The chats of two spaces may have one name; a space "" stands for any.
    if isinstance(what, Hit):
        identity = what.id
        reference = write_reference(what.chat, what.seq) if what.source == "message" else identity
        wanted = what.space and reader.scope.named(what.space).space
    else:
        name = check_name(what, "The reference", longest=3 * MAX_NAME)
        reference, wanted = split_space(name, reader.scope)
    for space in reader.spaces:
        if wanted not in ("", space):
            continue
        for source in SOURCES:
            searched = replace(filters, sources=filters.sources | {source})
            for group in reader.matched(space, query, searched):
                for place, (view, _) in enumerate(group):
                    is_source = view.source.name == source
                    document = view.source.look_up(view, reference, filters) if is_source else None
                    if document is not None and identity in (None, document.hit.id):
                        return Candidate(document, space, query, group, place)
    raise InvalidInput(
        f"{shown(reference if identity else what)} was not found in this scope.",
        "Pass a hit, a message as CHAT#N or SPACE|CHAT#N, or the id of a record or a summary.",
    )


def _is_beside_a_match(candidate: Candidate) -> bool:
    """Return whether a word of the query stands in the same block of the chat."""
    view, terms = candidate.group[candidate.place]
    if not isinstance(view.columns, MessageColumns):
        return False
    blocks, own = view.columns.block, candidate.document.number
    return any(
        _has(blocks[docs], blocks[[own]]) for term in terms for docs in (term.said.docs, term.output.docs)
    )


def _failed_filters(candidate: Candidate, filters: Filters, own_space: str) -> tuple[str, ...]:
    """Return the names of the filters that a document does not pass."""
    document, view = candidate.document, candidate.view
    source = view.source.name
    names = []
    if source not in filters.sources:
        foreign = (name for name, only in ONLY_OF.items() if source not in only)
        names += [name for name in foreign if getattr(filters, name) is not None] or ["sources"]
    if filters.chat is not None and candidate.space != own_space:
        names.append("chat")
    masks = view.source.masks(view, np.array([document.number]), filters)
    names += [name for name, mask in masks if not mask.all()]
    names += [name for name, passes in document.checks if not passes]
    return tuple(dict.fromkeys(names))


def _find_rank(
    reader: SearchReader, query: Query, filters: Filters, wanted: Hit | None
) -> tuple[list[Hit], int | None]:
    """Return the best hits of any score, down to the wanted one at least, and its rank."""
    # Among as many hits as a recall returns, the rank is exactly that of the recall.
    limit = filters.limit
    while True:
        hits = reader.find(query, replace(filters, limit=limit, min_score=0.0))
        ranks = (n for n, hit in enumerate(hits, 1) if wanted and key_of(hit) == key_of(wanted))
        rank = next(ranks, None)
        if wanted is None or rank or len(hits) < limit:
            return hits, rank
        limit = max(10 * limit, _FIRST)


def _says_the_same(hit: Hit, other: Hit) -> bool:
    return hit.source == other.source == "message" and hash_same(hit.text) == hash_same(other.text)


def _words(candidate: Candidate) -> tuple[ExplainedWord, ...]:
    """Return the words of the query, in its order, each with its places in the document.

    Of a query with too many terms, only those that count. No words for a record whose words are not indexed.
    """
    if candidate.view.visible is not None and not candidate.view.visible[candidate.document.number]:
        return ()
    written = dict.fromkeys(word.written for word in candidate.query.words)
    is_whole = len(candidate.query.words) <= MAX_TERMS
    every = {word: ExplainedWord(word, (), 0) for word in written if is_whole}
    views = [view for view, _ in candidate.group]
    for terms in zip(*(terms for _, terms in candidate.group), strict=True):
        own = terms[candidate.place]
        word = own.written.removeprefix(LIKE)
        known = every.get(word) or ExplainedWord(word, (), 0)
        places, documents = _places(candidate, own), known.documents
        if own.written == word:
            documents = max(documents, sum(map(_count, views, terms)))
        every[word] = ExplainedWord(word, tuple(dict.fromkeys((*known.places, *places))), documents)
    return tuple(every[word] for word in written if word in every)


def _places(candidate: Candidate, term: QueryTerm) -> list[Place]:
    """Return the places of a term in a document."""
    doc, columns = candidate.document.number, candidate.view.columns
    own = np.array([doc])
    around = columns.around(own)[1:] if isinstance(columns, MessageColumns) else ()
    text, output = _has(term.said.docs, own), _has(term.output.docs, own)
    neighbours = any(_has(term.said.docs, docs) for docs in around)
    if term.written.startswith(LIKE):
        return ["related"] if text or neighbours else []
    has: dict[Place, bool] = {"text": text, "output": output, "neighbours": neighbours}
    return [place for place, there in has.items() if there]


def _has(having: Numbers, docs: Numbers) -> bool:
    return bool(np.isin(docs, having).any())


def _count(view: SourceView[Any], term: QueryTerm) -> int:
    """Return the number of visible documents with a term; those of other agents must not be counted."""
    docs = np.union1d(term.said.docs, term.output.docs)
    visible = np.ones(len(docs), bool)
    for _, mask in view.source.masks(view, docs, Filters()):
        visible &= mask
    return int(visible.sum())
