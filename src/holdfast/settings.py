"""Settings of learning: which jobs run, when, on how much at once, how often again, and at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from holdfast.errors import InvalidInput, shown
from holdfast.types import check_count

KINDS = ("observe", "episode", "tidy", "reflect")
"""The kinds of jobs, except "guard" and "embed", which run where the memory was opened with one."""
PURPOSES = (*KINDS, "guard", "compact", "relearn", "rank", "embed", "recall")
"""What models are called for."""
ALL = ""
"""All purposes together, in `limits`, but for those of embedders."""
OF_EMBEDDERS = ("embed", "recall")
"""What embedders are called for: the vectors of what is stored, and of queries."""
_MAX_NUMBER = 1_000_000
_MAX_TIME = timedelta(days=36_500)
_MAX_PATIENCE = 86_400
_MAX_TEXT = 4_000  # characters


@dataclass(frozen=True, slots=True)
class Limit:
    """The most calls and tokens (of prompts and answers) of a model in any hour; None for any number.

    Raises:
        InvalidInput: a negative number.

    """

    calls: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens"):
            value = getattr(self, name)
            if value is not None:
                check_count(value, name)


def _default_limits() -> Mapping[str, Limit]:
    ours = {ALL: Limit(calls=600, tokens=3_000_000)}
    return ours | dict.fromkeys(OF_EMBEDDERS, Limit(calls=3_600, tokens=20_000_000))


@dataclass(frozen=True, slots=True)
class Learning:
    """How an agent learns from its chats.

    Attributes:
        kinds: the jobs that run; without a model "tidy" and "reflect" wait for one.
        idle: a chat without a new message for this long has ended, as with `Chat.end`.
        every: how often there is a reflection, and the facts are tidied.
        tokens: of the conversation in one prompt, about.
        texts: that are embedded in one call.
        episodes: kept at most for an agent, the newest; the others are retracted.
        attempts: how often a job is tried before it has failed.
        patience: the seconds to wait for the answer of a model. A function that hangs is left to its thread.
        query_patience: the seconds that a recall waits for the vector of its query, before it goes by words
            alone.
        limits: hard limits of one user for each kind of job, and "" for all calls of language models,
            compaction included: 600 calls and 3,000,000 tokens an hour by default (`Limit()` sets none).
            Those of embedders have limits of their own, "embed" for what is stored and "recall" for queries:
            3,600 calls and 20,000,000 tokens each.
        untrusted: tools whose results come from outside, as patterns of names; None for the usual ones.
        instructions: what you want learned, and what not, in your own words: models are shown it in each
            prompt of learning, with credentials masked. Without a model it has no effect.

    Raises:
        InvalidInput: an unknown kind, a number out of range, or instructions of more than 4,000 characters.

    """

    kinds: tuple[str, ...] = KINDS
    idle: timedelta = timedelta(minutes=30)
    every: timedelta = timedelta(hours=1)
    tokens: int = 8_000
    texts: int = 64
    episodes: int = 500
    attempts: int = 5
    patience: float = 120.0
    query_patience: float = 2.0
    limits: Mapping[str, Limit] = field(default_factory=_default_limits, hash=False)
    untrusted: tuple[str, ...] | None = None
    instructions: str = ""

    def __post_init__(self) -> None:
        _check(
            "kinds",
            self.kinds,
            f"Pass a tuple of some of {', '.join(KINDS)}.",
            valid=_are_names(self.kinds, KINDS),
        )
        for name in ("tokens", "texts", "episodes", "attempts"):
            _check_number(name, getattr(self, name))
        for name in ("idle", "every"):
            _check_time(name, getattr(self, name))
        _check_patience("patience", self.patience)
        _check_patience("query_patience", self.query_patience)
        _check_limits(self.limits)
        object.__setattr__(self, "limits", {**_default_limits(), **self.limits})
        patterns = self.untrusted is None or _are_names(self.untrusted)
        _check("untrusted", self.untrusted, "Pass a tuple of patterns of names, or None.", valid=patterns)
        _check_text("instructions", self.instructions)


def _are_names(value: object, known: tuple[str, ...] | None = None) -> bool:
    """Return whether a value is a tuple of strings, all of them known."""
    return isinstance(value, tuple) and all(
        isinstance(name, str) and (known is None or name in known) for name in value
    )


def _check(name: str, value: object, todo: str, *, valid: bool) -> None:
    if not valid:
        raise InvalidInput(f"`{name}` is {shown(value)}.", todo)


def _check_text(name: str, value: object) -> None:
    valid = isinstance(value, str) and len(value) <= _MAX_TEXT
    _check(name, value, f"Pass text of at most {_MAX_TEXT:,} characters.", valid=valid)


def _check_number(name: str, value: object) -> None:
    valid = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_NUMBER
    _check(name, value, f"Pass a whole number from 1 to {_MAX_NUMBER:,}.", valid=valid)


def _check_time(name: str, value: object) -> None:
    valid = isinstance(value, timedelta) and timedelta(0) <= value <= _MAX_TIME
    _check(name, value, f"Pass a timedelta from {timedelta(0)} to {_MAX_TIME.days:,} days.", valid=valid)


def _check_patience(name: str, value: object) -> None:
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MAX_PATIENCE
    _check(name, value, f"Pass seconds above 0 and up to {_MAX_PATIENCE:,}.", valid=valid)


def _check_limits(limits: object) -> None:
    if not isinstance(limits, Mapping) or not all(isinstance(limit, Limit) for limit in limits.values()):
        raise InvalidInput("`limits` is not a dict of limits.", 'Pass {"": Limit(calls=…)} or the like.')
    for purpose in limits:
        if purpose not in (ALL, *PURPOSES):
            raise InvalidInput(
                f"Unknown purpose {shown(purpose)} in `limits`.",
                f'Use "" for all, or one of {", ".join(PURPOSES)}.',
            )
