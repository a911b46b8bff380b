"""ADK's memory: what was said in sessions, found again by recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from holdfast.contract import check_provider
from holdfast.errors import InvalidInput, MissingExtra
from holdfast.integrations.google_adk.app_memory import FRAMEWORK, app_memory, memory_chat, session_chat
from holdfast.integrations.off_loop import off_loop
from holdfast.port import prompts
from holdfast.port.items import Items, retry_transaction
from holdfast.types import check_count
from holdfast.types.references import read_reference, write_reference

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part

    from holdfast.integrations.google_adk.events import is_said, message_id, to_message
except ImportError as error:
    raise MissingExtra.of("google-adk") from error

if TYPE_CHECKING:
    from google.adk.sessions import Session

    from holdfast import Memory
    from holdfast.port.handles import NewRecord, RecallOptions
    from holdfast.types import Hit

# The items that have the ids of deleted events as their keys.
_DELETED = f"{FRAMEWORK}-deleted"


class HoldfastMemoryService(BaseMemoryService):
    """Find what was said in the sessions of ADK, and what is known, by the recall of a memory.

    Apps and users are those of `HoldfastSessionService`, which has the same memory: what it stores is found
    at once, and adding such a session stores nothing again. An event of a session that is stored elsewhere
    goes once into the chat `google-adk-memory/ID`; events without content are left out.

    An entry has the text of a hit, with credentials masked, its author and its time in ISO 8601. Its id is
    that of a record, or the message as `chat#seq`; a summary has none. `custom_metadata` has `source`,
    `score`, `why`, and where they apply `chat`, `role`, `kind`, `flags`, what the guard found, and
    `degraded`. All methods are safe for concurrent tasks, threads and processes.

    Args:
        memory: a memory without a user, or with `admin=True`, as for `HoldfastSessionService`.
        limit: the largest number of entries that a search returns.
        options: options of `Memory.recall`, such as `sources`, `kinds`, `since`, `where` or `min_score`.

    Raises:
        InvalidInput: `memory` is not a memory, or the limit is not a whole number.

    """

    def __init__(self, memory: Memory, *, limit: int = 10, **options: Unpack[RecallOptions]) -> None:
        check_provider(memory)
        self._memory, self._limit, self._options = memory, check_count(limit, "limit"), options

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are not stored yet."""
        await self._add(session.app_name, session.user_id, session.id, session.events, None)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that are not stored yet, with their metadata, by which `where` filters.

        Raises:
            InvalidInput: an event or the metadata hold what is not JSON; none was stored.

        """
        await self._add(app_name, user_id, session_id, events, custom_metadata)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember the texts of entries as facts of the user, all or none; what is known is not stored again.

        Raises:
            InvalidInput: an entry has no text, or its metadata are not JSON.

        """
        memory = app_memory(self._memory, app_name, user_id)
        facts = [_fact(entry, custom_metadata or {}) for entry in memories]
        if facts:
            await off_loop(self._memory, memory.remember, facts)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what answers a query, best first; nothing for one without words, which a model may pass."""
        if not prompts.is_searchable(query):
            return SearchMemoryResponse()
        memory = app_memory(self._memory, app_name, user_id)
        hits = await off_loop(self._memory, memory.recall, query, limit=self._limit, **self._options)
        beside = {} if hits.degraded is None else {"degraded": hits.degraded}
        return SearchMemoryResponse(memories=[_entry(hit, beside) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Erase what an entry shows, by its id: a message, which is not added again, or a record.

        Of a session of `HoldfastSessionService` the event is gone as well. An unknown id does nothing.
        """
        if memory_id:
            memory = app_memory(self._memory, app_name, user_id)
            await off_loop(self._memory, _delete, memory, memory_id)

    async def _add(
        self,
        app_name: str,
        user_id: str,
        session_id: str | None,
        events: Sequence[Event],
        meta: Mapping[str, object] | None,
    ) -> None:
        by_id = dict[str, Event]()
        for event in filter(is_said, events):
            by_id.setdefault(message_id(event.id), event)
        if by_id:
            memory = app_memory(self._memory, app_name, user_id)
            await off_loop(self._memory, _store, memory, session_id, by_id, meta or {})


@retry_transaction
def _store(
    memory: Memory, session_id: str | None, events: Mapping[str, Event], meta: Mapping[str, object]
) -> None:
    """Append events to the chat of additions to memory, without those that are stored or deleted."""
    table = Items(memory, _DELETED)
    chats = [memory_chat(session_id), *([session_chat(session_id)] if session_id else [])]

    def new(db: Items, ids: Iterable[str]) -> list[str]:
        wanted = list(ids)
        there = db.get_many(wanted).keys() | {id for chat in chats for id in db.log(chat).given_ids(wanted)}
        return [id for id in wanted if id not in there]

    # Most of a session is stored already, and what is new is converted before the space is locked.
    with table.reading():
        fresh = {id: to_message(events[id], meta) for id in new(table, events)}
    if fresh:
        with table.writing() as tx:
            tx.log(chats[0]).append([fresh[id] for id in new(tx, fresh)])


def _delete(memory: Memory, memory_id: str) -> None:
    """Erase a message or a record; do nothing if there is none of the id."""
    reference = read_reference(memory_id)
    if reference is None or not reference.chat:
        if memory.get(memory_id) is not None:
            memory.erase(record=memory_id, rewrite=None)
        return
    for message in memory.chat(reference.chat).history(before=reference.first + 1, limit=1):
        if message.seq == reference.first:
            # First of all, so that it is not added again meanwhile.
            Items(memory, _DELETED).put({message.id: b""})
            memory.erase(chat=reference.chat, messages=reference.first, rewrite=None)


def _fact(entry: MemoryEntry, beside: Mapping[str, object]) -> NewRecord:
    text = _text(entry.content)
    if not text:
        raise InvalidInput("An entry has no text.", "Give its content a part with text.")
    meta = {**entry.custom_metadata, **beside}
    return {"text": text, "meta": meta | ({"author": entry.author} if entry.author else {})}


def _text(content: Content) -> str:
    return "\n".join(part.text for part in content.parts or [] if part.text).strip()


def _entry(hit: Hit, beside: Mapping[str, object]) -> MemoryEntry:
    is_message = hit.source == "message"
    told: dict[str, object] = {"chat": hit.chat, "role": hit.role, "kind": hit.kind, "flags": list(hit.flags)}
    meta = {name: value for name, value in told.items() if value}
    meta |= {"source": hit.source, "score": hit.score, "why": str(hit.why), **beside}
    is_user = is_message and hit.role == "user"
    return MemoryEntry(
        content=Content(role="user" if is_user else "model", parts=[Part(text=hit.text)]),
        custom_metadata=meta,
        id=write_reference(hit.chat, hit.seq) if is_message else hit.id if hit.source == "record" else None,
        author=hit.name or (hit.role if is_message else None),
        timestamp=hit.at.isoformat(),
    )
