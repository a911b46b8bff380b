"""Strands Agents: a session manager, and a store for its memory manager.

>>> Agent(session_manager=HoldfastSessionManager(memory, "monday"))                  # doctest: +SKIP
>>> Agent(memory_manager=MemoryManager(stores=[HoldfastMemoryStore(memory)]))        # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from holdfast.contract import check_provider
from holdfast.errors import MissingExtra
from holdfast.integrations.hit_metadata import hit_metadata
from holdfast.integrations.off_loop import off_loop
from holdfast.port import prompts
from holdfast.types import check_count

try:
    from strands.hooks import AgentInitializedEvent
    from strands.memory import MemoryEntry, MemoryStore
    from strands.session.repository_session_manager import RepositorySessionManager

    from holdfast.integrations.strands_sessions import HoldfastSessionRepository
except ImportError as error:
    raise MissingExtra.of("strands") from error

if TYPE_CHECKING:
    from strands.hooks import HookRegistry
    from strands.memory import ExtractionConfig, SearchOptions

    from holdfast import Memory
    from holdfast.port.handles import RecallOptions
    from holdfast.types import Record

E = TypeVar("E")
# As Strands' own stores.
_MOST = 10


# mypy runs where Strands is not.
class HoldfastSessionManager(RepositorySessionManager):  # type: ignore[misc]
    """Store the session of agents, and of graphs and swarms of agents, in a memory.

    Each message of an agent is one of the chat `strands/SESSION/AGENT`, so that recall, compaction and
    learning work on it; see `HoldfastSessionRepository`. While an agent runs, its event loop is not blocked.

    Args:
        memory: the memory of the session.
        session_id: the id of the session, any text; it goes on if there is one, otherwise it is created.

    Raises:
        InvalidInput: `memory` is not a memory, or it stores nothing.

    """

    def __init__(self, memory: Memory, session_id: str) -> None:
        super().__init__(session_id, HoldfastSessionRepository(memory))
        self._memory = memory

    def register_hooks(self, registry: HookRegistry, **options: object) -> None:
        """Store what an agent says and becomes, on threads of the memory."""
        super().register_hooks(_OffLoop(registry, self._memory), **options)


class _OffLoop:
    """A registry of hooks whose callbacks run beside the event loop, as far as Strands can await them."""

    def __init__(self, registry: HookRegistry, memory: Memory) -> None:
        self._registry, self._memory = registry, memory

    def add_callback(self, event_type: type[E], callback: Callable[[E], object], **options: object) -> None:
        async def awaited(event: E) -> None:
            await off_loop(self._memory, callback, event)

        # An agent is made by its constructor, which awaits nothing.
        chosen = callback if event_type is AgentInitializedEvent else awaited
        self._registry.add_callback(event_type, chosen, **options)


class HoldfastMemoryStore(MemoryStore):  # type: ignore[misc]
    """Search a memory, and add to it, by the memory manager of Strands.

    An entry is a hit, with credentials masked; its metadata are those of `HoldfastRetriever`. The words of
    the query itself are no entry. What is added becomes a record, written by the agent.

    Args:
        memory: what to search.
        name: the name of the store, for tools.
        description: what the store has, for tools.
        max_search_results: the largest number of entries unless a search says another.
        writable: whether entries may be added.
        extraction: what Strands extracts of conversations for it; by default nothing, since Holdfast learns
            from the log.
        kind: the kind of the records that are added.
        options: other options of `Memory.recall`, such as `sources`, `kinds`, `outside` or `where`.

    Raises:
        InvalidInput: `memory` is not a memory, or the number is negative.

    """

    def __init__(
        self,
        memory: Memory,
        name: str = "holdfast",
        *,
        description: str | None = "What was said and learned in all earlier conversations.",
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        kind: str = "fact",
        options: RecallOptions | None = None,
    ) -> None:
        check_provider(memory)
        self._memory, self._kind, self._options = memory, kind, options or {}
        self.name, self.description = name, description
        most = max_search_results
        self.max_search_results = None if most is None else check_count(most, "max_search_results")
        self.writable, self.extraction = writable, extraction

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return the messages, summaries and records that answer a query, best first; none without words."""
        if not prompts.is_searchable(query):
            return []
        most = (options or {}).get("max_search_results", self.max_search_results)
        limit = _MOST if most is None else check_count(most, "max_search_results")
        chosen = cast("RecallOptions", dict(self._options))
        # Strands asks for the message that was just stored: it takes none of the places.
        hits = await off_loop(self._memory, self._memory.recall, query, limit=limit + 1, **chosen)
        others = [hit for hit in hits if hit.text.strip() != query.strip()]
        return [MemoryEntry(content=hit.text, metadata=hit_metadata(hit)) for hit in others[:limit]]

    async def add(self, content: str, metadata: Mapping[str, object] | None = None) -> Record:
        """Store what is known, and return the record that it became; the same again is no second one."""
        return await off_loop(
            self._memory, self._memory.remember, content, self._kind, by="agent", meta=metadata or {}
        )
