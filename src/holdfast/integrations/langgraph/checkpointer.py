"""The checkpointer of LangGraph: threads are chats, and what their messages say is in the log.

>>> graph = builder.compile(checkpointer=HoldfastSaver(memory))                          # doctest: +SKIP
>>> graph.invoke({"messages": "Hello"}, {"configurable": {"thread_id": "1"}})            # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from random import SystemRandom
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import InvalidInput, MissingExtra
from holdfast.integrations.off_loop import awaited, off_loop
from holdfast.port.items import Items

try:
    from langgraph.checkpoint.base import BaseCheckpointSaver, get_checkpoint_metadata
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
except ImportError as error:
    raise MissingExtra.of("langgraph") from error

from holdfast.integrations.langgraph.checkpoint_writing import ThreadWriter
from holdfast.integrations.langgraph.known_messages import KnownList, KnownMessages
from holdfast.integrations.langgraph.thread_items import (
    HEAD,
    ThreadItems,
    ThreadPlace,
    read_tuple,
    thread_chat,
    to_config,
    tuples,
)

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from holdfast import Chat, Memory

T = TypeVar("T")
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
        strict = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)
        super().__init__(serde=strict if serde is None else _check_serializer(serde))
        self._memory, self._messages_key = memory, messages_key
        self._table, self._known = Items(memory, HEAD), KnownMessages()

    def chat(self, thread_id: str) -> Chat:
        """Return the chat of a thread, for its history, windows and prompts."""
        return self._memory.chat(thread_chat(thread_id))

    # Reading ----------------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint of a thread by its id, without one the newest; None if there is none."""
        place = ThreadPlace.of(config)
        thread = self._thread(place.chat)
        with self._table.reading():
            head, row = thread.head(), thread.checkpoint(place.ns, place.id)
            if head is None or row is None:
                return None
            result, lists = read_tuple(thread, head, row, {})
        values = result.checkpoint["channel_values"]
        known = {name: KnownList.of(head.epoch, numbers, values[name]) for name, numbers in lists.items()}
        self._known.put(place.chat, known)
        return result._replace(config=config) if place.id else result

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
        chats = self._table.chats() if config is None else [ThreadPlace.of(config).chat]
        threads = map(self._thread, chats)
        return islice(tuples(self._table, threads, config, filter or {}, before), limit)

    # Writing ----------------------------------------------------------------------------------------------

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
        place, whole = ThreadPlace.of(config), get_checkpoint_metadata(config, metadata)
        known = {channel: self._known.get(place.chat, channel) for channel in new_versions}

        def store(thread: ThreadWriter) -> dict[str, KnownList]:
            return thread.put_checkpoint(place, checkpoint, whole, new_versions, known, self._messages_key)

        self._known.put(place.chat, self._write(place.chat, store))
        return to_config(place.thread, place.ns, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, object]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the pending writes of a task; those that are there stay, but for interrupts and the like."""
        place = ThreadPlace.of(config)
        self._write(place.chat, lambda thread: thread.put_writes(place, writes, task_id, task_path))

    # LangGraph passes both.
    def get_next_version(self, current: str | int | None, channel: None) -> str:  # noqa: ARG002
        """Return the next version of a channel, in the form of LangGraph's own savers: unique among forks."""
        number = 0 if current is None else current if isinstance(current, int) else int(current.split(".")[0])
        return f"{number + 1:032}.{SystemRandom().random():016}"

    # Removing and copying ---------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread and all that was said in it; the file is rewritten later, see `Memory.erase`."""
        self._table.erase(thread_chat(thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete threads with "delete", else all their checkpoints but the newest of each namespace.

        Earlier ones stay where the newest has only the changes since. What was said stays in the log.

        Raises:
            InvalidInput: the strategy is unknown.

        """
        if strategy not in ("keep_latest", "delete"):
            raise InvalidInput(f"Unknown strategy {strategy!r}.", "Use 'keep_latest' or 'delete'.")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
            else:
                self._write(thread_chat(thread_id), ThreadWriter.keep_latest)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs; for messages that no other one has, the log gets a tombstone."""
        for chat in list(self._table.chats()) if run_ids else ():
            self._write(chat, lambda thread: thread.remove_runs(set(run_ids)))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread, and what was said in it, to a new thread.

        Raises:
            Conflict: the new thread is there already.

        """
        source, name = thread_chat(source_thread_id), str(target_thread_id)
        self._write(thread_chat(target_thread_id), lambda thread: thread.copy(source, name))

    # Awaited ----------------------------------------------------------------------------------------------

    aget_tuple = awaited(get_tuple)
    aput = awaited(put)
    aput_writes = awaited(put_writes)
    adelete_thread = awaited(delete_thread)
    aprune = awaited(prune)
    adelete_for_runs = awaited(delete_for_runs)
    acopy_thread = awaited(copy_thread)

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
        checkpoints = self.list(config, filter=filter, before=before, limit=limit)
        while page := await off_loop(self._memory, lambda: [*islice(checkpoints, _PAGE)]):
            for checkpoint in page:
                yield checkpoint

    # ------------------------------------------------------------------------------------------------------

    def _thread(self, chat: str) -> ThreadItems:
        return ThreadItems(self._table, chat, self.serde)

    def _write(self, chat: str, work: Callable[[ThreadWriter], T]) -> T:
        return self._table.write_together(lambda tx: work(ThreadWriter(tx, chat, self.serde)))


def _check_serializer(serde: SerializerProtocol) -> SerializerProtocol:
    """Return a serializer that makes no objects of any type from what is stored.

    Raises:
        InvalidInput: it does, and so could run the code of whoever writes to the database.

    """
    # An encrypting one has another within.
    inner = getattr(serde, "serde", serde)
    if getattr(inner, "pickle_fallback", False):
        raise InvalidInput("The serializer reads pickles, which run code.", "Leave `pickle_fallback` out.")
    if isinstance(inner, JsonPlusSerializer) and inner.with_msgpack_allowlist([("no", "type")]) is inner:
        raise InvalidInput(
            "The serializer makes objects of any type that is stored.",
            "Name the types: `JsonPlusSerializer(allowed_msgpack_modules=[MyState])`, [] for none.",
        )
    return serde
