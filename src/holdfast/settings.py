"""Settings of learning: which jobs run, when, on how much at once, how often again, and at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from holdfast.errors import InvalidInput, shown
from holdfast.types import check_count
from holdfast.types.checks import are_names, is_number, is_whole

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
        for name, value in (("calls", self.calls), ("tokens", self.tokens)):
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
            valid=are_names(self.kinds, KINDS),
        )
        for name in ("tokens", "texts", "episodes", "attempts"):
            number = getattr(self, name)
            valid = is_whole(number) and 1 <= number <= _MAX_NUMBER
            _check(name, number, f"Pass a whole number from 1 to {_MAX_NUMBER:,}.", valid=valid)
        for name in ("idle", "every"):
            time = getattr(self, name)
            valid = isinstance(time, timedelta) and timedelta(0) <= time <= _MAX_TIME
            _check(
                name, time, f"Pass a timedelta from {timedelta(0)} to {_MAX_TIME.days:,} days.", valid=valid
            )
        for name in ("patience", "query_patience"):
            seconds = getattr(self, name)
            valid = is_number(seconds) and 0 < seconds <= _MAX_PATIENCE
            _check(name, seconds, f"Pass seconds above 0 and up to {_MAX_PATIENCE:,}.", valid=valid)
        _check_limits(self.limits)
        object.__setattr__(self, "limits", {**_default_limits(), **self.limits})
        valid = self.untrusted is None or are_names(self.untrusted)
        _check("untrusted", self.untrusted, "Pass a tuple of patterns of names, or None.", valid=valid)
        text: object = self.instructions
        valid = isinstance(text, str) and len(text) <= _MAX_TEXT
        _check("instructions", text, f"Pass text of at most {_MAX_TEXT:,} characters.", valid=valid)


def _check(name: str, value: object, todo: str, *, valid: bool) -> None:
    if not valid:
        raise InvalidInput(f"`{name}` is {shown(value)}.", todo)


def _check_limits(limits: object) -> None:
    if not isinstance(limits, Mapping) or not all(isinstance(limit, Limit) for limit in limits.values()):
        raise InvalidInput("`limits` is not a dict of limits.", 'Pass {"": Limit(calls=…)} or the like.')
    for purpose in limits:
        if purpose not in (ALL, *PURPOSES):
            raise InvalidInput(
                f"Unknown purpose {shown(purpose)} in `limits`.",
                f'Use "" for all, or one of {", ".join(PURPOSES)}.',
            )
