"""Masks of the documents that pass a filter on metadata; the values of a key are read once and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from holdfast.search.columns import Columns, Mask, passing
from holdfast.store import metadata
from holdfast.store.metadata import Labelled, MetadataState
from holdfast.types.where import Comparable, Condition, Values, Where, conditions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from holdfast.store.database import Database

# The number of keys whose values are kept, and of filters whose masks are kept, for each source of a space.
_KEPT = 32
_NONE_READ: NDArray[np.int32] = np.zeros(1, np.int32)
_NONE_HELD: Mask = np.zeros(1, bool)


@dataclass
class KeyColumn:
    """The values of documents under a key, each value once.

    `places` has the number of the value of each document that was read, 0 for none.
    """

    key: str
    places: NDArray[np.int32]
    values: dict[Comparable, int]

    @property
    def last(self) -> int:
        """The last document that was read."""
        return len(self.places) - 1

    def holds(self, condition: Condition, known: Mask) -> Mask:
        """Return a mask of the values for which a condition holds; `known` is its beginning."""
        if len(known) > len(self.values):
            return known
        rest = islice(self.values, len(known) - 1, None)
        return np.concatenate([known, np.fromiter(map(condition.holds, rest), bool)])


class ChatsHeld(NamedTuple):
    """The chats for whose value a condition holds, and the chats with a value."""

    holding: frozenset[str]
    having: frozenset[str]


class MetaMasks:
    """The filters on metadata of a source of a space; hold `lock` while using it.

    A message without a value under a key has that of its chat.
    """

    def __init__(self, database: Database, space: str, source: Labelled) -> None:
        self.lock = threading.RLock()
        self._database, self._space, self._source = database, space, source
        self._state = MetadataState(-1, -1)
        self._columns: OrderedDict[str, KeyColumn] = OrderedDict()
        # None until they are read.
        self._chats: dict[str, dict[str, object]] | None = None
        # By condition: a mask of the values for which it holds, and the chats for which it holds.
        self._held: dict[str, Mask] = {}
        self._of_chats: dict[str, ChatsHeld] = {}
        # By filter: the last document and the state of the mask, and the mask.
        self._masks: OrderedDict[str, tuple[tuple[int, MetadataState], Mask]] = OrderedDict()

    def prepare(self, where: Where, last: int) -> None:
        """Read the metadata for the conditions of a filter, up to the last document, and test them."""
        self._refresh()
        while len(self._columns) > _KEPT:
            self._columns.popitem(last=False)
        if len(self._held) > 4 * _KEPT:
            self._held.clear()
            self._of_chats.clear()
        self._read(where, last)

    def mask(self, where: Where, columns: Columns) -> Mask:
        """Return a mask of the documents that pass a filter."""
        self._refresh()
        text, now = str(where), (columns.last, self._state)
        then, mask = self._masks.get(text, (None, None))
        if mask is None or then != now:
            self._read(where, columns.last)
            mask = self._combine(where, columns)
            self._masks[text] = (now, mask)
        self._masks.move_to_end(text)
        while len(self._masks) > _KEPT:
            self._masks.popitem(last=False)
        return mask

    def _refresh(self) -> None:
        """Forget everything after an erasure, and the metadata of chats after a change of them."""
        before, self._state = self._state, metadata.state(self._database, self._space)
        if self._state.epoch != before.epoch:
            self._columns.clear()
            self._held.clear()
        if self._state != before:
            self._chats = None
            self._of_chats.clear()

    def _read(self, where: Where, last: int) -> None:
        tests = conditions(where)
        keys = dict.fromkeys(test.key for test in tests)
        known = [self._columns.setdefault(key, KeyColumn(key, _NONE_READ, {})) for key in keys]
        if behind := [column for column in known if column.last < last]:
            longer = [np.pad(column.places, (0, last - column.last)) for column in behind]
            after = min(column.last for column in behind)
            rows = metadata.of_documents(self._database, self._space, self._source, after, last)
            for document, meta in rows:
                values = Values(meta)
                for column, places in zip(behind, longer, strict=True):
                    if (value := values[column.key]) is not None:
                        places[document] = column.values.setdefault(value, len(column.values) + 1)
            for column, places in zip(behind, longer, strict=True):
                column.places = places
        for test in tests:
            held = self._held.get(test.text, _NONE_HELD)
            self._held[test.text] = self._columns[test.key].holds(test, held)
        if self._source == "message":
            self._try_chats(tests)

    def _try_chats(self, tests: Iterable[Condition]) -> None:
        if self._chats is None:
            self._chats = metadata.of_chats(self._database, self._space)
        for condition in tests:
            if condition.text not in self._of_chats:
                values = {chat: Values(meta)[condition.key] for chat, meta in self._chats.items()}
                having = {chat: value for chat, value in values.items() if value is not None}
                holding = frozenset(chat for chat, value in having.items() if condition.holds(value))
                self._of_chats[condition.text] = ChatsHeld(holding, frozenset(having))

    def _combine(self, where: Where, columns: Columns) -> Mask:
        if isinstance(where, Condition):
            return self._of_condition(where, columns)
        parts = [self._combine(part, columns) for part in where.parts]
        if where.join == "not":
            return ~parts[0]
        joined: Mask = (np.logical_and if where.join == "and" else np.logical_or).reduce(parts)
        return joined

    def _of_condition(self, condition: Condition, columns: Columns) -> Mask:
        text, last = condition.text, columns.last
        places = self._columns[condition.key].places[: last + 1]
        mask, lacking = self._held[text][places], places == 0
        if text in self._of_chats and self._of_chats[text].having:
            chat = columns.chat[: last + 1]
            holding, having = (
                passing([name in some for name, _ in columns.chats], chat) for some in self._of_chats[text]
            )
            mask |= lacking & holding
            lacking &= ~having
        if condition.holds_if_missing:
            mask |= lacking
        return ~mask if condition.negated else mask
