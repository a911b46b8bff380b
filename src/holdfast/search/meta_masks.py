"""Which documents pass a filter on metadata, as masks; what was read for one is kept for the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from holdfast.search.columns import NO_NUMBERS
from holdfast.store import meta_values
from holdfast.types.where import Condition, conditions, is_missing, look_up

if TYPE_CHECKING:
    from holdfast.search.columns import Columns, Integers, Mask
    from holdfast.store.database import Database
    from holdfast.store.meta_values import Labelled, MetaState
    from holdfast.types.where import Where

# Conditions and filters whose documents are kept, for each source of a space.
_KEPT = 32


class MetaMasks:
    """The filters on metadata of a source of a space; hold the lock of its index while using it.

    A message has the metadata of its chat where it has none of its own under a key.
    """

    def __init__(self, database: Database, space: str, source: Labelled) -> None:
        self._database = database
        self._space = space
        self._source = source
        self._epoch = self._changes = -1
        # Of each condition: up to which document it was looked for, and where it holds.
        self._documents: OrderedDict[str, tuple[int, Integers]] = OrderedDict()
        # Of each condition: the chats that it holds for.
        self._chats: dict[str, frozenset[str]] = {}
        # Of each filter: as of which document, and the mask.
        self._masks: OrderedDict[str, tuple[int, Mask]] = OrderedDict()

    def mask(self, where: Where, columns: Columns) -> Mask:
        """Return which of all documents pass a filter."""
        state, text = meta_values.state(self._database, self._space), str(where)
        self._forget(state)
        last, mask = self._masks.get(text, (-1, None))
        if mask is None or last != columns.last:
            tests = conditions(where)
            if self._source == "message":
                self._read_chats([*tests, *(_is_there(one) for one in tests if one.holds_if_missing)], state)
            # Only where it matters which documents have the key themselves.
            present = [_is_there(one) for one in tests if one.holds_if_missing or self._chats.get(one.text)]
            self._read([*tests, *present], columns.last, state)
            mask = self._combined(where, columns)
            self._masks[text] = (columns.last, mask)
        self._masks.move_to_end(text)
        while len(self._masks) > _KEPT:
            self._masks.popitem(last=False)
        while len(self._documents) > 2 * _KEPT:
            self._documents.popitem(last=False)
        return mask

    def _forget(self, state: MetaState) -> None:
        """Forget what may have changed: after an erasure all, after a change of a chat what is of chats."""
        if state.epoch != self._epoch:
            self._documents.clear()
        if (state.epoch, state.changes) != (self._epoch, self._changes):
            self._chats.clear()
            self._masks.clear()
        self._epoch, self._changes = state.epoch, state.changes

    def _read(self, tests: Iterable[Condition], last: int, state: MetaState) -> None:
        """Find the documents up to the last one for which conditions hold, by what they have themselves."""
        begin: dict[str, int] = {}
        found: dict[str, list[int]] = {}
        pending = {one.text: one for one in tests if self._known(one)[0] < last}
        for text, one in pending.items():
            begin[text], _ = self._known(one)
            done = min(state.done.get((self._source, one.key), 0), last)
            found[text] = []
            if done > begin[text]:
                noted = self._noted(self._source, one, begin[text], done)
                if noted is not None:
                    found[text], begin[text] = [int(name) for name in noted], done
        rest = [(one, begin[text], found[text]) for text, one in pending.items() if begin[text] < last]
        if rest:
            after = min(first for _, first, _ in rest)
            rows = meta_values.metadata(self._database, self._space, self._source, after, last)
            for number, values in rows:
                for one, first, numbers in rest:
                    if int(number) > first and _holds(one, values):
                        numbers.append(int(number))
        for text, one in pending.items():
            new = np.array(found[text], np.int64)
            self._documents[text] = (last, np.concatenate([self._known(one)[1], new]))

    def _known(self, condition: Condition) -> tuple[int, Integers]:
        return self._documents.get(condition.text, (0, NO_NUMBERS))

    def _noted(self, source: Labelled, condition: Condition, after: int, until: int) -> set[int | str] | None:
        """Return the documents or chats for which the stored table says that a condition holds."""
        noted = meta_values.find(self._database, self._space, source, condition, after, until)
        if noted is None or not noted.unsure:
            return None if noted is None else noted.sure
        rows = meta_values.metadata_of(self._database, self._space, source, noted.unsure)
        return noted.sure | {name for name, values in rows if _holds(condition, values)}

    def _read_chats(self, tests: Sequence[Condition], state: MetaState) -> None:
        """Find the chats for which conditions hold."""
        if len(self._chats) > 4 * _KEPT:
            self._chats.clear()
        found: dict[str, set[str]] = {}
        rest: list[Condition] = []
        for one in {one.text: one for one in tests if one.text not in self._chats}.values():
            noted = None
            if ("chat", one.key) in state.done:
                noted = self._noted("chat", one, 0, 0)
            found[one.text] = set(map(str, noted or ()))
            if noted is None:
                rest.append(one)
        if rest:
            for chat, values in meta_values.metadata(self._database, self._space, "chat"):
                for one in rest:
                    if _holds(one, values):
                        found[one.text].add(str(chat))
        self._chats |= {text: frozenset(chats) for text, chats in found.items()}

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
        mask[self._known(condition)[1]] = True
        present = _is_there(condition)
        of_chats = self._of_chats(condition, columns)
        if condition.holds_if_missing or of_chats is not None:
            lacking = np.ones(len(mask), bool)
            lacking[self._known(present)[1]] = False
            if of_chats is not None:
                mask |= lacking & of_chats
            if condition.holds_if_missing:
                there = self._of_chats(present, columns)
                mask |= lacking if there is None else lacking & ~there
        return ~mask if condition.negated else mask

    def _of_chats(self, condition: Condition, columns: Columns) -> Mask | None:
        """Return which documents are of chats for which a condition holds; None for none."""
        chats = self._chats.get(condition.text)
        if not chats:
            return None
        allowed = np.array([chat in chats for chat, _ in columns.chats], bool)
        of_chats: Mask = allowed.take(columns.chat[: columns.last + 1])
        return of_chats


def _is_there(condition: Condition) -> Condition:
    """Return the condition that there is any value under the same key."""
    return replace(condition, test="exists", values=(), negated=False, text=f"{condition.key!r} exists")


def _holds(condition: Condition, values: dict[str, object]) -> bool:
    value = look_up(values, condition.key)
    return not is_missing(value) and condition.accepts(value)
