"""The front door: an open database bound to a scope."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from holdfast.chat import Chat
from holdfast.errors import Closed
from holdfast.store import sessions
from holdfast.store.database import Database, Durability, open_database
from holdfast.text.tokens import CountTokens, estimate_tokens
from holdfast.types import ChatInfo, Hit, Role, Scope, Verification, check_count, check_flag

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from holdfast.aio import AsyncMemory
    from holdfast.recall.search import Search

THREADS = 8  # that the awaited methods of one memory use at most


def _now() -> datetime:
    return datetime.now(UTC)


class Memory:
    """Remember conversations and find them again.

    Open one per database and share it between threads; handles for other scopes are cheap and use the same
    connections. Close it, or use it as a context manager.

    Args:
        location: a path, ":memory:", or a postgresql:// URL.
        tenant: whose installation it is; empty for one's own.
        user: whose memory it is. Nothing of one user is ever found by another.
        agent: who acts. Chats opened through this handle belong to it, and recall and `chats` cover only its chats;
            empty covers those of all agents.
        durability: "full" survives a power cut at every append; "normal" may lose the last moments, never the order.
        count_tokens: counts the tokens of a text, in place of the estimate.
        clock: says what time it is, for messages that come without one.

    Raises:
        InvalidInput: an argument is not usable.
        Unavailable, Damaged, NewerSchema, MissingExtra: the database cannot be opened; each says why.

    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        tenant: str = "",
        user: str = "",
        agent: str = "",
        durability: Durability = "full",
        count_tokens: CountTokens = estimate_tokens,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._scope = Scope(tenant, user, agent)
        self._open = _Open(open_database(location, durability), count_tokens, clock)

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        return self._scope

    def scoped(
        self, *, tenant: str | None = None, user: str | None = None, agent: str | None = None
    ) -> Memory:
        """Make a handle for another tenant, user or agent on the same connections; None keeps what this one has."""
        memory = Memory.__new__(Memory)
        memory._scope = Scope(  # noqa: SLF001 - our own
            self._scope.tenant if tenant is None else tenant,
            self._scope.user if user is None else user,
            self._scope.agent if agent is None else agent,
        )
        memory._open = self._open  # noqa: SLF001 - our own
        return memory

    def chat(self, id: str) -> Chat:  # noqa: A002 - `id` is what it is called everywhere else
        """Open a session by its id. It comes into being with its first message.

        Raises:
            InvalidInput: the id is blank, longer than 512 bytes in UTF-8, or has control characters.

        """
        return Chat(self, id)

    def chats(
        self,
        *,
        agent: str | None = None,
        user: str | None = None,
        archived: bool | None = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[ChatInfo]:
        """List sessions, the one with the newest message first.

        Args:
            agent: whose chats; None for those of this handle's agent, "" for those of all agents.
            user: another user of the same tenant; None for this handle's.
            archived: True for archived chats only, None for both kinds.
            limit: at most so many.
            offset: leave out so many of the first.

        Raises:
            InvalidInput: a negative limit or offset.

        """
        scope = self.scoped(user=user, agent=agent).scope
        return sessions.list_chats(
            self._open.database,
            scope,
            archived=None if archived is None else check_flag(archived, "archived"),
            limit=None if limit is None else check_count(limit, "limit"),
            offset=check_count(offset, "offset"),
        )

    def recall(
        self,
        query: str,
        *,
        chat: str | None = None,
        roles: Sequence[Role] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[Hit]:
        """Find the messages that answer a question, best first, without a model.

        Everything that was acknowledged before the call is found, whichever process stored it. What the tenant shares
        (the space of the empty user) is searched as well. All characters of the query are plain text. Takes a few
        milliseconds per 100,000 messages.

        Args:
            query: a question or some words, in any language.
            chat: only this session.
            roles: only messages of these roles.
            since: only messages said at this time or later.
            until: only messages said before this time.
            limit: at most so many hits.
            min_score: only hits with at least this score, 0 to 1.

        Raises:
            InvalidInput: the query is blank, or a filter is of the wrong kind.

        """
        return self._open.search.recall(
            self._scope,
            query,
            chat=chat,
            roles=roles,
            since=since,
            until=until,
            limit=limit,
            min_score=min_score,
        )

    def rebuild(self) -> int:
        """Make the search index of this space again from the log, and return the number of messages in it.

        Searches give the same results before and after, to the last bit.
        """
        return self._open.search.rebuild(self._scope.space)

    def verify(self) -> Verification:
        """Check that every message of this space is reachable and every row of its index true.

        Reads the whole log of the space and makes its index anew for comparison: linear.
        """
        from holdfast.recall.verify import verify  # noqa: PLC0415 - loads numpy, which most programs never need

        return verify(self._open.database, self._scope.space)

    @property
    def aio(self) -> AsyncMemory:
        """The same methods, awaited."""
        from holdfast.aio import AsyncMemory  # noqa: PLC0415 - asyncio is loaded only where it is used

        return AsyncMemory(self, lambda: self._open.executor)

    def close(self) -> None:
        """Close the connections of this handle and of all that share them. Closing twice is harmless."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({self._scope})"


class _Open:
    """What all handles on one database share."""

    def __init__(self, database: Database, count_tokens: CountTokens, clock: Callable[[], datetime]) -> None:
        self.database = database
        self.count_tokens = count_tokens
        self.clock = clock
        self.lock = threading.Lock()
        self._executor: Executor | None = None
        self._search: Search | None = None
        self._closed = False

    @property
    def search(self) -> Search:
        from holdfast.recall.search import Search  # noqa: PLC0415 - numpy is loaded by the first recall

        with self.lock:
            if self._search is None:
                self._search = Search(self.database)
            return self._search

    @property
    def executor(self) -> Executor:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only for those who await

        with self.lock:
            if self._closed:
                raise Closed("The memory is closed.", "Open a new Memory.")
            if self._executor is None:
                self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="holdfast")
            return self._executor

    def close(self) -> None:
        with self.lock:
            executor, self._executor, self._search = self._executor, None, None
            self._closed = True
        if executor is not None:
            executor.shutdown()
        self.database.close()
