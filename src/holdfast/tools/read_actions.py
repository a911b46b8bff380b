"""The reading actions of an agent (recall, expand, past sessions), and what all actions share."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Annotated, Any

from holdfast.contract import Provider, Session, capabilities, check_provider
from holdfast.errors import Denied, InvalidInput, shown
from holdfast.safety.guard import mask
from holdfast.text.tokens import estimate_tokens
from holdfast.tools import memory_internals as memories
from holdfast.tools import render
from holdfast.tools.json_schema import Range, quoted_argument
from holdfast.tools.memory_internals import internals_of
from holdfast.tools.paging import LEAST, Page, PageStart
from holdfast.tools.permissions import Action, Permissions, available, call, locked_parts, part_of, takes
from holdfast.tools.results import ExpandPage, MemoryItem, RecallPage, SessionItem, SessionPage
from holdfast.types import ChatInfo, Hit, Message, Record, Writer, check_count
from holdfast.types.references import IN_SPACE, Reference, read_reference
from holdfast.types.where import check_where, conditions

READ = 100  # messages that are read for one page
_FOR_ONE = 4  # hits that are read at first for each one to return
_MOST_HITS = 10_000  # hits that are read at most for a page of sessions
# Conditions of a filter that a model sends: each is tried on all metadata.
_MOST_CONDITIONS = 50
_CONVERSATION = ("message", "summary")
_Items = tuple[Sequence[MemoryItem], str | None]  # items, and the cursor of the next page
KINDS = ("fact", "finding", "insight", "lesson")
_APART = ("constraint", "note", "file", "feedback")  # kinds with tools of their own, or none
MOST = 50  # items of a result
NO_SESSION = "tools"  # the id of the chat that is opened if none is given; nothing is stored in it
REFUSALS = (LookupError, ValueError, PermissionError)
"""The errors with which a provider refuses a call; ours are among them."""

_INNER = str.maketrans("“”", '""')
Confirm = Callable[[str], bool]
_LIMIT = Range(1, MOST)
Limit = Annotated[int, _LIMIT]
Query = Annotated[str, "2-4 distinctive words or a question"]
Id = Annotated[str, "from a result"]
Cursor = Annotated[str | None, "of the last result, to go on"]


def check_confirm(confirm: Confirm | None) -> Confirm:
    """Return the function that asks the user; None confirms nothing.

    Raises:
        InvalidInput: it is not a function, or has to be awaited.

    """
    todo = "Pass a plain function that returns True or False."
    if confirm is not None and not callable(confirm):
        raise InvalidInput(f"`confirm` is {shown(confirm)}.", todo)
    if inspect.iscoroutinefunction(confirm):
        raise InvalidInput("`confirm` has to be awaited.", todo)
    return confirm or (lambda _: False)


def ask(confirm: Confirm, question: str) -> None:
    """Ask the user about a change of a constraint.

    Raises:
        Denied: the answer is anything else than True.

    """
    if confirm(question) is not True:
        raise Denied(
            "A constraint changes only when the user confirms it, and they were not asked or did not agree.",
            "Ask the user; the application passes on what they say.",
        )


def quoted(text: str) -> str:
    """Return a text in quotes for the user to confirm, with invisible characters and quotes escaped."""
    seen = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return f"“{seen.translate(_INNER)}”"


def kinds_of(provider: Provider) -> tuple[str, ...]:
    """Return the kinds of records that `remember` stores in a memory."""
    internals = memories.internals_of(provider)
    if internals is None:
        return KINDS
    listed = [kind for kind in internals.kinds.values() if not kind.one_per and "agent" in kind.writers]
    return tuple(kind.name for kind in listed if kind.name not in _APART)


class ReadActions:
    """A memory, a session and permissions, and the actions that read: a part of `Actions`."""

    def __init__(
        self,
        provider: Provider,
        chat: Session | str | None = None,
        *,
        confirm: Confirm | None = None,
        read_only: bool | str | Iterable[str] = False,
        max_tokens: int = 2_000,
    ) -> None:
        check_provider(provider)
        if check_count(max_tokens, "max_tokens") < LEAST:
            raise InvalidInput(f"A result of {max_tokens} tokens is too small.", f"Allow {LEAST} at least.")
        # A provider does not declare what it can do beyond the core, so its type does not say it.
        self._provider: Any = provider
        opened = NO_SESSION if chat is None else chat
        self._chat: Any = provider.chat(opened) if isinstance(opened, str) else opened
        if not isinstance(getattr(self._chat, "id", None), str):
            raise InvalidInput(f"`chat` is {shown(chat)}.", "Pass a chat, or the id of one.")
        self._session = "" if chat is None else self._chat.id
        self._confirm = check_confirm(confirm)
        self._kinds = kinds_of(provider)
        internals = memories.internals_of(provider)
        self._count = internals.count_tokens if internals else estimate_tokens
        self._cap = max_tokens
        can, locked = capabilities(provider), locked_parts(read_only)
        self._permissions = Permissions(provider, can, locked, self._session, self._kinds)
        self._available = available(self._permissions, type(self))

    def available(self) -> tuple[Action, ...]:
        """Return the actions that are permitted, with those of their parameters that are."""
        return self._available

    def _begin(self, action: str, **arguments: object) -> None:
        """Raise Denied where an action is not permitted, or an argument of it."""
        there = {act.name: {param.name for param in act.parameters} for act in self._available}
        why = "nothing may be written, or this memory cannot do it"
        if action not in there:
            raise Denied(f"`{action}` is not possible here: {why}.", f"There are {', '.join(there)}.")
        for name, value in arguments.items():
            if value is not None and name not in there[action]:
                raise Denied(f"`{action}` takes no `{name}` here: {why}.", "Leave it out.")

    def _writer(self, kind: str, question: str) -> Writer:
        """Return the writer of a record of a kind: for a constraint the user, who has to confirm it.

        Raises:
            Denied: they do not, or the part is read-only.

        """
        if not self._permissions.writes(part_of(kind)):
            raise Denied(f"The part {part_of(kind)!r} is read-only here.", "Leave it as it is.")
        if kind != "constraint":
            return "agent"
        ask(self._confirm, question)
        return "user"

    def _in_chat(self) -> str | None:
        return self._session or None

    def _in_view(self) -> memories.InView:
        """Return what the model sees of its session anyway, which no search has to find."""
        return memories.in_view(self._provider, self._chat) if self._session else memories.InView()

    def _note(self, references: Sequence[str]) -> None:
        """Store what the session was shown, so that it is not learned as new."""
        if self._session:
            memories.note_shown(self._provider, self._chat, references)

    def _find(self, id: str, provider: Any = None) -> Record | None:
        """Return a record by its id, if it is neither in quarantine nor retracted."""
        if "records" not in self._permissions.can:
            return None
        provider = provider or self._provider
        get = getattr(provider, "get", None)
        record: Record | None
        if get is not None and takes(get, "what"):
            try:
                record = get(id)
            except REFUSALS:
                # The id is malformed.
                return None
        else:
            record = next((record for record in provider.records() if record.id == id), None)
        if record is None and self._session and takes(provider.records, "chat"):
            # All agents of a session share its notes.
            notes = provider.records(kind="note", chat=self._session)
            record = next((note for note in notes if note.id == id), None)
        return None if record is None or record.trust == "quarantined" or record.retracted else record

    def _record(self, id: str) -> Record:
        record = self._find(id)
        if record is None:
            raise unknown_id(id)
        return record

    def _page(self, cursor: str | None, *call: object) -> Page:
        """Return the page of a call at a cursor."""
        scope = repr(getattr(self._provider, "scope", ""))
        call = (self._provider.name, scope, self._session, *call)
        return Page(self._cap, self._count, cursor, call, self._zone())

    def _zone(self) -> tzinfo:
        internals = internals_of(self._provider)
        return (internals.clock().tzinfo if internals else None) or UTC

    def recall(
        self,
        query: Query,
        limit: Limit = 10,
        kind: Annotated[str | None, "message, summary, or a kind of record"] = None,
        since: Annotated[str | None, "ISO date"] = None,
        until: Annotated[str | None, "ISO date, until its end"] = None,
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
            "since": _day_or_time(since, "since"),
            "until": _day_or_time(until, "until"),
            "where": _filter(where),
        }
        view = self._in_view()
        most = page.start.item + check_limit(limit) + 1
        all_hits = call(self._provider.recall, query, limit=most + len(view.seen), **filters)
        hits = [hit for hit in render.mask_hits(self._provider, all_hits) if not view.has(hit)][:most]
        items, on = page.excerpts(hits, render.of_hit, limit)
        self._note(render.references(items))
        beside = " beside what this conversation shows" if all_hits else ""
        notes = ("" if items else f"No matches found{beside}.", getattr(all_hits, "degraded", None) or "")
        return RecallPage(hits=items, cursor=on, note=" ".join(filter(None, notes)))

    def expand(self, id: Id, cursor: Cursor = None) -> ExpandPage:
        """Return a record, a message and those after it, or the sources of a summary.

        Raises:
            InvalidInput: there is nothing with this id, or the cursor is of another.

        """
        self._begin("expand")
        page = self._page(cursor, "expand", id)
        others, (space, _, reference) = memories.further_memories(self._provider), id.partition(IN_SPACE)
        own = memories.own_space(self._provider)
        if space in others:
            content = self._open(others[space], others[space].chat(NO_SESSION), reference, page)
        else:
            # Named by its space as well, unless its own id has such a beginning.
            content = self._open(self._provider, self._chat, reference if space == own else id, page)
            space = own or ""
            for name, other in others.items() if content is None else ():
                if content := self._open(other, other.chat(NO_SESSION), id, page):
                    space = name
                    break
        if content is None:
            raise unknown_id(id)
        items, on = [render.in_space(item, space) for item in content[0]], content[1]
        self._note(render.references(items))
        return ExpandPage(items=tuple(items), cursor=on)

    def _open(self, provider: Any, chat: Any, id: str, page: Page) -> _Items | None:
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
        return _fit_messages(read, chat, page, more=len(read) == READ and read[-1].seq != last)

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
        items = [render.of_message(message, name) for message in opened.messages]
        items += [render.of_summary(child) for child in opened.children]
        fitting, on = page.take(items)
        if on is None and opened.cursor:
            on = page.cursor(PageStart(opened.cursor))
        return fitting, on

    def _may_open(self, provider: Any, chat: str) -> bool:
        return chat == self._session or memories.is_covered(provider, chat)

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
        self._note([*render.references(messages), *(item.expand for item in sessions if item.expand)])
        note = "" if sessions or messages else "No matches found."
        return SessionPage(sessions=sessions, messages=tuple(messages), cursor=on, note=note)

    def _own(self, id: str) -> str:
        """Return an id without the name of the own space, the only one that is written.

        Raises:
            InvalidInput: it is of another space.

        """
        space, _, reference = id.partition(IN_SPACE)
        if space in memories.further_memories(self._provider):
            what = f"{quoted_argument(id)} belongs to another space, which these tools only read."
            raise InvalidInput(what, "Tell the user what should be changed there.")
        return reference if space == memories.own_space(self._provider) else id

    def _conversation_hits(
        self, query: str, limit: int, pick: Callable[[Sequence[Hit]], list[Hit]], chat: str | None = None
    ) -> list[Hit]:
        """Recall messages and summaries until `pick` returns enough hits, or there are no more."""
        most = _FOR_ONE * limit
        while True:
            hits = call(self._provider.recall, query, limit=most, sources=_CONVERSATION, chat=chat)
            picked = pick([hit for hit in hits if hit.source != "record"])
            if len(picked) >= limit or len(hits) < most or most >= _MOST_HITS:
                return render.mask_hits(self._provider, picked[:limit])
            most *= _FOR_ONE

    def _in_session(self, session: str, query: str | None, most: int, limit: int, page: Page) -> _Items:
        """Return the hits of a query in a session, or its newest messages."""
        chat = self._provider.chat(session)
        if not self._may_open(self._provider, session):
            raise _no_session(session)
        if query is None:
            return self._newest(chat, limit, page)

        # Who names a session wants it searched, but not for the question that is just asked.
        view = self._in_view()._replace(seen=frozenset())

        def of_session(hits: Sequence[Hit]) -> list[Hit]:
            return [hit for hit in hits if hit.chat == session and not view.has(hit)]

        hits = self._conversation_hits(query, most, of_session, session)
        return page.excerpts(hits, render.of_hit, limit)

    def _newest(self, chat: Any, limit: int, page: Page) -> _Items:
        """Return the newest messages of a chat, oldest first; the cursor leads to earlier ones."""
        read = chat.history(limit, before=page.start.number)
        if not read and not page.start.anchor:
            raise _no_session(chat.id)
        read.reverse()
        more = bool(read) and read[-1].seq > 1
        fitting, on = _fit_messages(read, chat.id, page, more=more, backwards=True)
        return fitting[::-1], on


def check_limit(limit: int) -> int:
    """Return a limit of items, or raise InvalidInput."""
    return _LIMIT.check(limit, "limit")


def unknown_id(id: str) -> InvalidInput:
    """Return the error for an id of nothing, or of something that is withheld."""
    return InvalidInput(f"There is nothing with the id {quoted_argument(id)}.", "Use an id from a result.")


def _fit_messages(
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


def _first_of_each(view: memories.InView, hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hit of each session that is not in view."""
    best: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        if not view.has(hit):
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


def _day_or_time(text: str | None, what: str) -> str | None:
    """Return the text of a day or a time; the memory knows in which zone it is."""
    try:
        if text is not None:
            datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidInput(f"`{what}` is no date.", "Write it as 2026-01-31 or 2026-01-31T09:00.") from error
    return text
