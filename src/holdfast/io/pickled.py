"""Pickles as plain values: their instructions are followed, but nothing is imported, called or constructed.

An object becomes a dict of its state, and what would have been computed a `Computed`. That is enough for data
that a program stored, such as the points of Qdrant; it is not a loader of pickles.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import NamedTuple

_MOST = 1_000_000  # instructions, and values of a result
_DEEPEST = 100
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], object]] = {
    "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_SET": list, "EMPTY_TUPLE": list,
}  # fmt: skip
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_DATA = ("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT")
_TEXTS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES")
_FOLLOWED = ("PROTO", "FRAME", "STOP")


class Computed(NamedTuple):
    """What a pickle would have imported or computed, by name."""

    what: str


class _Object(dict[object, object]):
    """The state of an object that was not constructed."""


def plain(data: bytes) -> object:
    """Return what is pickled in bytes, by protocol 2 or later, as dicts, lists, texts and numbers. Linear.

    Raises:
        ValueError: it is no pickle, cut off, too large, nested too deeply, or has an instruction that plain
            data does not need.

    """
    machine = _Machine()
    try:
        for count, (instruction, argument, _) in enumerate(pickletools.genops(data)):
            if count > _MOST:
                raise ValueError("It is too large.")
            machine.follow(instruction.name, argument)
        return _Copy().of(machine.stack[-1], 0)
    except (IndexError, KeyError, TypeError, UnicodeError) as error:
        raise ValueError("It is damaged.") from error


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}

    def follow(self, name: str, argument: object) -> None:
        stack = self.stack
        if name in _DATA or name in _TEXTS:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            self._marks.append(len(stack))
        elif name in ("MEMOIZE", "BINPUT", "LONG_BINPUT"):
            self._memo[len(self._memo) if argument is None else _int(argument)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[_int(argument)])
        elif name not in _FOLLOWED:
            self._combine(name, argument)

    def _combine(self, name: str, argument: object) -> None:
        """Follow an instruction that takes values from the stack."""
        if name in ("TUPLE", "APPENDS", "ADDITEMS", "SETITEMS"):
            self._close(name, self._since_mark())
        elif name in _TUPLES:
            self.stack.append(self._take(_TUPLES[name]))
        elif name in ("APPEND", "SETITEM"):
            self._close(name, self._take(1 if name == "APPEND" else 2))
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            # Its name alone: what stands under it is not looked at.
            self.stack.append(Computed(str(argument) if argument else " ".join(map(str, self._take(2)))))
        elif name in ("NEWOBJ", "NEWOBJ_EX"):
            self._take(2 if name == "NEWOBJ" else 3)
            self.stack.append(_Object())
        elif name == "REDUCE":
            function, _ = self._take(2)
            self.stack.append(Computed(str(function)))
        elif name == "BUILD":
            (state,) = self._take(1)
            if isinstance(built := self.stack[-1], _Object) and isinstance(state, dict):
                built.update(state)
        else:
            raise ValueError(f"It has the instruction {name}.")

    def _close(self, name: str, items: list[object]) -> None:
        if name == "TUPLE":
            self.stack.append(items)
            return
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, dict):
            target.update(zip(items[::2], items[1::2], strict=True))
        else:
            raise TypeError(name)

    def _take(self, count: int) -> list[object]:
        taken = self.stack[-count:]
        if len(taken) < count:
            raise IndexError(count)
        del self.stack[-count:]
        return taken

    def _since_mark(self) -> list[object]:
        at = self._marks.pop()
        taken = self.stack[at:]
        del self.stack[at:]
        return taken


def _int(argument: object) -> int:
    if not isinstance(argument, int):
        raise TypeError("memo")
    return argument


class _Copy:
    """A copy of a value, counted: the same list within itself, or in many lists, has no end otherwise."""

    def __init__(self) -> None:
        self._left = _MOST

    def of(self, value: object, depth: int) -> object:
        self._left -= 1
        if self._left < 0:
            raise ValueError("It is too large.")
        if depth > _DEEPEST:
            raise ValueError("It is nested too deeply.")
        if isinstance(value, dict):
            return {
                key: self.of(one, depth + 1) for key, one in value.items() if not isinstance(key, Computed)
            }
        return [self.of(one, depth + 1) for one in value] if isinstance(value, list) else value
