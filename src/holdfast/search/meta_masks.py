"""Which documents pass a filter on metadata, as masks; the values of a key are read once and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from holdfast.store import metadata
from holdfast.store.metadata import MetadataState
from holdfast.types.where import Condition, Values, conditions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from holdfast.search.columns import Columns, Mask
    from holdfast.store.database import Database
    from holdfast.store.metadata import Labelled
    from holdfast.types.where import Comparable, Where

# Keys whose values are kept, and filters whose masks are, for each source of a space.
_KEPT = 32
_NONE_READ: NDArray[np.int32] = np.zeros(1, np.int32)
_NONE_HELD: Mask = np.zeros(1, bool)


class KeyColumn(NamedTuple):
    """The values of documents under a key, each value once; it never changes once it is shown to others.

    `places` has for each document up to the last one that was read which of the values it has, 0 for none.
    """

    key: str
    places: NDArray[np.int32]
    values: dict[Comparable, int]

    @property
    def last(self) -> int:
        """The last document that was read."""
        return len(self.places) - 1

    def extended(self, last: int) -> KeyColumn:
        """Return a copy with place for the documents up to another last one."""
        added = np.zeros(last - self.last, np.int32)
        return KeyColumn(self.key, np.concatenate([self.places, added]), self.values.copy())

    def note(self, document: int, values: Values) -> None:
        """Note the value that a document has."""
        if (value := values[self.key]) is not None:
            self.places[document] = self.values.setdefault(value, len(self.values) + 1)

    def held(self, condition: Condition, known: Mask) -> Mask:
        """Return for which values a condition holds; `known` are the first of them."""
        if len(known) > len(self.values):
            return known
        rest = islice(self.values, len(known) - 1, None)
        return np.concatenate([known, np.fromiter(map(condition.holds, rest), bool)])


class ChatsHeld(NamedTuple):
    """The chats for whose value a condition holds, and those that have one."""

    holding: frozenset[str]
    having: frozenset[str]


class KnownMetadata:
    """What was read of the metadata of a source, as of a state of them, and what it means for conditions.

    A message has the metadata of its chat where it has none of its own under a key.
    """

    def __init__(self, database: Database, space: str, source: Labelled) -> None:
        self._database = database
        self._space = space
        self._source = source
        self.state = MetadataState(-1, -1)
        self.columns: OrderedDict[str, KeyColumn] = OrderedDict()
        # None until they are read.
        self.chats: dict[str, dict[str, object]] | None = None
        # Of each condition: for which values of its key it holds, and for which chats.
        self.held: dict[str, Mask] = {}
        self.of_chats: dict[str, ChatsHeld] = {}

    def copy(self) -> KnownMetadata:
        """Return a copy, which can be used without the lock."""
        copied = copy(self)
        copied.columns, copied.held = self.columns.copy(), self.held.copy()
        copied.of_chats = self.of_chats.copy()
        return copied

    def take(self, other: KnownMetadata) -> None:
        """Take over what was read elsewhere, unless the metadata have changed since."""
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
        """Forget what may have changed: after an erasure all, after a change of a chat what is of chats."""
        before, self.state = self.state, metadata.state(self._database, self._space)
        if self.state.epoch != before.epoch:
            self.columns.clear()
            self.held.clear()
        if self.state != before:
            self.chats = None
            self.of_chats.clear()

    def read(self, where: Where, last: int) -> None:
        """Read what the conditions of a filter need, up to the last document, and try them."""
        tests = conditions(where)
        keys = dict.fromkeys(one.key for one in tests)
        known = [self.columns.setdefault(key, KeyColumn(key, _NONE_READ, {})) for key in keys]
        behind = [column for column in known if column.last < last]
        if behind:
            after, longer = min(column.last for column in behind), [one.extended(last) for one in behind]
            rows = metadata.of_documents(self._database, self._space, self._source, after, last)
            for document, found in rows:
                values = Values(found)
                for column in longer:
                    column.note(document, values)
            self.columns |= {column.key: column for column in longer}
        for one in tests:
            self.held[one.text] = self.columns[one.key].held(one, self.held.get(one.text, _NONE_HELD))
        if self._source == "message":
            self._try_chats(tests)

    def _try_chats(self, tests: Iterable[Condition]) -> None:
        if self.chats is None:
            self.chats = metadata.of_chats(self._database, self._space)
        for one in tests:
            if one.text not in self.of_chats:
                values = {chat: Values(found)[one.key] for chat, found in self.chats.items()}
                having = {chat: value for chat, value in values.items() if value is not None}
                holding = frozenset(chat for chat, value in having.items() if one.holds(value))
                self.of_chats[one.text] = ChatsHeld(holding, frozenset(having))


class MetaMasks:
    """The filters on metadata of a source of a space; hold the lock of its index while using it."""

    def __init__(self, database: Database, space: str, source: Labelled) -> None:
        self.known = KnownMetadata(database, space, source)
        # Of each filter: as of which document and which state, and the mask.
        self._masks: OrderedDict[str, tuple[tuple[int, MetadataState], Mask]] = OrderedDict()

    def mask(self, where: Where, columns: Columns) -> Mask:
        """Return which of all documents pass a filter."""
        self.known.refresh()
        text, now = str(where), (columns.last, self.known.state)
        then, mask = self._masks.get(text, (None, None))
        if mask is None or then != now:
            self.known.read(where, columns.last)
            mask = self._combined(where, columns)
            self._masks[text] = (now, mask)
        self._masks.move_to_end(text)
        while len(self._masks) > _KEPT:
            self._masks.popitem(last=False)
        return mask

    def _combined(self, where: Where, columns: Columns) -> Mask:
        if isinstance(where, Condition):
            return self._of_condition(where, columns)
        parts = [self._combined(part, columns) for part in where.parts]
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
                np.array([one in some for one, _ in columns.chats], bool).take(chat)
                for some in known.of_chats[text]
            )
            mask |= lacking & holding
            lacking &= ~having
        if condition.holds_if_missing:
            mask |= lacking
        return ~mask if condition.negated else mask
