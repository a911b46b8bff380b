"""Masks of the documents that pass a filter on metadata; the values of a key are read once and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from copy import copy
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


class KeyColumn(NamedTuple):
    """The values of documents under a key, each value once; immutable once it is shared.

    `places` has the number of the value of each document that was read, 0 for none.
    """

    key: str
    places: NDArray[np.int32]
    values: dict[Comparable, int]

    @property
    def last(self) -> int:
        """The last document that was read."""
        return len(self.places) - 1

    def grow(self, last: int) -> KeyColumn:
        """Return a copy with places for the documents up to another last one."""
        added = np.zeros(last - self.last, np.int32)
        return KeyColumn(self.key, np.concatenate([self.places, added]), self.values.copy())

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


class KnownMetadata:
    """Metadata of a source that were read, as of a state of them, and the results of conditions.

    A message without a value under a key has that of its chat.
    """

    def __init__(self, database: Database, space: str, source: Labelled) -> None:
        self._database = database
        self._space = space
        self._source = source
        self.state = MetadataState(-1, -1)
        self.columns: OrderedDict[str, KeyColumn] = OrderedDict()
        # None until they are read.
        self.chats: dict[str, dict[str, object]] | None = None
        # By condition: a mask of the values for which it holds, and the chats for which it holds.
        self.held: dict[str, Mask] = {}
        self.of_chats: dict[str, ChatsHeld] = {}

    def copy(self) -> KnownMetadata:
        """Return a copy, which can be used without the lock."""
        copied = copy(self)
        copied.columns, copied.held = self.columns.copy(), self.held.copy()
        copied.of_chats = self.of_chats.copy()
        return copied

    def take(self, other: KnownMetadata) -> None:
        """Take over metadata that another object has read, unless they have changed since."""
        while len(self.columns) > _KEPT:
            self.columns.popitem(last=False)
        if len(self.held) > 4 * _KEPT:
            self.held.clear()
            self.of_chats.clear()
        self.refresh()
        if other.state.epoch == self.state.epoch:
            self.columns |= other.columns
            self.held |= other.held
        if other.state == self.state:
            self.chats = other.chats
            self.of_chats |= other.of_chats

    def refresh(self) -> None:
        """Forget everything after an erasure, and the metadata of chats after a change of them."""
        before, self.state = self.state, metadata.state(self._database, self._space)
        if self.state.epoch != before.epoch:
            self.columns.clear()
            self.held.clear()
        if self.state != before:
            self.chats = None
            self.of_chats.clear()

    def read(self, where: Where, last: int) -> None:
        """Read the metadata for the conditions of a filter, up to the last document, and test them."""
        tests = conditions(where)
        keys = dict.fromkeys(test.key for test in tests)
        known = [self.columns.setdefault(key, KeyColumn(key, _NONE_READ, {})) for key in keys]
        behind = [column for column in known if column.last < last]
        if behind:
            after, longer = min(column.last for column in behind), [column.grow(last) for column in behind]
            rows = metadata.of_documents(self._database, self._space, self._source, after, last)
            for document, meta in rows:
                values = Values(meta)
                for key, places, known_values in longer:
                    if (value := values[key]) is not None:
                        places[document] = known_values.setdefault(value, len(known_values) + 1)
            self.columns |= {column.key: column for column in longer}
        for test in tests:
            self.held[test.text] = self.columns[test.key].holds(test, self.held.get(test.text, _NONE_HELD))
        if self._source == "message":
            self._try_chats(tests)

    def _try_chats(self, tests: Iterable[Condition]) -> None:
        if self.chats is None:
            self.chats = metadata.of_chats(self._database, self._space)
        for condition in tests:
            if condition.text not in self.of_chats:
                values = {chat: Values(meta)[condition.key] for chat, meta in self.chats.items()}
                having = {chat: value for chat, value in values.items() if value is not None}
                holding = frozenset(chat for chat, value in having.items() if condition.holds(value))
                self.of_chats[condition.text] = ChatsHeld(holding, frozenset(having))


class MetaMasks:
    """The filters on metadata of a source of a space; hold the lock of its index while using it."""

    def __init__(self, database: Database, space: str, source: Labelled) -> None:
        self.known = KnownMetadata(database, space, source)
        # By filter: the last document and the state of the mask, and the mask.
        self._masks: OrderedDict[str, tuple[tuple[int, MetadataState], Mask]] = OrderedDict()

    def mask(self, where: Where, columns: Columns) -> Mask:
        """Return a mask of the documents that pass a filter."""
        self.known.refresh()
        text, now = str(where), (columns.last, self.known.state)
        then, mask = self._masks.get(text, (None, None))
        if mask is None or then != now:
            self.known.read(where, columns.last)
            mask = self._combine(where, columns)
            self._masks[text] = (now, mask)
        self._masks.move_to_end(text)
        while len(self._masks) > _KEPT:
            self._masks.popitem(last=False)
        return mask

    def _combine(self, where: Where, columns: Columns) -> Mask:
        if isinstance(where, Condition):
            return self._of_condition(where, columns)
        parts = [self._combine(part, columns) for part in where.parts]
        if where.join == "not":
            return ~parts[0]
        joined: Mask = (np.logical_and if where.join == "and" else np.logical_or).reduce(parts)
        return joined

    def _of_condition(self, condition: Condition, columns: Columns) -> Mask:
        known, text, last = self.known, condition.text, columns.last
        places = known.columns[condition.key].places[: last + 1]
        mask, lacking = known.held[text][places], places == 0
        if text in known.of_chats and known.of_chats[text].having:
            chat = columns.chat[: last + 1]
            holding, having = (
                passing([name in some for name, _ in columns.chats], chat) for some in known.of_chats[text]
            )
            mask |= lacking & holding
            lacking &= ~having
        if condition.holds_if_missing:
            mask |= lacking
        return ~mask if condition.negated else mask
