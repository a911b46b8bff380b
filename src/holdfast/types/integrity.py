"""Receipts of erasures, and the results of verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.types.writers import Writer


@dataclass(frozen=True, slots=True)
class Erasure:
    """The receipt of an erasure: the kind of things, how many of each, when and by whom; no words.

    `digest` is the SHA-256 HMAC of what was erased under `key`. The key is in the receipt that `erase`
    returns and nowhere else, so that nobody can guess short words from what is stored.

    `rewritten` names what was written anew, so that no byte of the words is left in it: "file" for SQLite,
    the tables and "planner statistics" for PostgreSQL. `remains` names what was not, each with the reason.
    Both are as of the time of the receipt; a later erasure, of anything, may have written the rest anew.
    """

    id: str
    what: str
    counts: Mapping[str, int] = field(hash=False)
    by: Writer
    at: datetime
    digest: str
    key: str = ""
    rewritten: tuple[str, ...] = ()
    remains: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`: what was checked (name → how many) and the problems; `ok` without any.

    `unproven` counts the rows whose checksum proves nothing, which is not a problem: they were written with
    a key where there is none now, or without one where there is.
    """

    checked: Mapping[str, int] = field(hash=False)
    problems: tuple[str, ...] = ()
    unproven: int = 0

    @property
    def ok(self) -> bool:
        """Whether everything that was checked holds."""
        return not self.problems
