"""How checkpoints are read and listed, with their values, their messages and their pending writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import CheckpointTuple

from holdfast.integrations.framework_keys import unescape
from holdfast.integrations.langgraph import thread_items as rows
from holdfast.integrations.langgraph.known_messages import is_message_list
from holdfast.integrations.langgraph.thread_items import StoredCheckpoint, ThreadHead, ThreadItems
from holdfast.port.items import Items

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig


def read_tuple(
    thread: ThreadItems, head: ThreadHead, row: StoredCheckpoint, loaded: dict[int, BaseMessage]
) -> tuple[CheckpointTuple, dict[str, list[int]]]:
    """Return a checkpoint, and the numbers of its lists of messages; `loaded` are not read again."""
    values, numbers = dict[str, Any](), dict[str, list[int]]()
    for key, (kind, data) in thread.values(row.channels, head.messages).items():
        if isinstance(kind, str):
            values[row.channels[key]] = thread.loads(kind, data)
        else:
            numbers[row.channels[key]] = kind
    missing = [n for some in numbers.values() for n in some if n not in loaded]
    loaded |= thread.load_messages(missing)
    with Items.decoding("A list of messages"):
        values |= {channel: [loaded[n] for n in some] for channel, some in numbers.items()}
    read = CheckpointTuple(
        rows.to_config(head.thread, row.ns, row.id),
        {**row.checkpoint, "channel_values": values},
        row.metadata,
        rows.to_config(head.thread, row.ns, row.parent) if row.parent else None,
        [
            (task, channel, thread.loads(kind, data))
            for _, task, _, channel, kind, data in thread.writes(row.ns, row.id)
        ],
    )
    # A message of a type that is not allowed is none when it is read.
    return read, {channel: some for channel, some in numbers.items() if is_message_list(values[channel])}


def tuples(
    table: Items,
    threads: Iterable[ThreadItems],
    config: RunnableConfig | None,
    metadata: Mapping[str, object],
    before: RunnableConfig | None,
) -> Iterator[CheckpointTuple]:
    """Iterate over the checkpoints of some threads; see `HoldfastSaver.list`."""
    given: Mapping[str, object] = config.get("configurable", {}) if config else {}
    bound = before.get("configurable", {}).get("checkpoint_id") if before else None
    loaded: dict[str, dict[int, BaseMessage]] = {}
    keys = ((key.partition("/"), thread) for thread in threads for key in thread.keys(rows.CHECKPOINTS))
    checkpoints = sorted(
        ((unescape(id), thread.chat, unescape(ns), thread) for (ns, _, id), thread in keys),
        reverse=True,
        key=lambda entry: entry[:3],
    )
    for id, chat, ns, thread in checkpoints:
        if bound is not None and id >= str(bound):
            continue
        if given.get("checkpoint_id") not in (None, "", id) or given.get("checkpoint_ns", ns) != ns:
            continue
        with table.reading():
            head, row, read = thread.head(), thread.checkpoint(ns, id), None
            if head and row and all(row.metadata.get(key) == value for key, value in metadata.items()):
                read, _ = read_tuple(thread, head, row, loaded.setdefault(chat, {}))
        if read:
            yield read
