"""The way from the summaries of one chat back to its words: describe, expand, search, review."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, get_args

from holdfast.errors import InvalidInput, shown
from holdfast.safety.guard import Secrets, is_masked, mask_name, masked_hit
from holdfast.store import log, summaries
from holdfast.types import (
    MAX_COUNT,
    Description,
    Expansion,
    Hit,
    Message,
    Scope,
    Summary,
    Time,
    Why,
    as_time,
    check_count,
    check_flag,
    check_name,
)

if TYPE_CHECKING:
    from holdfast.search.search import Search
    from holdfast.store.database import Database
    from holdfast.text.tokens import CountTokens

Item = TypeVar("Item", Message, Summary)
SearchScope = Literal["messages", "summaries", "both"]
_SCOPES: dict[str, tuple[Literal["message", "summary"], ...]] = {
    "messages": ("message",),
    "summaries": ("summary",),
    "both": ("message", "summary"),
}
# Characters of what `search` shows of a hit.
SNIPPET = 500
Sort = Literal["relevance", "newest", "oldest"]
SORTS: tuple[Sort, ...] = get_args(Sort)


class SummaryExplorer:
    """Read one chat by its summaries, and find the words behind them."""

    def __init__(
        self,
        database: Database,
        scope: Scope,
        chat: str,
        clock: Callable[[], datetime],
        search: Callable[[], Search],
    ) -> None:
        self._database = database
        self._scope = scope
        self._chat = chat
        self._clock = clock
        self._search = search

    def describe(self, id: str) -> Description:
        """Describe a summary, and its place in the tree; see `Chat.describe`."""
        database = self._database
        with database.one_read():
            space, summary = self._summary(id)
            parts = summaries.children(database, space, summary.chat, summary.id) if summary.depth else []
            above = summaries.ancestors(database, space, summary)
        return Description(summary, tuple(above), tuple(part.id for part in parts))

    def expand(self, id: str, max_tokens: int, *, cursor: str | None) -> Expansion:
        """Read what stands behind a summary; see `Chat.expand`."""
        cap = check_count(max_tokens, "max_tokens")
        database = self._database
        with database.one_read():
            space, summary = self._summary(id)
            after = _last_seen(cursor, summary)
            if summary.depth:
                parts = summaries.children(database, space, summary.chat, summary.id)
                children = _within([part for part in parts if part.first > after], cap)
                last = children[-1].last if children else summary.last
                return _expansion(summary, (), children, last)
            messages = _within(log.forward(database, space, summary.chat, after, summary.last), cap)
            last = messages[-1].seq if messages else summary.last
            return _expansion(summary, messages, (), last)

    def _summary(self, identity: str) -> tuple[str, Summary]:
        check_name(identity, "The id of a summary")
        found = summaries.find(self._database, self._scope, self._chat, identity)
        if found is None:
            raise InvalidInput(
                f"There is no summary {identity!r} here.",
                "Use the id of one in `window().summaries`, or of a hit whose source is 'summary'.",
            )
        return found

    def tree(self) -> list[Summary]:
        """List all summaries of the chat, leaves first, each level in the order of the messages."""
        return summaries.read_all(self._database, self._scope.space, self._chat)

    def search(
        self,
        query: str,
        scope: SearchScope,
        limit: int,
        *,
        regex: bool = False,
        since: Time | None = None,
        before: Time | None = None,
        sort: Sort | None = None,
        secrets: Secrets = "mask",
    ) -> list[Hit]:
        """Find messages and summaries of this chat, each with a snippet of the match; see `Chat.search`."""
        if scope not in tuple(_SCOPES):
            raise InvalidInput(f"{shown(scope)} is no scope.", f"Use one of {', '.join(_SCOPES)}.")
        if not isinstance(query, str):
            raise InvalidInput(f"A query must be text, not {type(query).__name__}.", "Pass a string.")
        orders = SORTS[1:] if check_flag(regex, "regex") else SORTS
        if sort not in (None, *orders):
            raise InvalidInput(f"`sort` is {shown(sort)}.", f"Use one of {', '.join(orders)}.")
        check_count(limit, "limit")
        shown_as = masked_hit if is_masked(secrets) else lambda hit: hit
        span = _Span(as_time(since, "since"), as_time(before, "before"))
        if regex:
            return self._matching(query, scope, limit, span, shown_as, oldest=sort == "oldest")
        hits = self._recalled(query, scope, limit, span, shown_as)
        return hits if sort in (None, "relevance") else sorted(hits, key=_position, reverse=sort == "newest")

    def _recalled(
        self, query: str, scope: SearchScope, limit: int, span: _Span, shown_as: Callable[[Hit], Hit]
    ) -> list[Hit]:
        """Find the words of a query, best first."""
        # numpy is loaded by the first search.
        from holdfast.search import filters
        from holdfast.search.query import is_searchable, parse
        from holdfast.text.snippet import snippet

        if not is_searchable(query):
            return []
        wanted = filters.check(
            sources=_SCOPES[scope],
            chat=self._chat,
            since=span.since,
            until=span.before,
            valid_at=self._clock(),
            limit=5 * limit,
        )
        # The chat is named, whoever opened it.
        near = self._search().recall(replace(self._scope, agent=""), parse(query), wanted)
        # Not those that only stand beside a match.
        hits = [hit for hit in map(shown_as, near) if hit.why.words][:limit]
        return [replace(hit, text=snippet(hit.text, hit.why.words, SNIPPET)) for hit in hits]

    def _matching(
        self,
        query: str,
        scope: SearchScope,
        limit: int,
        span: _Span,
        shown_as: Callable[[Hit], Hit],
        *,
        oldest: bool,
    ) -> list[Hit]:
        """Find what a regular expression stands in, reading the chat until there is enough."""
        # numpy is loaded by the first search.
        from holdfast.search.message_source import message_hit
        from holdfast.search.summary_source import summary_hit
        from holdfast.text.pattern import Pattern
        from holdfast.text.snippet import around

        pattern, why = Pattern(query), Why({"pattern": 1.0})
        database, space = self._database, self._scope.space

        def matches(hits: Iterable[Hit]) -> Iterator[Hit]:
            for hit in map(shown_as, filter(span.has, hits)):
                if (end := pattern.find(hit.text)) is not None:
                    yield replace(hit, text=around(hit.text, end - SNIPPET // 2, SNIPPET))

        with database.one_read():
            found: list[Hit] = []
            if scope != "messages":
                found += matches(summary_hit(1.0, why, one) for one in self.tree())
            if scope != "summaries":
                forward = log.forward(database, space, self._chat, 0, MAX_COUNT)
                said = forward if oldest else log.backward(database, space, self._chat, verdicts=True)
                found += islice(matches(message_hit(1.0, why, self._chat, one) for one in said), limit)
        return sorted(found, key=_position, reverse=not oldest)[:limit]

    def review(
        self,
        since: Time | None,
        *,
        after: int | None,
        limit: int,
        budget: int | None,
        count_tokens: CountTokens,
    ) -> str:
        """Write the chat as text for a reviewer; see `Chat.review`."""
        from holdfast.prompt.transcript import Extent, review

        extent = Extent(
            as_time(since, "since"),
            0 if after is None else check_count(after, "after"),
            check_count(limit, "limit"),
            None if budget is None else check_count(budget, "budget"),
        )
        with self._database.one_read():
            frontier = summaries.frontier(self._database, self._scope.space, self._chat)
            newest_first = log.backward(self._database, self._scope.space, self._chat)
            return review(frontier, newest_first, extent, count_tokens).text


class _Span(NamedTuple):
    """The times between which something was said."""

    since: datetime | None
    before: datetime | None

    def has(self, hit: Hit) -> bool:
        """Return whether a hit was said then, and has words."""
        too_early = self.since and hit.at < self.since
        return bool(hit.text) and not too_early and not (self.before and hit.at >= self.before)


def _position(hit: Hit) -> int:
    return max(hit.seq, hit.last_seq)


def _last_seen(cursor: str | None, summary: Summary) -> int:
    """Return the `seq` of the last message that the expansion before a cursor gave."""
    if cursor is None:
        return summary.first - 1
    check_name(cursor, "The cursor")
    if (
        cursor.isascii()
        and cursor.isdigit()
        and len(cursor) < 20
        and summary.first <= int(cursor) <= summary.last
    ):
        return int(cursor)
    raise InvalidInput(
        f"{mask_name(cursor)[:40]!r} is no cursor of summary {summary.id}.",
        "Pass the cursor of its last expansion.",
    )


def _within(items: Iterable[Item], cap: int) -> tuple[Item, ...]:
    """Take items while they fit together, and the first in any case."""
    taken: list[Item] = []
    tokens = 0
    for item in items:
        tokens += item.tokens
        if taken and tokens > cap:
            break
        taken.append(item)
    return tuple(taken)


def _expansion(
    summary: Summary, messages: tuple[Message, ...], children: tuple[Summary, ...], last: int
) -> Expansion:
    more = last < summary.last
    return Expansion(summary, messages, children, more, str(last) if more else None)
