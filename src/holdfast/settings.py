"""How an agent learns in the background: when, from how much at once, how often again, and for how much at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from holdfast.errors import InvalidInput
from holdfast.types import check_count

KINDS = ("observe", "episode", "judge", "consolidate", "reflect")
"""The kinds of jobs, but for "guard", which is done where the memory was opened with a guard."""
PURPOSES = (*KINDS, "guard", "compact", "relearn", "rank")
"""What models are asked for."""
ALL = ""
"""All purposes together, in `limits`."""
_MOST = 1_000_000
_LONGEST = timedelta(days=36_500)
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Limit:
    """Allow a model at most so many calls and tokens, of prompts and answers together, in any hour; None for any number.

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
    return {ALL: Limit(calls=600, tokens=3_000_000)}


@dataclass(frozen=True, slots=True)
class Learning:
    """Say how an agent learns from its sessions.

    Attributes:
        kinds: which jobs are done; without a model "judge", "consolidate" and "reflect" wait for one.
        idle: a session without a new message for so long has ended, as `Chat.end` says at once.
        turns: a session with fewer messages of the user has no episode.
        every: how often there is a reflection, and the facts are consolidated.
        batch: sessions of one reflection.
        messages: of a session that one reflection, or the episode of a long session, reads: the newest.
        tokens: of the conversation in one prompt, about.
        pairs: of records that are judged in one call.
        episodes: kept at most for an agent, the newest; the others are retracted.
        episode_age: older episodes are retracted; None keeps them.
        attempts: how often a job is tried before it has failed.
        backoff: before the second try; doubles with each, up to an hour.
        lease: for how long a job is a worker's own when nothing is heard of it.
        patience: seconds that an answer of a model is waited for. A function that hangs is left to its thread.
        limits: hard limits of one user for each kind of job, and "" for all that models are asked for, compaction included:
            600 calls and 3,000,000 tokens an hour, unless you say otherwise (`Limit()` sets none).
        untrusted: tools whose results come from outside, as patterns of names; None for the usual ones.

    Raises:
        InvalidInput: an unknown kind, or a number that is none.

    """

    kinds: tuple[str, ...] = KINDS
    idle: timedelta = timedelta(minutes=30)
    turns: int = 3
    every: timedelta = timedelta(hours=1)
    batch: int = 5
    messages: int = 200
    tokens: int = 8_000
    pairs: int = 20
    episodes: int = 500
    episode_age: timedelta | None = None
    attempts: int = 5
    backoff: timedelta = timedelta(minutes=1)
    lease: timedelta = timedelta(minutes=5)
    patience: float = 120.0
    limits: Mapping[str, Limit] = field(default_factory=_default_limits, hash=False)
    untrusted: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _check_names(self.kinds)
        for name in ("turns", "batch", "messages", "tokens", "pairs", "episodes", "attempts"):
            _check_number(name, getattr(self, name))
        for name in ("idle", "every", "backoff", "lease"):
            _check_time(name, getattr(self, name))
        if self.episode_age is not None:
            _check_time("episode_age", self.episode_age)
        _check_patience(self.patience)
        _check_limits(self.limits)
        object.__setattr__(self, "limits", {**_default_limits(), **self.limits})
        _check_patterns(self.untrusted)


def _check_names(kinds: object) -> None:
    if not isinstance(kinds, tuple) or not all(kind in KINDS for kind in kinds):
        raise InvalidInput(f"`kinds` is {kinds!r}.", f"Pass a tuple of some of {', '.join(KINDS)}.")


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
        raise InvalidInput(f"`{name}` is {value!r}.", f"Pass a whole number from 1 to {_MOST:,}.")


def _check_time(name: str, value: object) -> None:
    least = timedelta(seconds=1) if name == "lease" else timedelta(0)
    if not isinstance(value, timedelta) or not least <= value <= _LONGEST:
        raise InvalidInput(
            f"`{name}` is {value!r}.", f"Pass a timedelta from {least} to {_LONGEST.days:,} days."
        )


def _check_patience(value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= _DAY:
        raise InvalidInput(f"`patience` is {value!r}.", f"Pass seconds above 0 and up to {_DAY:,}.")


def _check_limits(limits: object) -> None:
    if not isinstance(limits, Mapping) or not all(isinstance(one, Limit) for one in limits.values()):
        raise InvalidInput("`limits` is no dict of limits.", 'Pass {"": Limit(calls=…)} or the like.')
    for purpose in limits:
        if purpose not in (ALL, *PURPOSES):
            raise InvalidInput(
                f"Models are asked for nothing that is called {purpose!r}.",
                f'Use "" for all, or one of {", ".join(PURPOSES)}.',
            )


def _check_patterns(untrusted: object) -> None:
    if untrusted is not None and not (
        isinstance(untrusted, tuple) and all(isinstance(pattern, str) for pattern in untrusted)
    ):
        raise InvalidInput(f"`untrusted` is {untrusted!r}.", "Pass a tuple of patterns of names, or None.")
