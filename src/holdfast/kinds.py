"""The kinds of records, as one table of policy. Add a row for a kind of your own.

A `Memory` takes more rows, or others in place of these: `Memory(…, kinds=[Kind("decision",
heading="Decisions")])`. Every process that uses a database should pass the same; what is stored keeps its
kind in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Literal

from holdfast.errors import InvalidInput, shown
from holdfast.types import WRITERS, Record, Writer, check_count, check_flag, check_name
from holdfast.types.checks import are_names, as_duration, is_number

FIL = ("finding", "insight", "lesson")  # observations; also the order of `remember_fil`
LONGEST = 100_000  # characters of one text; a longer one is a document, to be stored as messages
FEEDBACK = "feedback"
"""The kind in which `Learner.feedback` stores whether a hit helped: in no prompt, and found by no recall."""
_LONGEST_WISH = 500  # characters of a description and of an example
_MOST_EXAMPLES = 50


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How sure the comparison of two texts must be, as probabilities from 0 to 1.

    Attributes:
        update: above it a new text supersedes the known one.
        doubt: above it, that they are related at all, both are kept, and a model settles it later.

    Raises:
        InvalidInput: one is not a number from 0 to 1.

    """

    # Chosen on pairs of authors that were not fitted: 0.5 % of them are wrongly updates.
    update: float = 0.765
    doubt: float = 0.4

    def __post_init__(self) -> None:
        for name in ("update", "doubt"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value <= 1:
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

    `expires` is how long a record is kept after it was said last, and `expires_unused` after it was said or
    used last, such as "180d": hours (h), days (d) or weeks (w), or a timedelta; None for ever. Then
    `Learner.work` retracts it, or with `erase_expired` erases it. What is pinned stays. See
    `docs/forgetting.md`.

    `learn` says what a model is to learn as this kind, and `examples` are sentences in which a user says it,
    which the model is shown. Without a model nothing is learned as it.

    Raises:
        InvalidInput: a name is not usable, a budget or a cap is for an unknown target, a writer is
            unknown, there are examples without `learn`, a time is none, or what only the user may remove is
            to expire.

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
    learn: str = ""
    examples: Sequence[str] = ()
    thresholds: Thresholds = Thresholds()
    expires: str | timedelta | None = None
    expires_unused: str | timedelta | None = None
    erase_expired: bool = False

    def __post_init__(self) -> None:
        check_name(self.name, "The name of a kind", longest=64)
        check_name(self.heading, "The heading of a kind", empty=True)
        check_count(self.longest, "longest")
        check_flag(self.merge, "merge")
        check_flag(self.counts_use, "counts_use")
        if not isinstance(self.thresholds, Thresholds):
            raise InvalidInput(f"`thresholds` is {shown(self.thresholds)}.", "Pass a kinds.Thresholds.")
        _check_wish(self.name, self.learn, self.examples)
        for name in ("expires", "expires_unused"):
            object.__setattr__(self, name, as_duration(getattr(self, name), name))
        if check_flag(self.erase_expired, "erase_expired") and not any(self.lifetimes):
            raise InvalidInput(
                "`erase_expired` erases nothing.", "Pass `expires` or `expires_unused` as well."
            )
        if any(self.lifetimes) and self.writers == ("user",):
            raise InvalidInput(
                f"Only the user may remove a {self.name}, so it cannot expire.", "Leave out the time."
            )
        object.__setattr__(self, "counts_use", self.counts_use or self.expires_unused is not None)
        object.__setattr__(self, "examples", tuple(self.examples))
        for names, what in ((self.targets, "targets"), (self.writers, "writers")):
            if not are_names(names):
                raise InvalidInput(f"`{what}` of a kind must be a tuple of strings.", "Pass a tuple.")
        for name in ("prompt_budget", "cap"):
            limits = getattr(self, name)
            if not self.targets or not isinstance(limits, Mapping) or set(limits) - set(self.targets):
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

    @property
    def lifetimes(self) -> tuple[int | None, int | None]:
        """How long a record is kept after it was said, and said or used, in microseconds; None for ever."""
        kept = (as_duration(self.expires, "expires"), as_duration(self.expires_unused, "expires_unused"))
        said, used = (None if time is None else time // timedelta(microseconds=1) for time in kept)
        return said, used


def _check_wish(name: str, learn: str, examples: object) -> None:
    """Raise InvalidInput unless a kind can be learned as its description and its examples say."""
    check_name(learn, "`learn` of a kind", empty=True, longest=_LONGEST_WISH)
    if isinstance(examples, str) or not isinstance(examples, Sequence) or len(examples) > _MOST_EXAMPLES:
        raise InvalidInput(
            f"`examples` of the kind {name!r} is {shown(examples)}.",
            f"Pass a list of at most {_MOST_EXAMPLES} sentences.",
        )
    for example in examples:
        check_name(example, "An example", longest=_LONGEST_WISH)
    if examples and not learn:
        raise InvalidInput(
            f"The kind {name!r} has examples of nothing.", "Say in `learn` what they are examples of."
        )


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
    Kind(FEEDBACK),
)


def table(more: Kind | Iterable[Kind] = ()) -> Mapping[str, Kind]:
    """Return the kinds by name: the rows above, and `more`, which replace those of the same name."""
    rows = {kind.name: kind for kind in KINDS}
    if not isinstance(more, Kind | Iterable):
        raise InvalidInput(f"`kinds` is {shown(more)}, not a list of kinds.", "Pass a list of holdfast.Kind.")
    for kind in (more,) if isinstance(more, Kind) else more:
        if not isinstance(kind, Kind):
            raise InvalidInput(f"{shown(kind)} is not a kind.", "Pass a list of holdfast.Kind.")
        if kind.learn and any(_plain(kind.name) == _plain(row) for row in rows):
            raise InvalidInput(
                f"The kind {kind.name!r} has a name that is taken, or nearly so, and `learn`.",
                "Give what you want learned a name of its own.",
            )
        rows[kind.name] = kind
    return MappingProxyType(rows)


def wished(kinds: Mapping[str, Kind]) -> list[Kind]:
    """Return the kinds that are to be learned as their descriptions say."""
    return [kind for kind in kinds.values() if kind.learn]


def _plain(name: str) -> str:
    # As the keys of a model's answer are compared.
    return name.strip().casefold().removesuffix("s")


def nearest(own: Sequence[Record], shared: Sequence[Record], agent: str) -> Record | None:
    """Return the record of a kind for an agent: its own, else that of no agent, else the shared one.

    `own` are the records of the user's space, `shared` those of the space that the tenant shares.
    """
    return min(own or shared, key=lambda record: record.agent != agent, default=None)
