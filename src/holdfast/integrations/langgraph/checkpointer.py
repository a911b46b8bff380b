"""The checkpointer of LangGraph: threads are chats, and what their messages say is in the log.

>>> graph = builder.compile(checkpointer=HoldfastSaver(memory))                          # doctest: +SKIP
>>> graph.invoke({"messages": "Hello"}, {"configurable": {"thread_id": "1"}})            # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from random import SystemRandom
from typing import TYPE_CHECKING, cast

from holdfast.contract import check_provider
from holdfast.errors import InvalidInput, MissingExtra
from holdfast.integrations.off_loop import off_loop
from holdfast.runtime import runtime_of
from holdfast.store import items
from holdfast.store.database import retry_transaction

try:
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        get_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
except ImportError as error:
    raise MissingExtra.of("langgraph") from error

from holdfast.integrations.langgraph import checkpoint_put, checkpoint_removal
from holdfast.integrations.langgraph import checkpoint_rows as rows
from holdfast.integrations.langgraph.checkpoint_put import CheckpointDraft, CheckpointWriter
from holdfast.integrations.langgraph.checkpoint_reading import CheckpointReader
from holdfast.integrations.langgraph.checkpoint_rows import StoredCheckpoint, StoredWrite
from holdfast.integrations.langgraph.known_messages import KnownList, KnownMessages, is_message_list
from holdfast.integrations.langgraph.message_log import MessageLog
from holdfast.integrations.langgraph.thread_items import ThreadItems
from holdfast.integrations.langgraph.thread_place import ThreadPlace, thread_chat, to_config

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from holdfast.chat import Chat
    from holdfast.memory import Memory
    from holdfast.store.database import Connection, Reader

# Checkpoints that are awaited at once.
_PAGE = 16


class HoldfastSaver(BaseCheckpointSaver[str]):
    """Store the checkpoints of LangGraph's threads in a memory.

    A thread is a chat, `saver.chat(thread_id)`. What its messages say is in the log of the chat, once,
    whatever namespaces and forks have them: recall finds it. A message that is replaced is followed by its
    new version, one that is removed by a message that records it. What a step stores does not grow with the
    thread: values are stored by the versions of their channels, and messages each once.

    Threads belong to the user of the memory; for many, open one without, and make a saver of its
    `scoped(user=…)`. Messages that nodes change in place are noticed if their `content` is another object, or
    among the newest eight; give others back to the channel. Tuples of one `list` share their messages.

    Args:
        memory: the memory whose user the threads belong to.
        serde: LangGraph's serializer; by default one that makes the types of LangGraph and LangChain only.
            For others, pass `JsonPlusSerializer(allowed_msgpack_modules=[MyState])`.
        messages_key: the channel whose messages are in the log.

    Raises:
        InvalidInput: `memory` is not a memory or stores nothing, or the serializer reads pickles or makes
            objects of any type.

    """

    def __init__(
        self, memory: Memory, *, serde: SerializerProtocol | None = None, messages_key: str = "messages"
    ) -> None:
        check_provider(memory)
        runtime = runtime_of(memory)
        if runtime is None:
            raise InvalidInput("This memory stores nothing.", "Use one that has a database.")
        strict = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)
        super().__init__(serde=strict if serde is None else _checked(serde))
        self._memory, self._runtime, self._messages_key = memory, runtime, messages_key
        self._database = runtime.database_of(memory.scope)
        self._known = KnownMessages()

    def chat(self, thread_id: str) -> Chat:
        """Return the chat of a thread, for its history, windows and prompts."""
        return self._memory.chat(thread_chat(thread_id))

    # Reading ----------------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint of a thread by its id, without one the newest; None if there is none."""
        place = ThreadPlace.of(config)
        if (read := self._reader().get(place)) is None:
            return None
        found, lists = read
        for channel, known in lists.items():
            self._known.put(known, place.chat, channel)
        return found._replace(config=config) if place.id else found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        # LangGraph's name.
        filter: dict[str, object] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Iterate over checkpoints, the newest first: of a namespace, a thread, or with None of all threads.

        Args:
            config: the thread, and its namespace or checkpoint, if any.
            filter: metadata that they have.
            before: a config with the id of a checkpoint, which is newer.
            limit: how many at most.

        """
        return self._reader().tuples(config, filter or {}, before, limit)

    # Writing ----------------------------------------------------------------------------------------------

    @retry_transaction
    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and what its messages say, in one transaction; return its config.

        Raises:
            InvalidInput: the metadata are not JSON.

        """
        place, now = ThreadPlace.of(config), self._runtime.now()
        keys = {rows.value_key(place.ns, one, version): one for one, version in new_versions.items()}
        draft = self._draft(place, config, checkpoint, metadata, keys)
        known = {key: self._known.get(place.chat, keys[key]) for key in draft.lists}
        is_said = self._messages_key in new_versions

        def store(tx: Connection) -> dict[str, KnownList]:
            thread = self._thread(tx, place.chat)
            parent = thread.checkpoint(place.ns, place.id) if is_said and place.id else None
            writer = CheckpointWriter(tx, thread, self.serde, self._log(place.chat), now)
            return writer.put(place.thread, draft, known, draft.row.said if is_said else None, parent)

        for key, stored in self._database.write_together(store).items():
            self._known.put(stored, place.chat, keys[key])
        return to_config(place.thread, place.ns, checkpoint["id"])

    def _draft(
        self,
        place: ThreadPlace,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        keys: Mapping[str, str],
    ) -> CheckpointDraft:
        channels = checkpoint["channel_values"]
        lists = {key: channels[one] for key, one in keys.items() if is_message_list(channels.get(one))}
        values = {
            key: self._packed(channels[one]) if one in channels else rows.pack(None)
            for key, one in keys.items()
            if key not in lists
        }
        version = checkpoint["channel_versions"].get(self._messages_key)
        row = StoredCheckpoint(
            place.ns,
            checkpoint["id"],
            place.id or None,
            cast("dict[str, object]", get_checkpoint_metadata(config, metadata)),
            None if version is None else rows.value_key(place.ns, self._messages_key, version),
            self.serde.dumps_typed({key: one for key, one in checkpoint.items() if key != "channel_values"}),
        )
        return CheckpointDraft(row, values, lists)

    def _packed(self, value: object) -> bytes:
        kind, data = self.serde.dumps_typed(value)
        return rows.pack(kind, data)

    @retry_transaction
    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, object]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the pending writes of a task; those that are there stay, but for interrupts and the like."""
        place, now = ThreadPlace.of(config), self._runtime.now()
        stored = [
            StoredWrite(
                task_path, task_id, WRITES_IDX_MAP.get(channel, n), channel, self.serde.dumps_typed(value)
            )
            for n, (channel, value) in enumerate(writes)
        ]

        def store(tx: Connection) -> None:
            thread = self._thread(tx, place.chat)
            checkpoint_put.put_writes(tx, thread, place.thread, place.ns, place.id, stored, now)

        self._database.write_together(store)

    # LangGraph passes both.
    def get_next_version(self, current: str | int | None, channel: None) -> str:  # noqa: ARG002
        """Return the next version of a channel, in the form of LangGraph's own savers: unique among forks."""
        number = 0 if current is None else current if isinstance(current, int) else int(current.split(".")[0])
        return f"{number + 1:032}.{SystemRandom().random():016}"

    # Removing and copying ---------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread and all that was said in it; the file is rewritten later, see `Memory.erase`."""
        chat = thread_chat(thread_id)
        thread = self._thread(self._database, chat)
        if thread.head() is None:
            return
        try:
            self._memory.erase(chat=chat, rewrite=None)
        except InvalidInput:
            # A concurrent call may have erased it.
            if thread.head() is not None:
                raise

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete threads with "delete", else all their checkpoints but the newest of each namespace.

        Earlier ones stay where the newest has only the changes since. What was said stays in the log.

        Raises:
            InvalidInput: the strategy is unknown.

        """
        if strategy not in ("keep_latest", "delete"):
            raise InvalidInput(f"Unknown strategy {strategy!r}.", "Use 'keep_latest' or 'delete'.")
        for one in thread_ids:
            if strategy == "delete":
                self.delete_thread(one)
            else:
                self._keep_latest(one)

    @retry_transaction
    def _keep_latest(self, thread_id: str) -> None:
        space = self._memory.scope.space
        with self._database.writing_to(space) as tx:
            thread = self._thread(tx, thread_chat(thread_id))
            kept = checkpoint_removal.latest(thread, self._reader().versions)
            checkpoint_removal.keep(tx, thread, kept, self._reader().versions, self._runtime.now())

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs; for messages that no other one has, the log gets a tombstone."""
        wanted = set(run_ids)
        for chat in list(items.chats(self._database, self._memory.scope.space, rows.HEAD)) if wanted else ():
            self._delete_runs(chat, wanted)

    @retry_transaction
    def _delete_runs(self, chat: str, run_ids: set[str]) -> None:
        now = self._runtime.now()
        with self._database.writing_to(self._memory.scope.space) as tx:
            thread = self._thread(tx, chat)
            kept = {one.key for one in thread.all_checkpoints() if one.metadata.get("run_id") not in run_ids}
            lost = checkpoint_removal.keep(tx, thread, kept, self._reader().versions, now)
            self._log(chat).remove(tx, " ".join(sorted(run_ids)), lost)

    @retry_transaction
    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread, and what was said in it, to a new thread.

        Raises:
            Conflict: the new thread is there already.

        """
        source, target, now = (
            thread_chat(source_thread_id),
            thread_chat(target_thread_id),
            self._runtime.now(),
        )
        with self._database.writing_to(self._memory.scope.space) as tx:
            threads = self._thread(tx, source), self._thread(tx, target)
            if checkpoint_removal.copy(tx, *threads, str(target_thread_id), now):
                self._log(target).copy(tx, source)

    # Awaited ----------------------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Await `get_tuple`."""
        return await off_loop(self._memory, self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        # LangGraph's name.
        filter: dict[str, object] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Iterate as `list` does."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while page := await off_loop(self._memory, lambda: [*islice(found, _PAGE)]):
            for one in page:
                yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Await `put`."""
        return await off_loop(self._memory, self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, object]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Await `put_writes`."""
        await off_loop(self._memory, self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Await `delete_thread`."""
        await off_loop(self._memory, self.delete_thread, thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Await `prune`."""
        await off_loop(self._memory, self.prune, thread_ids, strategy=strategy)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Await `delete_for_runs`."""
        await off_loop(self._memory, self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Await `copy_thread`."""
        await off_loop(self._memory, self.copy_thread, source_thread_id, target_thread_id)

    # ------------------------------------------------------------------------------------------------------

    def _thread(self, db: Reader, chat: str) -> ThreadItems:
        return ThreadItems(db, self._memory.scope.space, chat)

    def _log(self, chat: str) -> MessageLog:
        return MessageLog(self._memory, chat)

    def _reader(self) -> CheckpointReader:
        return CheckpointReader(self._database, self._memory.scope.space, self.serde)


def _checked(serde: SerializerProtocol) -> SerializerProtocol:
    """Return a serializer that makes no objects of any type from what is stored.

    Raises:
        InvalidInput: it does, and so could run the code of whoever writes to the database.

    """
    # An encrypting one has another within.
    inner = getattr(serde, "serde", serde)
    if getattr(inner, "pickle_fallback", False):
        raise InvalidInput("The serializer reads pickles, which run code.", "Leave `pickle_fallback` out.")
    if (
        isinstance(inner, JsonPlusSerializer)
        and inner.with_msgpack_allowlist([("holdfast", "none")]) is inner
    ):
        raise InvalidInput(
            "The serializer makes objects of any type that is stored.",
            "Name the types: `JsonPlusSerializer(allowed_msgpack_modules=[MyState])`, [] for none.",
        )
    return serde
