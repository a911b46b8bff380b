"""What an agent can look up: recall, what is behind an id, past sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from holdfast.errors import InvalidInput
from holdfast.safety.guard import mask
from holdfast.text.references import Reference, read_reference
from holdfast.tools import paging, render
from holdfast.tools.action_base import (
    NO_SESSION,
    REFUSALS,
    Bound,
    Cursor,
    Id,
    Limit,
    Query,
    call,
    counted,
    nothing,
    short,
)
from holdfast.tools.paging import Place
from holdfast.tools.results import Expanded, Item, Recalled, SessionFound, SessionsFound

if TYPE_CHECKING:
    from holdfast.types import Hit

READ = 100  # messages that are looked at for one page
_FOR_ONE = 4  # of so many hits, one is the first of its session, or of the session that is meant
_MOST_HITS = 10_000  # that are looked at for a page of sessions
_SAID = ("message", "summary")
Behind = tuple[list[Item], str | None]  # what is behind an id, and the cursor that goes on


class Finding(Bound):
    """Look things up for an agent. A part of `Actions`."""

    def recall(
        self,
        query: Query,
        limit: Limit = 10,
        kind: Annotated[str | None, "message, summary, or a kind of record"] = None,
        since: Annotated[str | None, "ISO date"] = None,
        until: Annotated[str | None, "ISO date, exclusive"] = None,
        cursor: Cursor = None,
    ) -> Recalled:
        """Find what answers a question, the best first.

        Raises:
            InvalidInput: the query is blank, a filter or the cursor cannot be used.

        """
        self._begin("recall", kind=kind, since=since, until=until)
        of, place = self._place(cursor, "recall", query, kind, since, until)
        filters = {
            "sources": (kind,) if kind in ("message", "summary") else None,
            "kinds": (kind,) if kind and kind not in ("message", "summary") else None,
            "since": _time(since, "since"),
            "until": _time(until, "until"),
        }
        wanted = place.item + counted(limit)
        hits = render.recalled(
            self._provider, call(self._provider.recall, query, limit=wanted + 1, **filters)
        )
        items = [render.of_hit(hit) for hit in hits[place.item : wanted]]
        fitting, on = self._page(items, place, of, more=len(hits) > wanted, resume=False)
        self._note(render.names(fitting))
        return Recalled(hits=tuple(fitting), cursor=on, note="" if fitting else "No matches found.")

    def expand(self, id: Id, cursor: Cursor = None) -> Expanded:
        """Read what is behind an id: the whole of a record, a message and those after it, the sources of a summary.

        Raises:
            InvalidInput: there is nothing with this id, or the cursor is not of it.

        """
        self._begin("expand")
        of, place = self._place(cursor, "expand", id)
        behind = self._behind(self._provider, self._chat, id, place, of)
        if behind is None and (shared := render.shared_by(self._provider)):
            behind = self._behind(shared, shared.chat(NO_SESSION), id, place, of)
        if behind is None:
            raise nothing(id)
        items, on = behind
        self._note(render.names(items))
        return Expanded(items=tuple(items), cursor=on)

    def _behind(self, provider: Any, chat: Any, id: str, place: Place, of: str) -> Behind | None:
        record = self._found(id, provider)
        if record is not None:
            return self._page([render.of_record(record)], place, of)
        if (said := read_reference(id)) and said.chat and "sessions" in self._setting.can:
            return self._messages_from(provider, said, place, of)
        return self._sources(provider, chat, id, place, of) if "explore" in self._setting.can else None

    def _messages_from(self, provider: Any, said: Reference, place: Place, of: str) -> Behind | None:
        """Read several messages of any chat, or one and those after it."""
        chat, first, last = said
        begin = paging.number(place.start) if place.start else first
        most = min(READ, last - begin + 1) if last > first else READ
        try:
            opened = provider.chat(chat)
            read = opened.history(most, after=begin - 1) if self._may_open(provider, chat) else []
        except REFUSALS:  # what no chat can be called
            return None
        if last > first:
            read = [message for message in read if message.seq <= last]  # some may have been erased
        if not read or (not place.start and read[0].seq != begin):
            return None
        items = (render.of_message(message, chat) for message in read)  # only those that fit are looked at
        fitting, page = self._pager.fill(items, skip=place.character)
        if page.items < len(read):
            return fitting, paging.write(Place(str(read[page.items].seq), 0, page.characters), of)
        more = len(read) == READ and read[-1].seq != last
        return fitting, paging.write(Place(str(read[-1].seq + 1)), of) if more else None

    def _sources(self, provider: Any, session: Any, id: str, place: Place, of: str) -> Behind | None:
        """Open a summary; the cursor of the provider is where our own begins."""
        try:
            opened = session.expand(id, self._cap, cursor=place.start or None)
        except REFUSALS:  # there is no such summary
            return None
        chat = opened.summary.chat
        if not self._may_open(provider, chat):
            return None
        items = [render.of_message(one, chat) for one in opened.messages]
        items += [render.of_summary(one) for one in opened.children]
        rest = items[place.item :]
        fitting, page = self._pager.fill(rest, skip=place.character)
        if page.items < len(rest):
            return fitting, paging.write(Place(place.start, place.item + page.items, page.characters), of)
        return fitting, paging.write(Place(opened.cursor), of) if opened.cursor else None

    def _may_open(self, provider: Any, chat: str) -> bool:
        return chat == self._session or render.is_covered(provider, chat)

    def search_sessions(
        self,
        query: Query | None = None,
        session: Annotated[str | None, "only this one; without a query, its messages"] = None,
        limit: Limit = 10,
        cursor: Cursor = None,
    ) -> SessionsFound:
        """List sessions, the newest first; with a query, those in which something answers it; or read one of them.

        Raises:
            InvalidInput: there is no such session, the query is blank, or the cursor is of another call.

        """
        self._begin("search_sessions", query=query)
        of, place = self._place(cursor, "search_sessions", query, session)
        if session is not None:
            return self._in_session(session, query, counted(limit), place, of)
        last = place.item + counted(limit)
        found = self._listed(last + 1) if query is None else self._about(query, last + 1)
        fitting, on = self._page(found[place.item : last], place, of, more=len(found) > last, resume=False)
        self._note([one.expand for one in fitting if one.expand])
        return SessionsFound(sessions=tuple(fitting), cursor=on, note="" if fitting else "No matches found.")

    def _listed(self, limit: int) -> list[SessionFound]:
        return [
            SessionFound(
                id=info.id, text=mask(info.title), messages=info.messages, newest=render.moment(info.newest)
            )
            for info in self._provider.chats(limit=limit)
        ]

    def _about(self, query: str, limit: int) -> list[SessionFound]:
        """Find sessions in which something answers a question: each once, by its best hit."""
        best = self._said(query, limit, _first_of_each)
        return [
            SessionFound(id=hit.chat, text=item.text, newest=item.at, expand=item.id)
            for hit, item in zip(best, map(render.of_hit, best), strict=True)
        ]

    def _said(
        self, query: str, limit: int, pick: Callable[[Sequence[Hit]], list[Hit]], chat: str | None = None
    ) -> list[Hit]:
        """Recall what was said until so many hits are picked, or there are no more."""
        asked = _FOR_ONE * limit
        while True:
            hits = call(self._provider.recall, query, limit=asked, sources=_SAID, chat=chat)
            picked = pick([hit for hit in hits if hit.source != "record"])
            if len(picked) >= limit or len(hits) < asked or asked >= _MOST_HITS:
                return render.recalled(self._provider, picked[:limit])
            asked *= _FOR_ONE

    def _in_session(
        self, session: str, query: str | None, limit: int, place: Place, of: str
    ) -> SessionsFound:
        chat = self._provider.chat(session)
        if not self._may_open(self._provider, session):
            raise _no_session(session)
        if query is None:
            fitting, on = self._newest(chat, limit, place, of)
        else:
            last = place.item + limit
            mine = self._said(
                query, last + 1, lambda hits: [hit for hit in hits if hit.chat == session], session
            )
            items = [render.of_hit(hit) for hit in mine[place.item : last]]
            fitting, on = self._page(items, place, of, more=len(mine) > last, resume=False)
        self._note(render.names(fitting))
        return SessionsFound(messages=tuple(fitting), cursor=on, note="" if fitting else "No matches found.")

    def _newest(self, chat: Any, limit: int, place: Place, of: str) -> tuple[list[Item], str | None]:
        """Read the newest messages of a chat, oldest first; the cursor leads to those before."""
        read = chat.history(limit, before=paging.number(place.start) if place.start else None)
        if not read and not place.start:
            raise _no_session(chat.id)
        read.reverse()
        fitting, page = self._pager.fill(
            (render.of_message(message, chat.id) for message in read), skip=place.character
        )
        fitting.reverse()
        if page.items < len(read):
            return fitting, paging.write(Place(str(read[page.items].seq + 1), 0, page.characters), of)
        more = bool(read) and read[-1].seq > 1
        return fitting, paging.write(Place(str(read[-1].seq)), of) if more else None


def _first_of_each(hits: Sequence[Hit]) -> list[Hit]:
    """Give of each session the best hit."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.chat, hit)
    return list(best.values())


def _no_session(session: str) -> InvalidInput:
    return InvalidInput(f"There is no session {short(session)}.", "Take an id that `search_sessions` lists.")


def _time(text: str | None, what: str) -> datetime | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidInput(f"`{what}` is no date.", "Write it as 2026-01-31 or 2026-01-31T09:00.") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)
