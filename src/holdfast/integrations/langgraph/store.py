"""A store of LangGraph in a memory: JSON values under namespaces and keys, shared by all threads.

>>> store = HoldfastStore(memory)                                               # doctest: +SKIP
>>> graph = builder.compile(store=store)                                        # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from math import isfinite
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from holdfast.errors import Closed, HoldfastError, InvalidInput, MissingExtra, shown
from holdfast.integrations.off_loop import off_loop
from holdfast.port.items import Items
from holdfast.port.vectors import item_embedder
from holdfast.types import check_count

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        validate_op_namespace,
    )
except ImportError as error:
    raise MissingExtra.of("langgraph") from error

from holdfast.integrations.langgraph.store_filter import check_filter
from holdfast.integrations.langgraph.store_items import (
    COLLECTION,
    WHOLE,
    Put,
    check_fields,
    check_key,
    decode,
    encode,
    item_key,
    list_namespaces,
    parse_key,
    sweep,
    texts_of,
    time_of,
    vectors_key,
    write,
)

if TYPE_CHECKING:
    from langgraph.store.base import IndexConfig, TTLConfig

    from holdfast import Memory
    from holdfast.integrations.langgraph.store_search import StoreSearch
    from holdfast.port.items import Item as StoredItem

_MINUTE = 60_000_000
# Minutes: three hundred years, so that every time can be stored.
_LONGEST_TTL = 160_000_000
_SWEEP = 5  # minutes between sweeps, as with LangGraph's own stores


class TTLSweeper:
    """Calls `sweep` at intervals on a thread of its own, until it is stopped or the memory is closed."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep, self._log = sweep, logging.getLogger("holdfast")
        self._lock = Lock()
        self._stopped = Event()
        self._thread: Thread | None = None
        self._ended: Future[None] = Future()

    def start(self, minutes: float) -> Future[None]:
        """Start it unless it runs; the future ends with it, and stops it when it is cancelled."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._stopped, self._ended = Event(), Future()
                stopped, ended = self._stopped, self._ended
                ended.add_done_callback(lambda future: stopped.set() if future.cancelled() else None)
                self._thread = Thread(
                    target=self._run, args=(minutes * 60, stopped, ended), name="holdfast-ttl", daemon=True
                )
                self._thread.start()
            return self._ended

    def stop(self, timeout: float | None = None) -> bool:
        """Stop it, and return whether it has ended within so many seconds."""
        with self._lock:
            self._stopped.set()
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def _run(self, seconds: float, stopped: Event, ended: Future[None]) -> None:
        while not stopped.wait(seconds):
            try:
                count = self._sweep()
            except Closed:
                break
            except HoldfastError:
                # Such as a database that is locked; the next sweep deletes what this one did not.
                self._log.warning("A sweep of expired items failed.", exc_info=True)
            else:
                self._log.debug("swept %d expired items", count)
        # It may have been cancelled.
        with suppress(InvalidStateError):
            ended.set_result(None)


class HoldfastStore(BaseStore):
    """Store items of LangGraph in a memory: JSON values under namespaces and keys.

    They are a kind of their own: no prompt shows them, no recall finds them, nothing is learned from them.
    They belong to the user of the memory, whose erasure deletes them, and are in backups and exports of
    everything. An item that is overwritten or deleted is gone.

    A search with a query ranks items by words, or by meaning where there is an embedder: that of `index`, or
    else that of the memory. Items that it does not rank follow, newest first, with None as their score.
    Without a query items are sorted newest first.

    All methods are safe for concurrent threads, tasks and processes; a batch is checked before anything is
    written, reads what was there before it, and writes in one transaction.

    Args:
        memory: the memory whose user the items belong to.
        index: as in LangGraph, and each part may be left out: `embed` is whatever `Memory(embed=…)` accepts,
            `dims` the numbers of its vectors, `fields` the paths by which items are found; ["$"] by default.
        ttl: as in LangGraph. What has expired is never returned, as with `omit_expired`.

    Raises:
        InvalidInput: `memory` is not a memory or stores nothing, or the configuration cannot be used.

    """

    supports_ttl = True

    def __init__(
        self, memory: Memory, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        self._table = Items(memory, COLLECTION)
        self._memory = memory
        self.index_config, self.ttl_config = index, ttl
        config: Mapping[str, object] = index or {}
        self._fields = check_fields(config.get("fields") or [WHOLE])
        self._embedder = item_embedder(
            memory, config.get("embed"), check_count(config.get("dims") or 0, "dims")
        )
        self._search: StoreSearch | None = None
        self._sweeper = TTLSweeper(self.sweep_ttl)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Return the result of each operation; those that read see what was there before the batch.

        Raises:
            InvalidNamespaceError: a namespace has an empty label, or one with a dot; nothing was written.
            InvalidInput: a value is not JSON, a filter has no such operator, …; nothing was written.
            ModelFailed: the embedder failed; nothing was written.

        """
        return self._run(list(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Await what `batch` returns. An asynchronous embedder runs on the event loop of the caller."""
        return await off_loop(self._memory, self._run, list(ops), asyncio.get_running_loop())

    def sweep_ttl(self) -> int:
        """Delete the items that have expired, and return their number."""
        return sweep(self._table)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep at intervals on a thread, which ends with the memory; cancelling the future stops it.

        Args:
            sweep_interval_minutes: by default that of `ttl`, or else 5.

        """
        minutes = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or _SWEEP
        return self._sweeper.start(_check_minutes(minutes, "sweep_interval_minutes"))

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping, and return whether a sweep that runs has ended within so many seconds."""
        return self._sweeper.stop(timeout)

    def _run(self, ops: Sequence[Op], loop: asyncio.AbstractEventLoop | None = None) -> list[Result]:
        for op in ops:
            _check_op(op)
        now = self._table.now
        gets = {n: item_key(op.namespace, op.key) for n, op in enumerate(ops) if isinstance(op, GetOp)}
        keys = gets.values()
        items = self._table.get_many(keys) if len(keys) > 1 else {key: self._table.get(key) for key in keys}
        renewed: dict[str, int] = {}
        results: list[Result] = []
        for n, op in enumerate(ops):
            if isinstance(op, GetOp):
                stored = items.get(gets[n])
                results.append(stored and Item(**_read_fields(op, stored, renewed, now)))
            elif isinstance(op, SearchOp):
                results.append(self._search_items(op, renewed, now, loop))
            elif isinstance(op, ListNamespacesOp):
                results.append(list_namespaces(self._table, op))
            else:
                results.append(None)
        # Of several that put one item, the last one does.
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        if puts or renewed:
            written = write(self._table, self._puts(list(puts.values()), now, loop), renewed)
            if self._search is not None:
                for namespace, change in written.items():
                    self._search.take_over(namespace, change)
        return results

    def _search_items(
        self, op: SearchOp, renewed: dict[str, int], now: int, loop: asyncio.AbstractEventLoop | None
    ) -> list[SearchItem]:
        # numpy is loaded by the first search.
        from holdfast.integrations.langgraph.store_search import ItemQuery, StoreSearch

        if self._search is None:
            unpack = None if self._embedder is None else self._embedder.unpack
            self._search = StoreSearch(self._table, self._fields, unpack)
        words, vector = op.query or "", None
        if words and self._embedder is not None:
            vector = self._embedder.query(words, loop)
        wanted = ItemQuery(tuple(op.namespace_prefix), words, vector, op.filter, op.offset, op.limit)
        return [
            SearchItem(**_read_fields(op, stored, renewed, now), score=score)
            for _, stored, score in self._search.search(wanted, now)
        ]

    def _puts(self, ops: Sequence[PutOp], now: int, loop: asyncio.AbstractEventLoop | None) -> list[Put]:
        """Return the items to store, with vectors from as few calls of the embedder as possible."""
        puts = [_put(op, now) for op in ops]
        if self._embedder is None:
            return puts
        texts = [self._texts(op) for op in ops]
        flat = [text for some in texts for text in some]
        if not flat:
            return puts
        rows, first = self._embedder.documents(flat, loop), 0
        for n, some in enumerate(texts):
            if some:
                puts[n] = puts[n]._replace(vectors=self._embedder.pack(rows[first : first + len(some)]))
            first += len(some)
        return puts

    def _texts(self, op: PutOp) -> list[str]:
        """Return the texts to embed of an item."""
        if op.value is None or op.index is False:
            return []
        fields = self._fields if op.index is None else op.index
        return [text for text in texts_of(op.value, fields) if text.strip()]


def _check_op(op: Op) -> None:
    """Raise InvalidNamespaceError or InvalidInput if an operation cannot be executed."""
    validate_op_namespace(op)
    if isinstance(op, GetOp):
        check_key(op.namespace, op.key)
    elif isinstance(op, PutOp):
        check_key(op.namespace, op.key)
        if op.index is not None and op.index is not False:
            check_fields(op.index)
        if op.ttl is not None:
            _check_minutes(op.ttl, "ttl")
    elif isinstance(op, SearchOp):
        _check_page(op)
        if op.filter:
            check_filter(op.filter)
    elif isinstance(op, ListNamespacesOp):
        _check_page(op)
        if op.max_depth is not None:
            check_count(op.max_depth, "max_depth")
        for condition in op.match_conditions or ():
            if condition.match_type not in ("prefix", "suffix"):
                what = f"{shown(condition.match_type)} is no way to match namespaces."
                raise InvalidInput(what, "Use 'prefix' or 'suffix'.")
    else:
        raise InvalidInput(f"{shown(op)} is no operation of a store.", "Pass those of langgraph.store.base.")


def _check_minutes(value: object, what: str) -> float:
    """Return a number of minutes; raise InvalidInput for one below zero, or over three centuries."""
    if isinstance(value, int | float) and isfinite(value) and 0 <= value <= _LONGEST_TTL:
        return value
    raise InvalidInput(
        f"`{what}` is {shown(value)}.", "Pass minutes, at least 0 and at most three centuries."
    )


def _check_page(op: SearchOp | ListNamespacesOp) -> None:
    check_count(op.limit, "limit")
    check_count(op.offset, "offset")


def _put(op: PutOp, now: int) -> Put:
    if op.value is None:
        return Put(op.namespace, op.key, None)
    if not isinstance(op.value, Mapping):
        raise InvalidInput(
            f"The value {shown(op.value)} is not a dict.", "Pass one, or None to delete the item."
        )
    expires = None if op.ttl is None else now + round(op.ttl * _MINUTE)
    return Put(op.namespace, op.key, encode(op.ttl, op.index, op.value), None, expires)


def _read_fields(
    op: GetOp | SearchOp, stored: StoredItem, renewed: dict[str, int], now: int
) -> dict[str, Any]:
    """Return the fields of an item; where a read gives it more time, note in `renewed` until when."""
    namespace, key = parse_key(stored.key)
    created, ttl, _, value = decode(stored)
    if op.refresh_ttl and ttl is not None:
        expires = now + round(ttl * _MINUTE)
        renewed |= {item_key(namespace, key): expires, vectors_key(namespace, key): expires}
    times = {"created_at": time_of(created), "updated_at": time_of(stored.at)}
    return {"namespace": namespace, "key": key, "value": value, **times}
