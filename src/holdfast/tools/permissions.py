"""Which actions there are for an agent: by what the provider can do, and what the application lets it do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, get_args

from holdfast.contract import Capability, Provider
from holdfast.errors import InvalidInput, shown
from holdfast.tools.json_schema import Parameter, parameters

Part = Literal["records", "profile", "soul", "constraints", "notes", "scratchpad"]
"""What can be made read-only by itself; "records" is everything that the others are not."""
PARTS: tuple[Part, ...] = get_args(Part)
_PART_OF: Mapping[str, Part] = {
    "profile": "profile",
    "soul": "soul",
    "constraint": "constraints",
    "note": "notes",
}


@dataclass(frozen=True, slots=True)
class Action:
    """Describe one action as it is there: what it takes, and what it may do to what is stored."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    read_only: bool
    destructive: bool
    idempotent: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """Hold what decides which actions there are."""

    provider: Provider
    can: frozenset[Capability]
    locked: frozenset[Part]
    session: str = ""

    def offers(self, method: str, parameter: str) -> bool:
        """Say whether a method of the provider is there and takes a parameter of this name."""
        found = getattr(self.provider, method, None)
        return found is not None and takes(found, parameter)

    def writes(self, part: Part) -> bool:
        """Say whether a part may be written."""
        return part not in self.locked


_Test = Callable[[Setting], bool]


@dataclass(frozen=True, slots=True)
class _Rule:
    """Say when an action is there, which of its parameters are not always, and which of them write."""

    description: str
    there: _Test
    sometimes: Mapping[str, _Test] = field(default_factory=dict)
    writing: tuple[str, ...] = ()
    writes: bool = False  # whatever it is given
    destructive: bool = False
    idempotent: bool = True


def _with(*needed: Capability) -> _Test:
    return lambda setting: setting.can.issuperset(needed)


def _takes(method: str, parameter: str) -> _Test:
    return lambda setting: setting.offers(method, parameter)


def _may(part: Part) -> _Test:
    return lambda setting: setting.writes(part)


_RULES: Mapping[str, _Rule] = {
    "recall": _Rule(
        "Search long-term memory: past conversations and what was learned. Do so before you say that you do not know.",
        _with("recall"),
        {
            "kind": lambda setting: setting.offers("recall", "kinds") and setting.offers("recall", "sources"),
            "since": _takes("recall", "since"),
            "until": _takes("recall", "until"),
        },
    ),
    "remember": _Rule(
        "Store one thing worth knowing in later sessions, as one full sentence.",
        lambda setting: "records" in setting.can and setting.writes("records"),
        writes=True,
        idempotent=False,
    ),
    "update": _Rule(
        "Replace the text of a record that is no longer right.",
        lambda setting: "records" in setting.can and setting.writes("records"),
        writes=True,
        destructive=True,
    ),
    "forget": _Rule(
        "Take back a record that is wrong or unwanted.",
        lambda setting: "records" in setting.can and setting.writes("records"),
        writes=True,
        destructive=True,
    ),
    "expand": _Rule(
        "Read what is behind an id: a whole record, a message and the next ones, the sources of a summary.",
        lambda setting: bool(setting.can & {"records", "sessions", "explore"}),
    ),
    "history": _Rule(
        "List what changed in memory, newest first.",
        _with("changes"),
        {
            # What is restored may be of any kind, so nothing may be locked.
            "restore": lambda setting: "versions" in setting.can and not setting.locked,
        },
        writing=("restore",),
        destructive=True,
    ),
    "profile": _Rule(
        "Read who the user is (profile) and who you are to them (soul).",
        _with("profile"),
        {"text": _may("profile"), "soul": _may("soul")},
        writing=("text", "soul"),
        destructive=True,
    ),
    "constraints": _Rule(
        "List what always holds. The user must confirm a change.",
        _with("constraints"),
        {"add": _may("constraints"), "remove": _may("constraints")},
        writing=("add", "remove"),
        destructive=True,
        idempotent=False,
    ),
    "notes": _Rule(
        "Read working notes of this session.",
        _with("records"),
        {
            "add": lambda setting: setting.writes("notes") and bool(setting.session),  # it belongs to one
            "remove": _may("notes"),
        },
        writing=("add", "remove"),
        destructive=True,
        idempotent=False,
    ),
    "scratchpad": _Rule(
        "Read named values that are kept.",
        _with("pad"),
        {"value": _may("scratchpad"), "remove": _may("scratchpad")},
        writing=("value", "remove"),
        destructive=True,
    ),
    "search_sessions": _Rule(
        "List or search past sessions, or read one.",
        _with("sessions"),
        {"query": _with("recall")},
    ),
    "status": _Rule("Say what this memory can do and holds.", lambda _: True),
}
ALL: tuple[str, ...] = tuple(_RULES)
"""The names of all actions, in the order in which they are listed."""


