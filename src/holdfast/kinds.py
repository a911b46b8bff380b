"""The kinds of records, as one table of policy. Add a row for a kind of your own.

A `Memory` takes more rows, or others in place of these: `Memory(…, kinds=[Kind("decision",
heading="Decisions")])`. Every process that uses a database should pass the same; what is stored keeps its
kind in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from holdfast.errors import InvalidInput, shown
from holdfast.types import WRITERS, Record, Writer, check_count, check_flag, check_name

FIL = ("finding", "insight", "lesson")  # observations; also the order of `remember_fil`
LONGEST = 100_000  # characters of one text; a longer one is a document, to be stored as messages


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How sure the comparison of two texts must be, as probabilities from 0 to 1.

    Attributes:
        duplicate: above it a new text is a repetition, and is not stored again.
        update: above it a new text supersedes the known one.
        doubt: above it, that they are related at all, both are kept and a job judges them later.

    Raises:
        InvalidInput: one is not a number from 0 to 1.

    """

    # On authors whose pairs were not fitted, 0.9 % of pairs are then wrongly duplicates, and 0.7 % wrongly
    # updates: fewer, as they take a text out of use.
    duplicate: float = 0.773
    update: float = 0.79
    doubt: float = 0.4

    def __post_init__(self) -> None:
        for name in ("duplicate", "update", "doubt"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise InvalidInput(f"`{name}` is {shown(value)}.", "Pass a number from 0 to 1.")


@dataclass(frozen=True, slots=True)
class Kind:
    """The policy of one kind of records.

    `heading` is its title in prompts; a kind without one is in no prompt, unless it is recalled. `one_per`
    makes a new text replace the former: one for each "agent", or one for each "chat". `targets` are what it
    can be about, the first by default, or the compartments of notes. `prompt_budget` is how many characters
    of the texts of a target a prompt contains; there may be more of them, which recall finds. `cap` limits
    the characters, metadata included, that are stored of a target (of a compartment: within its run, session
    or plan), `longest` those of one text. `writers` may add, change and remove it. `merge` compares a new
    text with the existing ones, unless the caller decides otherwise, and `thresholds` say how sure that must
    be. `counts_use` counts how often it was asked for.

    Raises:
        InvalidInput: a name is not usable, a budget or a cap is for an unknown target, or a writer is
            unknown.

    """

    name: str
    heading: str = ""
    one_per: Literal["", "agent", "chat"] = ""
    targets: tuple[str, ...] = ("",)
    cap: Mapping[str, int] = field(default_factory=dict, hash=False)
    longest: int = LONGEST
    writers: tuple[Writer, ...] = WRITERS
    merge: bool = False
    counts_use: bool = False
    prompt_budget: Mapping[str, int] = field(default_factory=dict, hash=False)
    thresholds: Thresholds = Thresholds()

    def __post_init__(self) -> None:
        check_name(self.name, "The name of a kind", longest=64)
        check_name(self.heading, "The heading of a kind", empty=True)
        check_count(self.longest, "longest")
        check_flag(self.merge, "merge")
        check_flag(self.counts_use, "counts_use")
        if not isinstance(self.thresholds, Thresholds):
            raise InvalidInput(f"`thresholds` is {shown(self.thresholds)}.", "Pass holdfast.Thresholds.")
        for names, what in ((self.targets, "targets"), (self.writers, "writers")):
            if not _are_names(names):
                raise InvalidInput(f"`{what}` of a kind must be a tuple of strings.", "Pass a tuple.")
        for name, limits in (("prompt_budget", self.prompt_budget), ("cap", self.cap)):
            if not self.targets or not _is_cap(limits, self.targets):
                raise InvalidInput(
                    f"`{name}` of the kind {self.name!r} names an unknown target.", "Name it in `targets`."
                )
            for most in limits.values():
                check_count(most, name)
        if self.one_per not in ("", "agent", "chat") or not set(self.writers) <= set(WRITERS):
            raise InvalidInput(
                f"The kind {self.name!r} has an unknown writer or `one_per`.",
                f"Writers are {', '.join(WRITERS)}; `one_per` is '', 'agent' or 'chat'.",
            )


def _are_names(names: object) -> bool:
    return isinstance(names, tuple) and all(isinstance(name, str) for name in names)


def _is_cap(cap: object, targets: tuple[str, ...]) -> bool:
    return isinstance(cap, Mapping) and set(cap) <= set(targets)


# Reflection does not decide what an agent is; its makers and users do.
_NOT_REFLECTION = tuple(writer for writer in WRITERS if writer != "reflect")

# In the order of prompts. Budgets, caps and lengths are those of the designs that these kinds come from.
KINDS: tuple[Kind, ...] = (
    Kind("constraint", "Constraints", writers=("user",), longest=4_000),
    Kind("soul", "Soul", one_per="agent", longest=20_000, writers=_NOT_REFLECTION),
    Kind("profile", "Profile", one_per="agent", longest=20_000),
    Kind("fact", "Facts", targets=("user", "env"), prompt_budget={"user": 4_000, "env": 8_000}, merge=True),
    Kind(
        "note",
        targets=("session", "plan", "run"),
        cap={"session": 10_000, "plan": 10_000, "run": 10_000},
        counts_use=True,
    ),
    Kind("finding"),
    Kind("insight"),
    Kind("lesson"),
    Kind("episode", one_per="chat", longest=2_000),
    Kind("file"),  # its target is its path; see `holdfast.tools.files`
)


def table(more: Iterable[Kind] = ()) -> Mapping[str, Kind]:
    """Return the kinds by name: the rows above, and `more`, which replace those of the same name."""
    rows = {kind.name: kind for kind in KINDS}
    if not isinstance(more, Iterable):
        raise InvalidInput(f"`kinds` is {shown(more)}, not a list of kinds.", "Pass a list of holdfast.Kind.")
    for kind in more:
        if not isinstance(kind, Kind):
            raise InvalidInput(f"{shown(kind)} is not a kind.", "Pass a list of holdfast.Kind.")
        rows[kind.name] = kind
    return MappingProxyType(rows)


def nearest(own: Sequence[Record], shared: Sequence[Record], agent: str) -> Record | None:
    """Return the record of a kind for an agent: its own, else that of no agent, else the shared one.

    `own` are the records of the user's space, `shared` those of the space that the tenant shares.
    """
    return min(own or shared, key=lambda one: one.agent != agent, default=None)
