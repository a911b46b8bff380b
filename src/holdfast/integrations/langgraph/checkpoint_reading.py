"""How checkpoints are read and listed, with their values, their messages and their pending writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from langgraph.checkpoint.base import CheckpointTuple

from holdfast.errors import Damaged
from holdfast.integrations.framework_keys import unescape
from holdfast.integrations.langgraph import thread_items as rows
from holdfast.integrations.langgraph.known_messages import is_message_list
from holdfast.integrations.langgraph.thread_items import StoredCheckpoint, ThreadHead, ThreadItems
from holdfast.integrations.langgraph.thread_place import ThreadPlace, configurable, to_config
from holdfast.store import items

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from holdfast.integrations.langgraph.thread_items import Numbers
    from holdfast.store.database import Database


def read_tuple(
    thread: ThreadItems, head: ThreadHead, row: StoredCheckpoint, loaded: dict[int, BaseMessage]
) -> tuple[CheckpointTuple, dict[str, Numbers]]:
    """Return a checkpoint, and the numbers of its lists of messages; `loaded` are not read again."""
    found, channels = thread.values(row.channels, head.messages), row.channels
    numbers = {channels[key]: kind for key, (kind, _) in found.items() if not isinstance(kind, str)}
    values = {
        channels[key]: thread.loads(kind, data)
        for key, (kind, data) in found.items()
        if isinstance(kind, str)
    }
    missing = [n for some in numbers.values() for n in some.tolist() if n not in loaded]
    loaded |= thread.loaded(np.array(missing, np.int64))
    values |= {channel: _listed(loaded, some) for channel, some in numbers.items()}
    writes = sorted(
        rows.unpack(item.data, str, str, int, str, str)
        for item in thread.scan(rows.WRITES, prefix=f"{rows.checkpoint_key(row.ns, row.id)}/")
    )
    read = CheckpointTuple(
        to_config(head.thread, row.ns, row.id),
        {**row.checkpoint, "channel_values": values},
        row.metadata,
        to_config(head.thread, row.ns, row.parent) if row.parent else None,
        [(task, channel, thread.loads(kind, data)) for _, task, _, channel, kind, data in writes],
    )
    # A message of a type that is not allowed is none when it is read.
    return read, {channel: some for channel, some in numbers.items() if is_message_list(values[channel])}


def _listed(messages: Mapping[int, BaseMessage], numbers: Numbers) -> list[BaseMessage]:
    try:
        return [messages[number] for number in numbers.tolist()]
    except KeyError as error:
        raise Damaged(
            f"The message {error} of a thread is missing.", "Restore a backup of the database."
        ) from error


def tuples(
    database: Database,
    space: str,
    thread_of: Callable[[str], ThreadItems],
    config: RunnableConfig | None,
    metadata: Mapping[str, object],
    before: RunnableConfig | None,
) -> Iterator[CheckpointTuple]:
    """Iterate over the checkpoints that a list has, the newest first; see `HoldfastSaver.list`."""
    given, place = configurable(config or {}), None if config is None else ThreadPlace.of(config)
    bound = configurable(before or {}).get("checkpoint_id")
    found = sorted(
        (
            (unescape(id), chat, unescape(ns))
            for chat in (items.chats(database, space, rows.HEAD) if place is None else [place.chat])
            for ns, _, id in (key.partition("/") for key in thread_of(chat).keys(rows.CHECKPOINTS))
        ),
        reverse=True,
    )
    loaded: dict[str, dict[int, BaseMessage]] = {}
    for id, chat, ns in found:
        if bound is not None and id >= str(bound):
            continue
        if place and (place.id not in ("", id) or (place.ns != ns and "checkpoint_ns" in given)):
            continue
        with database.one_read():
            thread = thread_of(chat)
            head, row, read = thread.head(), thread.checkpoint(ns, id), None
            if head and row and all(row.metadata.get(key) == value for key, value in metadata.items()):
                read, _ = read_tuple(thread, head, row, loaded.setdefault(chat, {}))
        if read:
            yield read