def available(setting: Setting, methods: Mapping[str, Callable[..., object]]) -> tuple[Action, ...]:
    """List the actions that are there, each with those of its parameters that are."""
    return tuple(
        _action(name, rule, setting, _known(methods[name]))
        for name, rule in _RULES.items()
        if rule.there(setting)
    )


_known = cache(
    parameters
)  # of the methods of classes, which stay; a function of a memory would keep that open


def _action(name: str, rule: _Rule, setting: Setting, every: Iterable[Parameter]) -> Action:
    there = tuple(one for one in every if one.name not in rule.sometimes or rule.sometimes[one.name](setting))
    writes = rule.writes or any(one.name in rule.writing for one in there)
    return Action(
        name,
        rule.description,
        there,
        read_only=not writes,
        destructive=writes and rule.destructive,
        idempotent=not writes or rule.idempotent,
    )


def part_of(kind: str) -> Part:
    """Say which part a kind of record belongs to."""
    return _PART_OF.get(kind, "records")


def locked_parts(read_only: bool | Iterable[str]) -> frozenset[Part]:  # noqa: FBT001 - the public option
    """Read what is read-only: all, nothing, or some parts.

    Raises:
        InvalidInput: there is no such part.

    """
    if isinstance(read_only, bool):
        return frozenset(PARTS) if read_only else frozenset()
    wanted = frozenset(read_names(read_only, "read_only"))
    named = frozenset(one for one in PARTS if one in wanted)
    if unknown := wanted - named:
        raise InvalidInput(
            f"{_first(unknown)} is no part of a memory.", f"Use True, False, or some of {', '.join(PARTS)}."
        )
    return named


def allowed_names(allow: Iterable[str] | None, names: Iterable[str]) -> frozenset[str]:
    """Read which actions are allowed; None allows all.

    Raises:
        InvalidInput: there is no action of a name.

    """
    every = frozenset(names)
    if allow is None:
        return every
    wanted = frozenset(read_names(allow, "allow"))
    if unknown := wanted - every:
        raise InvalidInput(f"{_first(unknown)} is no action.", f"Use some of {', '.join(sorted(every))}.")
    return wanted


def read_names(value: object, what: str) -> tuple[str, ...]:
    """Read an option that is a list of names.

    Raises:
        InvalidInput: it is none.

    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(f"`{what}` is {shown(value)}.", "Pass a list of names.")
    listed = list(value)
    if not all(isinstance(one, str) for one in listed):
        raise InvalidInput(f"`{what}` has what is no name.", "Pass a list of names.")
    return tuple(listed)


def _first(names: Iterable[str]) -> str:
    return repr(min(names))


def takes(method: Callable[..., object], parameter: str) -> bool:
    """Say whether a function has a parameter of this name."""
    try:
        found = inspect.signature(method).parameters
    except (TypeError, ValueError):  # some functions that are not written in Python have no signature
        return False
    return parameter in found or any(one.kind is one.VAR_KEYWORD for one in found.values())
