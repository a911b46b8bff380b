"""Which documents pass a filter on metadata, as masks; what was read for one is kept for the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from holdfast.search.columns import NO_NUMBERS
from holdfast.store import meta_values
from holdfast.store.meta_values import MetaState
from holdfast.types.where import Condition, Values, conditions

if TYPE_CHECKING:
    from holdfast.search.columns import Columns, Integers, Mask
    from holdfast.store.database import Database
    from holdfast.store.meta_values import Labelled
    from holdfast.types.where import Where

# Conditions and filters whose documents are kept, for each source of a space.
_KEPT = 32


class Looked:
    """Where conditions hold, as of a state of the metadata: in which documents, and in which chats.

    A message has the metadata of its chat where it has none of its own under a key.
    """

    def __init__(self, database: Database, space: str, source: Labelled) -> None:
        self._database = database
        self._space = space
        self._source = source
        self.state = MetaState(-1, -1, {})
        # Of each condition: up to which document it was looked for, and where it holds.
        self.documents: OrderedDict[str, tuple[int, Integers]] = OrderedDict()
        # Of each condition: the chats that it holds for.
        self.chats: dict[str, frozenset[str]] = {}

    def copy(self) -> Looked:
        """Return a copy, which can be used without the lock."""
        copied = copy(self)
        copied.documents, copied.chats = self.documents.copy(), self.chats.copy()
        return copied

    def take(self, other: Looked) -> None:
        """Take over what was found elsewhere, unless the metadata have changed since."""
        while len(self.documents) > 2 * _KEPT:
            self.documents.popitem(last=False)
        if len(self.chats) > 4 * _KEPT:
            self.chats.clear()
        self.refresh()
        if other.state.epoch == self.state.epoch:
            self.documents |= other.documents
            if other.state.changes == self.state.changes:
                self.chats |= other.chats

    def refresh(self) -> None:
        """Forget what may have changed: after an erasure all, after a change of a chat what is of chats."""
        before, self.state = self.state, meta_values.state(self._database, self._space)
        if self.state.epoch != before.epoch:
            self.documents.clear()
        if (self.state.epoch, self.state.changes) != (before.epoch, before.changes):
            self.chats.clear()

    def look(self, where: Where, last: int) -> None:
        """Find where the conditions of a filter hold, up to the last document."""
        tests = conditions(where)
        if self._source == "message":
            self._read_chats([*tests, *(_is_there(one) for one in tests if one.holds_if_missing)])
        # Only where it matters which documents have the key themselves.
        present = [_is_there(one) for one in tests if one.holds_if_missing or self.chats.get(one.text)]
        self._read([*tests, *present], last)

    def _read(self, tests: Iterable[Condition], last: int) -> None:
        """Find the documents up to the last one for which conditions hold, by what they have themselves."""
        begin: dict[str, int] = {}
        found: dict[str, list[int]] = {}
        pending = {one.text: one for one in tests if self.known(one)[0] < last}
        for text, one in pending.items():
            begin[text], _ = self.known(one)
            done = min(self.state.done.get((self._source, one.key), 0), last)
            found[text] = []
            if done > begin[text]:
                noted = self._noted(self._source, one, begin[text], done)
                if noted is not None:
                    found[text], begin[text] = [int(name) for name in noted], done
        rest = [(one, begin[text], found[text]) for text, one in pending.items() if begin[text] < last]
        if rest:
            after = min(first for _, first, _ in rest)
            rows = meta_values.metadata(self._database, self._space, self._source, after, last)
            for number, metadata in rows:
                values = Values(metadata)
                for one, first, numbers in rest:
                    if int(number) > first and _holds(one, values):
                        numbers.append(int(number))
        for text, one in pending.items():
            new = np.array(found[text], np.int64)
            self.documents[text] = (last, np.concatenate([self.known(one)[1], new]))

    def known(self, condition: Condition) -> tuple[int, Integers]:
        """Return up to which document a condition was looked for, and where it holds."""
        return self.documents.get(condition.text, (0, NO_NUMBERS))

    def _noted(self, source: Labelled, condition: Condition, after: int, until: int) -> set[int | str] | None:
        """Return the documents or chats for which the stored table says that a condition holds."""
        noted = meta_values.find(self._database, self._space, source, condition, after, until)
        if noted is None or not noted.unsure:
            return None if noted is None else noted.sure
        rows = meta_values.metadata_of(self._database, self._space, source, noted.unsure)
        return noted.sure | {name for name, metadata in rows if _holds(condition, Values(metadata))}

    def _read_chats(self, tests: Sequence[Condition]) -> None:
        """Find the chats for which conditions hold."""
        found: dict[str, set[str]] = {}
        rest: list[Condition] = []
        for one in {one.text: one for one in tests if one.text not in self.chats}.values():
            noted = None
            if ("chat", one.key) in self.state.done:
                noted = self._noted("chat", one, 0, 0)
            found[one.text] = set(map(str, noted or ()))
            if noted is None:
                rest.append(one)
        if rest:
            for chat, metadata in meta_values.metadata(self._database, self._space, "chat"):
                values = Values(metadata)
                for one in rest:
                    if _holds(one, values):
                        found[one.text].add(str(chat))
        self.chats |= {text: frozenset(chats) for text, chats in found.items()}


class MetaMasks:
    """The filters on metadata of a source of a space; hold the lock of its index while using it."""

    def __init__(self, database: Database, space: str, source: Labelled) -> None:
        self.looked = Looked(database, space, source)
        # Of each filter: as of which document and which state, and the mask.
        self._masks: OrderedDict[str, tuple[tuple[int, int, int], Mask]] = OrderedDict()

    def mask(self, where: Where, columns: Columns) -> Mask:
        """Return which of all documents pass a filter."""
        self.looked.refresh()
        text, now = str(where), (columns.last, *self.looked.state[:2])
        then, mask = self._masks.get(text, (None, None))
        if mask is None or then != now:
            self.looked.look(where, columns.last)
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
        mask = np.zeros(columns.last + 1, bool)
        mask[self.looked.known(condition)[1]] = True
        present = _is_there(condition)
        of_chats = self._of_chats(condition, columns)
        if condition.holds_if_missing or of_chats is not None:
            lacking = np.ones(len(mask), bool)
            lacking[self.looked.known(present)[1]] = False
            if of_chats is not None:
                mask |= lacking & of_chats
            if condition.holds_if_missing:
                there = self._of_chats(present, columns)
                mask |= lacking if there is None else lacking & ~there
        return ~mask if condition.negated else mask

    def _of_chats(self, condition: Condition, columns: Columns) -> Mask | None:
        """Return which documents are of chats for which a condition holds; None for none."""
        chats = self.looked.chats.get(condition.text)
        if not chats:
            return None
        allowed = np.array([chat in chats for chat, _ in columns.chats], bool)
        of_chats: Mask = allowed.take(columns.chat[: columns.last + 1])
        return of_chats


def _is_there(condition: Condition) -> Condition:
    """Return the condition that there is any value under the same key."""
    return replace(condition, test="exists", values=(), negated=False, text=f"{condition.key!r} exists")


def _holds(condition: Condition, values: Values) -> bool:
    value = values[condition.key]
    return value is not None and condition.holds(value)
