"""The way from the summaries of one chat back to its words: describe, expand, search, review."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, get_args

from holdfast.errors import InvalidInput, shown
from holdfast.safety.guard import Secrets, is_masked, mask_name, masked_hit
from holdfast.search.display import Display
from holdfast.store import branches, log, summaries
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
from holdfast.types.messages import changed

if TYPE_CHECKING:
    from holdfast.search.search import Search
    from holdfast.store.database import Database
    from holdfast.text.tokens import CountTokens

Item = TypeVar("Item", Message, Summary)
# How a hit is displayed.
SearchScope = Literal["messages", "summaries", "both"]
_SCOPES: dict[str, tuple[Literal["message", "summary"], ...]] = {
    "messages": ("message",),
    "summaries": ("summary",),
    "both": ("message", "summary"),
}
# Characters of the snippet of a hit.
SNIPPET = 500
Sort = Literal["relevance", "newest", "oldest"]
SORTS: tuple[Sort, ...] = get_args(Sort)


@dataclass(frozen=True, slots=True)
class SummaryExplorer:
    """Read one chat by its summaries, and find the words behind them."""

    database: Database
    scope: Scope
    chat: str
    clock: Callable[[], datetime]
    searcher: Callable[[], Search]

    def describe(self, id: str) -> Description:
        """Describe a summary, and its place in the tree; see `Chat.describe`."""
        with self.database.one_read():
            space, summary = self._find(id)
            parts = self._parts(space, summary) if summary.depth else []
            above = summaries.ancestors(self.database, space, summary)
        return Description(summary, tuple(above), tuple(part.id for part in parts))

    def expand(self, id: str, max_tokens: int, *, cursor: str | None) -> Expansion:
        """Read what stands behind a summary; see `Chat.expand`."""
        cap = check_count(max_tokens, "max_tokens")
        messages: tuple[Message, ...] = ()
        children: tuple[Summary, ...] = ()
        with self.database.one_read():
            space, summary = self._find(id)
            after, last = _last_seen(cursor, summary), summary.last
            parts = self._parts(space, summary) if summary.depth else []
            if not parts:
                messages = _within(self._messages(space, summary, after), cap)
                last = messages[-1].seq if messages else last
            elif children := _within([part for part in parts if part.first > after], cap):
                last = children[-1].last
        more = last < summary.last
        return Expansion(summary, messages, children, more, str(last) if more else None)

    def _messages(self, space: str, summary: Summary, after: int) -> Iterator[Message]:
        """Iterate over the messages of a summary after one, also if they are on another branch."""
        path = branches.tree(self.database, space, summary.chat).path(summary.last)
        return log.forward(self.database, space, summary.chat, after, summary.last, path)

    def _parts(self, space: str, summary: Summary) -> list[Summary]:
        return summaries.children(self.database, space, summary.chat, summary.id)

    def _find(self, identity: str) -> tuple[str, Summary]:
        """Return the summary with an id, and the space that it is in."""
        check_name(identity, "The id of a summary")
        match = summaries.find(self.database, self.scope, self.chat, identity)
        if match is None:
            raise InvalidInput(
                f"There is no summary {identity!r} here.",
                "Use the id of one in `window().summaries`, or of a hit whose source is 'summary'.",
            )
        return match

    def tree(self) -> list[Summary]:
        """List all summaries of the chat, leaves first, each level in the order of the messages."""
        return summaries.read_all(self.database, self.scope.space, self.chat)

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
        masked = is_masked(secrets)
        span = _Span(as_time(since, "since"), as_time(before, "before"))
        if regex:
            return self._search_pattern(query, scope, limit, span, masked=masked, oldest=sort == "oldest")
        hits = self._search_words(query, scope, limit, span, masked=masked)
        return hits if sort in (None, "relevance") else sorted(hits, key=_position, reverse=sort == "newest")

    def _search_words(
        self, query: str, scope: SearchScope, limit: int, span: _Span, *, masked: bool
    ) -> list[Hit]:
        """Return the hits that have words of a query, best first."""
        # numpy is loaded by the first search.
        from holdfast.search import filters
        from holdfast.search.query import is_searchable, parse
        from holdfast.text.snippet import snippet

        if not is_searchable(query):
            return []
        conditions = filters.check(
            sources=_SCOPES[scope],
            chat=self.chat,
            since=span.since,
            until=span.before,
            valid_at=self.clock(),
            limit=5 * limit,
        )
        # The chat is named, whoever opened it.
        near = self.searcher().recall(replace(self.scope, agent=""), parse(query), conditions)
        # Not those that only stand beside a match.
        hits = [hit for hit in near if hit.why.words][:limit]
        if masked:
            display = Display(self.database, self.scope)
            hits = display.mask(hits)
            display.keep()
        return [changed(hit, text=snippet(hit.text, hit.why.words, SNIPPET)) for hit in hits]

    def _search_pattern(
        self, query: str, scope: SearchScope, limit: int, span: _Span, *, masked: bool, oldest: bool
    ) -> list[Hit]:
        """Return the hits that match a regular expression, reading the chat until there are enough."""
        # numpy is loaded by the first search.
        from holdfast.search.message_source import message_hit
        from holdfast.search.summary_source import summary_hit
        from holdfast.text.pattern import Pattern
        from holdfast.text.snippet import around

        pattern, why = Pattern(query), Why({"pattern": 1.0})
        database, space, chat = self.database, self.scope.space, self.chat

        def matches(candidates: Iterable[Hit]) -> Iterator[Hit]:
            some = filter(span.has, candidates)
            for hit in map(masked_hit, some) if masked else some:
                if (end := pattern.find(hit.text)) is not None:
                    yield changed(hit, text=around(hit.text, end - SNIPPET // 2, SNIPPET))

        with database.one_read():
            hits: list[Hit] = []
            if scope != "messages":
                hits += matches(summary_hit(summary, 1.0, why) for summary in self.tree())
            if scope != "summaries":
                forward = log.forward(database, space, chat, 0, MAX_COUNT)
                messages = forward if oldest else log.backward(database, space, chat, verdicts=True)
                hits += islice(matches(message_hit(1.0, why, chat, message) for message in messages), limit)
        return sorted(hits, key=_position, reverse=not oldest)[:limit]

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
        place = self.database, self.scope.space, self.chat
        with self.database.one_read():
            return review(summaries.frontier(*place), log.backward(*place), extent, count_tokens)


class _Span(NamedTuple):
    """A span of time, open at either end."""

    since: datetime | None
    before: datetime | None

    def has(self, hit: Hit) -> bool:
        """Return whether a hit was said then, and has words."""
        too_early = self.since and hit.at < self.since
        return bool(hit.text) and not too_early and not (self.before and hit.at >= self.before)


def _position(hit: Hit) -> int:
    return max(hit.seq, hit.last_seq)


def _last_seen(cursor: str | None, summary: Summary) -> int:
    """Return the `seq` of the last message of the expansion before a cursor."""
    if cursor is None:
        return summary.first - 1
    check_name(cursor, "The cursor")
    is_number = cursor.isascii() and cursor.isdigit() and len(cursor) < 20
    if is_number and summary.first <= int(cursor) <= summary.last:
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
