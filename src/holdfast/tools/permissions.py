"""The actions that an agent has: those that the provider can do and the application permits."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, Self, get_args

from holdfast.contract import Capability, Provider
from holdfast.errors import InvalidInput
from holdfast.tools.json_schema import TYPES, Parameter, checked, parameters, schema
from holdfast.types import Record, check_several

Part = Literal["records", "profile", "soul", "constraints", "notes", "scratchpad"]
"""The parts of a memory that can be read-only; "records" are those of no other part."""
PARTS: tuple[Part, ...] = get_args(Part)
_PART_OF: Mapping[str, Part] = {
    "constraint": "constraints",
    "note": "notes",
    "profile": "profile",
    "soul": "soul",
}
# The parameters that write, in every action.
_WRITING = frozenset({"restore", "text", "soul", "add", "remove", "value"})


@dataclass(frozen=True, slots=True)
class Action:
    """An action that is available: its parameters, and its effects on what is stored."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    read_only: bool
    destructive: bool
    idempotent: bool

    @classmethod
    def reading(cls, method: Callable[..., object]) -> Self:
        """Return the action of a method that reads, as its signature and its documentation describe it."""
        description = (inspect.getdoc(method) or "").partition("\n")[0]
        takes = parameters(method)
        return cls(method.__name__, description, takes, read_only=True, destructive=False, idempotent=True)

    @property
    def hints(self) -> dict[str, type]:
        """The types of its arguments, by their names."""
        return {one.name: TYPES[one.type].python for one in self.parameters}

    def schema(self) -> dict[str, object]:
        """Return the JSON schema of its arguments."""
        return schema(self.parameters)

    def checked(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments of a call, converted for its function, without those that are null.

        Raises:
            InvalidInput: one is unknown, missing or of another type.

        """
        return checked(arguments, self.parameters, f"`{self.name}`")


@dataclass(frozen=True, slots=True)
class Permissions:
    """The conditions of actions: a provider, its capabilities, the read-only parts, a session.

    `kinds` are the kinds of records that `remember` stores.
    """

    provider: Provider
    can: frozenset[Capability]
    locked: frozenset[str] = frozenset()
    session: str = ""
    kinds: tuple[str, ...] = ()

    def writes(self, part: Part) -> bool:
        """Return whether a part may be written."""
        return part not in self.locked


_Test = Callable[[Permissions], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """The condition of an action, one of some capabilities, and those of its optional parameters."""

    description: str
    needs: tuple[Capability, ...] = ()
    optional: Mapping[str, _Test] = field(default_factory=dict)
    # True if it writes with any arguments, otherwise it does with those of `_WRITING`.
    writes: bool = False
    destructive: bool = True
    idempotent: bool = True

    def permits(self, permissions: Permissions) -> bool:
        """Return whether an action is available."""
        is_possible = not self.needs or not permissions.can.isdisjoint(self.needs)
        return is_possible and (not self.writes or permissions.writes("records"))


def _recalls_by(*parameters: str) -> _Test:
    def test(permissions: Permissions) -> bool:
        recall = getattr(permissions.provider, "recall", None)
        return recall is not None and all(takes(recall, name) for name in parameters)

    return test


def _writes(part: Part) -> _Test:
    return lambda permissions: permissions.writes(part)


_RULES: Mapping[str, Rule] = {
    "recall": Rule(
        "Search long-term memory: past conversations and what was learned. "
        "Do so before you say that you do not know.",
        ("recall",),
        {
            "kind": _recalls_by("kinds", "sources"),
            **{name: _recalls_by(name) for name in ("since", "until", "where")},
        },
    ),
    "remember": Rule(
        "Store one thing worth knowing in later sessions, as one full sentence.",
        ("records",),
        writes=True,
        destructive=False,
        idempotent=False,
    ),
    "update": Rule("Replace the text of a record that is no longer right.", ("records",), writes=True),
    "forget": Rule("Take back a record that is wrong or unwanted.", ("records",), writes=True),
    "expand": Rule(
        "Read what is behind an id: a whole record, a message and the next ones, the sources of a summary.",
        ("records", "sessions", "explore"),
    ),
    "history": Rule(
        "List what changed in memory, newest first.",
        ("changes",),
        # A version that is restored may be of any kind, so nothing may be locked.
        {"restore": lambda permissions: "versions" in permissions.can and not permissions.locked},
    ),
    "profile": Rule(
        "Read who the user is (profile) and who you are to them (soul).",
        ("profile",),
        {"text": _writes("profile"), "soul": _writes("soul")},
    ),
    "constraints": Rule(
        "List what always holds. The user must confirm a change.",
        ("profile",),
        {"add": _writes("constraints"), "remove": _writes("constraints")},
        idempotent=False,
    ),
    "notes": Rule(
        "Read working notes of this session.",
        ("records",),
        # A note belongs to a session.
        {
            "add": lambda permissions: permissions.writes("notes") and bool(permissions.session),
            "remove": _writes("notes"),
        },
        idempotent=False,
    ),
    "scratchpad": Rule(
        "Read named values that are kept.",
        ("scratchpad",),
        {"value": _writes("scratchpad"), "remove": _writes("scratchpad")},
    ),
    "search_sessions": Rule(
        "List or search past sessions, or read one.",
        ("sessions",),
        {"query": lambda permissions: "recall" in permissions.can},
    ),
    "status": Rule("Say what this memory can do and holds."),
}
ALL: tuple[str, ...] = tuple(_RULES)
"""The names of all actions, in the order in which they are listed."""

# Cached for methods of classes only: the cache would keep a memory open.
_parameters_of = cache(parameters)


def available(
    permissions: Permissions, methods: type, rules: Mapping[str, Rule] = _RULES
) -> tuple[Action, ...]:
    """Return the permitted actions of a class, its methods, each with its permitted parameters."""
    return tuple(
        _action(name, rule, permissions, _parameters_of(getattr(methods, name)))
        for name, rule in rules.items()
        if rule.permits(permissions)
    )


def _action(name: str, rule: Rule, permissions: Permissions, every: Iterable[Parameter]) -> Action:
    there = tuple(
        replace(param, choices=permissions.kinds) if (name, param.name) == ("remember", "kind") else param
        for param in every
        if param.name not in rule.optional or rule.optional[param.name](permissions)
    )
    writes = rule.writes or any(param.name in _WRITING for param in there)
    return Action(
        name,
        rule.description,
        there,
        read_only=not writes,
        destructive=writes and rule.destructive,
        idempotent=not writes or rule.idempotent,
    )


def part_of(kind: str) -> Part:
    """Return the part that a kind of record belongs to."""
    return _PART_OF.get(kind, "records")


def locked_parts(read_only: object) -> frozenset[str]:
    """Return the parts that are read-only: all for True, none for False, or those named.

    Raises:
        InvalidInput: there is no such part.

    """
    if isinstance(read_only, bool):
        return frozenset(PARTS) if read_only else frozenset()
    return frozenset(read_names(read_only, "read_only", PARTS))


def allowed_names(allow: str | Iterable[str] | None, names: Collection[str]) -> frozenset[str]:
    """Return the actions that are allowed; None allows all.

    Raises:
        InvalidInput: there is no action of a name.

    """
    return frozenset(names if allow is None else read_names(allow, "allow", names))


def read_names(value: object, option: str, known: Collection[str]) -> tuple[str, ...]:
    """Return an option that is a list of names.

    Raises:
        InvalidInput: it is not, or one of them is not known.

    """
    given = tuple(check_several(value, option, "names"))
    names = tuple(name for name in given if isinstance(name, str))
    if len(names) < len(given):
        raise InvalidInput(f"`{option}` has an item that is not text.", "Pass a list of names.")
    if unknown := set(names).difference(known):
        raise InvalidInput(
            f"Unknown name {min(unknown)!r} in `{option}`.", f"Use some of {', '.join(known)}."
        )
    return names


def takes(method: Callable[..., object], parameter: str) -> bool:
    """Return whether a function has a parameter of this name."""
    try:
        known = inspect.signature(method).parameters
    except (TypeError, ValueError):
        # Functions that are not written in Python may have no signature.
        return False
    return parameter in known or any(param.kind is param.VAR_KEYWORD for param in known.values())


def call(method: Callable[..., Any], *arguments: object, **more: object) -> Any:
    """Call a method, with the keyword arguments that it takes and that are not None."""
    taken = {name: value for name, value in more.items() if value is not None and takes(method, name)}
    return method(*arguments, **taken)


def write_text(provider: Any, kind: str, text: str, chat: str | None) -> Record:
    """Write the one text of a kind, such as the profile, for an agent; "" retracts it."""
    what = (provider.remember, text, kind) if text else (provider.retract, kind)
    written: Record = call(*what, by="agent", chat=chat)
    return written
