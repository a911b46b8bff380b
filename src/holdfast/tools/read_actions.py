"""The reading actions of an agent: recall, expand, and past sessions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from holdfast.errors import InvalidInput
from holdfast.safety.guard import mask
from holdfast.tools import render
from holdfast.tools.action_base import (
    NO_SESSION,
    REFUSALS,
    ActionBase,
    Cursor,
    Id,
    Limit,
    Query,
    call,
    check_limit,
    unknown_id,
)
from holdfast.tools.json_schema import quoted_argument
from holdfast.tools.memory_internals import InView, further_memories, is_covered, own_space
from holdfast.tools.paging import Page, PageStart
from holdfast.tools.results import ExpandPage, MemoryItem, RecallPage, SessionItem, SessionPage
from holdfast.types import ChatInfo, Hit, Message
from holdfast.types.references import IN_SPACE, Reference, read_reference
from holdfast.types.where import check_where, conditions

READ = 100  # messages that are read for one page
_FOR_ONE = 4  # hits that are read at first for each one to return
_MOST_HITS = 10_000  # hits that are read at most for a page of sessions
# Conditions of a filter that a model sends: each is tried on all metadata.
_MOST_CONDITIONS = 50
_CONVERSATION = ("message", "summary")
_Items = tuple[Sequence[MemoryItem], str | None]  # items, and the cursor of the next page


class ReadActions(ActionBase):
    """The reading part of `Actions`."""

    def recall(
        self,
        query: Query,
        limit: Limit = 10,
        kind: Annotated[str | None, "message, summary, or a kind of record"] = None,
        since: Annotated[str | None, "ISO date"] = None,
        until: Annotated[str | None, "ISO date, exclusive"] = None,
        where: Annotated[str | None, 'JSON filter on metadata: {"stars": {"$gte": 4}}'] = None,
        cursor: Cursor = None,
    ) -> RecallPage:
        """Return the hits of a query, best first, without what the session of the agent shows anyway.

        Raises:
            InvalidInput: the query is blank, or a filter or the cursor is invalid.

        """
        self._begin("recall", kind=kind, since=since, until=until, where=where)
        page = self._page(cursor, "recall", query, kind, since, until, *([where] if where else []))
        filters = {
            "sources": (kind,) if kind in _CONVERSATION else None,
            "kinds": (kind,) if kind and kind not in _CONVERSATION else None,
            "since": _time(since, "since"),
            "until": _time(until, "until"),
            "where": _filter(where),
        }
        view = self._in_view()
        most = page.start.item + check_limit(limit) + 1
        found = call(self._provider.recall, query, limit=most + len(view.seen), **filters)
        hits = [hit for hit in render.masked_hits(self._provider, found) if not view.has(hit)][:most]
        items, on = page.excerpts(hits, render.of_hit, limit)
        self._note(render.references(items))
        beside = " beside what this conversation shows" if found else ""
        notes = ("" if items else f"No matches found{beside}.", getattr(found, "degraded", None) or "")
        return RecallPage(hits=items, cursor=on, note=" ".join(filter(None, notes)))

    def expand(self, id: Id, cursor: Cursor = None) -> ExpandPage:
        """Return a record, a message and those after it, or the sources of a summary.

        Raises:
            InvalidInput: there is nothing with this id, or the cursor is of another.

        """
        self._begin("expand")
        page = self._page(cursor, "expand", id)
        others, (space, _, reference) = further_memories(self._provider), id.partition(IN_SPACE)
        own = own_space(self._provider)
        if space in others:
            found = self._expanded(others[space], others[space].chat(NO_SESSION), reference, page)
        else:
            # Named by its space as well, unless its own id has such a beginning.
            found = self._expanded(self._provider, self._chat, reference if space == own else id, page)
            space = own or ""
            for name, other in others.items() if found is None else ():
                if found := self._expanded(other, other.chat(NO_SESSION), id, page):
                    space = name
                    break
        if found is None:
            raise unknown_id(id)
        items, on = [render.in_space(item, space) for item in found[0]], found[1]
        self._note(render.references(items))
        return ExpandPage(items=tuple(items), cursor=on)

    def _expanded(self, provider: Any, chat: Any, id: str, page: Page) -> _Items | None:
        record = self._find(id, provider)
        if record is not None:
            return page.take([render.of_record(record)])
        can = self._permissions.can
        if (reference := read_reference(id)) and reference.chat and "sessions" in can:
            return self._messages_from(provider, reference, page)
        return self._sources(provider, chat, id, page) if "explore" in can else None

    def _messages_from(self, provider: Any, reference: Reference, page: Page) -> _Items | None:
        """Return a range of messages of any chat, or one and those after it."""
        chat, first, last = reference
        begin = page.start.number or first
        most = min(READ, last - begin + 1) if last > first else READ
        try:
            opened = provider.chat(chat)
            read = opened.history(most, after=begin - 1) if self._may_open(provider, chat) else []
        except REFUSALS:
            # The id of the chat is malformed.
            return None
        if last > first:
            # Where some were erased, the page has later ones.
            read = [message for message in read if message.seq <= last]
        if not read or (not page.start.anchor and read[0].seq != begin):
            return None
        return _fitting(read, chat, page, more=len(read) == READ and read[-1].seq != last)

    def _sources(self, provider: Any, chat: Any, id: str, page: Page) -> _Items | None:
        """Return the sources of a summary; our cursor contains that of the provider."""
        try:
            opened = chat.expand(id, self._cap, cursor=page.start.anchor or None)
        except REFUSALS:
            # There is no such summary.
            return None
        name = opened.summary.chat
        if not self._may_open(provider, name):
            return None
        items = [render.of_message(one, name) for one in opened.messages]
        items += [render.of_summary(one) for one in opened.children]
        fitting, on = page.take(items)
        if on is None and opened.cursor:
            on = page.cursor(PageStart(opened.cursor))
        return fitting, on

    def _may_open(self, provider: Any, chat: str) -> bool:
        return chat == self._session or is_covered(provider, chat)

    def search_sessions(
        self,
        query: Query | None = None,
        session: Annotated[str | None, "only this one; without a query, its messages"] = None,
        limit: Limit = 10,
        cursor: Cursor = None,
    ) -> SessionPage:
        """Return sessions, newest first, or with a query those with a hit; or the messages of one session.

        Raises:
            InvalidInput: there is no such session, the query is blank, or the cursor is of another call.

        """
        self._begin("search_sessions", query=query)
        page = self._page(cursor, "search_sessions", query, session)
        most = page.start.item + check_limit(limit) + 1
        sessions: tuple[SessionItem, ...] = ()
        messages: Sequence[MemoryItem] = ()
        if session is not None:
            messages, on = self._in_session(session, query, most, limit, page)
        elif query is None:
            sessions, on = page.excerpts(self._provider.chats(limit=most), _of_chat, limit)
        else:
            view = self._in_view()
            best = self._conversation_hits(query, most, partial(_first_of_each, view))
            sessions, on = page.excerpts(best, _of_session_hit, limit)
        self._note([*render.references(messages), *(one.expand for one in sessions if one.expand)])
        note = "" if sessions or messages else "No matches found."
        return SessionPage(sessions=sessions, messages=tuple(messages), cursor=on, note=note)

    def _own(self, id: str) -> str:
        """Return an id without the name of the own space, to which alone is written.

        Raises:
            InvalidInput: it is of another space.

        """
        space, _, reference = id.partition(IN_SPACE)
        if space in further_memories(self._provider):
            what = f"{quoted_argument(id)} belongs to another space, which these tools only read."
            raise InvalidInput(what, "Tell the user what should be changed there.")
        return reference if space == own_space(self._provider) else id

    def _conversation_hits(
        self, query: str, limit: int, pick: Callable[[Sequence[Hit]], list[Hit]], chat: str | None = None
    ) -> list[Hit]:
        """Recall messages and summaries until `pick` returns enough hits, or there are no more."""
        most = _FOR_ONE * limit
        while True:
            hits = call(self._provider.recall, query, limit=most, sources=_CONVERSATION, chat=chat)
            picked = pick([hit for hit in hits if hit.source != "record"])
            if len(picked) >= limit or len(hits) < most or most >= _MOST_HITS:
                return render.masked_hits(self._provider, picked[:limit])
            most *= _FOR_ONE

    def _in_session(self, session: str, query: str | None, most: int, limit: int, page: Page) -> _Items:
        """Return the hits of a query in a session, or its newest messages."""
        chat = self._provider.chat(session)
        if not self._may_open(self._provider, session):
            raise _no_session(session)
        if query is None:
            return self._newest(chat, limit, page)

        # Who names a session wants it searched, but not for the question that is just asked.
        asked = self._in_view()._replace(seen=frozenset())

        def of_session(hits: Sequence[Hit]) -> list[Hit]:
            return [hit for hit in hits if hit.chat == session and not asked.has(hit)]

        hits = self._conversation_hits(query, most, of_session, session)
        return page.excerpts(hits, render.of_hit, limit)

    def _newest(self, chat: Any, limit: int, page: Page) -> _Items:
        """Return the newest messages of a chat, oldest first; the cursor leads to earlier ones."""
        read = chat.history(limit, before=page.start.number)
        if not read and not page.start.anchor:
            raise _no_session(chat.id)
        read.reverse()
        more = bool(read) and read[-1].seq > 1
        fitting, on = _fitting(read, chat.id, page, more=more, backwards=True)
        return fitting[::-1], on


def _fitting(
    read: Sequence[Message], chat: str, page: Page, *, more: bool, backwards: bool = False
) -> _Items:
    """Return the messages that fit, and the cursor if there are others.

    Its anchor is the `seq` to read from, and backwards the one to read before.
    """
    # Only those that fit are rendered.
    fitting, end = page.fill(render.of_message(message, chat) for message in read)
    if end.item == len(read) and not more:
        return fitting, None
    seq = read[end.item].seq if end.item < len(read) else read[-1].seq + (-1 if backwards else 1)
    return fitting, page.cursor(PageStart(str(seq + backwards), 0, end.character))


def _of_chat(chat: ChatInfo) -> SessionItem:
    newest = render.moment(chat.newest)
    return SessionItem(id=chat.id, text=mask(chat.title), messages=chat.messages, newest=newest)


def _of_session_hit(hit: Hit) -> SessionItem:
    item = render.of_hit(hit)
    return SessionItem(id=hit.chat, text=item.text, newest=item.at, expand=item.id)


def _first_of_each(view: InView, hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hit of each session that is not in view."""
    best: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        if view.has(hit):
            continue
        best.setdefault((hit.space, hit.chat), hit)
    return list(best.values())


def _no_session(session: str) -> InvalidInput:
    what = f"There is no session {quoted_argument(session)}."
    return InvalidInput(what, "Take an id that `search_sessions` lists.")


def _filter(text: str | None) -> object:
    """Return a filter on metadata, which is text: strict schemas allow no object of any keys."""
    try:
        where = json.loads(text) if text and text.strip() else None
    except (ValueError, RecursionError) as error:
        what = "`where` is no JSON."
        raise InvalidInput(what, 'Write it as {"lang": "de", "stars": {"$gte": 4}}.') from error
    tree = check_where(where)
    if tree is not None and len(conditions(tree)) > _MOST_CONDITIONS:
        what = f"`where` has more than {_MOST_CONDITIONS} conditions."
        raise InvalidInput(what, "Filter by less; several values of one key are one condition, with $in.")
    return where


def _time(text: str | None, what: str) -> datetime | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidInput(f"`{what}` is no date.", "Write it as 2026-01-31 or 2026-01-31T09:00.") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)
