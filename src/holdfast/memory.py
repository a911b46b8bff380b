"""`Memory`: opens a database, for a scope."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Self, cast

from holdfast.handle import MemoryHandle
from holdfast.kinds import Kind, table
from holdfast.runtime import (
    Runtime,
    check_policy,
    check_settings,
    checked_clock,
    embedder_of,
    guard_model,
)
from holdfast.safety.guard import check_name_is_open
from holdfast.store.connect import open_database
from holdfast.store.database import Durability
from holdfast.text.tokens import CountBy, counter, estimate_tokens
from holdfast.text.zones import check_zone
from holdfast.types import Scope, check_count, check_flag, check_key

if TYPE_CHECKING:
    from holdfast.aio import AsyncMemory
    from holdfast.learning.guard_job import Guard
    from holdfast.llm.embedding import Embed
    from holdfast.prompt.window import Policy
    from holdfast.settings import Learning


def _now() -> datetime:
    return datetime.now(UTC)


class Memory(MemoryHandle):
    """Remember conversations and what was learned from them, and find both again.

    Open one per database and share it between threads; handles for other scopes are cheap and use the same
    connections. Close it, or use it as a context manager.

    Who signs a write: the writer passed as `by`, else the source that `acting_as` names, else the agent for
    what is learned (`remember`, `replace`, `retract`, `retract_all`), and the user for what goes back on it
    (`undo`, `rollback`, `quarantine.release`, `quarantine.discard`, `erase`). Constraints are only ever the
    user's own word: `by="user"`.

    Args:
        location: a path, ":memory:", or a postgresql:// URL.
        tenant: whose installation it is; empty for one's own.
        user: whose memory it is. Nothing of one user is ever found by another. Without one, that of
            `acting_as`.
        agent: who acts. Recall and `chats` cover the chats that it opened or wrote in; of records, those of
            this agent and those of none. Empty covers those of all agents.
            Without one, that of `acting_as`.
        project: a project of the user: what is written goes there, and what is known of it, of the user and
            of the tenant is read, in this order. A project of that name of another user is another one.
        team: a team of the tenant, in place of a project.
        reads: further spaces that are read, nearer than the tenant's: "team:core", "project:shop",
            "user:bob", "user:bob/project:shop". A user reads those of others where they are granted; see
            `grants` and `docs/spaces.md`.
        durability: "full" survives a power cut at every append; "normal" may lose the last moments, never the
            order.
        count_tokens: counts the tokens of a text: a function, or the name of a model or an encoding, with the
            extra `tiktoken`: "openai:gpt-5-mini". By default an estimate from the number of characters.
        clock: returns the time, for messages that come without one.
        zone: the zone of its days, a name such as "Europe/Berlin" or a tzinfo: prompts and tools show its
            times, filters and questions name its days. By default that of the machine.
        kinds: rows of policy for kinds of your own, or in place of those of `holdfast.kinds`.
        learning: how it learns in the background, and limits for models; see `holdfast.Learning`.
        policy: how windows and prompts are made and chats compacted, where none is named there. None for
            `Lossless()`.
        admin: whether a handle of one user may act for other users; without it that raises Denied. A guard
            against mistakes, not against code that holds the database.
        key: 16 to 64 bytes that are stored nowhere: with it the checksums of rows cannot be forged.
        guard: your own classifier of what is an order to the model: a function from a text to True or False.
        embed: an embedder, by which recall also finds what means the same in other words: a function from a
            list of texts to a list of vectors, an object with `embed_documents` and `embed_query`, or a name:
            "openai:text-embedding-3-small" (extra `llm`), "model2vec:PATH" (extra `model2vec`),
            "fastembed:PATH" (extra `fastembed`), or "auto" for what the environment variable HOLDFAST_EMBED
            names, if anything: such a name, or the folder of a model. All texts are given to it, with
            credentials masked, by `learning.work`. See `docs/meaning.md`.
        read_only: whether nothing is written, not even an index or a count of uses, so that the file or the
            folder may be one that this user cannot write to; a call that would write raises Denied.
        cache_bytes: how much memory the indexes of recall take, of the users who asked last; that of the last
            one stays, however large. One that was let go is read again by the next recall of its user.

    Raises:
        InvalidInput: an argument is not usable, or with `embed="auto"` what HOLDFAST_EMBED names.
        Unavailable, Damaged, NewerSchema, UnreleasedSchema, MissingExtra: the database, or the tokenizer or
            the embedder that is named, cannot be opened.
        ModelFailed: the key of the provider of the embedder, or another of its settings, is missing, or its
            model cannot be loaded.

    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        tenant: str = "",
        user: str = "",
        agent: str = "",
        project: str = "",
        team: str = "",
        reads: str | Iterable[str] = (),
        durability: Durability = "full",
        count_tokens: CountBy = estimate_tokens,
        clock: Callable[[], datetime] = _now,
        zone: str | tzinfo | None = None,
        kinds: Kind | Iterable[Kind] = (),
        learning: Learning | None = None,
        policy: Policy | None = None,
        admin: bool = False,
        key: bytes | None = None,
        guard: Guard | None = None,
        embed: Embed | None = None,
        read_only: bool = False,
        cache_bytes: int = 512 * 2**20,
    ) -> None:
        scope = Scope(tenant, user, agent, project=project, team=team, reads=cast("Any", reads))
        check_name_is_open(scope.agent, "The name of the agent")
        is_admin, rows = check_flag(admin, "admin"), table(kinds)
        chosen = check_policy(policy)
        check_settings(learning)
        model, embedder = guard_model(guard), embedder_of(embed)
        count, time = counter(count_tokens), checked_clock(clock, check_zone(zone))
        only_reads, most = check_flag(read_only, "read_only"), check_count(cache_bytes, "cache_bytes")
        database = open_database(location, durability, check_key(key), read_only=only_reads)
        runtime = Runtime(database, count, time, rows, learning, chosen, most, guard=model, embedder=embedder)
        super().__init__(runtime, scope, admin=is_admin)

    @property
    def aio(self) -> AsyncMemory:
        """The same methods, awaited."""
        # asyncio is loaded only where it is used.
        from holdfast.aio import AsyncMemory

        return AsyncMemory(self, self._runtime.executor, self._runtime)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
